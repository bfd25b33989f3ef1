//! The app: owns the parts of the screen, routes what reaches it, returns what
//! should happen outside.
//!
//! No I/O and no clock in here; `effects.rs` does what [`Effect`]s say, and the
//! loop in `mod.rs` passes the time in. Parts draw themselves; what a key or a
//! command does is a row in `actions.rs` or `commands/`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::{DEMO_PROVIDER, Message, Model};
use crate::config::Trust;
use crate::session::{
    EntryBody, NoticeLevel, Opened, Phase, PromptDraft, QuestionKind, QueueView, SessionCommand,
    SessionEvent, SessionMessage, SessionState, SkillBlock, WhenBusy,
};
use crate::tui::composer::EditorAction;
use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::theme::Theme;
use crate::util::paths;

use super::super::Prompt;
use super::super::slash::unknown_command;
use super::actions;
use super::commands;
use super::completion::Completion;
use super::footer::Footer;
use super::msg::{AppMsg, Effect, EffectDone};
use super::overlays::{
    Confirmation, ModelChoice, ModelScope, Models, Overlay, OverlayStep, QueuedMessages, Sessions,
    ThinkingLevels, TrustDialog,
};
use super::prompt::{PromptEditor, Submission};
use super::status::{Status, StatusLine};
use super::transcript::{Transcript, ViewOptions};

/// How long the key that clears the editor quits when it is pressed again. Longer,
/// and whoever clears the editor twice would quit without meaning to.
const QUIT_WAIT: Duration = Duration::from_millis(500);

/// Everything interactive mode shows.
pub(super) struct App {
    /// The latest snapshot of the session.
    pub(super) session: Arc<SessionState>,
    pub(super) transcript: Transcript,
    pub(super) prompt: PromptEditor,
    pub(super) status: StatusLine,
    pub(super) footer: Footer,
    pub(super) completion: Completion,
    pub(super) overlays: Vec<Box<dyn Overlay>>,
    pub(super) keymap: Keymap,
    pub(super) theme: Theme,
    /// Models there is a key for.
    pub(super) models: Vec<ModelChoice>,
    pub(super) home: Option<PathBuf>,
    /// Monotonic time of what is being handled.
    pub(super) now: Duration,
    /// Wall clock, milliseconds since the Unix epoch.
    pub(super) now_ms: u64,
    /// Until when the key that has just cleared the editor quits, as the hint says.
    quit_until: Option<Duration>,
    bash_since: Option<Duration>,
    grammars_wanted: bool,
    /// What was said to be wrong in the user's files.
    shown_problems: HashSet<String>,
    /// The last entry of the session as it was opened.
    shown_leaf: Option<String>,
    /// Prompts of the command line, until it is decided what the model may be told.
    held_prompts: Vec<Prompt>,
}

/// What an app starts with.
pub(super) struct AppParts {
    pub(super) session: Arc<SessionState>,
    pub(super) transcript: Transcript,
    pub(super) keymap: Keymap,
    pub(super) theme: Theme,
    pub(super) models: Vec<ModelChoice>,
    pub(super) home: Option<PathBuf>,
    /// Whether skills are offered as commands.
    pub(super) offers_skills: bool,
    /// Said one after the other, once the session is there.
    pub(super) prompts: Vec<Prompt>,
}

impl App {
    pub(super) fn new(parts: AppParts) -> Self {
        Self {
            session: parts.session,
            transcript: parts.transcript,
            prompt: PromptEditor::new(),
            status: StatusLine::default(),
            footer: Footer::default(),
            completion: Completion::new(parts.offers_skills),
            overlays: Vec::new(),
            keymap: parts.keymap,
            theme: parts.theme,
            models: parts.models,
            home: parts.home,
            now: Duration::ZERO,
            now_ms: 0,
            quit_until: None,
            bash_since: None,
            grammars_wanted: false,
            shown_problems: HashSet::new(),
            shown_leaf: None,
            held_prompts: parts.prompts,
        }
    }

