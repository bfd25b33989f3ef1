//! The terminal of interactive mode: painter, input, modes and size.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use ratatui::layout::{Position, Size};

use crate::config::{Env, ResizeMode};
use crate::tui::term::{
    Abilities, Control, FrameGuard, FullscreenWindow, InputBroker, ScreenReport, TerminalGuard,
    TerminalOutput, record_size,
};
use crate::tui::text::Row;
use crate::util::os::{self, Continuations, StopRequests};

use super::super::signals::EndSignals;
use super::TERMINAL_GONE;
use super::app::App;
use super::appearance::{knows_other_keys, reflow_traits};
use super::debug_report::ScreenFacts;
use super::external_editor::{Edited, ExternalEditor};
use super::over_screen::{self, MainScreen, OverScreen};
use super::pictures::PictureGallery;
use super::size::{self, ScreenSensor};
use super::transcript::{LeftRows, Places};
use super::ui::{self, Ui};

/// How long rows must not have moved before pictures are drawn over them.
const REST: Duration = Duration::from_millis(150);

/// Within this time a signal to continue belongs to what the user suspended.
const SAME_CONTINUATION: Duration = Duration::from_secs(1);

/// How long a signal to end may take that a shell sends before it continues a job in the background.
const END_SIGNAL: Duration = Duration::from_millis(200);

/// How much later than the end of another program a signal is reported that came before.
const REPORTED: Duration = Duration::from_millis(50);

/// Everything that reads from the terminal or writes to it. They share one owner because
/// the terminal answers queries between the keys.
pub(super) struct Terminal {
    pub(super) ui: Ui<TerminalOutput>,
    pub(super) guard: TerminalGuard,
    pub(super) signals: EndSignals,
    pub(super) jobs: JobSignals,
    pub(super) input: InputBroker,
    /// The alternate screen, while it shows something over the main screen.
    over: Option<OverScreen<TerminalOutput>>,
    /// The alternate screen, while pi uses it.
    full: Option<FullscreenWindow<TerminalOutput>>,
    /// What is on the main screen while pi is fullscreen.
    left: LeftRows,
    has_drawn_inline: bool,
    /// The size that the system knew when the screen last followed it; the terminal's may be newer.
    known_size: Option<Size>,
    /// Whether the next frame asks for the sizes around it.
    is_guarded: bool,
    drawing: Drawing,
    /// When rows with pictures last moved on the alternate screen.
    moved_at: Duration,
    /// Whether another program has the terminal, or had it last.
    is_lent: bool,
    /// When the user last resumed pi.
    pub(super) resumed_at: Option<Duration>,
    /// The last title of the window.
    title: Option<Control>,
}

/// What shells do with jobs.
pub(super) struct JobSignals {
    pub(super) stops: StopRequests,
    pub(super) continuations: Continuations,
}

impl JobSignals {
    /// # Errors
    /// If the system has no more listeners.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { stops: StopRequests::new()?, continuations: Continuations::new()? })
    }
}

/// What stops when pi does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// All processes of pi's job, as a key in the terminal does.
    Job,
    /// pi alone.
    Pi,
}

/// What came of stopping.
#[derive(Debug)]
pub(super) enum Suspended {
    Resumed,
    /// pi could not be stopped, for this reason.
    NotStopped(String),
    /// pi must end with this exit code, and the terminal is another program's.
    Ending(u8),
}

/// How every screen is drawn.
pub(super) struct Drawing {
    pub(super) abilities: Abilities,
    pub(super) pictures: PictureGallery,
}

impl Terminal {
    pub(super) fn new(
        ui: Ui<TerminalOutput>,
        guard: TerminalGuard,
        (signals, jobs): (EndSignals, JobSignals),
        input: InputBroker,
        drawing: Drawing,
    ) -> Self {
        let known_size = input.size();
        record_size(known_size.unwrap_or_else(|| ui.screen.size()));
        Self {
            ui,
            guard,
            signals,
            jobs,
            input,
            over: None,
            full: None,
            left: LeftRows::default(),
            has_drawn_inline: false,
            known_size,
            is_guarded: false,
            drawing,
            moved_at: Duration::ZERO,
            is_lent: false,
            resumed_at: None,
            title: None,
        }
    }

