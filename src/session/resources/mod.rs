//! What shapes the prompt besides the conversation: instruction files and the
//! system prompt made from them.

mod agents_md;
mod system_prompt;

pub use agents_md::{ContextFile, context_files};
pub(super) use system_prompt::{PromptParts, sections};

pub(super) use system_prompt::delta;
