//! Writes the grammars for syntax highlighting, with character classes that take little to compile,
//! and has the functions that run linked together.

use std::env;
use std::error::Error;
use std::path::Path;

use syntect::dumps::dump_to_uncompressed_file;
use syntect::parsing::syntax_definition::{MatchPattern, Pattern, SyntaxDefinition};
use syntect::parsing::{Regex, SyntaxSetBuilder};

#[path = "src/util/grammars/compact.rs"]
mod compact;
#[path = "link/order.rs"]
mod order;

#[expect(clippy::disallowed_methods, reason = "cargo names the folder for what is built in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/util/grammars/compact.rs");
    let mut grammars = SyntaxSetBuilder::new();
    for syntax in two_face::syntax::extra_newlines().into_builder().syntaxes() {
        grammars.add(compacted(syntax.clone()));
    }
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let out = Path::new(&out);
    dump_to_uncompressed_file(&grammars.build(), out.join("grammars.bin"))?;
    Ok(order::link_in_order(out)?)
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
