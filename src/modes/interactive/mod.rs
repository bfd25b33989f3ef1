//! Interactive mode: the loop between terminal, app and session.
//!
//! The loop owns terminal, app, session link and time, and passes events between
//! them. `app` decides what follows from an event, `ui` composes frames,
//! `effects` performs side effects, `start` creates all of them.

mod actions;
mod app;
mod appearance;
mod attachments;
mod attention;
mod block_cursor;
mod clipboard;
mod clipboard_content;
mod clipboard_owner;
mod clipboard_program;
mod commands;
mod completion;
mod context_facts;
mod debug_report;
mod dialogs;
mod doctor;
mod draft;
mod effects;
mod enter_label;
mod export;
mod external_editor;
mod file_watch;
mod footer;
mod frames;
mod fullscreen;
mod input_area;
mod input_wait;
mod keybindings;
mod layout;
mod login;
mod msg;
mod outside;
mod over_screen;
mod overlays;
mod pager;
mod pending;
mod pictures;
mod program_status;
mod prompt;
mod prompt_history;
mod reference;
mod reports;
mod resources;
mod sections;
mod session_facts;
mod session_link;
mod session_picker;
mod share;
mod size;
mod start;
mod status;
mod terminal;
mod terminal_env;
mod theme_files;
mod tool_view;
mod transcript;
mod tree;
mod ui;
mod unused_grammars;
mod welcome;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::AgentEvent;
use crate::config::ExitOutput;
use crate::session::{NoticeLevel, PromptDraft, SessionCommand, SessionError, SessionEvent, SessionUpdate};
use crate::tui::term::{Control, InputEvent, ProgramState, SizeSeen, give_back_at_once, write_in_progress};
use crate::util::clock::Clock;
use crate::util::foreground;
use crate::util::start_times::StartTimes;

use super::Prompt;
use super::changelog::News;
use super::output::{resume_line, write_err};
use super::print::{SHUTDOWN_LIMIT, SILENT_SESSION};
use super::signals;
use app::App;
use appearance::{Looks, in_tmux, tells_keys_apart};
use clipboard::COPIED_BY_TERMINAL;
use effects::Effects;
use frames::FrameClock;
use input_area::InputArea;
use input_wait::InputWait;
use msg::{Effect, EffectDone, ScreenEffect, WorldEffect};
use outside::Outside;
use overlays::SummaryReview;
use pictures::PictureView;
use session_picker::SessionsEffect;
use size::SIZE_RETRIES;
use terminal::{Stop, Terminal};
use theme_files::{ThemePlaces, trusted_project};
use unused_grammars::UnusedGrammars;

pub(super) use clipboard::copy_beside_terminal;
pub(super) use clipboard_owner::ClipboardOwner;
pub use commands::is_command;
pub(super) use context_facts::context_lines;
pub(super) use doctor::doctor_lines;
pub use doctor::{DoctorInput, doctor};
pub use reference::{commands_markdown, keybindings_markdown};
pub(super) use session_facts::session_report;
pub use start::{InteractiveStart, run};
pub use theme_files::theme_problems;

/// Maximum number of events handled before the next input.
const EVENTS_PER_TURN: usize = 512;
/// Maximum number of keys handled before the next frame, if many arrive at once.
const KEYS_PER_FRAME: usize = 256;
/// Time between two steps of a selection that scrolls.
const AUTOSCROLL: Duration = Duration::from_millis(40);
/// Maximum time to write the last prompts for later sessions.
const HISTORY_LIMIT: Duration = Duration::from_millis(500);
const PASTE_WAITS: &str = "a paste has not ended; escape or ctrl+c ends it";
/// The exit code if the terminal is gone, as after SIGHUP.
const TERMINAL_GONE: u8 = 129;