    pub(super) fn pictures(&self) -> &PictureGallery {
        &self.drawing.pictures
    }

    /// Whether pi has written to the main screen.
    pub(super) fn has_drawn_inline(&self) -> bool {
        self.has_drawn_inline
    }

    pub(super) fn set_abilities(&mut self, abilities: Abilities) {
        self.drawing.abilities = abilities;
        self.ui.screen.set_abilities(abilities);
        if let Some(window) = alternate(&mut self.full, &mut self.over) {
            window.set_abilities(abilities);
        }
    }

    /// Follows what the terminal calls itself: what it does with rows, and how it sends keys.
    pub(super) fn follow_version(&mut self, env: &Env, version: Option<&str>) {
        self.ui.screen.set_traits(reflow_traits(env, version));
        if knows_other_keys(version) {
            // A terminal that cannot be written to is noticed with the next frame.
            self.guard.modify_other_keys().ok();
        }
    }

    /// Draws everything again with the next frame.
    pub(super) fn repaint(&mut self) {
        if self.full.is_none() {
            self.ui.screen.repaint();
        }
        if let Some(window) = alternate(&mut self.full, &mut self.over) {
            window.repaint();
        }
    }

    /// Whether the system knows of another size.
    pub(super) fn has_new_size(&self) -> bool {
        self.input.size().is_some_and(|size| Some(size) != self.known_size)
    }

    /// Whether the terminal's main screen still has the painted size, which the system may not know. The
    /// next frame then finds its rows from the cursor.
    pub(super) fn keeps_size(&mut self) -> bool {
        if self.full.is_some() || self.over.is_some() || !self.input.reports_size() {
            return true;
        }
        let report = self.input.ask_screen();
        let screen = &mut self.ui.screen;
        if report.cursor == Some(screen.cursor()) {
            screen.guard_next_frame(FrameGuard::StartAtCursor);
        }
        report.size == Some(screen.size())
    }

