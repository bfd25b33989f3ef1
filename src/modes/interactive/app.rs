//! The app: connects the parts of the screen, dispatches events, returns effects.
//!
//! No I/O and no clock: `effects.rs` and the loop perform [`Effect`]s, and
//! the loop passes the time in. The parts draw themselves; keys and commands are
//! rows in `actions.rs` and `commands/`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::{DEMO_PROVIDER, Model};
use crate::config::{DoubleEscape, TuiMode};
use crate::session::{
    IfBusy, Navigated, NoticeLevel, Opened, OtherCommands, Phase, PromptDraft, QuestionKind, QueueView,
    Refusal, SessionCommand, SessionEvent, SessionState, WhenBusy,
};
use crate::tui::keymap::Keymap;
use crate::tui::term::{InputEvent, StartOver};
use crate::tui::text::visible_name;
use crate::tui::theme::Theme;
use crate::util::counted;
use crate::util::paths;

use super::super::slash::unknown_command;
use super::actions;
use super::attention;
use super::clipboard::{self, COPIED_BY_TERMINAL};
use super::commands;
use super::completion;
use super::dialogs::{AskedBy, Dialogs};
use super::export;
use super::footer::Footer;
use super::fullscreen::{self, Fullscreen, LeftPlace};
use super::input_area::{InputArea, InputOutcome};
use super::login::{self, LoginEffect};
use super::msg::{Effect, EffectDone, ScreenEffect, WorldEffect};
use super::overlays::{Confirmation, DialogOutcome, ModelChoice, SummaryReview, TraceDialog};
use super::pager::{self, PagerStart, PagerView};
use super::pictures::PictureView;
use super::program_status::ProgramStatus;
use super::prompt::{Refused, Submission};
use super::prompt_history::{self, HistoryEffect};
use super::resources::{self, ResourceLists};
use super::sections::Reader;
use super::session_picker::{ChosenSession, SessionsDialog, SessionsDone, SessionsEffect};
use super::share;
use super::status::{self, Hint, StatusLine};
use super::terminal_env::ScreenOverrides;
use super::transcript::{Transcript, ViewSettings, set_header_hints};
use super::tree;
use super::welcome;

/// Everything interactive mode shows.
pub(super) struct App {
    /// The latest snapshot of the session.
    pub(super) session: Arc<SessionState>,
    pub(super) transcript: Transcript,
    pub(super) input: InputArea,
    pub(super) dialogs: Dialogs,
    /// On the alternate screen; it has all input.
    pub(super) pager: Option<Box<PagerView>>,
    /// A pager that is being opened.
    pub(super) pager_start: Option<PagerStart>,
    /// The first row of the transcript on the main screen.
    pub(super) top_row: usize,
    /// There if the screen is fullscreen.
    pub(super) fullscreen: Option<Box<Fullscreen>>,
    /// The place of fullscreen when it was left, if that was not the end.
    pub(super) fullscreen_left: Option<Box<LeftPlace>>,
    pub(super) status: StatusLine,
    pub(super) footer: Footer,
    pub(super) keymap: Keymap,
    pub(super) theme: Theme,
    pub(super) home: Option<PathBuf>,
    /// What the environment says before the settings.
    pub(super) overrides: ScreenOverrides,
    pub(super) program_status: ProgramStatus,
    /// Whether the terminal's window has the focus, as far as it says so.
    pub(super) is_focused: bool,
    /// Monotonic time of the current event.
    pub(super) now: Duration,
    /// Wall clock, milliseconds since the Unix epoch.
    pub(super) now_ms: u64,
    /// The line of the command that runs, which returns to the editor if it fails.
    pub(super) running_command: Option<String>,
    pub(super) resources: ResourceLists,
    /// Problems of the user's files that were already shown.
    shown_problems: HashSet<String>,
    /// The last entry of the session when it was opened.
    shown_leaf: Option<String>,
    /// A message that a search found in a session that is being opened.
    sought: Option<ChosenSession>,
}

/// The initial state of an app.
pub(super) struct AppParts {
    pub(super) session: Arc<SessionState>,
    pub(super) transcript: Transcript,
    pub(super) keymap: Keymap,
    pub(super) theme: Theme,
    pub(super) models: Vec<ModelChoice>,
    pub(super) home: Option<PathBuf>,
}

