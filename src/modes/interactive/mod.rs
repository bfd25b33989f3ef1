//! Interactive mode: the loop between terminal, app and session.
//!
//! This file owns terminal, painter and time. What happens is decided in `app`,
//! what is shown in the parts; effects on the world are in `effects`.

mod actions;
mod app;
mod commands;
mod completion;
mod draft;
mod effects;
mod footer;
mod layout;
mod login;
mod msg;
mod overlays;
mod pending;
mod prompt;
mod reference;
mod status;
mod tool_view;
mod transcript;
mod ui;

use std::fs::File;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpgrp, kill_process_group};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::AgentEvent;
use crate::config::Env;
use crate::session::{
    self, NoticeLevel, OpenSession, Services, SessionCommand, SessionError, SessionEvent, SessionEvents,
    SessionHandle,
};
use crate::tui::keymap::{BINDINGS, Keymap, Platform};
use crate::tui::markdown::Highlighter;
use crate::tui::term::{Control, InputBroker, InputEvent, Screen, TerminalGuard, TerminalModes};
use crate::tui::theme::{Appearance, ColorDepth, Theme};
use crate::util::process;

use super::Prompt;
use super::output::write_err;
use super::signals::EndSignals;
use app::{App, AppParts};
use draft::DraftWatch;
use effects::Effects;
use msg::{AppMsg, Effect, EffectDone};
use overlays::ModelChoice;
use transcript::{Transcript, ViewOptions};
use ui::Ui;

pub use reference::{commands_markdown, keybindings_markdown};

/// Shortest time between two frames that show a change of what goes on.
const FRAME: Duration = Duration::from_millis(4);
/// Shortest time between two frames that only show more of an answer.
const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Time between two frames that only an animation asks for.
const ANIMATION: Duration = Duration::from_millis(100);
/// How long the size must be at rest before the screen follows it.
const RESIZE_REST: Duration = Duration::from_millis(75);
/// Events handled before input gets its turn.
const EVENTS_PER_TURN: usize = 512;
/// Keys handled before the screen shows them, when they come in a burst.
const KEYS_PER_FRAME: usize = 256;
/// How long the session may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);
/// A session that stops again within this time of being opened is not opened again
/// by itself.
const REOPEN_REST: Duration = Duration::from_secs(5);

/// What interactive mode starts from.
pub struct InteractiveStart {
    pub services: Arc<Services>,
    pub cwd: PathBuf,
    pub open: OpenSession,
    pub env: Env,
    /// Said one after the other, once the screen is up.
    pub prompts: Vec<Prompt>,
    /// What is wrong in the user's files, one line each.
    pub problems: Vec<String>,
    /// Begin with the list of sessions.
    pub pick_session: bool,
    /// Folder of this project's sessions, and the directory to filter them by.
    pub sessions: PathBuf,
    pub sessions_filter: Option<PathBuf>,
    /// The sessions are not where a later start looks for them by itself.
    pub custom_sessions: bool,
    pub name: Option<String>,
}