    /// Takes in a message of the app itself.
    pub(super) fn update(&mut self, msg: AppMsg, out: &mut Vec<Effect>) {
        match msg {
            AppMsg::ModelChosen { reference, scope } => {
                out.push(Effect::Session(SessionCommand::SetModel { reference, scope }));
            }
            AppMsg::ThinkingChosen { level, scope } => {
                out.push(Effect::Session(SessionCommand::SetThinking { level, scope }));
            }
            AppMsg::SessionChosen(path) => out.push(Effect::Session(SessionCommand::Open { path })),
            AppMsg::TrustChosen(choice) => {
                out.push(Effect::Session(SessionCommand::DecideTrust { choice }));
                self.say_held(out);
            }
            AppMsg::ScopeChosen { patterns, scope } => {
                out.push(Effect::Session(SessionCommand::SetScope { patterns, scope }));
            }
            AppMsg::Session(command) => out.push(Effect::Session(command)),
            AppMsg::TakeQueued(slot) => out.push(Effect::TakeQueued(slot)),
            AppMsg::Login(msg) => self.login(msg, out),
            AppMsg::Done(EffectDone::Login(done)) => self.login_done(done, out),
            AppMsg::Done(done) => self.effect_done(done),
        }
    }

    // Input.

    pub(super) fn input(&mut self, input: &InputEvent, out: &mut Vec<Effect>) {
        let quits = self.disarm_quit();
        if let Some(overlay) = self.overlays.last_mut() {
            let step = overlay.handle(input, &self.keymap);
            return self.overlay_step(step, out);
        }
        match input {
            InputEvent::Key(key) => {
                self.status.hint = None;
                if quits && self.keymap.is("app.clear", key) {
                    return out.push(Effect::Quit);
                }
                self.key(key, out);
                let text = self.prompt.composer.text();
                self.completion.update(&text, &self.session.skills);
            }
            InputEvent::Paste(text) => self.prompt.composer.paste(text),
            InputEvent::Mouse(_) | InputEvent::Resize(_) | InputEvent::Focus(_) => {}
        }
    }

    fn overlay_step(&mut self, step: OverlayStep, out: &mut Vec<Effect>) {
        match step {
            OverlayStep::Stay => {}
            OverlayStep::StayWith(msg) => self.update(msg, out),
            OverlayStep::Close => drop(self.overlays.pop()),
            OverlayStep::CloseWith(msg) => {
                self.overlays.pop();
                self.update(msg, out);
            }
        }
    }

