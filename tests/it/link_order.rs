//! `link/order.txt` names functions that there are: a list that is out of date costs memory, and nothing else would
//! tell. The names are those of an optimised program, so they are compared with the sources and with `Cargo.lock`.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// What is to be done if one of these tests fails.
const REMEDY: &str =
    "write the list anew: cargo rustc --release --bin pi -- -C strip=none && link/order.py target/release/pi";

/// How many of a hundred functions of pi may have moved or changed their names since. The rest of a session's
/// functions is then still together.
const MOST_MOVED: usize = 2;

/// Crates that come with the compiler.
const COMPILER: [&str; 6] = ["alloc", "compiler_builtins", "core", "std", "std_detect", "test"];

fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The parts of the names, the crate first. Names of trait methods begin with what implements the trait, which no
/// crate alone has named; those of the compiler's newer form are functions of its own crates.
fn names() -> Vec<Vec<String>> {
    let list = fs::read_to_string(in_project("link/order.txt")).unwrap();
    list.lines().filter_map(parts).collect()
}

/// `_ZN2pi5tools4bash3run17h*E`: numbers before parts are their lengths.
fn parts(name: &str) -> Option<Vec<String>> {
    let mut rest = name.strip_prefix("_ZN")?;
    let mut parts = Vec::new();
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0) {
        let (len, text) = rest.split_at(end);
        // The last one is a hash, which the list may leave out.
        let Some((part, after)) = text.split_at_checked(len.parse().ok()?) else { break };
        parts.push(part.to_owned());
        rest = after;
    }
    (!parts.first()?.starts_with('_')).then_some(parts)
}

/// Whether a part is written in the sources, unlike closures and implementations.
fn is_written(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !is_hash(part)
}

/// Whether a macro wrote the function.
fn is_derived(parts: &[String]) -> bool {
    parts.iter().any(|part| part == "_")
}

fn is_hash(part: &str) -> bool {
    let digits = part.strip_prefix('h').filter(|digits| digits.len() == 16);
    digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))
}

/// The text of a module: of its file, which may have modules inside.
fn text_of(module: &[String], texts: &mut HashMap<PathBuf, Option<String>>) -> Option<String> {
    (0..=module.len()).rev().find_map(|n_parts| {
        let folder = in_project("src").join(module[..n_parts].iter().collect::<PathBuf>());
        let files = [folder.with_extension("rs"), folder.join("mod.rs"), folder.join("lib.rs")];
        let mut read = |file: &PathBuf| {
            texts.entry(file.clone()).or_insert_with(|| fs::read_to_string(file).ok()).clone()
        };
        files.iter().find_map(&mut read)
    })
}

/// Whether the function of a name, whose first part is the crate, is in its module.
fn is_there(parts: &[String], texts: &mut HashMap<PathBuf, Option<String>>) -> bool {
    let written: Vec<String> = parts[1..].iter().filter(|part| is_written(part)).cloned().collect();
    let Some((function, path)) = written.split_last() else { return true };
    let is_module = |part: &&String| part.starts_with(|c: char| c.is_ascii_lowercase());
    let module: Vec<String> = path.iter().take_while(is_module).cloned().collect();
    let Some(text) = text_of(&module, texts) else { return false };
    // A constant or a macro may stand for the function.
    text.match_indices(function.as_str()).any(|(at, _)| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text[..at].ends_with(is_word) && !text[at + function.len()..].starts_with(is_word)
    })
}

#[test]
fn functions_of_the_list_are_in_their_modules() {
    let names: Vec<_> = names().into_iter().filter(|parts| parts[0] == "pi" && !is_derived(parts)).collect();
    assert!(names.len() > 500, "the list has {} functions of pi; {REMEDY}", names.len());
    let mut texts = HashMap::new();
    let moved: Vec<String> =
        names.iter().filter(|parts| !is_there(parts, &mut texts)).map(|parts| parts.join("::")).collect();
    let share = moved.len() * 100 / names.len();
    assert!(share <= MOST_MOVED, "{share} % of the functions have moved; {REMEDY}\n{moved:#?}");
}

#[test]
fn crates_of_the_list_are_those_of_the_program() {
    let lock = fs::read_to_string(in_project("Cargo.lock")).unwrap();
    let packages = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let known: BTreeSet<String> = packages.map(|name| name.replace('-', "_")).collect();
    let named: BTreeSet<String> = names().into_iter().map(|parts| parts[0].clone()).collect();
    // A library may leave out a part of its package's name, as that of rustls-webpki does.
    let is_known =
        |name: &str| known.iter().any(|package| package == name || package.ends_with(&format!("_{name}")));
    let is_gone = |name: &&String| !is_known(name) && !COMPILER.contains(&name.as_str());
    let gone: Vec<&String> = named.iter().filter(|name| is_written(name)).filter(is_gone).collect();
    assert!(gone.is_empty(), "the program has no longer {gone:?}; {REMEDY}");
    // What every start and every answer needs.
    for needed in ["pi", "clap_builder", "pulldown_cmark", "reqwest", "serde_json", "tokio"] {
        assert!(named.contains(needed), "the list names no function of {needed}; {REMEDY}");
    }
}

#[test]
fn function_that_moved_is_noticed() {
    let mut texts = HashMap::new();
    let mut check = |name: &str| is_there(&parts(name).unwrap(), &mut texts);
    assert!(check("_ZN2pi7session13agent_session12prompt_queue11PromptQueue10save_draft17h*E"));
    assert!(!check("_ZN2pi7session13agent_session12prompt_queue11PromptQueue9not_there17h*E"));
    assert!(!check("_ZN2pi7session14prompt_journal12JournalQueue9not_there17h*E"));
}
