//! The project a session works in: its directory, its instructions, skills and templates, and
//! whether it is trusted.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{ProjectContents, TrustFile, TrustedContents};
use crate::util::counted;
use crate::util::paths;

use super::super::command::TrustChoice;
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::project_context::{ProjectContext, TrustOverride, TrustOverrides};
use super::super::refusal::Refusal;
use super::super::resources::{expand_skill, expand_template, skill_call, template_call};
use super::super::services::Services;
use super::super::state::{ProjectState, SessionState};
use super::AgentSession;
use super::held_prompts::HeldPrompts;
use super::session_settings::SessionSettings;

/// Maximum number of problems shown one by one; of more, only the number is shown.
const MAX_SHOWN: usize = 5;

/// The project of a session, and the notices and decisions about it.
pub(super) struct Project {
    cwd: PathBuf,
    context: ProjectContext,
    /// In force until the session's task ends.
    overrides: TrustOverrides,
    /// Each notice is shown once.
    shown_notices: HashSet<String>,
    services: Arc<Services>,
    outbox: Outbox,
}

impl Project {
    pub(super) fn new(
        services: Arc<Services>,
        cwd: PathBuf,
        context: ProjectContext,
        outbox: Outbox,
    ) -> Self {
        let (overrides, shown_notices) = (TrustOverrides::default(), HashSet::new());
        Self { cwd, context, overrides, shown_notices, services, outbox }
    }

    /// Continues with the project of another session.
    pub(super) fn replace(&mut self, cwd: PathBuf, context: ProjectContext) {
        self.cwd = cwd;
        self.context = context;
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The directory as shown to the user.
    pub(super) fn shown_cwd(&self) -> String {
        paths::display(&self.cwd, self.services.dirs.home.as_deref())
    }

    pub(super) fn context(&self) -> &ProjectContext {
        &self.context
    }

    pub(super) fn overrides(&self) -> &TrustOverrides {
        &self.overrides
    }

    /// The text for the model: the text of a skill or template replaces its command.
    pub(super) async fn expanded(&mut self, text: &str) -> Result<String, SessionError> {
        if let Some((name, args)) = skill_call(text) {
            let (name, args) = (name.to_owned(), args.to_owned());
            let skills = Arc::clone(&self.context.skills);
            let reading = tokio::task::spawn_blocking(move || expand_skill(&name, &args, &skills));
            let (expanded, problem) = reading
                .await
                .map_err(internal)?
                .map_err(|error| Refusal::Resource { reason: format!("{error}{}", self.trust_hint()) })?;
            self.context.problems.extend(problem.map(|problem| problem.to_string()));
            self.show_notices();
            return Ok(expanded);
        }
        if let Some((template, args)) = template_call(text, &self.context.templates) {
            let (template, args) = (template.clone(), args.to_owned());
            let reading = tokio::task::spawn_blocking(move || expand_template(&template, &args));
            let expanded = reading.await.map_err(internal)?;
            let (expanded, problems) =
                expanded.map_err(|error| Refusal::Resource { reason: error.to_string() })?;
            self.context.problems.extend(problems.iter().map(ToString::to_string));
            self.show_notices();
            return Ok(expanded);
        }
        Ok(text.to_owned())
    }

    /// A hint that a missing skill may be in an untrusted project.
    fn trust_hint(&self) -> &'static str {
        let project: &ProjectState = &self.context.state;
        let is_left_out = self.context.untrusted.is_some() && project.skill_folders().next().is_some();
        if is_left_out && !project.trust.is_trusted() {
            "; this folder's skills are not loaded because it isn't trusted (use /trust or --approve)"
        } else {
            ""
        }
    }

    /// Shows notices that were not shown before.
    pub(super) fn show_notices(&mut self) {
        let mut problems = std::mem::take(&mut self.context.problems);
        problems.retain(|problem| self.shown_notices.insert(problem.clone()));
        let n_more = problems.len().saturating_sub(MAX_SHOWN);
        problems.truncate(MAX_SHOWN);
        if n_more > 0 {
            problems.push(format!(
                "{} with settings, skills or prompt templates; pi doctor lists all",
                counted(n_more as u64, "more problem")
            ));
        }
        for problem in problems {
            self.outbox.notice(NoticeLevel::Warning, problem);
        }
        if let Some((level, text)) = self.context.untrusted.clone()
            && self.shown_notices.insert(format!("{}: {text}", self.cwd.display()))
        {
            self.outbox.notice(level, text);
        }
    }

