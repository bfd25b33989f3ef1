//! Skills: instructions for particular kinds of work. The model reads them when
//! a task requires it; the user invokes them by `/skill:NAME`.
//!
//! [`load`] searches the locations of skills in order of precedence: of two
//! skills with the same name, the first one wins. `discover` searches a location,
//! [`Filter`] applies the settings, `fields` parses the head of a file,
//! `prompt` lists skills for the model, `command` inserts one into a message. A
//! problem of a skill is a [`SkillProblem`], never an error. The result depends
//! only on the files, so that prompts stay identical to the byte.

mod command;
mod discover;
mod fields;
mod prompt;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::config::project_skill_folders;
use crate::util::os::FileId;
use crate::util::{parts, paths};

use super::filter::Filter;
use super::frontmatter::{self, FILES_PER_THREAD, Frontmatter, FrontmatterProblem, MisspeltField};
use super::text::InvalidText;
use super::{ResourceOrigin, ResourceProblems};
use discover::{Candidate, Found};
use fields::Fields;

pub use command::SkillBlock;
pub(crate) use command::{call, expand};
pub(super) use prompt::section;

/// The file that makes a folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";
/// Maximum number of skills per session.
const MAX_SKILLS: usize = 500;

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What the user types after `/skill:`.
    pub name: String,
    /// The purpose, in one line.
    pub description: String,
    /// The file with its instructions, absolute.
    pub path: PathBuf,
    /// Where it comes from.
    pub origin: ResourceOrigin,
    /// Whether the system prompt lists it; otherwise only the command invokes it.
    pub is_listed: bool,
}

/// The locations of skills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkillPlaces<'a> {
    pub(crate) agent: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    /// The user's setting `skills`.
    pub(crate) settings: &'a [String],
    /// The project's setting `skills`; used only with `with_project`.
    pub(crate) project_settings: &'a [String],
    /// Paths from the command line; absolute.
    pub(crate) named: &'a [PathBuf],
    /// Whether to search only the paths from the command line.
    pub(crate) only_named: bool,
    /// Whether the project is trusted.
    pub(crate) with_project: bool,
}

/// A problem of a skill, for its author or user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkillProblem {
    #[error("skills: {} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("skills: cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: the skill is not loaded: {}", problem.place(path), problem.cause)]
    Malformed { path: PathBuf, problem: FrontmatterProblem },
    #[error("skill {} is not loaded: its frontmatter has no description", path.display())]
    NoDescription { path: PathBuf },
    #[error("skill {}: the description has {n_chars} characters; the limit is {}", path.display(), fields::MAX_DESCRIPTION)]
    LongDescription { path: PathBuf, n_chars: usize },
    #[error("skill {}: the name \"{name}\" {what}", path.display())]
    Name { path: PathBuf, name: String, what: &'static str },
    #[error("two skills are named \"{name}\"; using {}, ignoring {}", kept.display(), dropped.display())]
    Collision { name: String, kept: PathBuf, dropped: PathBuf },
    #[error("setting \"skills\": {cause}")]
    Pattern { cause: String },
    #[error("skills: {} contains more than {} files and directories; the rest was not searched", root.display(), discover::MAX_ENTRIES)]
    TooManyEntries { root: PathBuf },
    #[error("skills: {} is nested more than {} directories deep; deeper levels were not searched", folder.display(), discover::MAX_DEPTH)]
    TooDeep { folder: PathBuf },
    #[error("skills: more than {MAX_SKILLS} found; {} and others are not loaded", path.display())]
    TooManySkills { path: PathBuf },
    #[error("skills: {} is too long for an ignore file; pi does not use it", path.display())]
    LongIgnoreFile { path: PathBuf },
    #[error("{}:{}: {invalid}", path.display(), invalid.line)]
    NotUtf8 { path: PathBuf, invalid: InvalidText },
    #[error("{}:{}: \"{}\" is no field of skills; did you mean \"{}\"?", path.display(), field.line, field.field, field.meant)]
    Misspelt { path: PathBuf, field: MisspeltField },
}

/// Finds the skills, sorted by name. Bounded in files, bytes and depth. Blocks.
pub(crate) fn load(places: &SkillPlaces<'_>) -> (Vec<Skill>, ResourceProblems<SkillProblem>) {
    let mut set = SkillSet::default();
    if !places.only_named {
        set.add(user_skills(places), ResourceOrigin::User);
        if places.with_project {
            set.add(project_skills(places), ResourceOrigin::Project);
        }
    }
    let others = std::mem::take(&mut set.problems);
    let mut named = Found::default();
    for path in places.named {
        named.look_at(path);
    }
    set.add(named, ResourceOrigin::CommandLine);
    (set.by_name.into_values().collect(), ResourceProblems { of_flags: set.problems, others })
}

/// The user's own skills, from both folders and the settings.
fn user_skills(places: &SkillPlaces<'_>) -> Found {
    found_and_named(&user_folders(places.agent, places.home), places.settings, places.agent, places.home)
}

fn user_folders(agent: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = vec![agent.join("skills")];
    folders.extend(home.map(|home| home.join(".agents").join("skills")));
    folders
}

