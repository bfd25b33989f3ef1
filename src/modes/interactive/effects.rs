//! Performs [`WorldEffect`]s; the only place of interactive mode with side effects,
//! except the terminal.
//!
//! Nothing here waits: slow work runs in a task of its own and answers with
//! a message. Each such task ends by itself, or with the program.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::ai::Model;
use crate::config::{Env, Settings};
use crate::session::{
    self, PromptDraft, Refusal, Reply, ResourceOptions, Services, SessionCommand, SessionError, SessionState,
    TakenQueue,
};
use crate::tui::term::TerminalAnswers;
use crate::util::git::{Head, Repository};

use super::super::crash_notice::take_crash_notice;
use super::super::export::SharedPage;
use super::super::trace::CallFilter;
use super::appearance::{Looks, in_tmux};
use super::clipboard_owner::ClipboardOwner;
use super::completion::{FileFinder, ProviderChoice};
use super::file_watch::FileWatch;
use super::keybindings;
use super::login::SignInTask;
use super::msg::{EffectDone, WorldEffect};
use super::overlays::ReadTrace;
use super::prompt_history::{HistoryEffect, HistoryWriter};
use super::session_link::SessionLink;
use super::session_picker::{IndexUpdate, SessionFinder, SessionFolders};
use super::terminal_env;
use super::theme_files::{ThemePlaces, trusted_project};
use super::tree::TreeDone;

/// The session, and the other objects that effects use.
pub(super) struct Effects {
    pub(super) link: SessionLink,
    pub(super) done: mpsc::UnboundedSender<EffectDone>,
    pub(super) sessions: SessionFolders,
    /// Reads for the open list of sessions; dropping it ends that.
    pub(super) finder: Option<SessionFinder>,
    pub(super) index_update: IndexUpdate,
    /// Finds files for completion, since the first one was wanted.
    pub(super) files: Option<FileFinder>,
    pub(super) history: HistoryWriter,
    pub(super) custom_sessions: bool,
    pub(super) env: Env,
    /// What the terminal said about itself.
    pub(super) answers: TerminalAnswers,
    pub(super) services: Arc<Services>,
    /// Themes of the command line.
    pub(super) themes: ResourceOptions,
    /// The sign-in in progress; dropping it cancels the sign-in.
    pub(super) sign_in: Option<SignInTask>,
    /// The step of `/share` in progress; dropping it cancels that and removes the page.
    pub(super) sharing: Option<(DropGuard, SharedPage)>,
    /// Owns what was copied to this machine's clipboard.
    pub(super) clipboard: ClipboardOwner<arboard::Clipboard>,
    /// Watches the file of the theme in use.
    pub(super) theme_watch: FileWatch,
    /// Watches the head of the session's repository.
    pub(super) head_watch: FileWatch,
    /// Number of searches in the tree so far; only the last one counts.
    pub(super) tree_searches: Arc<AtomicU64>,
}

impl Effects {
    /// Starts an effect.
    pub(super) fn start(&mut self, effect: WorldEffect) {
        match effect {
            WorldEffect::Session(command) => self.command(command),
            WorldEffect::TakeQueue => {
                let done = |taken| EffectDone::QueueTaken { taken, after: None };
                self.take_queue(SessionCommand::TakeQueue, done);
            }
            WorldEffect::TakeQueued { slot, after } => {
                let done = |taken| EffectDone::QueueTaken { taken, after };
                self.take_queue(SessionCommand::TakeQueued { slot }, done);
            }
            WorldEffect::TakeLeftOver => self.take_queue(SessionCommand::TakeLeftOver, EffectDone::LeftOver),
            WorldEffect::Report(effect) => self.start_report(effect),
            WorldEffect::ReadTrace { path, filter } => self.read_trace(path, filter),
            WorldEffect::Sessions(effect) => self.start_sessions(effect),
            WorldEffect::RefreshModels { with_services } => self.refresh_models(with_services),
            WorldEffect::CheckThemes => self.check_themes(),
            WorldEffect::ListThemes(query) => self.list_themes(query),
            WorldEffect::ReadBranch => self.read_branch(),
            WorldEffect::WatchHead(file) => self.watch_head(file),
            WorldEffect::Reload => self.reload(),
            WorldEffect::Login(effect) => self.start_login(effect),
            WorldEffect::Tree(effect) => self.start_tree(effect),
            WorldEffect::Read(reader, effect) => self.start_reading(reader, effect),
            WorldEffect::Pictures(effect) => self.start_pictures(effect),
            WorldEffect::Export(request) => self.export(request),
            WorldEffect::Share(effect) => self.start_share(effect),
            WorldEffect::CheckImport { path, line } => self.check_import(path, line),
            WorldEffect::History(effect) => self.start_history(effect),
            WorldEffect::Attach(effect) => self.attach(effect),
            WorldEffect::FindFiles(request) => self.find_files(request),
        }
    }

