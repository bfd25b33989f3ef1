//! Which languages a grammar embeds. The build script needs it.

use std::collections::BTreeSet;
use std::error::Error;

use syntect::parsing::syntax_definition::{
    ContextId, ContextReference, MatchOperation, Pattern, SyntaxDefinition,
};

/// The places of the languages whose contexts the grammar of a linked set names.
pub(super) fn embedded(syntax: &SyntaxDefinition) -> Result<BTreeSet<u8>, Box<dyn Error>> {
    let mut ids = Vec::new();
    for context in syntax.contexts.values() {
        ids.extend(context.prototype);
        for pattern in &context.patterns {
            let references = match pattern {
                Pattern::Include(reference) => std::slice::from_ref(reference),
                Pattern::Match(pattern) => {
                    ids.extend(pattern.with_prototype.as_ref().and_then(linked));
                    match &pattern.operation {
                        MatchOperation::Push(references) | MatchOperation::Set(references) => references,
                        MatchOperation::Pop | MatchOperation::None => continue,
                    }
                }
            };
            ids.extend(references.iter().filter_map(linked));
        }
    }
    ids.iter().map(place).collect()
}

fn linked(reference: &ContextReference) -> Option<ContextId> {
    match reference {
        ContextReference::Direct { 0: id, .. } => Some(*id),
        _ => None,
    }
}

/// The place of the language; syntect shows it only in what it writes.
fn place(id: &ContextId) -> Result<u8, Box<dyn Error>> {
    let (language, _context): (usize, usize) = postcard::from_bytes(&postcard::to_allocvec(id)?)?;
    Ok(u8::try_from(language)?)
}