/// The loop's own state.
struct Interactive {
    app: App,
    terminal: Terminal,
    frames: FrameClock,
    unused_grammars: UnusedGrammars,
    effects: Effects,
    effects_done: mpsc::UnboundedReceiver<EffectDone>,
    /// Panics of other threads and tasks.
    panicked: mpsc::UnboundedReceiver<String>,
    clock: Clock,
    times: StartTimes,
    exit: Option<ExitCode>,
    /// What has the terminal next.
    outside: Option<Outside>,
    input_wait: InputWait,
    /// Problems in the user's files, until they have been shown.
    problems: Vec<String>,
    /// What is new in this version.
    news: Option<News>,
}

/// The turns of the loop.
struct Progress(Arc<AtomicU64>);

impl signals::Progress for Progress {
    fn write(&self) -> Option<u64> {
        write_in_progress()
    }

    fn turns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Interactive {
    /// Sends what the command line asked for.
    fn begin(&mut self, start: InteractiveStart) {
        if let Some(name) = start.name {
            self.effects.link.send(SessionCommand::SetName { name });
        }
        if !start.prompts.is_empty() {
            let prompts = start.prompts.into_iter();
            let prompts = prompts
                .map(|Prompt { text, images }| PromptDraft { text, images, ..PromptDraft::default() })
                .collect();
            self.effects.link.send(SessionCommand::Begin { prompts });
        }
        if start.pick_session {
            self.effects.start(SessionsEffect::Open.into());
        }
        self.effects.start(WorldEffect::ReadBranch);
    }

    async fn run(mut self) -> ExitCode {
        // Events from opening the session belong to the first frame.
        self.on_waiting_events();
        match self.news.take() {
            Some(News::Whole(markdown)) => self.app.transcript.text(&markdown),
            Some(News::Line(text)) => self.app.tell(&text),
            None => {}
        }
        for problem in std::mem::take(&mut self.problems) {
            self.app.warn_once(problem);
        }
        self.draw();
        self.effects.prepare();
        let turns = Arc::new(AtomicU64::new(0));
        tokio::spawn(signals::end_if_stuck(Progress(Arc::clone(&turns)), give_back_at_once));
        self.effects.watch_theme(&self.app.session, &self.app.session.settings.values.theme);
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            if let Some(code) = self.exit {
                return self.leave(code).await;
            }
            if let Some(outside) = self.outside.take() {
                outside::go(&mut self, outside).await;
                continue;
            }
            self.reopen().await;
            self.input_wait.follow(self.app.input.completion.is_awaited());
            let wait_until = self.input_wait.until();
            let (draw_at, resize_at) = (self.frames.draw_at(), self.frames.resize_at());
            let draft_at = self.effects.link.draft_due_at();
            let forget_at = self.unused_grammars.forget_at();
            tokio::select! {
                biased;
                event = self.terminal.input.next(), if wait_until.is_none() => self.on_inputs(event),
                () = until(wait_until) => {}
                code = self.terminal.signals.next() => self.exit = Some(ExitCode::from(code)),
                () = self.terminal.jobs.stops.next() => self.outside = Some(Outside::Shell(Stop::Pi)),
                () = self.terminal.jobs.continuations.next() => self.outside = Some(Outside::Continued),
                event = self.effects.link.next() => match event {
                    Some(update) => {
                        self.on_session_update(update);
                        self.on_waiting_events();
                    }
                    None => self.on_session_lost("its task ended"),
                },
                Some(panic) = self.panicked.recv() => self.on_panic(&panic),
                Some(done) = self.effects_done.recv() => self.on_effect_done(done),
                () = until(resize_at) => self.follow_size(),
                () = until(draw_at) => self.draw(),
                () = until(draft_at) => self.save_draft(),
                () = until(forget_at) => self.unused_grammars.forget(),
            }
            if self.frames.is_due() {
                self.draw();
            }
            // After drawing, which forgets what was planned.
            self.plan_frame();
        }
    }

    // Input.