    fn key(&mut self, key: &crossterm::event::KeyEvent, out: &mut Vec<Effect>) {
        if self.completion.is_open() && self.completion_key(key, out) {
            return;
        }
        match self.keymap.lookup(Context::App, key) {
            // Not empty: the same key deletes.
            Some("app.exit") if !self.prompt.composer.is_empty() => {}
            Some(id) => return actions::perform(id, self, out),
            None => {}
        }
        match self.keymap.lookup(Context::Editor, key) {
            Some("tui.input.submit") => {
                if !self.prompt.composer.backslash_to_new_line() {
                    self.submit(WhenBusy::Steer, out);
                }
            }
            Some(id) => {
                if let Some(action) = EditorAction::from_id(id) {
                    self.prompt.composer.handle(action);
                }
            }
            None => {
                if let Some(char) = Chord::typed(key) {
                    self.prompt.composer.insert(char.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// Keys that mean something else while suggestions are shown.
    fn completion_key(&mut self, key: &crossterm::event::KeyEvent, out: &mut Vec<Effect>) -> bool {
        if self.keymap.is("app.interrupt", key) {
            let text = self.prompt.composer.text();
            self.completion.dismiss(&text);
            return true;
        }
        match self.keymap.lookup(Context::Editor, key) {
            Some("tui.editor.cursorUp") => self.completion.select_previous(),
            Some("tui.editor.cursorDown") => self.completion.select_next(),
            Some("tui.input.tab") => {
                if let Some(text) = self.completion.accept() {
                    self.prompt.composer.set_text(&text);
                }
            }
            Some("tui.input.submit") => {
                let ends_something = self.completion.is_surprising();
                let Some(text) = self.completion.accept() else { return false };
                self.prompt.composer.set_text(&text);
                // Enter again runs it.
                if !ends_something {
                    self.submit(WhenBusy::Steer, out);
                }
            }
            _ => return false,
        }
        true
    }

    // Submitting.

    fn submit(&mut self, when_busy: WhenBusy, out: &mut Vec<Effect>) {
        if self.prompt.is_bash() && self.bash_since.is_some() {
            self.status.hint = Some("a command is still running; press Escape to cancel it".to_owned());
            return;
        }
        let submission = self.prompt.take(|name| commands::all().any(|command| command.name == name));
        match submission {
            Submission::Nothing => {
                if self.session.phase != Phase::Idle && !self.session.queue.is_empty() {
                    out.push(Effect::Session(SessionCommand::DeliverNow));
                }
            }
            Submission::Command(line) => self.run_command(&line, out),
            Submission::Unknown(line) => {
                let name = line.split_whitespace().next().unwrap_or_default();
                let known: Vec<&str> = commands::all().map(|command| command.name).collect();
                self.refuse_command(&line, &unknown_command(name, &known));
            }
            Submission::Bash { command, exclude_from_context } => {
                out.push(Effect::Session(SessionCommand::RunBash { command, exclude_from_context }));
            }
            Submission::Prompt(PromptDraft { text, images }) => {
                out.push(Effect::Session(SessionCommand::Prompt { text, images, when_busy }));
            }
        }
    }

    pub(super) fn submit_follow_up(&mut self, out: &mut Vec<Effect>) {
        self.submit(WhenBusy::FollowUp, out);
    }

    pub(super) fn submit_now(&mut self, out: &mut Vec<Effect>) {
        self.submit(WhenBusy::Now, out);
    }

    fn run_command(&mut self, line: &str, out: &mut Vec<Effect>) {
        match commands::find(line) {
            Some((command, args)) => (command.run)(self, args, out),
            None => {
                let name = line.split_whitespace().next().unwrap_or_default();
                self.refuse_command(line, &format!("/{name} takes no arguments"));
            }
        }
    }

    /// Says why a line is no command, and leaves it to be corrected. Models are not
    /// asked: what it was meant to do is nothing they could.
    fn refuse_command(&mut self, line: &str, why: &str) {
        self.fail(why);
        self.prompt.composer.set_text(&format!("/{line}"));
    }

    /// Starts a new session; asks first while something goes on that this would end.
    pub(super) fn new_session(&mut self, out: &mut Vec<Effect>) {
        if self.session.phase == Phase::Idle && self.bash_since.is_none() {
            return out.push(Effect::Session(SessionCommand::New));
        }
        self.overlays.push(Box::new(Confirmation {
            title: "Start a new session?",
            about: "The agent or a command is still working. A new session cancels it; finished work is kept.",
            leave: "Keep working",
            confirm: "Cancel and start a new session",
            then: Some(AppMsg::Session(SessionCommand::New)),
            is_confirmed: false,
        }));
    }

    // Actions.

    /// Escape: the first thing there is to stop, of these in order.
    pub(super) fn interrupt(&mut self, out: &mut Vec<Effect>) {
        if self.prompt.composer.is_jumping() {
            return self.prompt.composer.cancel_jump();
        }
        match self.session.phase {
            Phase::Retrying | Phase::Compacting => out.push(Effect::Session(SessionCommand::Abort)),
            Phase::Running => {
                // The queue comes back first, or the abort would leave it waiting.
                out.push(Effect::TakeQueue);
                out.push(Effect::Session(SessionCommand::Abort));
            }
            Phase::Idle if self.bash_since.is_some() => out.push(Effect::Session(SessionCommand::Abort)),
            Phase::Idle if self.prompt.is_bash() => drop(self.prompt.composer.take()),
            Phase::Idle => {}
        }
    }

    /// Clears the editor; the same key again quits, as the hint says meanwhile.
    pub(super) fn clear_or_quit(&mut self, _: &mut Vec<Effect>) {
        self.quit_until = Some(self.now + QUIT_WAIT);
        self.prompt.clear();
        let key = self.keymap.hint("app.clear");
        self.status.hint = Some(format!("{key} again to quit"));
    }

    /// Ends the wait for the second key; whether it was still going on.
    fn disarm_quit(&mut self) -> bool {
        let Some(until) = self.quit_until.take() else { return false };
        self.status.hint = None;
        self.now < until
    }

    /// When the screen changes by itself although nothing moves.
    pub(super) fn changes_at(&self) -> Option<Duration> {
        self.quit_until
    }

    /// Ends what was only to last until now.
    pub(super) fn expire(&mut self) {
        if self.quit_until.is_some_and(|until| until <= self.now) {
            self.disarm_quit();
        }
    }

    pub(super) fn exit_if_empty(&mut self, out: &mut Vec<Effect>) {
        if self.prompt.composer.is_empty() {
            out.push(Effect::Quit);
        }
    }

    pub(super) fn toggle_expanded(&mut self, out: &mut Vec<Effect>) {
        let view = self.transcript.view();
        self.transcript.set_view(ViewOptions { expanded: !view.expanded, ..view });
        out.push(Effect::Replay);
    }

    pub(super) fn toggle_thinking(&mut self, out: &mut Vec<Effect>) {
        let view = self.transcript.view();
        let hide_thinking = !view.hide_thinking;
        self.transcript.set_view(ViewOptions { hide_thinking, ..view });
        out.push(Effect::SaveSetting { key: "hideThinkingBlock", value: hide_thinking.into() });
        self.status.hint =
            Some(if hide_thinking { "thinking is hidden" } else { "thinking is shown" }.to_owned());
        out.push(Effect::Replay);
    }

    pub(super) fn copy_answer(&mut self, out: &mut Vec<Effect>) {
        match self.transcript.last_answer() {
            Some(text) => out.push(Effect::Copy(text)),
            None => self.status.hint = Some("there is no answer to copy yet".to_owned()),
        }
    }

    pub(super) fn open_editor(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::OpenEditor(self.prompt.composer.expanded_text()));
    }

    pub(super) fn open_models(&mut self, out: &mut Vec<Effect>) {
        self.open_models_with("", out);
    }

    /// Shows the models that are known, and those that a new look finds.
    pub(super) fn open_models_with(&mut self, query: &str, out: &mut Vec<Effect>) {
        out.push(Effect::RefreshModels { with_services: true });
        let models = Models::new(&self.models, &self.session, query, &self.keymap);
        self.overlays.push(Box::new(models));
    }

    pub(super) fn open_scope(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::RefreshModels { with_services: true });
        self.overlays.push(Box::new(ModelScope::new(&self.models, &self.session.scope, &self.keymap)));
    }

    pub(super) fn open_queue(&mut self) {
        if self.session.queue.is_empty() {
            return self
                .tell("The queue is empty. While the agent works, Enter and Alt+Enter queue a message.");
        }
        self.overlays.push(Box::new(QueuedMessages::new(&self.session.queue, &self.keymap)));
    }

    /// Asks about the folder of the session, in place of an earlier question.
    pub(super) fn open_trust(&mut self) {
        self.overlays.retain(|overlay| !overlay.asks_for_trust());
        let dialog = TrustDialog::new(&self.session.project, &self.session.cwd, self.home.as_deref());
        self.overlays.push(Box::new(dialog));
    }

    fn say_held(&mut self, out: &mut Vec<Effect>) {
        for Prompt { text, images } in std::mem::take(&mut self.held_prompts) {
            let when_busy = WhenBusy::FollowUp;
            out.push(Effect::Session(SessionCommand::Prompt { text, images, when_busy }));
        }
    }

    pub(super) fn open_thinking(&mut self) {
        let model = &self.session.model;
        if model.thinking_levels().len() < 2 {
            return self.fail(&format!("{} has no thinking levels", model.id));
        }
        let save_key = self.keymap.hint("app.thinking.save");
        self.overlays.push(Box::new(ThinkingLevels::new(model, self.session.thinking, &save_key)));
    }

    // Telling the user.

    /// Says what is wrong in a file of the user, unless that was said before: files
    /// are read again now and then.
    pub(super) fn warn_once(&mut self, problem: String) {
        if !self.shown_problems.contains(&problem) {
            self.transcript.notice(NoticeLevel::Warning, &problem);
            self.shown_problems.insert(problem);
        }
    }

    pub(super) fn tell(&mut self, text: &str) {
        self.transcript.notice(NoticeLevel::Info, text);
    }

    pub(super) fn fail(&mut self, text: &str) {
        self.transcript.notice(NoticeLevel::Error, text);
    }

    // The session.

    /// Takes in an event; `state` is the snapshot that came with it.
    pub(super) fn session_event(
        &mut self,
        event: &SessionEvent,
        state: Arc<SessionState>,
        out: &mut Vec<Effect>,
    ) {
        self.session = state;
        if let Some(overlay) = self.overlays.last_mut() {
            let step = overlay.session_changed(&self.session);
            self.overlay_step(step, out);
        }
        match event {
            SessionEvent::Opened(opened) => return self.opened(opened, out),
            SessionEvent::Agent(AgentEvent::AgentStart) => {
                self.status.status = Status::Working { since: self.now };
                // In time for the first code of the answer, and not at all for an idle session.
                if !std::mem::replace(&mut self.grammars_wanted, true) {
                    out.push(Effect::LoadGrammars);
                }
            }
            SessionEvent::Agent(AgentEvent::ToolEnd { .. }) => out.push(Effect::ReadBranch),
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, .. } => {
                let (attempt, max_attempts, at) = (*attempt, *max_attempts, self.now + *delay);
                self.status.status = Status::Retrying { attempt, max_attempts, at };
            }
            SessionEvent::BashStarted { .. } => {
                self.bash_since = Some(self.now);
                if self.session.phase == Phase::Idle {
                    self.status.status = Status::RunningBash { since: self.now };
                }
            }
            SessionEvent::BashEnded(_) => {
                self.bash_since = None;
                if self.session.phase == Phase::Idle {
                    self.status.status = Status::Idle;
                }
                out.push(Effect::ReadBranch);
            }
            SessionEvent::Settled { .. } => {
                self.status.status = match self.bash_since {
                    Some(since) => Status::RunningBash { since },
                    None => Status::Idle,
                };
                // A failed run leaves queued messages behind; nobody else will take them.
                if !self.session.queue.is_empty() {
                    out.push(Effect::TakeQueue);
                }
                out.push(Effect::ReadBranch);
            }
            SessionEvent::SelectionChanged => {
                out.push(Effect::SetTitle(self.title()));
                let session = &self.session;
                self.status.hint = Some(format!("{} · thinking {}", session.model.id, session.thinking));
            }
            SessionEvent::CompactionStarted { reason } => {
                self.status.status = Status::Compacting { since: self.now, reason: *reason };
            }
            SessionEvent::CompactionEnded { .. } => self.status.status = Status::Idle,
            SessionEvent::Question(question) if question.kind == QuestionKind::Trust => self.open_trust(),
            SessionEvent::Ended { .. } => self.session_ended(),
            SessionEvent::Agent(_)
            | SessionEvent::QueueChanged
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::BashOutput { .. }
            | SessionEvent::EntryAppended(_)
            | SessionEvent::Notice { .. } => {}
        }
        self.transcript.apply(event, self.now);
    }

    /// Nothing goes on any more; editor and transcript stay.
    fn session_ended(&mut self) {
        self.bash_since = None;
        self.status.status = Status::Idle;
        self.overlays.clear();
        let session = SessionState {
            phase: Phase::Idle,
            queue: QueueView::default().into(),
            ..(*self.session).clone()
        };
        self.session = Arc::new(session);
    }

    fn opened(&mut self, opened: &Opened, out: &mut Vec<Effect>) {
        let leaf = opened.tail.last().map(|entry| entry.id.to_string());
        // A large session was shown by its end already; this is the same, fully read.
        let shown_already = leaf.is_some() && leaf == self.shown_leaf && opened.n_earlier.is_some();
        self.shown_leaf = if opened.n_earlier.is_some() { None } else { leaf };
        if !shown_already {
            let cwd = self.session.cwd.clone();
            self.transcript.open(opened, &cwd);
            self.fill_history(opened);
            out.push(Effect::Replay);
        }
        self.overlays.retain(|overlay| !overlay.asks_for_trust());
        if opened.n_earlier.is_some() {
            out.push(Effect::TakeLeftOver);
            // Otherwise a question about it follows.
            if self.session.project.trust != Trust::Undecided {
                self.say_held(out);
            }
        }
        out.push(Effect::SetTitle(self.title()));
        out.push(Effect::ReadBranch);
    }

    fn fill_history(&mut self, opened: &Opened) {
        self.prompt.composer.clear_history();
        for entry in &opened.tail {
            let EntryBody::Message { message, .. } = &entry.body else { continue };
            match message {
                SessionMessage::Model(message) => {
                    if let Message::User(user) = &**message {
                        let text = user.content.text();
                        let typed = SkillBlock::parse(&text).map(|block| block.command());
                        self.prompt.composer.add_to_history(typed.as_deref().unwrap_or(text.trim()));
                    }
                }
                SessionMessage::BashExecution(execution) => {
                    let mark = if execution.exclude_from_context == Some(true) { "!!" } else { "!" };
                    self.prompt.composer.add_to_history(&format!("{mark}{}", execution.command));
                }
                SessionMessage::Unknown(_) => {}
            }
        }
    }

    fn title(&self) -> String {
        let folder = self.session.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
        let folder = folder.unwrap_or_else(|| self.session.cwd.display().to_string());
        match &self.session.name {
            Some(name) => format!("π - {name} - {folder}"),
            None => format!("π - {folder}"),
        }
    }

    fn effect_done(&mut self, done: EffectDone) {
        match done {
            EffectDone::QueueTaken(taken) => {
                self.prompt.take_back(taken);
            }
            EffectDone::LeftOver(left) => {
                let was_queued = !left.steering.is_empty() || !left.follow_up.is_empty();
                match (was_queued, &left.draft) {
                    (true, _) => {
                        self.tell("Messages that were still queued when pi exited are back in the editor.");
                    }
                    (false, Some(_)) if self.prompt.composer.is_empty() => {
                        self.tell("Your draft is back in the editor.");
                    }
                    (false, Some(_)) => {}
                    (false, None) => {}
                }
                self.prompt.take_back(left);
            }
            EffectDone::Refused { prompt, error } => {
                self.prompt.prepend(vec![prompt]);
                if let Some(error) = error {
                    self.fail(&error);
                }
            }
            EffectDone::Sessions(sessions) => {
                let current = self.session.path.clone();
                if sessions.iter().all(|session| Some(&session.path) == current.as_ref()) {
                    return self.tell("This directory has no other sessions.");
                }
                let current: Option<&Path> = current.as_deref();
                self.overlays.push(Box::new(Sessions::new(&sessions, current, self.now_ms)));
            }
            EffectDone::Models { models, found, problems } => self.take_models(&models, &found, problems),
            EffectDone::Branch(branch) => self.footer.branch = branch,
            EffectDone::Edited(Ok(text)) => self.prompt.composer.set_text(&text),
            EffectDone::Edited(Err(error)) | EffectDone::Failed(error) => {
                self.fail(&paths::with_tilde(&error, self.home.as_deref()));
            }
            EffectDone::Told(text) => self.status.hint = Some(text),
            EffectDone::Login(_) => {}
        }
    }

    fn take_models(&mut self, models: &[Arc<Model>], found: &[(&str, usize)], problems: Vec<String>) {
        self.models = ModelChoice::of(models);
        for problem in problems {
            self.warn_once(problem);
        }
        match self.overlays.last_mut() {
            Some(overlay) => overlay.models_changed(&self.models),
            None if self.session.model.provider == DEMO_PROVIDER && !found.is_empty() => {
                let servers: Vec<String> = found
                    .iter()
                    .map(|(name, n_models)| {
                        format!("{name} with {n_models} model{}", if *n_models == 1 { "" } else { "s" })
                    })
                    .collect();
                let text = format!("Found local models: {}. Use /model to choose one.", servers.join(", "));
                self.tell(&text);
            }
            None => {}
        }
    }

    /// Whether the screen changes by itself, without anything reaching the app.
    pub(super) fn is_animated(&self) -> bool {
        self.status.is_animated() || self.transcript.wants_tick()
    }

    /// What a newcomer needs to know, for the start of the screen.
    pub(super) fn header_hints(&self) -> Vec<String> {
        let key = |id: &str| self.keymap.hint(id);
        let mut lines = vec![format!(
            "{} interrupt · {} twice quit · / commands · ! bash · {} more output",
            key("app.interrupt"),
            key("app.clear"),
            key("app.tools.expand")
        )];
        let is_demo = self.session.model.provider == DEMO_PROVIDER;
        if let Some(provider) = &self.session.instead_of_demo {
            lines.push(
                "This is the offline demo model. It follows fixed rules and runs real tools.".to_owned(),
            );
            lines.push(format!("{provider} is set up: use /model to choose one of its models."));
        } else if is_demo {
            lines.push(
                "No key is configured, so this is the offline demo model. It follows fixed rules and runs real tools."
                    .to_owned(),
            );
            lines.push(
                "To use a real model, type /login, or set ANTHROPIC_API_KEY or another key and restart pi."
                    .to_owned(),
            );
        }
        if is_demo {
            lines.push(
                "Try: give me an overview · create hello.txt with hello world · count slowly".to_owned(),
            );
        }
        lines
    }
}
