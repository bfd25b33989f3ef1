//! Writes the grammars for syntax highlighting, and orders the functions of the program.
//!
//! Each grammar can be loaded without the others, and its character classes take little to compile.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use language::Language;
use syntect::parsing::syntax_definition::{MatchPattern, Pattern, SyntaxDefinition};
use syntect::parsing::{Regex, SyntaxSet, SyntaxSetBuilder};

#[path = "src/util/grammars/compact.rs"]
mod compact;
#[path = "src/util/grammars/embeds.rs"]
mod embeds;
#[path = "src/util/grammars/language.rs"]
mod language;
#[path = "link/order.rs"]
mod order;

#[expect(clippy::disallowed_methods, reason = "cargo names the folder for what is built in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for module in ["compact", "embeds", "language"] {
        println!("cargo::rerun-if-changed=src/util/grammars/{module}.rs");
    }
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let out = Path::new(&out);
    write_grammars(out)?;
    Ok(order::link_in_order(out)?)
}

/// Files whose languages most code is written in. Their grammars lie together: a page fault loads what lies
/// around them.
const COMMON: &str =
    "rs py ts tsx js json sh diff toml yaml md go c cpp java cs html css sql rb php swift kt Dockerfile";

/// Writes each grammar once, one after the other, and an index of them.
fn write_grammars(out: &Path) -> Result<(), Box<dyn Error>> {
    let mut grammars = SyntaxSetBuilder::new();
    for syntax in two_face::syntax::extra_newlines().into_builder().syntaxes() {
        grammars.add(compacted(syntax.clone()));
    }
    let needs = needs(&grammars)?;
    let extensions: Vec<String> =
        grammars.syntaxes().iter().map(|syntax| syntax.file_extensions.join("\n")).collect();
    let set = without_index(&grammars);
    let mut dump = Vec::new();
    let mut places = vec![(0, 0); needs.len()];
    for language in common_first(&extensions, &needs)? {
        let start = dump.len().try_into()?;
        postcard::to_io(&set.syntaxes()[language], &mut dump)?;
        places[language] = (start, dump.len().try_into()?);
    }
    let of_languages = set.syntaxes().iter().zip(&needs).zip(&extensions).zip(places);
    let index: Vec<Language<'_>> = of_languages
        .map(|(((syntax, needs), extensions), (start, end))| Language {
            name: &syntax.name,
            extensions,
            needs,
            start,
            end,
        })
        .collect();
    fs::write(out.join("grammars.idx"), postcard::to_allocvec(&index)?)?;
    Ok(fs::write(out.join("grammars.bin"), dump)?)
}

/// All languages, first those of common files and what their grammars need.
fn common_first(extensions: &[String], needs: &[Vec<u8>]) -> Result<Vec<usize>, Box<dyn Error>> {
    let mut order = Vec::new();
    for common in COMMON.split(' ') {
        let has_it = |extensions: &String| extensions.lines().any(|extension| extension == common);
        let language =
            extensions.iter().rposition(has_it).ok_or_else(|| format!("no grammar for {common}"))?;
        order.extend(needs[language].iter().map(|&index| usize::from(index)));
    }
    order.extend(0..needs.len());
    let mut seen = BTreeSet::new();
    order.retain(|&language| seen.insert(language));
    Ok(order)
}

/// For each language, those whose grammars its own one needs, in ascending order.
fn needs(grammars: &SyntaxSetBuilder) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    // Building links a grammar to those that it names.
    let linked = grammars.clone().build().into_builder();
    let embedded: Vec<BTreeSet<u8>> =
        linked.syntaxes().iter().map(embeds::embedded).collect::<Result<_, _>>()?;
    let closure = |language: usize| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut needs = BTreeSet::new();
        let mut open = vec![u8::try_from(language)?];
        while let Some(language) = open.pop() {
            if needs.insert(language) {
                open.extend(&embedded[usize::from(language)]);
            }
        }
        Ok(needs.into_iter().collect())
    };
    (0..embedded.len()).map(closure).collect()
}

/// Drops the fields that only lookup and linking use.
fn without_index(grammars: &SyntaxSetBuilder) -> SyntaxSet {
    let mut left = SyntaxSetBuilder::new();
    for syntax in grammars.syntaxes() {
        let (file_extensions, variables) = Default::default();
        left.add(SyntaxDefinition { file_extensions, variables, first_line_match: None, ..syntax.clone() });
    }
    left.build()
}

fn compacted(mut syntax: SyntaxDefinition) -> SyntaxDefinition {
    for context in syntax.contexts.values_mut() {
        for pattern in &mut context.patterns {
            if let Pattern::Match(pattern) = pattern {
                compact_pattern(pattern);
            }
        }
    }
    syntax
}

fn compact_pattern(pattern: &mut MatchPattern) {
    let Some(compact) = compact::compact_classes(pattern.regex.regex_str()) else { return };
    // References to what another pattern captured are filled in later, so those cannot be tried here.
    if pattern.has_captures || Regex::try_compile(&compact).is_none() {
        pattern.regex = Regex::new(compact);
    }
}