/// Works in the terminal until the user quits. The terminal is as it was when
/// this returns, whatever happens.
///
/// # Errors
/// When the session cannot be opened or the terminal cannot be used.
pub async fn run(start: InteractiveStart) -> anyhow::Result<ExitCode> {
    let (handle, events) =
        session::start(Arc::clone(&start.services), start.cwd.clone(), start.open.clone()).await?;
    // Before the terminal is taken: from there on no signal may end the program by itself.
    let signals = EndSignals::new().context("cannot listen for signals")?;
    let (panics, panicked) = mpsc::unbounded_channel();
    let modes = TerminalModes { modify_other_keys: in_tmux(&start.env), ..TerminalModes::default() };
    let guard = TerminalGuard::enter(modes, panics)
        .context("interactive mode needs a terminal; without one, use pi -p \"…\"")?;
    let mut input = InputBroker::new();
    let cursor = input.cursor_position();
    let size = input.size().unwrap_or(Size::new(80, 24));
    let sink = File::from(rustix::io::dup(rustix::stdio::stdout()).context("cannot write to the terminal")?);
    let cursor = cursor.unwrap_or(Position::new(0, 0));
    let screen = Screen::new(sink, size, cursor);
    let mut problems = start.problems.clone();
    let theme = theme(&start, &mut input, &mut problems);
    let highlighter = Highlighter::new();
    let app = app(&start, &handle, theme, &highlighter, &mut problems);
    let (done, effects_done) = mpsc::unbounded_channel();
    let effects = Effects {
        handle: handle.clone(),
        done,
        sessions: start.sessions.clone(),
        sessions_filter: start.sessions_filter.clone(),
        custom_sessions: start.custom_sessions,
        settings_file: start.services.dirs.settings_file(),
        env: start.env.clone(),
        highlighter,
        services: Arc::clone(&start.services),
        sign_in: None,
    };
    let mut terminal = Interactive {
        ui: Ui::new(app, screen),
        guard,
        signals,
        input,
        handle,
        events,
        effects,
        effects_done,
        panicked,
        services: Arc::clone(&start.services),
        cwd: start.cwd.clone(),
        draft: DraftWatch::default(),
        lost: None,
        reopened_at: None,
        is_lost: false,
        drawn_at: None,
        draw_at: None,
        resize_at: None,
        exit: None,
        problems,
    };
    let links = start.services.settings.hyperlinks == "on" || has_links(&start);
    terminal.ui.set_links(links);
    terminal.begin(start);
    let code = terminal.run().await;
    process::kill_all();
    Ok(code)
}

fn in_tmux(env: &Env) -> bool {
    env.is_set("TMUX")
}

/// Whether the terminal is known to show links.
fn has_links(start: &InteractiveStart) -> bool {
    if start.services.settings.hyperlinks != "auto" || in_tmux(&start.env) {
        return false;
    }
    let program = start.env.get("TERM_PROGRAM").unwrap_or_default();
    let term = start.env.get("TERM").unwrap_or_default();
    ["iTerm.app", "WezTerm", "vscode", "ghostty", "WarpTerminal", "zed"].contains(&program.as_str())
        || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"].contains(&term.as_str())
        || start.env.is_set("WT_SESSION")
}

/// The theme of the settings: built in, or a file in the user's `themes` folder.
fn theme(start: &InteractiveStart, input: &mut InputBroker, problems: &mut Vec<String>) -> Theme {
    let env = &start.env;
    let settings = &start.services.settings;
    let colors = env.get("COLORTERM").unwrap_or_default();
    let true_color = match settings.true_color.as_str() {
        "on" => true,
        "off" => false,
        _ => matches!(colors.as_str(), "truecolor" | "24bit") || env.is_set("WT_SESSION"),
    };
    let depth = if true_color { ColorDepth::True } else { ColorDepth::Indexed };
    let name = settings.theme.as_str();
    let background = background(env, name, input);
    if let Some(theme) = Theme::builtin(name, background, depth) {
        return theme;
    }
    let path = start.services.dirs.agent.join("themes").join(format!("{name}.json"));
    let loaded = std::fs::read_to_string(&path)
        .map_err(|error| error.to_string())
        .and_then(|json| Theme::parse(&json, depth).map_err(|error| error.to_string()));
    loaded.unwrap_or_else(|error| {
        let shown = start.services.dirs.display(&path);
        problems.push(format!("theme \"{name}\": {shown}: {error}; using the system theme"));
        Theme::builtin("system", background, depth).expect("the system theme is built in (tested)")
    })
}

/// Whether the terminal is light or dark; only asked for when the theme depends on it.
fn background(env: &Env, theme: &str, input: &mut InputBroker) -> Appearance {
    if theme != "system" {
        return Appearance::Dark;
    }
    if let Some(colors) = env.get("COLORFGBG") {
        let light = matches!(colors.rsplit(';').next(), Some("7" | "15"));
        return if light { Appearance::Light } else { Appearance::Dark };
    }
    input.pause();
    let mut options = terminal_colorsaurus::QueryOptions::default();
    options.timeout = Duration::from_millis(100);
    match terminal_colorsaurus::theme_mode(options) {
        Ok(terminal_colorsaurus::ThemeMode::Light) => Appearance::Light,
        _ => Appearance::Dark,
    }
}