    /// Handles inputs and queued ones, and draws without delay: a key
    /// is echoed at once, regardless of other activity.
    fn on_inputs(&mut self, first: std::io::Result<InputEvent>) {
        let Ok(first) = first else {
            self.exit = Some(ExitCode::from(TERMINAL_GONE));
            return;
        };
        let mut next = Some(first);
        for _ in 0..KEYS_PER_FRAME {
            let Some(event) = next else { break };
            self.on_input(&event);
            self.input_wait.follow(self.app.input.completion.is_awaited());
            // Keys after one that lends the terminal wait until it is returned.
            let waits = self.outside.is_some() || self.input_wait.until().is_some();
            next = if waits { None } else { self.terminal.input.next_arrived() };
        }
        if let Some(event) = next {
            self.on_input(&event);
        }
        self.draw();
        self.frames.on_key_drawn();
    }

    fn on_input(&mut self, event: &InputEvent) {
        self.effects.link.on_input();
        match event {
            InputEvent::Resize(size) => {
                // It may have another one when pi follows it.
                self.terminal.ui.screen.had_size(SizeSeen::Between(*size));
                return self.frames.on_resize();
            }
            InputEvent::Answered => return self.on_answers(),
            InputEvent::PasteWaits => {
                self.app.status.hint = Some(PASTE_WAITS.into());
                return;
            }
            InputEvent::Key(_) | InputEvent::Paste(_) | InputEvent::Mouse(_) | InputEvent::Focus(_) => {}
        }
        self.set_time();
        let mut out = Vec::new();
        self.app.on_input(event, &mut out);
        self.perform(out);
    }

    /// Follows what the terminal said about itself after the first frame, or since it changed
    /// between light and dark.
    fn on_answers(&mut self) {
        let answers = self.terminal.input.answers().clone();
        if !in_tmux(&self.effects.env) {
            self.app.keymap.set_hides_keys(!tells_keys_apart(&answers));
        }
        let before = std::mem::replace(&mut self.effects.answers, answers);
        let values = &self.app.session.settings.values;
        let pictures =
            pictures::view(&self.effects.env, values, &self.effects.answers, self.terminal.pictures());
        // Of a pair, the terminal's background chooses.
        let theme = self.theme();
        let has_other_colors =
            (theme == "system" || theme.contains('/')) && before.colors != self.effects.answers.colors;
        let (version, version_before) = (self.effects.answers.version.as_deref(), before.version.as_deref());
        if version != version_before {
            self.terminal.follow_version(&self.effects.env, version);
        }
        let looks = Looks { env: &self.effects.env, dirs: &self.effects.services.dirs };
        let has_other_links = looks.shows_links(values, version) != looks.shows_links(values, version_before);
        if has_other_colors || has_other_links || self.app.transcript.view().pictures != pictures {
            self.follow_looks();
        }
    }

    // The session.

    fn on_session_update(&mut self, update: SessionUpdate) {
        self.set_time();
        let mut out = Vec::new();
        let SessionUpdate { event, state } = update;
        self.app.on_session_event(&event, state, &mut out);
        self.perform(out);
        match &event {
            SessionEvent::Ended { reason } => self.on_session_lost(reason),
            // Back in the editor, and on disk only until that is stored.
            SessionEvent::QueueReturned(_) => self.save_draft(),
            _ => {}
        }
        if let SessionEvent::Navigated(_) = event {
            // A message may have been taken back into the editor.
            self.save_draft();
        }
        let is_delta = matches!(event, SessionEvent::Agent(AgentEvent::MessageUpdate(_)));
        if is_delta {
            self.frames.request_stream();
        } else {
            self.frames.request();
        }
    }

    /// Handles all queued events, so that one frame shows them.
    fn on_waiting_events(&mut self) {
        for _ in 0..EVENTS_PER_TURN {
            match self.effects.link.next_waiting() {
                Some(update) => self.on_session_update(update),
                None => return,
            }
        }
    }

    fn on_session_lost(&mut self, reason: &str) {
        if let Some(text) = self.effects.link.on_lost(reason) {
            self.app.transcript.notice(NoticeLevel::Error, &text);
        }
    }

