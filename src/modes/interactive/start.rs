//! Creates the parts of interactive mode: session, terminal, app.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use ratatui::layout::{Position, Size};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::config::{Env, StartDisplay, TuiMode};
use crate::session::{Deltas, OpenSession, ResourceOptions, Services, SessionEvents, SessionHandle};
use crate::tui::markdown::Highlighter;
use crate::tui::term::{
    InlineWindow, InputBroker, Questions, TerminalAnswers, TerminalGuard, TerminalModes, TerminalOutput,
    record_output,
};
use crate::tui::theme::Theme;
use crate::util::os;
use crate::util::process;
use crate::util::start_times::StartTimes;

use super::super::Prompt;
use super::super::changelog;
use super::super::crash_notice::InterfaceWatch;
use super::super::opening::open_session;
use super::super::signals::EndSignals;
use super::app::{App, AppParts};
use super::appearance::{Looks, in_tmux, questions, tells_keys_apart};
use super::clipboard_owner::ClipboardOwner;
use super::completion::ProviderChoice;
use super::effects::Effects;
use super::file_watch::FileWatch;
use super::frames::FrameClock;
use super::fullscreen;
use super::input_wait::InputWait;
use super::keybindings;
use super::msg::EffectDone;
use super::overlays::ModelChoice;
use super::pictures::{self, PictureGallery, PictureView};
use super::program_status;
use super::prompt_history::HistoryWriter;
use super::session_link::SessionLink;
use super::session_picker::{IndexUpdate, SessionFolders};
use super::terminal::{Drawing, JobSignals, Terminal};
use super::terminal_env::{self, ScreenOverrides};
use super::theme_files::{ThemePlaces, trusted_project};
use super::transcript::{Transcript, ViewSettings, set_header_hints};
use super::ui::Ui;
use super::unused_grammars::UnusedGrammars;
use super::{Interactive, resources, welcome};

/// The inputs of interactive mode.
pub struct InteractiveStart {
    pub services: Arc<Services>,
    pub cwd: PathBuf,
    pub open: OpenSession,
    pub env: Env,
    /// Sent one after the other, once the screen is drawn.
    pub prompts: Vec<Prompt>,
    /// Problems in the user's files, one line each.
    pub problems: Vec<String>,
    /// Begin with the list of sessions.
    pub pick_session: bool,
    /// Folder that contains the folders of all projects' sessions.
    pub sessions_root: PathBuf,
    /// Folder of this project's sessions, and the directory to filter them by.
    pub sessions: PathBuf,
    pub sessions_filter: Option<PathBuf>,
    /// Whether a later start would not find the sessions by itself.
    pub custom_sessions: bool,
    pub name: Option<String>,
    /// Themes of the command line.
    pub themes: ResourceOptions,
    pub times: StartTimes,
    /// Runs the session, so that a disk that does not respond holds up nothing else.
    pub session_runtime: Handle,
}

/// Runs until the user quits. The terminal is restored when
/// this returns, in every case.
///
/// # Errors
/// If the session cannot be opened or the terminal cannot be used.
pub async fn run(mut start: InteractiveStart) -> anyhow::Result<ExitCode> {
    let (cwd, open) = (start.cwd.clone(), start.open.clone());
    let (handle, events) =
        open_session(&start.services, cwd, open, Deltas::Wanted, &start.session_runtime).await?;
    let clock = start.services.clock.clone();
    start.times.mark("session", clock.monotonic());
    // Before the terminal changes: from then on no signal may end the program by itself.
    let signals = EndSignals::new().context("cannot listen for signals")?;
    let jobs = JobSignals::new().context("cannot listen for signals")?;
    let (panics, panicked) = mpsc::unbounded_channel();
    // Dropped after the terminal is restored.
    let _watch = InterfaceWatch::start(panics);
    let modes = TerminalModes {
        modify_other_keys: in_tmux(&start.env),
        focus: handle.state().settings.values.notifications,
        ..TerminalModes::default()
    };
    if let Some(path) = start.env.path("PI_TUI_WRITE_LOG") {
        record_output(&path).with_context(|| format!("PI_TUI_WRITE_LOG: cannot write {}", path.display()))?;
    }
    let erase_byte = os::erase_byte();
    let guard = TerminalGuard::enter(modes)
        .context("interactive mode needs a terminal; without one, use pi -p \"…\"")?;
    let (escape_wait, wrong) = terminal_env::escape_wait(&start.env);
    let mut input = InputBroker::new(escape_wait, erase_byte);
    let status = program_status::is_shown(&start.env);
    input.ask_with_cursor(Questions { status: status.is_none(), ..questions(&start.env) });
    let cursor = input.ask_screen().cursor;
    start.times.mark("answer of the terminal", clock.monotonic());
    let size = input.size().unwrap_or(Size::new(80, 24));
    let sink = TerminalOutput::stdout().context("cannot write to the terminal")?;
    let cursor = cursor.unwrap_or(Position::new(0, 0));
    let mut screen = InlineWindow::new(sink, size, cursor);
    let mut problems = start.problems.clone();
    problems.extend(wrong);
    problems.extend(terminal_env::problems(&start.env));
    let settings = Arc::clone(&handle.state().settings);
    let looks = Looks { env: &start.env, dirs: &start.services.dirs };
    let answers = input.answers().clone();
    let state = handle.state();
    let project = trusted_project(&state);
    let places = ThemePlaces { looks: &looks, settings: &settings, project, named: &start.themes };
    let theme = places.theme(&settings.values, &answers.colors, &mut problems);
    let version = answers.version.as_deref();
    let abilities = looks.abilities(&settings.values, version);
    screen.set_abilities(abilities);
    let highlighter = Highlighter::new();
    let gallery = PictureGallery::default();
    screen.set_pictures(gallery.store.clone());
    let pictures = pictures::view(&start.env, &settings.values, &answers, &gallery);
    let shown = Shown { theme, links: abilities.links, pictures };
    let mut app = app(&start, &handle, shown, &highlighter, &mut problems);
    app.program_status.is_shown = status.unwrap_or(answers.shows_status);
    app.keymap.set_hides_keys(!in_tmux(&start.env) && !tells_keys_apart(&answers));
    let (done, effects_done) = mpsc::unbounded_channel();
    let effects = effects(&start, (handle, events), done, answers);
    let drawing = Drawing { abilities, pictures: gallery };
    let mut terminal = Terminal::new(Ui::new(screen), guard, (signals, jobs), input, drawing);
    terminal.follow_version(&start.env, effects.answers.version.as_deref());
    let mut interactive = Interactive {
        app,
        terminal,
        frames: FrameClock::default(),
        unused_grammars: UnusedGrammars::new(highlighter),
        effects,
        effects_done,
        panicked,
        clock,
        times: start.times.clone(),
        exit: None,
        outside: None,
        input_wait: InputWait::default(),
        problems,
        news: changelog::take_news(&start, &settings),
    };
    interactive.begin(start);
    let code = interactive.run().await;
    process::kill_all();
    Ok(code)
}