    /// Starts slow work whose results are needed soon, but not for the first
    /// frame.
    pub(super) fn prepare(&mut self) {
        // This takes time while the user types.
        let model = Arc::clone(&self.link.handle().state().model);
        let (provider, warmed) = (Arc::clone(&self.services.provider), Arc::clone(&model));
        tokio::task::spawn_blocking(move || provider.warm_up(&warmed));
        self.start_history(HistoryEffect::Recall);
        self.check_tmux();
        self.check_themes();
        self.check_crashes();
        // Only without a remote model, because not every user wants local ports to be
        // queried. The response also contains the context window of a local model.
        if self.services.is_local_or_demo(&model) {
            self.refresh_models(false);
        }
        self.refresh_list_of(model);
    }

    /// Queries the server of `model` for its window, if it is known by its address only.
    fn refresh_list_of(&self, model: Arc<Model>) {
        let services = Arc::clone(&self.services);
        let handle = self.link.handle().clone();
        tokio::spawn(async move {
            if services.refresh_list_of(&model).await.is_some() {
                handle.send(SessionCommand::ModelsChanged);
            }
        });
    }

    /// Sends a command; a rejected prompt or `!` command returns to the editor.
    fn command(&mut self, mut command: SessionCommand) {
        if self.link.is_open() && command.if_busy_mut().is_some() {
            return self.command_unless_busy(command);
        }
        let prompt = match &command {
            SessionCommand::Prompt { prompt, .. } => {
                self.index_update.cancel();
                prompt.clone()
            }
            SessionCommand::RunBash { command, exclude_from_context, .. } => {
                let mark = if *exclude_from_context { "!!" } else { "!" };
                PromptDraft::from(format!("{mark}{command}").as_str())
            }
            SessionCommand::Compact { focus, with_review } => {
                let option = if *with_review { "--edit " } else { "" };
                let line = format!("compact {option}{}", focus.as_deref().unwrap_or_default());
                return self.command_line(command.clone(), line.trim_end().to_owned());
            }
            SessionCommand::Handoff { goal } => {
                return self.command_line(command.clone(), format!("handoff {goal}"));
            }
            _ => return self.link.send(command),
        };
        let done = self.done.clone();
        // Sent here and not in the task, so that commands keep their order.
        let answer = self.link.handle().post(command);
        tokio::spawn(async move {
            if let Err(error) = answer.await {
                // The end of the session is reported elsewhere.
                let error = (error != SessionError::Ended).then(|| error.to_string());
                drop(done.send(EffectDone::Refused { prompt, error }));
            }
        });
    }

    /// Sends what a line with the user's own words means; if it is rejected, the line returns to the editor.
    fn command_line(&self, command: SessionCommand, line: String) {
        let (answer, done) = (self.link.handle().post(command), self.done.clone());
        tokio::spawn(async move {
            // The end of the session is reported elsewhere.
            if let Err(error @ SessionError::Refused(_)) = answer.await {
                drop(done.send(EffectDone::CommandFailed { line, error: error.to_string() }));
            }
        });
    }