/// The app before anything happened. Adds to what is wrong in the user's files.
fn app(
    start: &InteractiveStart,
    handle: &SessionHandle,
    theme: Theme,
    highlighter: &Highlighter,
    problems: &mut Vec<String>,
) -> App {
    let services = &start.services;
    let actions = actions::bindings();
    let mut keymap = Keymap::new(&[BINDINGS, &actions], Platform::Unix);
    let path = services.dirs.keybindings_file();
    if let Ok(text) = std::fs::read_to_string(&path) {
        let shown = services.dirs.display(&path);
        match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            Ok(serde_json::Value::Object(overrides)) => {
                problems.extend(keymap.apply(&overrides).iter().map(|problem| format!("{shown}: {problem}")));
            }
            Ok(_) => problems.push(format!("{shown}: expected an object")),
            Err(error) => problems.push(format!("{shown}: {error}")),
        }
    }
    let models = ModelChoice::of(&services.usable_models());
    let home = services.dirs.home.clone();
    let mut transcript = Transcript::new(highlighter.clone(), start.cwd.clone(), home.clone());
    transcript.set_expand_key(&keymap.hint("app.tools.expand"));
    transcript.set_view(ViewOptions { expanded: false, hide_thinking: services.settings.hide_thinking });
    let mut app = App::new(AppParts {
        session: handle.state(),
        transcript,
        keymap,
        theme,
        models,
        home,
        offers_skills: services.settings.skill_commands,
        prompts: start.prompts.clone(),
    });
    if !services.settings.quiet_startup {
        let hints = app.header_hints();
        let hints: Vec<&str> = hints.iter().map(String::as_str).collect();
        app.transcript.header("pi", env!("CARGO_PKG_VERSION"), &hints);
    }
    app
}

/// The loop's own state.
struct Interactive {
    ui: Ui<File>,
    guard: TerminalGuard,
    signals: EndSignals,
    input: InputBroker,
    handle: SessionHandle,
    events: SessionEvents,
    effects: Effects,
    effects_done: mpsc::UnboundedReceiver<EffectDone>,
    /// Panics of other threads and tasks.
    panicked: mpsc::UnboundedReceiver<String>,
    services: Arc<Services>,
    cwd: PathBuf,
    draft: DraftWatch,
    /// What to open in place of a session whose task is gone.
    lost: Option<(OpenSession, Option<String>)>,
    reopened_at: Option<Instant>,
    /// There is no session now; the user has to choose one.
    is_lost: bool,
    drawn_at: Option<Instant>,
    draw_at: Option<Instant>,
    resize_at: Option<Instant>,
    exit: Option<ExitCode>,
    /// What is wrong in the user's files, until it has been shown.
    problems: Vec<String>,
}

impl Interactive {
    /// Sends what the command line asked for, but for prompts: those wait in the app
    /// until the session is there.
    fn begin(&mut self, start: InteractiveStart) {
        if let Some(name) = start.name {
            self.handle.send(SessionCommand::SetName { name });
        }
        if start.pick_session {
            self.effects.start(Effect::ListSessions);
        }
        self.effects.start(Effect::ReadBranch);
    }

    /// What may take a while and is wanted soon: nothing the first frame waits for.
    fn prepare(&mut self) {
        // The user types meanwhile.
        let (provider, model) = (Arc::clone(&self.services.provider), Arc::clone(&self.handle.state().model));
        tokio::task::spawn_blocking(move || provider.warm_up(&model));
        // Only without anything better: asking the ports of this machine is not for
        // everyone. The answer also tells the window of a local model.
        if self.services.is_local_or_demo(&self.handle.state().model) {
            self.effects.start(Effect::RefreshModels { with_services: false });
        }
    }

