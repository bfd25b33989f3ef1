//! No type gathers everything: the number of methods that change it is limited.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::layers::{for_each_line, src};

/// Most methods with `&mut self` that a type may have.
const LIMIT: usize = 25;

/// Names that several types share: one decoder for each API and one for frames.
const EXCEPTIONS: &[(&str, usize)] = &[("Decoder", 67)];

#[test]
fn no_type_has_more_mutating_methods_than_its_limit() {
    let counts = mutating_methods();
    for (name, count) in &counts {
        let exception = EXCEPTIONS.iter().find(|(other, _)| other == name);
        let limit = exception.map_or(LIMIT, |(_, limit)| *limit);
        assert!(
            *count <= limit,
            "{name} has {count} methods with `&mut self`, {limit} at most: is it one thing?"
        );
    }
    for (name, _) in EXCEPTIONS {
        assert!(counts.get(*name).is_some_and(|count| *count > LIMIT), "{name} needs no exception any more");
    }
}

/// By the name of the type; types of one name are counted together.
fn mutating_methods() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(src()).unwrap() {
        let layer = entry.unwrap().path();
        if layer.is_dir() {
            count_in(&layer, &mut counts);
        }
    }
    counts
}

/// The layout of rustfmt makes this simple: an `impl` begins at the margin, and so does
/// the brace that ends it.
fn count_in(layer: &Path, counts: &mut BTreeMap<String, usize>) {
    let mut target: Option<String> = None;
    let mut head = String::new();
    let mut signature = String::new();
    for_each_line(layer, |_, _, code| {
        let code = code.trim_end();
        if !head.is_empty() || code.starts_with("impl") {
            head.push_str(code);
            head.push(' ');
            if head.contains('{') {
                target = Some(implementor(&std::mem::take(&mut head)));
            }
            return;
        }
        if code == "}" {
            target = None;
            return;
        }
        let Some(name) = &target else { return };
        if code.starts_with("    ") && is_function(code.trim_start()) {
            signature.clear();
        } else if signature.is_empty() || signature.len() > 200 {
            return;
        }
        signature.push_str(code.trim_start());
        let after_name = signature.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
        let Some((_, arguments)) = after_name.filter(|(_, arguments)| !arguments.trim().is_empty()) else {
            return;
        };
        if arguments.trim_start().starts_with("&mut self") || is_mut_with_lifetime(arguments) {
            *counts.entry(name.clone()).or_default() += 1;
        }
        signature.clear();
    });
}

fn is_function(code: &str) -> bool {
    let words = ["pub", "async", "const", "fn"];
    words.iter().any(|word| code.starts_with(word)) && code.contains("fn ")
}

/// `&'a mut self`
fn is_mut_with_lifetime(arguments: &str) -> bool {
    let rest = arguments.trim_start().strip_prefix("&'").and_then(|rest| rest.split_once(' '));
    rest.is_some_and(|(_, rest)| rest.starts_with("mut self"))
}

/// The type an `impl` is for: the last part of its path, without parameters.
fn implementor(head: &str) -> String {
    let head = head.split('{').next().unwrap_or_default();
    let head = head.split(" where ").next().unwrap_or_default();
    let after = match head.split_once(" for ") {
        Some((_, after)) => after,
        None => {
            let rest = head.trim_start_matches("impl");
            if rest.starts_with('<') { after_parameters(rest) } else { rest }
        }
    };
    let name = after.trim().split('<').next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default().trim().to_owned()
}

/// The rest of `text` after the brackets it begins with.
fn after_parameters(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    text
}

#[test]
fn the_type_of_an_impl_is_recognised() {
    let check = |head: &str, expected: &str| assert_eq!(implementor(head), expected, "{head}");
    check("impl App {", "App");
    check("impl<'a> BatchRun<'a, '_> {", "BatchRun");
    check("impl<T: Into<String>> Wrapper<T> {", "Wrapper");
    check("impl Hooks for Watched<'_> {", "Watched");
    check("impl super::Tool for tools::Bash where Self: Sized {", "Bash");
}

#[test]
fn every_program_that_a_test_starts_has_a_folder_of_its_own_for_temporary_files() {
    // Named beside its home.
    let (mut lines_left, mut n_programs) = (0, 0);
    for_each_line(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"), |_, place, code| {
        if code.contains(".env(\"HOME\",") {
            (lines_left, n_programs) = (3, n_programs + 1);
        }
        if code.contains(".env(\"TMPDIR\",") {
            lines_left = 0;
        }
        if lines_left > 0 {
            lines_left -= 1;
            assert!(lines_left > 0, "{place}: the program writes to the system's temporary folder");
        }
    });
    assert!(n_programs >= 10, "{n_programs}");
}

/// The build script writes them into a script of the linker.
#[test]
fn functions_that_are_linked_together_are_named_once_and_as_the_linker_names_them() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("link/order.txt")).unwrap();
    let names: Vec<&str> = text.lines().collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len());
    for name in &names {
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$*".contains(c)), "{name}");
    }
    // What every start runs, in pi and in a dependency.
    for known in ["_ZN2pi3cli3run17h*E", "_ZN5tokio7runtime7builder7Builder5build17h*E"] {
        assert!(names.contains(&known), "{known} is missing: link/order.py was given another program");
    }
}