    /// Draws the app on the screen that it wants.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        match (app.fullscreen.is_some(), self.full.is_some()) {
            (true, false) => self.enter_fullscreen(app)?,
            (false, true) => self.leave_fullscreen(app)?,
            (true, true) | (false, false) => {}
        }
        match &mut self.full {
            Some(full) => draw_on(full, app)?,
            None => self.draw_inline(app)?,
        }
        self.draw_pictures_at_rest(app.now)
    }

    /// Draws pictures over the rows of the alternate screen once these no longer move: each
    /// step would draw them again.
    fn draw_pictures_at_rest(&mut self, now: Duration) -> io::Result<()> {
        let Some(window) = alternate(&mut self.full, &mut self.over) else { return Ok(()) };
        let canvas = window.canvas_mut();
        if canvas.have_pictures_moved() {
            self.moved_at = now;
        } else if canvas.have_pictures_waiting() && now.saturating_sub(self.moved_at) >= REST {
            return canvas.draw_waiting_pictures();
        }
        Ok(())
    }

    /// How long until pictures that wait are drawn; `None` if none wait.
    pub(super) fn pictures_due_in(&mut self, now: Duration) -> Option<Duration> {
        let canvas = alternate(&mut self.full, &mut self.over)?.canvas_mut();
        canvas.have_pictures_waiting().then(|| REST.saturating_sub(now.saturating_sub(self.moved_at)))
    }

    /// Leaves the finished rows on the main screen, and switches to the alternate one.
    fn enter_fullscreen(&mut self, app: &mut App) -> io::Result<()> {
        self.return_to_main(app)?;
        if self.has_drawn_inline {
            self.left = self.ui.leave(app)?;
        }
        // Rows that have left memory are read again when they are needed.
        app.transcript.on_pushed(0);
        self.guard.set_fullscreen(true)?;
        let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
        self.full = Some(self.new_window(size)?);
        Ok(())
    }

    /// Switches to the main screen, which continues after the rows that it has.
    fn leave_fullscreen(&mut self, app: &mut App) -> io::Result<()> {
        self.full = None;
        self.guard.set_fullscreen(false)?;
        let place = self.returned();
        self.ui.continue_after(app, &std::mem::take(&mut self.left), place);
        Ok(())
    }

    fn new_window(&self, size: Size) -> io::Result<FullscreenWindow<TerminalOutput>> {
        let mut window = FullscreenWindow::new(self.ui.screen.sink().try_clone()?, size);
        window.set_abilities(self.drawing.abilities);
        window.set_pictures(self.drawing.pictures.store.clone());
        Ok(window)
    }

    /// Draws the app on the main screen, or what is open over it on the alternate one.
    fn draw_inline(&mut self, app: &mut App) -> io::Result<()> {
        let size = self.over.as_ref().map_or_else(|| self.ui.screen.size(), OverScreen::size);
        if !over_screen::is_wanted(app, size) {
            self.return_to_main(app)?;
            self.has_drawn_inline = true;
            return self.ui.draw(app);
        }
        let over = match self.over.take() {
            Some(over) => over,
            None => self.show_over_main(app)?,
        };
        self.over.insert(over).draw(app)
    }

    /// Switches to the alternate screen. The main one keeps its last frame, without dialogs: they would
    /// stay there if the terminal became smaller.
    fn show_over_main(&mut self, app: &mut App) -> io::Result<OverScreen<TerminalOutput>> {
        self.ui.draw_undisturbed(app)?;
        self.has_drawn_inline = true;
        let below = MainScreen::new(app, &self.ui.screen);
        let window = self.new_window(self.ui.screen.size())?;
        self.guard.show_alternate_screen(true)?;
        Ok(OverScreen::new(window, below))
    }

    /// Switches back to the main screen, if another one is shown over it; a frame must follow.
    fn return_to_main(&mut self, app: &mut App) -> io::Result<()> {
        let Some(over) = self.over.take() else { return Ok(()) };
        let below = over.close(&mut self.ui.screen);
        self.guard.show_alternate_screen(false)?;
        let painted = self.ui.screen.size();
        let size = self.input.size().unwrap_or(painted);
        if below.is_resized || size != painted {
            // Its rows and its cursor moved in the meantime.
            self.adopt_size(app, Some(&below.places));
        } else if below.is_relaid {
            self.ui.lay_out_since(app, &below.places);
        }
        Ok(())
    }

    /// Follows changes of the size; a frame must follow. The size may be the painted one again, but the
    /// terminal has moved or cut rows on the way.
    pub(super) fn follow_size(&mut self, app: &mut App) {
        self.known_size = self.input.size();
        let size = self.known_size.unwrap_or_else(|| self.ui.screen.size());
        record_size(size);
        match (&mut self.full, &mut self.over) {
            (Some(full), _) => full.resize(size),
            (None, Some(over)) => over.resize(size),
            (None, None) => {
                self.adopt_size(app, None);
                self.is_guarded = self.input.reports_size();
                if self.is_guarded {
                    self.ui.screen.guard_next_frame(FrameGuard::AskSizes);
                }
            }
        }
    }

    /// Adopts the size of the main screen. `places` are where its rows were, if the transcript was laid
    /// out in other ways since then.
    fn adopt_size(&mut self, app: &mut App, places: Option<&Places>) {
        let painted = self.ui.screen.size();
        if app.session.settings.values.resize == ResizeMode::Replay {
            let size = self.input.ask_screen().size.unwrap_or(painted);
            if size.width != painted.width {
                return self.ui.replay(app, size);
            }
        }
        size::adopt_size(&mut self.ui, app, &mut self.input, places);
        record_size(self.ui.screen.size());
    }

    /// Whether the frame after [`Self::follow_size`] was shown on a screen of its size. Otherwise the size
    /// must be followed again.
    pub(super) fn was_shown(&mut self) -> bool {
        if !std::mem::take(&mut self.is_guarded) {
            return true;
        }
        if !self.ui.screen.has_asked_sizes() {
            // The frame was drawn on the alternate screen.
            self.ui.screen.guard_next_frame(FrameGuard::AskNothing);
            return true;
        }
        size::was_shown(&mut self.ui, self.input.sizes_around_frame())
    }

    /// Size and cursor of the main screen, after something else was shown.
    fn returned(&mut self) -> (Size, Position) {
        self.known_size = self.input.size();
        let report = self.input.ask_screen();
        let size = report.size.unwrap_or_else(|| self.ui.screen.size());
        record_size(size);
        (size, report.cursor.unwrap_or(Position::new(0, 0)))
    }

    /// Sends a control that does not affect the screen's contents.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn control(&mut self, control: &Control) -> io::Result<()> {
        if let Control::Title(_) = control {
            self.title = Some(control.clone());
        }
        self.ui.screen.control(control)
    }

    /// Takes the terminal over again, which got its own title back meanwhile.
    fn take_again(&mut self) -> io::Result<()> {
        self.guard.take_again()?;
        self.title.as_ref().map_or(Ok(()), |title| self.ui.screen.control(title))
    }

    /// Returns the terminal to the shell until the user resumes pi.
    ///
    /// # Errors
    /// If the terminal cannot be taken over again.
    pub(super) async fn suspend(&mut self, app: &mut App, stop: Stop) -> io::Result<Suspended> {
        self.lend(app)?;
        let stopped = match stop {
            Stop::Job => os::stop_job(),
            Stop::Pi => os::stop_self(),
        };
        if let Some(code) = self.ended_in_background().await {
            return Ok(Suspended::Ending(code));
        }
        // Those of keys that came meanwhile are reported now, and were for another program.
        tokio::time::sleep(REPORTED).await;
        self.signals.forget_keys();
        self.reclaim()?;
        Ok(stopped.map_or_else(|error| Suspended::NotStopped(error.to_string()), |()| Suspended::Resumed))
    }

    /// The exit code, if the shell has continued pi in the background only to end it. Otherwise the system
    /// stops pi again as soon as it changes the terminal, until it is in the foreground.
    pub(super) async fn ended_in_background(&mut self) -> Option<u8> {
        if os::is_in_foreground() {
            return None;
        }
        tokio::time::timeout(END_SIGNAL, self.signals.next()).await.ok()
    }

    /// What is on the screen and what is known of it. Asks the terminal, and waits for its answer.
    pub(super) fn screen_facts(&mut self) -> ScreenFacts {
        let (system, reported) = (self.input.size(), self.input.ask_screen());
        let name = match (&self.full, &self.over) {
            (Some(_), _) => "fullscreen",
            (None, Some(_)) => "over the main screen",
            (None, None) => "main screen",
        };
        let main = &self.ui.screen;
        let (origin, pushed, in_view) = (main.origin(), main.pushed(), main.rows_in_view());
        let canvas = match alternate(&mut self.full, &mut self.over) {
            Some(window) => window.canvas_mut(),
            None => main.canvas(),
        };
        let rows = canvas.rows().map(Option::<&Row>::cloned).collect();
        ScreenFacts { name, painted: canvas.size(), system, reported, rows, origin, pushed, in_view }
    }

    /// Lends the terminal to an editor until it ends. The size must be the painted one. The terminal is
    /// another program's, or gone, if pi could not take it over again.
    pub(super) async fn lend_to(
        &mut self,
        app: &mut App,
        start: impl FnOnce() -> Result<ExternalEditor, String>,
    ) -> Edited {
        if self.lend(app).is_err() {
            return Edited::Ending { code: TERMINAL_GONE, saved: None };
        }
        let edited = edit(self, start).await;
        self.signals.forget_keys();
        edited
    }

    /// Takes the terminal over again after this process was stopped without being asked to. The
    /// shell has changed its modes and written to it meanwhile.
    ///
    /// # Errors
    /// If the terminal cannot be taken over.
    pub(super) fn take_back(&mut self, app: &mut App) -> io::Result<()> {
        // The signal of a job that was suspended arrives after it has taken the terminal back.
        if self.resumed_at.is_some_and(|at| app.now.saturating_sub(at) < SAME_CONTINUATION) {
            return Ok(());
        }
        self.input.pause();
        if let Some(over) = self.over.take() {
            let below = over.close(&mut self.ui.screen);
            self.ui.lay_out_since(app, &below.places);
        }
        self.guard.give_back();
        self.take_again()?;
        if let Some(full) = &mut self.full {
            full.resume();
            return Ok(());
        }
        let (size, cursor) = self.returned();
        self.ui.screen.resume_below(size, cursor);
        Ok(())
    }

    /// Restores the terminal for another program. The size must be the painted one.
    fn lend(&mut self, app: &mut App) -> io::Result<()> {
        self.return_to_main(app)?;
        self.input.pause();
        match &mut self.full {
            // The main screen is as pi left it, and the terminal keeps its cursor.
            Some(full) => full.resume(),
            None => self.ui.release(app)?,
        }
        self.guard.give_back();
        self.is_lent = true;
        Ok(())
    }

    /// Takes the terminal over again from another program.
    fn reclaim(&mut self) -> io::Result<()> {
        self.take_again()?;
        self.is_lent = false;
        if self.full.is_none() {
            let (size, cursor) = self.returned();
            self.ui.screen.resume(size, cursor);
        }
        Ok(())
    }

    /// Whether the terminal belongs to another program now, such as the shell that continued pi in the
    /// background to end it.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_lent || !os::is_in_foreground()
    }

    /// Draws the last frame and restores the terminal.
    pub(super) fn leave(mut self, app: &mut App) {
        // Ignore errors, because the terminal may be gone.
        drop(self.return_to_main(app));
        drop(self.ui.draw(app));
        self.input.pause();
        drop(self.ui.release(app));
        self.guard.leave();
    }

    /// Ends without a change of the terminal that another program would notice.
    pub(super) fn leave_to_shell(self) {
        // The thread that reads has ended with what it read from, or waits for ever.
        self.guard.leave_to_shell();
    }

    /// Restores the terminal without writing to the main screen.
    pub(super) fn leave_untouched(mut self) {
        self.input.pause();
        self.guard.leave();
    }
}