    /// Sends a command that may be rejected because work is running; the user decides then.
    fn command_unless_busy(&self, command: SessionCommand) {
        let (answer, done) = (self.link.handle().post(command.clone()), self.done.clone());
        tokio::spawn(async move {
            let result = match answer.await {
                Ok(Reply::Forked(prompt)) => EffectDone::Tree(TreeDone::Forked(prompt)),
                Err(SessionError::Refused(Refusal::Working | Refusal::CommandRunning)) => {
                    EffectDone::Busy(command)
                }
                Err(SessionError::Refused(refusal)) => EffectDone::Failed(refusal.to_string()),
                // The end of the session is reported elsewhere.
                Ok(_) | Err(SessionError::Ended) => return,
            };
            drop(done.send(result));
        });
    }

    fn take_queue(
        &self,
        command: SessionCommand,
        wrap: impl FnOnce(TakenQueue) -> EffectDone + Send + 'static,
    ) {
        let (answer, done) = (self.link.handle().post(command), self.done.clone());
        tokio::spawn(async move {
            if let Ok(Reply::Queue(taken)) = answer.await {
                drop(done.send(wrap(taken)));
            }
        });
    }

    fn read_trace(&self, path: PathBuf, filter: CallFilter) {
        let (done, zone) = (self.done.clone(), self.services.clock.zone());
        tokio::task::spawn_blocking(move || {
            let read = session::read_trace(&path);
            drop(done.send(match read {
                Ok(trace) => EffectDone::Trace(Box::new(ReadTrace { path, trace, filter, zone })),
                Err(error) => EffectDone::Failed(error.to_string()),
            }));
        });
    }

    fn refresh_models(&self, with_services: bool) {
        let (services, handle, done) =
            (Arc::clone(&self.services), self.link.handle().clone(), self.done.clone());
        tokio::spawn(async move {
            let problems = services.refresh_models().await;
            handle.send(SessionCommand::ModelsChanged);
            let changed = |found, problems| {
                let providers = ProviderChoice::of(&services.catalog.get());
                EffectDone::Models { models: services.usable_models(), providers, found, problems }
            };
            let found = services.catalog.get().found_servers();
            drop(done.send(changed(found, problems)));
            if !with_services {
                return;
            }
            // Remote services take longer, so the list above is shown first.
            if let Some(problems) = services.refresh_lists().await {
                handle.send(SessionCommand::ModelsChanged);
                drop(done.send(changed(Vec::new(), problems)));
            }
        });
    }

