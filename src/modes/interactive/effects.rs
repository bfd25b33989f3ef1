//! Does what [`Effect`]s say; the only place of interactive mode with side effects.
//!
//! Nothing here waits: what takes time runs in a task of its own and answers with
//! a message. Each such task ends by itself, at the latest when the program does.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::config::{Env, SettingsFile};
use crate::session::{
    self, PromptDraft, Reply, Services, SessionCommand, SessionError, SessionHandle, TakenQueue,
};
use crate::tui::markdown::Highlighter;
use crate::util::git::{Head, Repository};

use super::login::SignInTask;
use super::msg::{Effect, EffectDone};

/// What effects are done with.
pub(super) struct Effects {
    pub(super) handle: SessionHandle,
    pub(super) done: mpsc::UnboundedSender<EffectDone>,
    /// Folder of this project's sessions, and the directory to filter them by.
    pub(super) sessions: PathBuf,
    pub(super) sessions_filter: Option<PathBuf>,
    pub(super) custom_sessions: bool,
    pub(super) settings_file: PathBuf,
    pub(super) env: Env,
    pub(super) highlighter: Highlighter,
    pub(super) services: Arc<Services>,
    /// The sign-in that goes on; it ends when this is dropped.
    pub(super) sign_in: Option<SignInTask>,
}

impl Effects {
    /// Starts an effect; those of the screen are the loop's own.
    pub(super) fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Session(command) => self.command(command),
            Effect::TakeQueue => self.take_queue(SessionCommand::TakeQueue, EffectDone::QueueTaken),
            Effect::TakeQueued(slot) => {
                self.take_queue(SessionCommand::TakeQueued { slot }, EffectDone::QueueTaken);
            }
            Effect::TakeLeftOver => self.take_queue(SessionCommand::TakeLeftOver, EffectDone::LeftOver),
            Effect::ListSessions => self.list_sessions(),
            Effect::RefreshModels { with_services } => self.refresh_models(with_services),
            Effect::ReadBranch => self.read_branch(),
            Effect::SaveSetting { key, value } => self.save_setting(key, value),
            Effect::Login(effect) => self.login(effect),
            Effect::LoadGrammars => self.highlighter.load_in_background(|| {}),
            Effect::Copy(_)
            | Effect::SetTitle(_)
            | Effect::OpenEditor(_)
            | Effect::Suspend
            | Effect::Replay
            | Effect::Quit => {}
        }
    }

    /// Sends a command; a prompt that is refused comes back into the editor.
    fn command(&self, command: SessionCommand) {
        let SessionCommand::Prompt { text, images, .. } = &command else {
            return self.handle.send(command);
        };
        let prompt = PromptDraft { text: text.clone(), images: images.clone() };
        let (handle, done) = (self.handle.clone(), self.done.clone());
        // Sent here, not in the task, so that commands keep their order.
        let answer = handle.post(command);
        tokio::spawn(async move {
            if let Err(error) = answer.await {
                // That the session is gone is told elsewhere.
                let error = (error != SessionError::Ended).then(|| error.to_string());
                drop(done.send(EffectDone::Refused { prompt, error }));
            }
        });
    }

    fn take_queue(&self, command: SessionCommand, wrap: fn(TakenQueue) -> EffectDone) {
        let (answer, done) = (self.handle.post(command), self.done.clone());
        tokio::spawn(async move {
            if let Ok(Reply::Queue(taken)) = answer.await {
                drop(done.send(wrap(taken)));
            }
        });
    }

    fn list_sessions(&self) {
        let (folder, filter, done) = (self.sessions.clone(), self.sessions_filter.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let sessions = session::list(&folder, filter.as_deref());
            drop(done.send(EffectDone::Sessions(sessions)));
        });
    }

    fn refresh_models(&self, with_services: bool) {
        let (services, handle, done) = (Arc::clone(&self.services), self.handle.clone(), self.done.clone());
        tokio::spawn(async move {
            let problems = services.refresh_models().await;
            handle.send(SessionCommand::ModelsChanged);
            let found = services.catalog.get().found_servers();
            drop(done.send(EffectDone::Models { models: services.usable_models(), found, problems }));
            if !with_services {
                return;
            }
            // Services on the net take longer, and nobody waits for them.
            if let Some(problems) = services.refresh_lists().await {
                handle.send(SessionCommand::ModelsChanged);
                let (models, found) = (services.usable_models(), Vec::new());
                drop(done.send(EffectDone::Models { models, found, problems }));
            }
        });
    }

    fn read_branch(&self) {
        let (cwd, done) = (self.handle.state().cwd.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let head = Repository::find(&cwd).and_then(|repository| repository.head());
            let branch = head.map(|head| match head {
                Head::Branch(name) => name,
                Head::Detached(hash) => hash,
            });
            drop(done.send(EffectDone::Branch(branch)));
        });
    }

    fn save_setting(&self, key: &'static str, value: serde_json::Value) {
        let (path, done) = (self.settings_file.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = SettingsFile::load(path).save(&[(key, value)]) {
                drop(done.send(EffectDone::Failed(error.to_string())));
            }
        });
    }
}

/// Puts text on the clipboard of this machine. Blocks.
///
/// # Errors
/// When there is none, as over ssh; the terminal may still have one.
pub(super) fn copy_locally(text: &str) -> Result<(), String> {
    let mut clipboard = arboard::Clipboard::new().map_err(|error| error.to_string())?;
    clipboard.set_text(text).map_err(|error| error.to_string())
}

/// Lets the user edit `text` in their editor. Blocks until that ends.
///
/// # Errors
/// Says why there is no edited text; the text is as it was then.
pub(super) fn edit(text: &str, env: &Env) -> Result<String, String> {
    let editor = env.get("VISUAL").or_else(|| env.get("EDITOR")).unwrap_or_else(|| "nano".to_owned());
    let mut file =
        tempfile::Builder::new().prefix("pi-").suffix(".md").tempfile().map_err(|e| e.to_string())?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|error| error.to_string())?;
    // The variable may hold a whole command line, such as `code --wait`.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .status()
        .map_err(|error| format!("cannot start {editor}: {error}"))?;
    if !status.success() {
        return Err(format!("{editor} exited with {status}; set VISUAL or EDITOR to use another editor"));
    }
    let edited = std::fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}