    async fn run(mut self) -> ExitCode {
        // What the session said while it was opened belongs to the first frame.
        self.take_events();
        for problem in std::mem::take(&mut self.problems) {
            self.ui.app.warn_once(problem);
        }
        self.draw();
        self.prepare();
        loop {
            if let Some(code) = self.exit {
                return self.leave(code).await;
            }
            if let Some((open, notice)) = self.lost.take() {
                self.open_again(open, notice).await;
            }
            let (draw_at, resize_at, draft_at) = (self.draw_at, self.resize_at, self.draft.due_at());
            tokio::select! {
                biased;
                event = self.input.next() => self.take_inputs(event),
                code = self.signals.next() => self.exit = Some(ExitCode::from(code)),
                event = self.events.recv(), if !self.is_lost => match event {
                    Some(event) => {
                        self.take_event(&event);
                        self.take_events();
                    }
                    None => self.session_lost("its task ended"),
                },
                Some(panic) = self.panicked.recv() => self.tell_panic(&panic),
                Some(done) = self.effects_done.recv() => self.update(AppMsg::Done(done)),
                () = until(resize_at) => self.follow_size(),
                () = until(draw_at) => self.draw(),
                () = until(draft_at) => self.save_draft(),
            }
            self.plan_frame();
            // Timers are coarse; a frame that is due is drawn without one.
            if self.draw_at.is_some_and(|at| at <= Instant::now()) {
                self.draw();
            }
        }
    }

    /// Handles input and what waits behind it, and shows it without delay: a key
    /// is echoed at once, whatever else keeps the screen busy.
    fn take_inputs(&mut self, first: std::io::Result<InputEvent>) {
        let Ok(first) = first else {
            // The terminal is gone.
            self.exit = Some(ExitCode::from(129));
            return;
        };
        let mut next = Some(first);
        for _ in 0..KEYS_PER_FRAME {
            let Some(event) = next else { break };
            self.take_input(event);
            next = self.input.next_arrived();
        }
        if let Some(event) = next {
            self.take_input(event);
        }
        self.draw();
    }

    fn take_input(&mut self, event: InputEvent) {
        self.draft.touched();
        if let InputEvent::Resize(_) = event {
            self.resize_at = Some(Instant::now() + RESIZE_REST);
            return;
        }
        self.set_time();
        let mut out = Vec::new();
        self.ui.app.input(&event, &mut out);
        self.perform(out);
    }

    fn take_event(&mut self, event: &SessionEvent) {
        self.set_time();
        let mut out = Vec::new();
        self.ui.app.session_event(event, self.handle.state(), &mut out);
        self.perform(out);
        if let SessionEvent::Ended { reason } = event {
            self.session_lost(reason);
        }
        let is_delta = matches!(event, SessionEvent::Agent(AgentEvent::MessageUpdate(_)));
        self.want_frame(if is_delta { STREAM_FRAME } else { FRAME });
    }

    /// The session task is gone: what it stored is in its file, what is being typed in
    /// the editor. Opens the file again, unless that was just tried.
    fn session_lost(&mut self, reason: &str) {
        self.is_lost = true;
        let app = &mut self.ui.app;
        let tried = self.reopened_at.is_some_and(|at| at.elapsed() < REOPEN_REST);
        if tried {
            let text = format!(
                "The session stopped again: {reason}. Your draft is in the editor; use /resume or /new \
                 to continue."
            );
            return app.transcript.notice(NoticeLevel::Error, &text);
        }
        let state = self.handle.state();
        let file = state.path.clone().filter(|path| path.exists());
        let open = file.map_or(OpenSession::New, OpenSession::File);
        let notice = format!("The session stopped: {reason}. pi reopened it from its file.");
        self.lost = Some((open, Some(notice)));
    }

