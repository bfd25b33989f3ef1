//! The parts of the prompt outside the conversation: instruction files, skills,
//! and the system prompt.

mod agents_md;
mod frontmatter;
mod skills;
mod system_prompt;

pub use agents_md::{ContextFile, ContextFiles, OutsideLink, context_files};
pub use skills::{Skill, SkillBlock, SkillOrigin};
pub(super) use skills::{SkillPlaces, call as skill_call, expand as expand_skill, load as load_skills};
pub(super) use system_prompt::{PromptParts, sections};

pub(super) use system_prompt::delta;
