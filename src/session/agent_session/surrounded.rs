//! Skills in messages, and deciding whether a project is trusted.

use std::sync::Arc;

use crate::config::TrustFile;

use super::super::command::{Reply, TrustChoice};
use super::super::event::NoticeLevel;
use super::super::handle::SessionError;
use super::super::project_context::ProjectContext;
use super::super::resources::{expand_skill, skill_call};
use super::super::state::ProjectState;
use super::AgentSession;

/// Problems that are told one by one; of more than these only the number is.
const MAX_TOLD: usize = 5;

impl AgentSession {
    /// What the model is told for what the user typed: a skill's text for its name.
    pub(super) async fn expanded(&self, text: &str) -> Result<String, SessionError> {
        let Some((name, args)) = skill_call(text) else { return Ok(text.to_owned()) };
        let (name, args) = (name.to_owned(), args.to_owned());
        let skills = Arc::clone(&self.project.skills);
        let reading = tokio::task::spawn_blocking(move || expand_skill(&name, &args, &skills));
        match reading.await {
            Ok(Ok(expanded)) => Ok(expanded),
            Ok(Err(error)) => Err(SessionError::Refused(format!("{error}{}", self.trust_hint()))),
            Err(error) => Err(SessionError::Refused(error.to_string())),
        }
    }

    /// Where else a skill may be that was not found.
    fn trust_hint(&self) -> &'static str {
        let project: &ProjectState = &self.project.state;
        let is_left_out = self.project.untrusted.is_some() && project.skill_folders().next().is_some();
        if is_left_out && !project.trust.is_trusted() {
            "; those of this folder are not loaded, since it is not trusted (--approve)"
        } else {
            ""
        }
    }

    /// Tells what was not told before.
    pub(super) fn show_project_notices(&mut self) {
        let mut problems = std::mem::take(&mut self.project.problems);
        problems.retain(|problem| self.told.insert(problem.clone()));
        let n_more = problems.len().saturating_sub(MAX_TOLD);
        problems.truncate(MAX_TOLD);
        if n_more > 0 {
            problems.push(format!("skills: {n_more} more problems like these"));
        }
        for problem in problems {
            self.notice(NoticeLevel::Warning, problem);
        }
        if let Some((level, text)) = self.project.untrusted.clone()
            && self.told.insert(format!("{}: {text}", self.cwd.display()))
        {
            self.notice(level, text);
        }
    }

    /// Keeps the decision, if it is to be kept, and uses what it allows.
    pub(super) async fn decide_trust(&mut self, choice: TrustChoice) -> Result<Reply, SessionError> {
        let (services, cwd) = (Arc::clone(&self.services), self.cwd.clone());
        // Counts even if it cannot be kept.
        self.overrides.insert(cwd.clone(), choice.is_trusted());
        let overrides = self.overrides.clone();
        let deciding = tokio::task::spawn_blocking(move || {
            // Above a link may be another folder than above what it leads to.
            let real = std::fs::canonicalize(&cwd).unwrap_or_else(|_| cwd.clone());
            let folder = match choice {
                TrustChoice::Folder | TrustChoice::No => Some(real.as_path()),
                TrustChoice::Parent => real.parent(),
                TrustChoice::Session | TrustChoice::NotNow => None,
            };
            let kept = match folder {
                Some(folder) => TrustFile::load(services.dirs.trust_file()).save(folder, choice.is_trusted()),
                None => Ok(()),
            };
            (kept, ProjectContext::read(&services, &cwd, &overrides))
        });
        let (kept, project) = deciding.await.map_err(|error| SessionError::Refused(error.to_string()))?;
        let n_before = self.project.skills.len();
        self.project = project;
        self.publish();
        if let Err(error) = kept {
            self.notice(NoticeLevel::Error, error.to_string());
        }
        if choice.is_trusted() {
            let n_new = self.project.skills.len().saturating_sub(n_before);
            let text = match n_new {
                0 => "This folder is trusted.".to_owned(),
                1 => "This folder is trusted; it brings one skill.".to_owned(),
                n => format!("This folder is trusted; it brings {n} skills."),
            };
            self.notice(NoticeLevel::Info, text);
        }
        self.show_project_notices();
        Ok(Reply::Done)
    }
}