    /// Opens a session in place of one that is gone, and then says `notice`.
    async fn open_again(&mut self, open: OpenSession, notice: Option<String>) {
        self.reopened_at = Some(Instant::now());
        match session::start(Arc::clone(&self.services), self.cwd.clone(), open).await {
            Ok((handle, events)) => {
                self.effects.handle = handle.clone();
                (self.handle, self.events) = (handle, events);
                self.is_lost = false;
                self.draft.forget();
                self.save_draft();
                // What is open now replaces the transcript; the notice comes after it.
                self.take_events();
                if let Some(notice) = notice {
                    self.ui.app.transcript.notice(NoticeLevel::Error, &notice);
                }
            }
            Err(error) => {
                let text = format!(
                    "Cannot open the session: {error}. Use /resume to open another one or /new to start one."
                );
                self.ui.app.transcript.notice(NoticeLevel::Error, &text);
            }
        }
        self.want_frame(FRAME);
    }

    /// A bug in the background; what it was part of goes on or says itself that it ended.
    fn tell_panic(&mut self, panic: &str) {
        let text = format!("Internal error in pi: {panic}. Please report it; your session is saved.");
        self.ui.app.transcript.notice(NoticeLevel::Error, &text);
        self.want_frame(FRAME);
    }

    /// Handles what is waiting already, so that one frame shows all of it.
    fn take_events(&mut self) {
        for _ in 0..EVENTS_PER_TURN {
            match self.events.try_recv() {
                Ok(event) => self.take_event(&event),
                Err(_) => return,
            }
        }
    }

    fn update(&mut self, msg: AppMsg) {
        self.set_time();
        let mut out = Vec::new();
        self.ui.app.update(msg, &mut out);
        self.perform(out);
        // Messages may have come back into the editor, which are on disk until it is stored.
        self.save_draft();
        self.want_frame(FRAME);
    }

    fn set_time(&mut self) {
        self.ui.app.now = self.services.clock.monotonic();
        self.ui.app.now_ms = self.services.clock.now_ms();
    }

    /// Has the session store what is in the editor, if that changed.
    fn save_draft(&mut self) {
        let (draft, ticket) = self.ui.app.prompt.draft();
        if !self.is_lost && self.draft.is_news(&draft, ticket) {
            self.handle.send(SessionCommand::SaveDraft { draft, ticket });
        }
    }

    // Frames.

    /// Asks for a frame, no sooner than `gap` after the last one.
    fn want_frame(&mut self, gap: Duration) {
        let earliest = self.drawn_at.map_or_else(Instant::now, |drawn| drawn + gap);
        self.draw_at = Some(self.draw_at.map_or(earliest, |at| at.min(earliest)));
    }

    /// Asks for the next frame of an animation, if something moves.
    fn plan_frame(&mut self) {
        if self.draw_at.is_some() {
            return;
        }
        if self.ui.app.is_animated() {
            self.draw_at = Some(Instant::now() + ANIMATION);
        } else if let Some(at) = self.ui.app.changes_at() {
            let left = at.saturating_sub(self.services.clock.monotonic());
            self.draw_at = Some(Instant::now() + left);
        }
    }

    fn draw(&mut self) {
        self.draw_at = None;
        if self.resize_at.is_some() {
            return;
        }
        if self.input.size().is_some_and(|size| size != self.ui.screen.size()) {
            // The size changed and the event is still on its way; a frame of the old
            // size would end up in the wrong rows.
            self.resize_at = Some(Instant::now() + RESIZE_REST);
            return;
        }
        self.set_time();
        self.ui.app.expire();
        if self.ui.draw().is_err() {
            self.exit = Some(ExitCode::from(129));
        }
        self.drawn_at = Some(Instant::now());
    }

    /// The size has come to rest: follows it.
    fn follow_size(&mut self) {
        self.resize_at = None;
        let Some(size) = self.input.size() else { return };
        let now = self.ui.screen.size();
        if size.width != now.width {
            self.ui.screen.reset(size);
        } else if size.height != now.height {
            // Rows moved into or out of the scrollback, and the cursor with them.
            let row = self.input.cursor_position().map(|position| position.y);
            self.ui.screen.height_changed(size, row);
        }
        self.want_frame(FRAME);
    }

    /// Follows a change of size that has not come to rest yet: what comes next
    /// has to know where the rows are.
    fn settle_size(&mut self) {
        if self.input.size().is_some_and(|size| size != self.ui.screen.size()) {
            self.follow_size();
        }
    }