    fn check_import(&self, path: PathBuf, line: String) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            drop(done.send(match session::check_import(&path) {
                Ok(()) => EffectDone::Importable(path),
                Err(error) => EffectDone::CommandFailed { line, error: error.to_string() },
            }));
        });
    }

    fn list_themes(&self, query: String) {
        let (env, services, done) = (self.env.clone(), Arc::clone(&self.services), self.done.clone());
        let (state, named) = (self.link.handle().state(), self.themes.clone());
        tokio::task::spawn_blocking(move || {
            let looks = Looks { env: &env, dirs: &services.dirs };
            let (settings, project) = (&state.settings, trusted_project(&state));
            let themes = ThemePlaces { looks: &looks, settings, project, named: &named }.list();
            drop(done.send(EffectDone::Themes { themes, query }));
        });
    }

    /// Tells of a crash that nobody was told of.
    fn check_crashes(&self) {
        let (services, done) = (Arc::clone(&self.services), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let Some(text) = take_crash_notice(&services) else { return };
            drop(done.send(EffectDone::Problems(vec![text])));
        });
    }

    /// Lists themes, and reports those that cannot be used, except the one in use. Answers with
    /// [`EffectDone::OwnThemes`] and [`EffectDone::Problems`].
    fn check_themes(&self) {
        let (env, services, done) = (self.env.clone(), Arc::clone(&self.services), self.done.clone());
        let (state, named) = (self.link.handle().state(), self.themes.clone());
        tokio::task::spawn_blocking(move || {
            let looks = Looks { env: &env, dirs: &services.dirs };
            let (settings, project) = (&state.settings, trusted_project(&state));
            let places = ThemePlaces { looks: &looks, settings, project, named: &named };
            drop(done.send(EffectDone::OwnThemes(places.own())));
            drop(done.send(EffectDone::Problems(places.problems_of_others(&settings.values.theme))));
        });
    }

    /// Reports changes of the file of the theme with this name from now on.
    pub(super) fn watch_theme(&mut self, session: &SessionState, name: &str) {
        let looks = Looks { env: &self.env, dirs: &self.services.dirs };
        let (settings, project) = (&session.settings, trusted_project(session));
        let places = ThemePlaces { looks: &looks, settings, project, named: &self.themes };
        let file = places.file(name, &self.answers.colors);
        self.theme_watch.follow(file, &self.done);
    }

    /// Checks the theme with this name.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn read_theme(&self, session: &SessionState, name: &str) -> Result<(), String> {
        let looks = Looks { env: &self.env, dirs: &self.services.dirs };
        let (settings, project) = (&session.settings, trusted_project(session));
        let places = ThemePlaces { looks: &looks, settings, project, named: &self.themes };
        let values = Settings { theme: name.to_owned(), ..settings.values.clone() };
        places.load(&values, &self.answers.colors, &mut Vec::new()).map(drop)
    }

    fn read_branch(&self) {
        let (cwd, done) = (self.link.handle().state().cwd.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let repository = Repository::find(&cwd);
            let branch = repository.as_ref().and_then(Repository::head_or_ask).map(|head| match head {
                Head::Branch(name) => name,
                Head::Detached(hash) => hash,
            });
            let head = repository.map(|repository| repository.changing_path());
            drop(done.send(EffectDone::Branch { cwd, branch, head }));
        });
    }

    /// Reports changes of this head from now on.
    fn watch_head(&mut self, file: Option<PathBuf>) {
        if self.head_watch.follow(file, &self.done) {
            // It may have changed since it was read.
            self.read_branch();
        }
    }

    fn reload(&self) {
        let answer = self.link.handle().post(SessionCommand::Reload);
        let (dirs, done) = (self.services.dirs.clone(), self.done.clone());
        let platform = keybindings::platform(&self.env);
        tokio::spawn(async move {
            if let Err(error) = answer.await {
                drop(done.send(EffectDone::Failed(error.to_string())));
                return;
            }
            let loaded = tokio::task::spawn_blocking(move || keybindings::load(&dirs, platform)).await;
            let (keymap, problems) = match loaded.map_err(|error| error.to_string()).flatten() {
                Ok((keymap, problems)) => (Some(keymap), problems),
                Err(problem) => (None, vec![problem + keybindings::KEYS_STAY]),
            };
            drop(done.send(EffectDone::Reloaded { problems, keymap }));
        });
    }

    /// Whether this machine has a clipboard that the user can access directly.
    pub(super) fn has_clipboard(&self) -> bool {
        has_clipboard(&self.env)
    }

    /// Copies to this machine's clipboard; answers with [`EffectDone::Hint`], or with
    /// [`EffectDone::NotCopied`] if that fails: the terminal may have a clipboard of its own.
    pub(super) fn copy(&self, text: String) {
        let (clipboard, done) = (self.clipboard.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            drop(done.send(match clipboard.copy(&text) {
                Ok(()) => EffectDone::Hint("copied".to_owned()),
                Err(_) => EffectDone::NotCopied(text),
            }));
        });
    }
}

/// Whether this machine has a clipboard that the user can access directly.
pub(super) fn has_clipboard(env: &Env) -> bool {
    let remote = terminal_env::is_remote(env) || in_tmux(env);
    let has_display = env.is_set("DISPLAY") || env.is_set("WAYLAND_DISPLAY") || cfg!(target_os = "macos");
    !remote && has_display
}
