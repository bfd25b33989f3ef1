//! The parts of the prompt outside the conversation: instruction files, skills, prompt
//! templates and the system prompt.

mod agents_md;
mod filter;
mod frontmatter;
mod prompt_files;
mod skills;
mod system_prompt;
mod templates;
mod text;

use std::path::PathBuf;

pub use agents_md::{ContextFile, ContextFiles, OutsideLink, context_files};
pub use filter::Filter as ResourceFilter;
pub(super) use prompt_files::{PromptFiles, prompt_files, prompt_paths};
pub use skills::{Skill, SkillBlock};
pub(super) use skills::{
    SkillPlaces, call as skill_call, expand as expand_skill, load as load_skills, skill_folders,
};
pub(super) use system_prompt::{PromptParts, sections};
pub use templates::PromptTemplate;
pub(super) use templates::{
    TemplatePlaces, call as template_call, expand as expand_template, load as load_templates,
};

pub(super) use system_prompt::delta;

/// Problems of skills or prompt templates. Those of flags are shown first: only some are shown when
/// a session is opened.
#[derive(Debug)]
pub(super) struct ResourceProblems<P> {
    pub(super) of_flags: Vec<P>,
    pub(super) others: Vec<P>,
}

/// An instruction file that the model gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is the user's own, or applies to the project.
    pub origin: ResourceOrigin,
}

/// Where a resource comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceOrigin {
    /// A folder of the user.
    User,
    /// The project.
    Project,
    /// A flag, or the embedding program.
    CommandLine,
}