    /// Opens a session to replace one that ended, if possible.
    async fn reopen(&mut self) {
        let Some(outcome) = self.effects.link.reopen().await else { return };
        let notice = match outcome {
            Ok(notice) => {
                self.app.input.prompt.forget_tickets();
                self.save_draft();
                // The opened session replaces the transcript; the notice comes after it.
                self.on_waiting_events();
                notice
            }
            Err(text) => Some(text),
        };
        if let Some(notice) = notice {
            self.app.transcript.notice(NoticeLevel::Error, &notice);
        }
        self.frames.request();
    }

    /// Lets the session store the contents of the editor, if they changed.
    fn save_draft(&mut self) {
        let InputArea { prompt, completion, .. } = &self.app.input;
        let is_provider = |name: &str| completion.knows_provider(name);
        let (draft, tickets) = prompt.draft(&self.app.session.templates, is_provider);
        self.effects.link.save_draft(draft, tickets);
        if let Some(save) = self.app.dialogs.summary().and_then(SummaryReview::take_change) {
            self.effects.link.send(save);
        }
    }

    // Everything else that arrives.

    /// Handles a bug in a background task; the task's owner continues or reports its end.
    fn on_panic(&mut self, panic: &str) {
        let text = format!("Internal error in pi: {panic}. Your session is saved.");
        self.app.transcript.notice(NoticeLevel::Error, &text);
        self.frames.request();
    }

    fn on_effect_done(&mut self, done: EffectDone) {
        self.set_time();
        let mut out = Vec::new();
        self.app.on_effect_done(done, &mut out);
        self.perform(out);
        // Messages may have returned to the editor; they stay on disk until it is stored.
        self.save_draft();
        self.frames.request();
    }

    fn set_time(&mut self) {
        self.app.now = self.clock.monotonic();
        self.app.now_ms = self.clock.now_ms();
    }

    // Frames.

    /// Requests the next frame of an animation, if there is one.
    fn plan_frame(&mut self) {
        if self.app.fullscreen.as_ref().is_some_and(|view| view.is_moving()) {
            self.frames.request_in(AUTOSCROLL);
        }
        if let Some(due) = self.terminal.pictures_due_in(self.clock.monotonic()) {
            self.frames.request_in(due);
        }
        if self.app.is_animated() {
            self.frames.animate(self.app.session.settings.values.reduced_motion);
        } else if let Some(at) = self.app.input.changes_at() {
            self.frames.request_in(at.saturating_sub(self.clock.monotonic()));
        }
    }

    fn draw(&mut self) {
        if !self.frames.begin() {
            return;
        }
        if self.has_other_size() {
            // The size changed but its event has not arrived; a frame of the old
            // size would be drawn in the wrong rows.
            return self.frames.on_resize();
        }
        self.paint();
    }

    fn paint(&mut self) {
        self.set_time();
        self.app.input.expire(self.app.now);
        let drawn = self.terminal.draw(&mut self.app);
        self.exit_unless_written(drawn);
        let wanted = [pager::take_wanted(&mut self.app), pictures::take_wanted(&mut self.app)];
        for effect in wanted.into_iter().flatten().chain(fullscreen::take_wanted(&mut self.app)) {
            self.effects.start(effect);
        }
        self.frames.on_drawn();
        self.unused_grammars.on_drawn();
        self.times.mark("first frame", self.clock.monotonic());
    }

    /// Whether the painted size is no longer that of the terminal.
    fn has_other_size(&mut self) -> bool {
        self.terminal.has_new_size() || self.frames.may_change_size() && !self.terminal.keeps_size()
    }

    fn follow_size(&mut self) {
        self.follow_cell_size();
        if self.app.fullscreen.is_none() {
            // They cover finished rows, and the next change would move rows of them to the scrollback.
            self.app.input.completion.close();
        }
        for _ in 0..SIZE_RETRIES {
            self.terminal.follow_size(&mut self.app);
            self.paint();
            self.frames.on_resized();
            if self.exit.is_some() || self.terminal.was_shown() {
                return;
            }
        }
        // It still changes.
        self.frames.on_resize();
    }