impl App {
    pub(super) fn new(parts: AppParts) -> Self {
        Self {
            resources: ResourceLists::new(&parts.session),
            session: parts.session,
            transcript: parts.transcript,
            input: InputArea::new(),
            dialogs: Dialogs::new(parts.models),
            pager: None,
            pager_start: None,
            top_row: 0,
            fullscreen: None,
            fullscreen_left: None,
            status: StatusLine::default(),
            footer: Footer::default(),
            keymap: parts.keymap,
            theme: parts.theme,
            home: parts.home,
            overrides: ScreenOverrides::default(),
            program_status: ProgramStatus::default(),
            is_focused: true,
            now: Duration::ZERO,
            now_ms: 0,
            running_command: None,
            shown_problems: HashSet::new(),
            shown_leaf: None,
            sought: None,
        }
    }

    // Input.

    pub(super) fn on_input(&mut self, input: &InputEvent, out: &mut Vec<Effect>) {
        if let InputEvent::Focus(is_focused) = input {
            self.is_focused = *is_focused;
            return;
        }
        let quits = self.input.take_quit_wait(self.now);
        self.transcript.was_read = true;
        if let InputEvent::Key(key) = input {
            // Whatever is open.
            let anywhere =
                [("app.suspend", ScreenEffect::Suspend), ("app.debug", ScreenEffect::ReportScreen)];
            if let Some((_, effect)) = anywhere.into_iter().find(|(id, _)| self.keymap.is(id, key)) {
                return out.push(effect.into());
            }
        }
        if pager::on_input(self, input, out) || fullscreen::on_input(self, input, out) {
            return;
        }
        if self.dialogs.takes(input, &self.keymap) {
            if let Some(outcome) = self.dialogs.on_input(input, &self.keymap) {
                self.on_dialog(outcome, out);
            }
            return;
        }
        match input {
            InputEvent::Key(key) => {
                self.status.hint = None;
                match self.input.on_key(key, quits, &self.keymap) {
                    InputOutcome::Handled => {}
                    InputOutcome::Action(id) => actions::perform(id, self, out),
                    InputOutcome::Submit => {
                        let when_busy = self.input.prompt.when_busy(&self.session);
                        self.submit(when_busy, out);
                    }
                    InputOutcome::Quit => return out.push(ScreenEffect::Quit.into()),
                }
                completion::follow(self, out);
            }
            InputEvent::Paste(text) => {
                self.status.hint = None;
                clipboard::paste(self, text, out);
            }
            InputEvent::Mouse(_)
            | InputEvent::Resize(_)
            | InputEvent::Focus(_)
            | InputEvent::Answered
            | InputEvent::PasteWaits => {}
        }
    }

    pub(super) fn on_dialog(&mut self, outcome: DialogOutcome, out: &mut Vec<Effect>) {
        match outcome {
            DialogOutcome::Effect(effect) => out.push(effect),
            DialogOutcome::TrustChosen(choice) => {
                out.push(Effect::session(SessionCommand::DecideTrust { choice }));
            }
            DialogOutcome::SessionChosen(chosen) => self.open_chosen(chosen, out),
            DialogOutcome::PromptChosen(text) => self.input.prompt.set_text(&text),
            DialogOutcome::SignInCancelled => {
                out.push(LoginEffect::Cancel.into());
                self.tell("The sign-in was cancelled.");
            }
        }
    }

    // Submitting.

    pub(super) fn submit(&mut self, when_busy: WhenBusy, out: &mut Vec<Effect>) {
        let InputArea { prompt, completion, .. } = &mut self.input;
        let submission = prompt.take(&self.session, |name| completion.knows_provider(name));
        let kept = self.input.prompt.take_new_history();
        out.extend(kept.into_iter().map(|text| HistoryEffect::Keep(text).into()));
        match submission {
            Submission::Nothing => {}
            Submission::DeliverQueue => out.push(Effect::session(SessionCommand::DeliverNow)),
            Submission::Command(line) => {
                if let Some((command, args)) = commands::find(&line) {
                    self.running_command = Some(line.clone());
                    (command.run)(self, args, out);
                    self.running_command = None;
                }
            }
            Submission::Refused(refused) => self.refuse(&refused),
            Submission::Bash { command, exclude_from_context } => {
                let others = OtherCommands::Refuse;
                fullscreen::follow_end(self);
                out.push(Effect::session(SessionCommand::RunBash { command, exclude_from_context, others }));
            }
            Submission::Prompt(prompt) | Submission::MissingSkill(prompt) => {
                fullscreen::follow_end(self);
                out.push(Effect::session(SessionCommand::Prompt { prompt, when_busy }));
            }
        }
    }