/// The folders of skills for a session in `cwd`, which may not exist.
pub(crate) fn skill_folders(
    agent: &Path,
    home: Option<&Path>,
    cwd: &Path,
    with_project: bool,
) -> Vec<PathBuf> {
    let mut folders = user_folders(agent, home);
    if with_project {
        folders.extend(project_skill_folders(cwd, home));
    }
    folders
}

/// Those of the project: of its folders, and what its settings name.
fn project_skills(places: &SkillPlaces<'_>) -> Found {
    let folders = project_skill_folders(places.cwd, places.home);
    found_and_named(&folders, places.project_settings, &places.cwd.join(".pi"), places.home)
}

/// What there is in `folders` and what `settings` name, without what they leave out.
/// Relative paths in them begin at `base`.
fn found_and_named(folders: &[PathBuf], settings: &[String], base: &Path, home: Option<&Path>) -> Found {
    let mut found = in_folders(folders);
    let (filter, plain, problems) = Filter::new(settings, base, home);
    found.problems.extend(problems.into_iter().map(|cause| SkillProblem::Pattern { cause }));
    for path in &plain {
        found.look_at(path);
    }
    found.candidates.retain(|candidate| filter.keeps(&candidate.path));
    found
}

/// The candidates in those of `folders` that exist.
fn in_folders(folders: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        found.look_at(folder);
    }
    found
}

#[derive(Debug, Default)]
struct SkillSet {
    by_name: BTreeMap<String, Skill>,
    /// The files visited.
    seen: HashSet<FileId>,
    problems: Vec<SkillProblem>,
}

impl SkillSet {
    fn add(&mut self, found: Found, origin: ResourceOrigin) {
        self.problems.extend(found.problems);
        let mut candidates = found.candidates;
        candidates.retain(|candidate| self.seen.insert(candidate.file));
        let n_threads = parts::threads_for(candidates.len(), FILES_PER_THREAD);
        let read = parts::in_parts(&candidates, n_threads, &|_| 1, &|candidates| {
            candidates.iter().map(read_fields).collect()
        });
        for (candidate, fields) in candidates.into_iter().zip(read) {
            if self.by_name.len() == MAX_SKILLS {
                self.problems.push(SkillProblem::TooManySkills { path: candidate.path });
                return;
            }
            match fields {
                Ok(Some((fields, problems))) => {
                    self.problems.extend(problems);
                    self.add_one(candidate, fields, origin);
                }
                Ok(None) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn add_one(&mut self, candidate: Candidate, fields: Fields, origin: ResourceOrigin) {
        let path = paths::normalise(&candidate.path);
        let Some(description) = fields.description else {
            if !candidate.is_lone {
                self.problems.push(SkillProblem::NoDescription { path });
            }
            return;
        };
        let name = fields.name.unwrap_or(candidate.default_name);
        if let Some(what) = fields::name_problem(&name) {
            self.problems.push(SkillProblem::Name { path: path.clone(), name: name.clone(), what });
        }
        let n_chars = description.chars().count();
        if n_chars > fields::MAX_DESCRIPTION {
            self.problems.push(SkillProblem::LongDescription { path: path.clone(), n_chars });
        }
        if let Some(kept) = self.by_name.get(&name) {
            let kept = kept.path.clone();
            return self.problems.push(SkillProblem::Collision { name, kept, dropped: path });
        }
        let skill = Skill { name: name.clone(), description, path, origin, is_listed: fields.is_listed };
        self.by_name.insert(name, skill);
    }
}

/// The fields of a skill, and problems that leave it usable.
type ReadFields = (Fields, Vec<SkillProblem>);

/// Reads the head of a file; `None` if it is an unrelated Markdown file.
fn read_fields(candidate: &Candidate) -> Result<Option<ReadFields>, SkillProblem> {
    let path = paths::normalise(&candidate.path);
    let (head, invalid) = match frontmatter::read_head(&path) {
        Ok(head) => head,
        Err(source) => return Err(SkillProblem::Unreadable { path, source }),
    };
    let yaml = match frontmatter::split(&head) {
        Frontmatter::Some { yaml, .. } => yaml,
        _ if candidate.is_lone => return Ok(None),
        Frontmatter::None(_) => return Err(SkillProblem::NoDescription { path }),
        Frontmatter::Unclosed => {
            return Err(SkillProblem::Malformed { path, problem: FrontmatterProblem::unclosed() });
        }
    };
    let fields = match Fields::parse(yaml) {
        Ok(fields) => fields,
        Err(problem) => return Err(SkillProblem::Malformed { path, problem }),
    };
    let invalid = invalid.map(|invalid| SkillProblem::NotUtf8 { path: path.clone(), invalid });
    let misspelt = frontmatter::misspelt(yaml, fields::NAMES, fields::OTHER_NAMES).into_iter();
    let misspelt = misspelt.map(|field| SkillProblem::Misspelt { path: path.clone(), field });
    Ok(Some((fields, invalid.into_iter().chain(misspelt).collect())))
}

#[cfg(test)]
mod tests;