/// What effects work on, at the start.
fn effects(
    start: &InteractiveStart,
    (handle, events): (SessionHandle, SessionEvents),
    done: mpsc::UnboundedSender<EffectDone>,
    answers: TerminalAnswers,
) -> Effects {
    Effects {
        link: SessionLink::new(handle, events, Arc::clone(&start.services), start.cwd.clone()),
        done,
        sessions: SessionFolders {
            root: start.sessions_root.clone(),
            folder: start.sessions.clone(),
            filter: start.sessions_filter.clone(),
        },
        finder: None,
        index_update: IndexUpdate::default(),
        files: None,
        history: HistoryWriter::default(),
        custom_sessions: start.custom_sessions,
        env: start.env.clone(),
        answers,
        services: Arc::clone(&start.services),
        themes: start.themes.clone(),
        sign_in: None,
        sharing: None,
        clipboard: ClipboardOwner::default(),
        theme_watch: FileWatch::in_any_folder(|| EffectDone::ThemeChanged),
        head_watch: FileWatch::new(|| EffectDone::HeadChanged),
        tree_searches: Arc::default(),
    }
}

/// What the first frame looks like.
struct Shown {
    theme: Theme,
    links: bool,
    pictures: Option<PictureView>,
}

/// The app in its initial state. Adds problems in the user's files.
fn app(
    start: &InteractiveStart,
    handle: &SessionHandle,
    shown: Shown,
    highlighter: &Highlighter,
    problems: &mut Vec<String>,
) -> App {
    let services = &start.services;
    let platform = keybindings::platform(&start.env);
    let (keymap, wrong) = keybindings::load(&services.dirs, platform).unwrap_or_else(|problem| {
        (keybindings::keymap_of(platform), vec![problem + keybindings::DEFAULTS_APPLY])
    });
    problems.extend(wrong);
    let models = ModelChoice::of(&services.usable_models());
    let home = services.dirs.home.clone();
    let mut view = ViewSettings::new(keymap.hint("app.tools.expand"), start.cwd.clone(), home.clone());
    let session = handle.state();
    let settings = &session.settings.values;
    (view.hide_thinking, view.links) = (settings.hide_thinking, shown.links);
    view.pictures = shown.pictures;
    view = view.laid_out(&settings.layout).with_keys(&keymap);
    let transcript = Transcript::new(highlighter.clone(), view);
    let theme = shown.theme;
    let mut app =
        App::new(AppParts { session: Arc::clone(&session), transcript, keymap, theme, models, home });
    app.input.completion.set_providers(ProviderChoice::of(&services.catalog.get()));
    app.overrides = ScreenOverrides::of(&start.env);
    fullscreen::set(&mut app, settings.tui_mode == TuiMode::Fullscreen);
    if settings.start_display != StartDisplay::Nothing {
        app.transcript.header("pi", env!("CARGO_PKG_VERSION"), &[]);
        let hints = welcome::hints(&app.keymap, &app.session);
        set_header_hints(&mut app.transcript, hints, welcome::keys(&app.keymap));
        resources::show_in_header(&mut app);
    }
    app
}