    /// Stores the decision, if the choice is permanent, and applies it.
    async fn decide_trust(&mut self, choice: TrustChoice) -> Result<(), SessionError> {
        let (services, cwd) = (Arc::clone(&self.services), self.cwd.clone());
        // Applies even if it cannot be stored.
        let contents = self.context.contents.clone();
        let decision = TrustOverride { is_trusted: choice.is_trusted(), contents: contents.clone() };
        self.overrides.insert(cwd.clone(), decision);
        let overrides = self.overrides.clone();
        let deciding = tokio::task::spawn_blocking(move || {
            let stored = store_decision(&services, &cwd, choice, &contents);
            (stored, ProjectContext::read(&services, &services.settings.get(), &cwd, &overrides))
        });
        let (stored, context) = deciding.await.map_err(internal)?;
        let loaded = newly_loaded(&self.context, &context);
        self.set_context(context);
        if let Err(error) = stored {
            self.outbox.notice(NoticeLevel::Error, error.to_string());
        }
        if choice.is_trusted() {
            let text = match loaded {
                Some(loaded) => format!("This folder is trusted. Loaded {loaded}."),
                None => "This folder is trusted.".to_owned(),
            };
            self.outbox.notice(NoticeLevel::Info, text);
        }
        self.show_notices();
        Ok(())
    }

    /// Reloads the project's files.
    ///
    /// # Errors
    /// If the thread that reads them panics; nothing has changed then.
    async fn reload(&mut self) -> Result<(), SessionError> {
        let (services, cwd) = (Arc::clone(&self.services), self.cwd.clone());
        let overrides = self.overrides.clone();
        let read = move || ProjectContext::read(&services, &services.settings.get(), &cwd, &overrides);
        let context = tokio::task::spawn_blocking(read).await.map_err(internal)?;
        self.shown_notices.clear();
        self.set_context(context);
        self.show_notices();
        Ok(())
    }

    fn set_context(&mut self, context: ProjectContext) {
        self.context = context;
        self.outbox.update(|state| self.show(state));
    }

    /// Sets the snapshot's fields about the project.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.cwd.clone_from(&self.cwd);
        state.instructions = Arc::clone(&self.context.instructions);
        state.skills = Arc::clone(&self.context.skills);
        state.templates = Arc::clone(&self.context.templates);
        state.project = self.context.state.clone();
    }
}

/// Applies a trust decision to `session` and sends the prompts that waited for it.
///
/// # Errors
/// If the thread that reads the project panics.
pub(super) async fn decide_trust(
    session: &mut AgentSession,
    choice: TrustChoice,
) -> Result<(), SessionError> {
    session.project.decide_trust(choice).await?;
    follow_project(session);
    HeldPrompts::release(session).await;
    Ok(())
}

/// Reloads the settings, skills and instructions of `session`, which is idle.
///
/// # Errors
/// If reading them failed because of a bug.
pub(super) async fn reload(session: &mut AgentSession) -> Result<(), SessionError> {
    let live = session.settings.live().clone();
    let problems = tokio::task::spawn_blocking(move || live.reload()).await.map_err(internal)?;
    for problem in problems {
        session.outbox.notice(NoticeLevel::Warning, problem);
    }
    session.project.reload().await?;
    follow_project(session);
    session.ask_trust();
    HeldPrompts::release(session).await;
    Ok(())
}

/// Uses the settings of the project that was read, and reports it.
fn follow_project(session: &mut AgentSession) {
    session.settings.use_project(session.project.context.settings.clone());
    SessionSettings::follow(session);
    session.outbox.send(SessionEvent::ProjectChanged);
}

/// What `after` has and `before` had not, as text; `None` if that is nothing.
fn newly_loaded(before: &ProjectContext, after: &ProjectContext) -> Option<String> {
    let is_new = after.state.trust.is_trusted() && !before.state.trust.is_trusted();
    let of_project = |is_there: bool, what: &str| (is_new && is_there).then(|| what.to_owned());
    let more = |n_before: usize, n_after: usize, noun: &str| {
        let n_new = n_after.saturating_sub(n_before);
        (n_new > 0).then(|| counted(n_new as u64, noun))
    };
    let project = &after.state;
    let parts = [
        more(before.context_files.len(), after.context_files.len(), "instruction file"),
        more(before.skills.len(), after.skills.len(), "skill"),
        more(before.templates.len(), after.templates.len(), "prompt template"),
        of_project(project.theme_folder().is_some(), "themes"),
        of_project(project.settings_file().is_some(), "settings"),
        of_project(project.prompt_files().next().is_some(), "the system prompt"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (last, others) = parts.split_last()?;
    if others.is_empty() { Some(last.clone()) } else { Some(format!("{} and {last}", others.join(", "))) }
}

fn internal(error: tokio::task::JoinError) -> Refusal {
    Refusal::Internal { problem: error.to_string() }
}

/// Blocks.
fn store_decision(
    services: &Services,
    cwd: &Path,
    choice: TrustChoice,
    contents: &ProjectContents,
) -> Result<(), crate::config::TrustError> {
    // The parent of a link may differ from the parent of its target.
    let real = std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let folder = match choice {
        TrustChoice::Folder | TrustChoice::No => Some(real.as_path()),
        TrustChoice::Parent => real.parent(),
        TrustChoice::Session | TrustChoice::NotNow => None,
    };
    match folder {
        Some(folder) => {
            TrustFile::load(services.dirs.trust_file()).save(folder, choice.is_trusted())?;
        }
        None => return Ok(()),
    }
    if choice.is_trusted() {
        TrustedContents::load(services.dirs.trusted_contents_file()).save(cwd, contents)?;
    }
    Ok(())
}