    /// Makes pictures for cells of another size, after a change of the font.
    fn follow_cell_size(&mut self) {
        let Some(pictures) = &self.app.transcript.view().pictures else { return };
        if let Some(cell) = pictures::changed_cell(pictures, &self.effects.answers) {
            let pictures = Some(PictureView { cell, ..pictures.clone() });
            self.app.set_pictures(pictures);
        }
    }

    /// Follows a change of size immediately, because the next step
    /// must know the positions of the rows.
    fn settle_size(&mut self) {
        if self.has_other_size() {
            self.follow_size();
        }
    }

    fn exit_unless_written(&mut self, written: std::io::Result<()>) {
        if written.is_err() {
            self.exit = Some(ExitCode::from(TERMINAL_GONE));
        }
    }

    // Effects.

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Screen(effect) => self.perform_on_screen(effect),
                Effect::World(effect) => self.effects.start(effect),
            }
        }
    }

    fn perform_on_screen(&mut self, effect: ScreenEffect) {
        match effect {
            ScreenEffect::Quit => self.exit = Some(ExitCode::SUCCESS),
            // Before the first frame there is nothing to replace.
            ScreenEffect::StartOver(_) if !self.frames.has_drawn() => {}
            ScreenEffect::StartOver(start) => {
                self.terminal.ui.screen.start_over(start);
                self.app.fullscreen_left = None;
                if let Some(view) = &mut self.app.fullscreen {
                    view.start_over();
                }
            }
            ScreenEffect::Replay if self.app.fullscreen.is_some() => self.terminal.repaint(),
            ScreenEffect::Replay => {
                let size = self.terminal.ui.screen.size();
                self.terminal.ui.replay(&mut self.app, size);
            }
            ScreenEffect::ReportScreen => {
                let facts = self.terminal.screen_facts();
                let text = debug_report::report(&self.app, &facts, &self.effects.answers);
                self.effects.write_debug_report(text);
            }
            ScreenEffect::SetTitle(title) => {
                let written = self.terminal.control(&Control::Title(title));
                self.exit_unless_written(written);
            }
            ScreenEffect::Control(control) => {
                let written = self.terminal.control(&control);
                self.exit_unless_written(written);
            }
            ScreenEffect::Copy(text) => self.copy(text),
            ScreenEffect::CopyByTerminal(text) => self.copy_by_terminal(text),
            ScreenEffect::FollowLooks => self.follow_looks(),
            // An editor may be in the middle of it, so a theme that cannot be used stays as it was.
            ScreenEffect::FollowThemeFile => {
                match self.effects.read_theme(&self.app.session, &self.theme()) {
                    Ok(()) => self.follow_looks(),
                    Err(problem) => {
                        self.app.fail(&format!("{problem}; its colours stay as they were"));
                        // Its folder may have gone, and may come back.
                        let name = self.theme();
                        self.effects.watch_theme(&self.app.session, &name);
                    }
                }
            }
            ScreenEffect::Suspend => self.outside = Some(Outside::Shell(Stop::Job)),
            ScreenEffect::OpenEditor(text) => self.outside = Some(Outside::Editor(text)),
        }
    }

    /// The name of the theme to show: that of the settings, or the one that a list shows.
    fn theme(&self) -> String {
        let previewed = self.app.dialogs.previewed_theme();
        previewed.unwrap_or(&self.app.session.settings.values.theme).to_owned()
    }

    /// Draws everything with the links of the settings as they are now, and the theme to show.
    fn follow_looks(&mut self) {
        self.settle_size();
        let looks = Looks { env: &self.effects.env, dirs: &self.effects.services.dirs };
        let mut values = self.app.session.settings.values.clone();
        values.theme = self.theme();
        let mut problems = Vec::new();
        let session = &self.app.session;
        let project = trusted_project(session);
        let named = &self.effects.themes;
        let places = ThemePlaces { looks: &looks, settings: &session.settings, project, named };
        let theme = places.theme(&values, &self.effects.answers.colors, &mut problems);
        let abilities = looks.abilities(&values, self.effects.answers.version.as_deref());
        let pictures =
            pictures::view(&self.effects.env, &values, &self.effects.answers, self.terminal.pictures());
        self.terminal.set_abilities(abilities);
        self.app.set_looks(theme, abilities.links, pictures);
        // What a list shows is not in use yet.
        if self.app.dialogs.previewed_theme().is_none() {
            for problem in problems {
                self.app.warn_once(problem);
            }
        }
        self.effects.watch_theme(&self.app.session, &values.theme);
        self.terminal.repaint();
        self.frames.request();
    }

    /// Uses the terminal's clipboard over ssh and in tmux, this machine's otherwise, or both.
    fn copy(&mut self, text: String) {
        let has_clipboard = self.effects.has_clipboard();
        if has_clipboard {
            self.effects.copy(text.clone());
        }
        let is_forced = terminal_env::copies_to_terminal(&self.effects.env);
        if has_clipboard && !is_forced {
            return;
        }
        if in_tmux(&self.effects.env) && !is_forced {
            status::show_hint(&mut self.app, "copied through tmux");
            return self.effects.copy_in_tmux(text);
        }
        self.copy_by_terminal(text);
        if has_clipboard {
            return;
        }
        status::show_hint(&mut self.app, COPIED_BY_TERMINAL);
    }

    fn copy_by_terminal(&mut self, text: String) {
        let written = self.terminal.control(&clipboard::terminal_copy(&self.effects.env, text));
        self.exit_unless_written(written);
    }

    /// Ends the session, restores the terminal, and prints how to resume.
    async fn leave(mut self, code: ExitCode) -> ExitCode {
        self.save_draft();
        let ending = self.effects.link.handle().request(SessionCommand::Shutdown);
        let ended = tokio::time::timeout(SHUTDOWN_LIMIT, ending).await;
        self.effects.history.finish(HISTORY_LIMIT).await;
        self.on_waiting_events();
        self.set_time();
        self.app.pager = None;
        self.app.dialogs.clear();
        let is_elsewhere = self.terminal.is_elsewhere();
        if self.app.program_status.is_shown && !is_elsewhere {
            let idle = Control::Status { state: ProgramState::Idle, kind: None, message: String::new() };
            self.perform_on_screen(ScreenEffect::Control(idle));
        }
        if self.app.session.settings.values.terminal_progress && !is_elsewhere {
            self.perform_on_screen(ScreenEffect::Control(Control::Progress(None)));
        }
        if code == ExitCode::SUCCESS {
            let turns = Progress(Arc::default());
            tokio::spawn(signals::quit_if_stuck(turns, give_back_at_once));
        }
        let settings = &self.app.session.settings.values;
        let is_quiet = settings.fullscreen.exit_output == ExitOutput::ResumeHint;
        if is_elsewhere {
            self.terminal.leave_to_shell();
        } else if self.app.fullscreen.take().is_some() && is_quiet && !self.terminal.has_drawn_inline() {
            self.terminal.leave_untouched();
        } else {
            let drawn = self.terminal.draw(&mut self.app);
            self.exit_unless_written(drawn);
            self.settle_size();
            self.app.transcript.settle();
            self.terminal.leave(&mut self.app);
        }
        let Self { effects, times, .. } = self;
        if let Some(report) = times.report() {
            write_err(&report);
        }
        let state = effects.link.handle().state();
        if ended.is_err() {
            write_err(SILENT_SESSION);
        }
        if let Ok(Err(SessionError::Refused(unsaved))) = ended {
            write_err(&format!("pi: {unsaved}"));
        } else if state.on_disk && !is_elsewhere && std::io::stderr().is_terminal() {
            let folder = effects.custom_sessions.then_some(&*effects.sessions.folder);
            write_err(&resume_line(&state.id, folder));
        }
        code
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => foreground::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
