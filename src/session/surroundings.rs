//! What the folder of a session and its user bring along: instruction files,
//! skills, and whether the folder is trusted.
//!
//! Read as a whole when a session is opened and when trust is decided. How each
//! is found is in `resources` and `config`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Trust, TrustDefault, TrustFile, TrustPolicy, protected_resources};
use crate::util::paths;

use super::event::NoticeLevel;
use super::resources::{ContextFile, Skill, SkillPlaces, context_files, load_skills};
use super::services::Services;
use super::state::ProjectState;

/// What the user decided about folders for as long as the program runs.
pub(super) type Decisions = HashMap<PathBuf, bool>;

pub(super) struct Surroundings {
    pub(super) context_files: Vec<ContextFile>,
    /// Sorted by name.
    pub(super) skills: Arc<[Skill]>,
    pub(super) project: ProjectState,
    /// What is wrong with skills or `trust.json`, one line each.
    pub(super) problems: Vec<String>,
    /// What is left out for want of trust.
    pub(super) untrusted: Option<(NoticeLevel, String)>,
}

impl Surroundings {
    /// Reads what surrounds `cwd`. Blocks.
    pub(super) fn read(services: &Services, cwd: &Path, decisions: &Decisions) -> Self {
        let dirs = &services.dirs;
        let home = dirs.home.as_deref();
        let context_files =
            if services.prompt.no_context_files { Vec::new() } else { context_files(&dirs.agent, cwd) };
        let trust_file = TrustFile::load(dirs.trust_file());
        let mut problems: Vec<String> = trust_file.problem().map(str::to_owned).into_iter().collect();
        let flag = decisions.get(cwd).copied().or(services.trust.flag);
        // What cannot be read may hold a no.
        let default = match trust_file.problem() {
            Some(_) if services.trust.default == TrustDefault::Always => TrustDefault::Ask,
            _ => services.trust.default,
        };
        let trust = TrustPolicy { flag, default, ..services.trust }.decide(trust_file.nearest(cwd));
        let protected: Arc<[PathBuf]> = protected_resources(cwd, home).into();
        let mut project = ProjectState { trust, protected };
        let has_skills = !services.skills.only_paths && project.skill_folders().next().is_some();
        if trust == Trust::Undecided && !has_skills {
            // Nothing else of a project is used yet, and nobody is asked for nothing.
            project.trust = Trust::Unasked;
        }
        let (skills, wrong) = load_skills(&SkillPlaces {
            agent: &dirs.agent,
            home,
            cwd,
            settings: &services.settings.skills,
            named: &services.skills.paths,
            only_named: services.skills.only_paths,
            with_project: trust.is_trusted(),
        });
        problems.extend(wrong.iter().map(ToString::to_string));
        let untrusted = if services.skills.only_paths { None } else { untrusted(&project, cwd, home) };
        Self { context_files, skills: skills.into(), project, problems, untrusted }
    }
}

/// Says which skills are left out, unless the user is asked about them.
fn untrusted(project: &ProjectState, cwd: &Path, home: Option<&Path>) -> Option<(NoticeLevel, String)> {
    let folders: Vec<String> = project.skill_folders().map(|folder| shown(folder, cwd, home)).collect();
    if folders.is_empty() {
        return None;
    }
    let folders = folders.join(", ");
    match project.trust {
        Trust::Trusted | Trust::Undecided => None,
        Trust::Unasked => Some((
            NoticeLevel::Warning,
            format!(
                "skills in {folders} are not loaded, since nobody said that this folder can be trusted; --approve loads them"
            ),
        )),
        Trust::Refused => Some((
            NoticeLevel::Info,
            format!(
                "Skills in {folders} are not loaded: this folder is not trusted. /trust or --approve changes that."
            ),
        )),
    }
}

/// `path` as seen from `cwd`.
fn shown(path: &Path, cwd: &Path, home: Option<&Path>) -> String {
    match path.strip_prefix(cwd) {
        Ok(relative) => relative.display().to_string(),
        Err(_) => paths::display(path, home),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_unless_somebody_is_asked() {
        let check = |trust, protected: &[&str], expected: Option<(NoticeLevel, &str)>| {
            let protected: Vec<PathBuf> = protected.iter().map(PathBuf::from).collect();
            let project = ProjectState { trust, protected: protected.into() };
            let said = untrusted(&project, Path::new("/h/p"), Some(Path::new("/h")));
            let said = said.as_ref().map(|(level, text)| (*level, text.split(" are").next().unwrap()));
            assert_eq!(said, expected, "{trust:?}");
        };
        let both = ["/h/p/.pi/skills", "/h/.agents/skills"];
        let text = "kills in .pi/skills, ~/.agents/skills";
        check(Trust::Unasked, &both, Some((NoticeLevel::Warning, &format!("s{text}"))));
        check(Trust::Refused, &both, Some((NoticeLevel::Info, &format!("S{text}"))));
        check(Trust::Trusted, &both, None);
        check(Trust::Undecided, &both, None);
        check(Trust::Unasked, &["/h/p/.pi/settings.json"], None);
    }
}