    /// Says why the text stays in the editor.
    fn refuse(&mut self, refused: &Refused) {
        match refused {
            Refused::Unknown { line } => {
                let commands = commands::all().map(|command| command.name);
                let templates = self.session.templates.iter().map(|template| template.name.as_str());
                let known: Vec<&str> = commands.chain(templates).collect();
                self.fail(&unknown_command(commands::name_of(line), &known, "type / to list all commands"));
            }
            Refused::Space => self.fail("a command follows the slash without a space"),
            Refused::TakesNoArguments { line } => {
                self.fail(&format!("/{} takes no arguments", commands::name_of(line)));
            }
            Refused::WrongArguments { why, .. } => self.fail(why),
            Refused::Working { .. } => self.fail(&Refusal::Working.to_string()),
            Refused::CommandRuns => {
                let key = self.keymap.hint("app.interrupt");
                let running = "a command is still running";
                let forms = match key.as_str() {
                    "" => vec![running.to_owned()],
                    key => vec![format!("{running}; {key} cancels it"), running.to_owned()],
                };
                self.status.hint = Some(Hint::shortened(forms));
            }
            Refused::NoBashCommand => {
                self.status.hint = Some("a command follows the exclamation mark".into());
            }
        }
    }

    /// Shows why a line is not a command, or can do nothing, and leaves it in the editor, unless
    /// something else was typed since. It is not sent to a model, which could not do what the user
    /// intended.
    pub(super) fn refuse_command(&mut self, line: &str, why: &str) {
        self.transcript.notice(NoticeLevel::Error, why);
        // A command without arguments has nothing to correct, and would stand before what is typed next.
        let has_arguments =
            line.split_once(char::is_whitespace).is_some_and(|(_, args)| !args.trim().is_empty());
        if has_arguments && self.input.prompt.is_blank() {
            self.input.prompt.composer.set_text(&format!("/{line}"));
        }
    }

    /// Escape: stops the first activity found, in this order.
    pub(super) fn interrupt(&mut self, out: &mut Vec<Effect>) {
        let editor = &mut self.input.prompt;
        if editor.composer.is_jumping() {
            return editor.composer.cancel_jump();
        }
        if self.session.is_busy() {
            out.push(Effect::session(SessionCommand::Interrupt));
        } else if editor.is_bash() {
            editor.composer.set_text("");
        } else if self.input.is_second_escape(self.now) {
            match self.session.settings.values.double_escape {
                DoubleEscape::Tree => commands::open_tree(self, out),
                DoubleEscape::Fork => commands::open_fork(self, out),
                DoubleEscape::None => {}
            }
        }
    }

    // Trust.

    /// Asks about the folder of the session, replacing an earlier question.
    pub(super) fn open_trust(&mut self, by: AskedBy) {
        self.dialogs.open_trust(by, &self.session, self.home.as_deref());
    }

    // Notices.

    /// Shows a problem in a file of the user, once: files
    /// are read repeatedly.
    pub(super) fn warn_once(&mut self, problem: String) {
        if !self.shown_problems.contains(&problem) {
            self.transcript.notice(NoticeLevel::Warning, &problem);
            self.shown_problems.insert(problem);
        }
    }

    pub(super) fn tell(&mut self, text: &str) {
        self.transcript.notice(NoticeLevel::Info, text);
    }

    /// Shows an error. The command that ends with it stays in the editor.
    pub(super) fn fail(&mut self, text: &str) {
        match self.running_command.take() {
            Some(line) => self.refuse_command(&line, text),
            None => self.transcript.notice(NoticeLevel::Error, text),
        }
    }