impl ScreenSensor for InputBroker {
    fn known_size(&self) -> Option<Size> {
        self.size()
    }

    fn ask_screen(&mut self) -> ScreenReport {
        Self::ask_screen(self)
    }
}

/// Runs an editor in the terminal, which was lent for it.
async fn edit(terminal: &mut Terminal, start: impl FnOnce() -> Result<ExternalEditor, String>) -> Edited {
    let before = terminal.guard.remember();
    let mut editor = match start() {
        Ok(editor) => editor,
        Err(error) => return returned_with(terminal.reclaim(), Err(error), None),
    };
    let code = loop {
        tokio::select! {
            biased;
            code = terminal.signals.next_request() => break code,
            // The editor has stopped too, and the shell waits for the whole job. If that is not possible,
            // the editor goes on as well.
            () = terminal.jobs.stops.next() => os::stop_self().unwrap_or_default(),
            () = terminal.jobs.continuations.next() => {}
            ended = editor.ended() => {
                // A signal that ended both may be reported later than the end.
                if !ended.as_ref().is_ok_and(ExitStatus::success)
                    && let Ok(code) = tokio::time::timeout(REPORTED, terminal.signals.next_request()).await
                {
                    break code;
                }
                // Before the terminal is touched, which may be gone.
                let (text, saved) = (editor.text_after(&ended), editor.saved_text());
                match ended {
                    Ok(status) if status.success() => before.restore_modes(),
                    _ => before.restore(),
                }
                return returned_with(terminal.reclaim(), text, saved);
            }
        }
    };
    editor.end().await;
    if os::is_in_foreground() {
        before.restore();
        // A terminal that is gone stays lent.
        terminal.reclaim().unwrap_or_default();
    }
    Edited::Ending { code, saved: editor.saved_text() }
}

/// What came of an editor that has ended; `reclaimed` tells whether pi has the terminal again.
fn returned_with(reclaimed: io::Result<()>, text: Result<String, String>, saved: Option<String>) -> Edited {
    match (reclaimed, text) {
        (Err(_), _) => Edited::Ending { code: TERMINAL_GONE, saved },
        (Ok(()), Ok(text)) => Edited::Text(text),
        (Ok(()), Err(error)) => Edited::Failed(error),
    }
}

/// The alternate screen, if it is shown.
fn alternate<'a>(
    full: &'a mut Option<FullscreenWindow<TerminalOutput>>,
    over: &'a mut Option<OverScreen<TerminalOutput>>,
) -> Option<&'a mut FullscreenWindow<TerminalOutput>> {
    full.as_mut().or_else(|| over.as_mut().map(OverScreen::window))
}

/// Draws the pager, or the transcript with the editor.
fn draw_on(full: &mut FullscreenWindow<TerminalOutput>, app: &mut App) -> io::Result<()> {
    if app.pager.is_some() { over_screen::draw_pager(full, app) } else { ui::draw_fullscreen(app, full) }
}