    // Effects on the screen.

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Quit => self.exit = Some(ExitCode::SUCCESS),
                // Before the first frame there is nothing of ours to replace.
                Effect::Replay if self.drawn_at.is_none() => {}
                Effect::Replay => {
                    let size = self.ui.screen.size();
                    self.ui.screen.reset(size);
                }
                Effect::SetTitle(title) => self.control(&Control::Title(title)),
                Effect::Copy(text) => self.copy(text),
                Effect::Suspend => self.suspend(),
                Effect::OpenEditor(text) => self.open_editor(&text),
                Effect::Session(SessionCommand::New) if self.is_lost => {
                    self.lost = Some((OpenSession::New, None));
                }
                Effect::Session(SessionCommand::Open { path }) if self.is_lost => {
                    self.lost = Some((OpenSession::File(path), None));
                }
                other => self.effects.start(other),
            }
        }
    }

    fn control(&mut self, control: &Control) {
        if self.ui.screen.control(control).is_err() {
            self.exit = Some(ExitCode::from(129));
        }
    }

    /// The terminal's clipboard over ssh and in tmux, this machine's otherwise.
    fn copy(&mut self, text: String) {
        let env = &self.effects.env;
        let remote = env.is_set("SSH_TTY") || env.is_set("SSH_CONNECTION") || in_tmux(env);
        let has_display = env.is_set("DISPLAY") || env.is_set("WAYLAND_DISPLAY") || cfg!(target_os = "macos");
        if remote || !has_display {
            self.control(&Control::Copy(text));
            self.ui.app.status.hint = Some("copied through the terminal, if it supports that".to_owned());
            return;
        }
        let done = self.effects.done.clone();
        tokio::task::spawn_blocking(move || {
            let told = match effects::copy_locally(&text) {
                Ok(()) => EffectDone::Told("copied".to_owned()),
                Err(error) => EffectDone::Failed(format!("cannot copy: {error}")),
            };
            drop(done.send(told));
        });
    }

    fn suspend(&mut self) {
        self.outside(|| kill_process_group(getpgrp(), Signal::TSTP).map_err(|error| error.to_string())).ok();
    }

    fn open_editor(&mut self, text: &str) {
        let env = self.effects.env.clone();
        let edited = self.outside(|| effects::edit(text, &env));
        self.update(AppMsg::Done(EffectDone::Edited(edited)));
    }

    /// Hands the terminal to another program temporarily.
    fn outside<T>(&mut self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        self.settle_size();
        self.input.pause();
        self.ui.release().map_err(|error| error.to_string())?;
        let result = self.guard.suspend(work).map_err(|error| error.to_string())?;
        self.signals.forget_keys();
        let cursor = self.input.cursor_position().unwrap_or(Position::new(0, 0));
        let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
        if size.width == self.ui.screen.size().width {
            self.ui.screen.resume(size, cursor);
        } else {
            self.ui.screen.reset(size);
        }
        self.want_frame(FRAME);
        result
    }

    /// Ends the session, hands the terminal back, says how to come back.
    async fn leave(mut self, code: ExitCode) -> ExitCode {
        self.save_draft();
        let ending = self.handle.request(SessionCommand::Shutdown);
        let ended = tokio::time::timeout(SHUTDOWN_LIMIT, ending).await;
        self.take_events();
        self.set_time();
        self.settle_size();
        self.ui.app.transcript.settle();
        // The terminal may be gone; then there is nobody to show this to.
        drop(self.ui.draw());
        self.input.pause();
        drop(self.ui.release());
        let Self { guard, handle, effects, .. } = self;
        guard.leave();
        let state = handle.state();
        if let Ok(Err(SessionError::Refused(unsaved))) = ended {
            write_err(&format!("pi: {unsaved}"));
        } else if state.on_disk && std::io::stderr().is_terminal() {
            let folder = if effects.custom_sessions {
                format!(" --session-dir {}", effects.sessions.display())
            } else {
                String::new()
            };
            write_err(&format!("To resume this session: pi{folder} --session {}", state.id));
        }
        code
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