    // The session.

    /// Handles an event; `state` is the snapshot that came with it.
    pub(super) fn on_session_event(
        &mut self,
        event: &SessionEvent,
        state: Arc<SessionState>,
        out: &mut Vec<Effect>,
    ) {
        let has_new_templates = !Arc::ptr_eq(&self.session.templates, &state.templates);
        self.session = state;
        if has_new_templates && !matches!(event, SessionEvent::Opened(_)) {
            warn_of_hidden_templates(self);
        }
        self.dialogs.on_session_changed(&self.session);
        self.status.on_session_event(event, &self.session, self.now);
        attention::follow(self, event, out);
        tree::follow(self, event, out);
        resources::follow(self, event, out);
        self.program_status.follow(event, &self.session, out);
        match event {
            SessionEvent::Opened(opened) => return self.on_opened(opened, out),
            SessionEvent::Agent(AgentEvent::ToolEnd { .. }) | SessionEvent::BashEnded { .. } => {
                out.push(WorldEffect::ReadBranch.into());
            }
            SessionEvent::Settled { .. } => {
                out.push(WorldEffect::ReadBranch.into());
                // While the answer is read.
                out.push(SessionsEffect::UpdateIndex.into());
            }
            SessionEvent::QueueReturned(taken) => self.input.prompt.restore((**taken).clone()),
            SessionEvent::PromptReturned { prompt, error } => {
                self.take_back((**prompt).clone(), Some(&error.to_string()));
            }
            SessionEvent::SettingsChanged { keys } => self.on_settings_changed(keys, out),
            SessionEvent::SelectionChanged => out.push(ScreenEffect::SetTitle(self.title()).into()),
            SessionEvent::Question(question) if question.kind == QuestionKind::Trust => {
                self.open_trust(AskedBy::Session);
            }
            SessionEvent::Question(question) => self.dialogs.open_question(question),
            SessionEvent::Ended { .. } => self.on_session_ended(),
            SessionEvent::BranchSummaryEnded { aborted: true, target, .. } => {
                commands::open_tree_at(self, Some(target.clone()), out);
            }
            SessionEvent::HandoffEnded { prompt: Some(prompt), .. } => on_handoff(self, (**prompt).clone()),
            // Keys that are being typed must not decide.
            SessionEvent::SummaryDrafted(_) if !self.input.prompt.is_blank() => {
                self.tell("The summary is ready; /compact --edit shows it.");
            }
            SessionEvent::SummaryDrafted(draft) => {
                self.dialogs.open_summary(SummaryReview::new(draft));
            }
            SessionEvent::Navigated(navigated) => self.on_navigated(navigated, out),
            SessionEvent::Agent(_)
            | SessionEvent::QueueChanged
            | SessionEvent::ProjectChanged
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetryScheduled { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::HandoffStarted
            | SessionEvent::HandoffEnded { prompt: None, .. }
            | SessionEvent::BranchSummaryEnded { aborted: false, .. }
            | SessionEvent::RetryScheduled { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::BashStarted { .. }
            | SessionEvent::BashOutput { .. }
            | SessionEvent::EntryAppended(_)
            | SessionEvent::Notice { .. } => {}
        }
        self.transcript.apply(event, self.now);
        pager::follow(self, event);
    }

    /// Returns a rejected prompt to the editor.
    fn take_back(&mut self, prompt: PromptDraft, error: Option<&str>) {
        self.input.prompt.prepend(vec![prompt]);
        if let Some(error) = error {
            self.fail(error);
        }
    }

    // Settings.

    fn on_settings_changed(&mut self, keys: &[&str], out: &mut Vec<Effect>) {
        let is_in = |looks: &[&str]| keys.iter().any(|key| looks.contains(key));
        if is_in(&["hideThinkingBlock"]) {
            let hide_thinking = self.session.settings.values.hide_thinking;
            self.transcript.set_view(ViewSettings { hide_thinking, ..self.transcript.view().clone() });
            let hint = if hide_thinking { "thinking is hidden" } else { "thinking is shown" };
            self.status.hint = Some(hint.into());
        }
        if is_in(&["outputPad", "markdown.codeBlockIndent", "markdown.mermaid"]) {
            let layout = &self.session.settings.values.layout;
            self.transcript.set_view(self.transcript.view().clone().laid_out(layout));
        }
        if is_in(&["tuiMode"]) {
            fullscreen::set(self, self.session.settings.values.tui_mode == TuiMode::Fullscreen);
        }
        if is_in(&[
            "theme",
            "themes",
            "terminal.trueColor",
            "terminal.hyperlinks",
            "terminal.showImages",
            "terminal.images",
            "terminal.imageWidthCells",
        ]) {
            out.push(ScreenEffect::FollowLooks.into());
        }
    }

    /// The caller draws the whole screen again.
    pub(super) fn set_looks(&mut self, theme: Theme, links: bool, pictures: Option<PictureView>) {
        self.theme = theme;
        self.transcript.set_view(ViewSettings { links, ..self.transcript.view().clone() });
        self.set_pictures(pictures);
    }

    pub(super) fn set_pictures(&mut self, pictures: Option<PictureView>) {
        self.transcript.set_view(ViewSettings { pictures, ..self.transcript.view().clone() });
    }

    /// Reads the user's files again; problems that are still there are shown again.
    pub(super) fn reload(&mut self, out: &mut Vec<Effect>) {
        self.shown_problems.clear();
        out.push(WorldEffect::Reload.into());
    }

    fn on_reloaded(&mut self, problems: Vec<String>, keymap: Option<Keymap>) {
        for problem in problems {
            self.warn_once(problem);
        }
        if let Some(keymap) = keymap {
            let hides_keys = self.keymap.hides_keys();
            self.keymap = keymap;
            self.keymap.set_hides_keys(hides_keys);
            self.transcript.set_view(self.transcript.view().clone().with_keys(&self.keymap));
            let hints = welcome::hints(&self.keymap, &self.session);
            set_header_hints(&mut self.transcript, hints, welcome::keys(&self.keymap));
        }
        self.tell("Reloaded settings, theme, keybindings, skills, templates and instructions.");
    }

    /// Ends all activity; editor and transcript stay.
    fn on_session_ended(&mut self) {
        self.dialogs.clear();
        let session = SessionState {
            phase: Phase::Idle,
            queue: QueueView::default().into(),
            ..(*self.session).clone()
        };
        self.session = Arc::new(session);
    }

    fn on_opened(&mut self, opened: &Opened, out: &mut Vec<Effect>) {
        let leaf = opened.tail.last().map(|entry| entry.id.to_string());
        // The end of a large session was already shown; this is the complete version.
        let shown_already = leaf.is_some() && leaf == self.shown_leaf && opened.n_earlier.is_some();
        self.shown_leaf = if opened.n_earlier.is_some() { None } else { leaf };
        if !shown_already {
            let cwd = self.session.cwd.clone();
            self.transcript.open(opened, &cwd);
            self.input.prompt.set_history(&opened.tail);
            out.push(ScreenEffect::StartOver(StartOver::All).into());
        }
        self.dialogs.close_trust();
        if opened.n_compactions > 0 {
            let times = counted(opened.n_compactions as u64, "time");
            self.tell(&format!("Session compacted {times}"));
        }
        if self.session.summary_draft.is_some() {
            self.tell("A summary waits to be reviewed; /compact --edit shows it.");
        }
        if opened.n_earlier.is_some() {
            warn_of_hidden_templates(self);
            out.push(WorldEffect::TakeLeftOver.into());
            let sought = self.sought.take().filter(|sought| Some(&sought.path) == self.session.path.as_ref());
            if let Some(entry) = sought.and_then(|sought| sought.entry) {
                commands::open_tree_at(self, Some(entry), out);
            }
        }
        out.push(ScreenEffect::SetTitle(self.title()).into());
        out.push(WorldEffect::ReadBranch.into());
    }

    /// Another branch is shown; a message that was taken back waits in the editor.
    fn on_navigated(&mut self, navigated: &Navigated, out: &mut Vec<Effect>) {
        self.input.prompt.set_history(&navigated.branch.tail);
        self.status.hint = Some("continuing from here; the branch you left stays in /tree".into());
        if let Some(prompt) = navigated.prompt.clone() {
            self.edit_again(prompt);
        }
        // Most of the branch is in the scrollback already.
        out.push(ScreenEffect::StartOver(StartOver::Tail).into());
    }

    /// Puts a prompt into the editor, unless that would replace a draft.
    pub(super) fn edit_again(&mut self, prompt: PromptDraft) {
        if !self.input.prompt.take_back(prompt) {
            let key = self.keymap.hint("tui.editor.cursorUp");
            let message = if key.is_empty() { key } else { format!("; {key} brings the message you chose") };
            self.status.hint = Some(format!("your draft was kept{message}").into());
        }
    }

    fn open_sessions(&mut self) {
        // One that is read-only can be opened again, once it is free.
        let current = self.session.path.as_deref().filter(|_| !self.session.is_read_only);
        let home = self.home.as_deref();
        self.dialogs.open_sessions(SessionsDialog::new(current, self.now_ms, home));
    }

    /// Opens a session, and its tree at the message that was found.
    fn open_chosen(&mut self, chosen: ChosenSession, out: &mut Vec<Effect>) {
        out.push(SessionsEffect::Close.into());
        if self.session.path.as_ref() == Some(&chosen.path) && !self.session.is_read_only {
            // Opening it again would stop the agent.
            return commands::open_tree_at(self, chosen.entry, out);
        }
        let path = chosen.path.clone();
        self.sought = chosen.entry.is_some().then_some(chosen);
        out.push(Effect::session(SessionCommand::Open { path, if_busy: IfBusy::Refuse }));
    }

    fn title(&self) -> String {
        let folder = self.session.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
        let folder = folder.unwrap_or_else(|| self.session.cwd.display().to_string());
        let title = match &self.session.name {
            Some(name) => format!("π - {name} - {folder}"),
            None => format!("π - {folder}"),
        };
        visible_name(&title).into_owned()
    }

    // Results of effects.

    pub(super) fn on_effect_done(&mut self, done: EffectDone, out: &mut Vec<Effect>) {
        match done {
            EffectDone::QueueTaken { taken, after } => {
                let key = self.keymap.hint("app.message.followUp");
                let had_follow_up = !taken.follow_up.is_empty();
                // Otherwise the border says it.
                if !self.input.prompt.edit_queued(taken, after) && had_follow_up && !key.is_empty() {
                    self.status.hint = Some(format!("{key} queues it again").into());
                }
            }
            EffectDone::LeftOver(left) => {
                let was_queued = !left.steering.is_empty() || !left.follow_up.is_empty();
                match (was_queued, &left.draft) {
                    (true, _) => {
                        self.tell("Messages that were still queued when pi exited are back in the editor.");
                    }
                    (false, Some(_)) if self.input.prompt.composer.is_empty() => {
                        self.tell("Your draft is back in the editor.");
                    }
                    (false, _) => {}
                }
                self.input.prompt.restore(left);
            }
            EffectDone::Refused { prompt, error } => {
                self.take_back(prompt, error.as_deref());
            }
            EffectDone::Reloaded { problems, keymap } => {
                self.on_reloaded(problems, keymap);
                out.push(ScreenEffect::FollowLooks.into());
            }
            EffectDone::Sessions(SessionsDone::Opened) => self.open_sessions(),
            EffectDone::Sessions(done) => self.dialogs.on_sessions(done),
            EffectDone::Models { models, providers, found, problems } => {
                self.input.completion.set_providers(providers);
                self.on_models(&models, &found, problems);
            }
            EffectDone::Trace(read) if Some(&read.path) == self.session.path.as_ref() => {
                self.dialogs.show(TraceDialog::new(*read));
            }
            EffectDone::Read(Reader::Pager, done) => pager::on_done(self, done),
            EffectDone::Read(Reader::Fullscreen, done) => fullscreen::on_done(self, done, out),
            // The next frame shows it.
            EffectDone::PictureMade => {}
            EffectDone::ThemeChanged => out.push(ScreenEffect::FollowThemeFile.into()),
            EffectDone::OwnThemes(themes) => resources::on_themes(self, themes),
            EffectDone::Themes { themes, query } => commands::on_themes(self, themes, &query, out),
            EffectDone::Problems(problems) => {
                for problem in problems {
                    self.warn_once(problem);
                }
            }
            EffectDone::Attached(done) => clipboard::on_done(self, done, out),
            EffectDone::Files(found) => completion::on_found(self, &found, out),
            EffectDone::History(done) => prompt_history::on_done(self, done),
            EffectDone::HeadChanged => out.push(WorldEffect::ReadBranch.into()),
            EffectDone::Branch { cwd, branch, head } if cwd == self.session.cwd => {
                self.footer.branch = branch;
                out.push(WorldEffect::WatchHead(head).into());
            }
            // Asked for before another session was opened.
            EffectDone::Trace(_) | EffectDone::Branch { .. } => {}
            EffectDone::Edited(Ok(text)) => match self.dialogs.summary() {
                Some(review) => review.set_text(&text),
                None => self.input.prompt.set_edited(&text),
            },
            EffectDone::Edited(Err(error)) | EffectDone::Failed(error) => {
                self.fail(&paths::with_tilde(&error, self.home.as_deref()));
            }
            EffectDone::CommandFailed { line, error } => {
                let error = paths::with_tilde(&error, self.home.as_deref());
                self.refuse_command(&line, &error);
            }
            EffectDone::Importable(path) => commands::ask_to_import(self, path),
            EffectDone::Busy(command) => self.dialogs.show(Confirmation::cancel_work(command)),
            EffectDone::Hint(text) => status::show_hint(self, &text),
            EffectDone::TmuxHidesKeys { notice } => {
                self.keymap.set_hides_keys(true);
                if let Some(notice) = notice {
                    self.tell(&notice);
                }
            }
            EffectDone::Report(done) => self.dialogs.on_report(done),
            EffectDone::NotCopied(text) => {
                status::show_hint(self, COPIED_BY_TERMINAL);
                out.push(ScreenEffect::CopyByTerminal(text).into());
            }
            EffectDone::Notice(text) => self.tell(&text),
            EffectDone::SecretsFound { request, found } => {
                self.dialogs.show(export::question(&request, &found));
            }
            EffectDone::Share(done) => share::on_done(self, done),
            EffectDone::Login(done) => login::on_done(self, done, out),
            EffectDone::Tree(done) => tree::on_done(self, done, out),
        }
    }

    fn on_models(&mut self, models: &[Arc<Model>], found: &[(&str, usize)], problems: Vec<String>) {
        self.dialogs.on_models(ModelChoice::of(models));
        for problem in problems {
            self.warn_once(problem);
        }
        let is_demo = self.session.model.provider == DEMO_PROVIDER;
        if !self.dialogs.is_open() && is_demo && !found.is_empty() {
            let servers: Vec<String> = found
                .iter()
                .map(|(name, n_models)| {
                    format!("{name} with {n_models} model{}", if *n_models == 1 { "" } else { "s" })
                })
                .collect();
            let text = format!("Found local models: {}. Use /model to choose one.", servers.join(", "));
            self.tell(&text);
        }
    }

    // Time.

    /// Whether the screen changes without any event.
    pub(super) fn is_animated(&self) -> bool {
        self.status.is_animated() || self.transcript.wants_tick()
    }
}

/// Offers the drafted prompt of a new session.
fn on_handoff(app: &mut App, prompt: PromptDraft) {
    if app.input.prompt.take_back(prompt) {
        let rest = "its first prompt is drafted in the editor. Change it as you like, then send it.";
        return app.tell(&format!("This is a new session; {rest}"));
    }
    let key = app.keymap.hint("tui.editor.cursorUp");
    let how = if key.is_empty() { "the history has".to_owned() } else { format!("{key} brings") };
    app.tell(&format!(
        "This is a new session. Your draft was kept; {how} the prompt that was drafted for it."
    ));
}

/// Commands come before prompt templates of the same name.
fn warn_of_hidden_templates(app: &mut App) {
    let templates = Arc::clone(&app.session.templates);
    for template in templates.iter().filter(|template| commands::is_command(&template.name)) {
        let (path, name) = (paths::display(&template.path, app.home.as_deref()), &template.name);
        app.warn_once(format!(
            "prompt template {path}: /{name} is a command of pi, so nothing calls it; rename the file"
        ));
    }
}
