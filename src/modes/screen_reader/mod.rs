//! Screen-reader mode: a conversation as plain lines.
//!
//! Lines are only ever appended, without escape sequences, colours or cursor movements, so that a
//! screen reader reads each once. The terminal edits the input line. `input` tells pasted lines from typed
//! ones, `narrator` says what happens, `spoken` reads Markdown, `menu` has lists with numbers, `commands` the
//! slash commands, of which `branches`, `reports` and `settings` carry out some, `history` reads what was said
//! before, and `calls` what a tool was called with.

mod branches;
mod calls;
mod commands;
mod history;
mod input;
mod menu;
mod narrator;
mod reports;
mod settings;
mod spoken;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::agent::QueueKind;
use crate::session::{
    Deltas, OtherCommands, Phase, PromptDraft, Refusal, Reply, SessionCommand, SessionError, SessionEvent,
    SessionEvents, SessionHandle, SessionState, SessionUpdate, WhenBusy,
};
use crate::util::counted;
use crate::util::os::Continuations;
use crate::util::process;
use crate::util::visible::spell_out;

use super::InteractiveStart;
use super::changelog;
use super::crash_notice::{InterfaceWatch, take_crash_notice};
use super::export::SHARING_CANCELLED;
use super::interactive::ClipboardOwner;
use super::opening::open_session;
use super::output::{resume_line, write_err, write_out};
use super::print::shut_down;
use super::signals::EndSignals;
use super::slash::command_name;
pub use commands::screen_reader_commands_markdown;
use input::{Draft, Input, Whole};
use menu::{Choice, Menu, Outcome};
use narrator::Narrator;
use reports::Sharing;

/// The exit code of SIGINT, as [`EndSignals`] reports it.
const INTERRUPTED: u8 = 130;
/// Within this time a second ctrl+c quits: it takes seconds until the user has heard that it does.
const QUIT_WAIT: Duration = Duration::from_secs(3);

/// Runs until the user quits.
///
/// # Errors
/// If the session cannot be opened.
pub async fn screen_reader(start: InteractiveStart) -> anyhow::Result<ExitCode> {
    let (cwd, open) = (start.cwd.clone(), start.open.clone());
    let (handle, events) =
        open_session(&start.services, cwd, open, Deltas::Wanted, &start.session_runtime).await?;
    let (panics, panicked) = mpsc::unbounded_channel();
    let _watch = InterfaceWatch::start(panics);
    let signals = EndSignals::new().context("cannot listen for signals")?;
    say(&["pi, in screen-reader mode. Type a prompt, or /help.".to_owned()]);
    if changelog::take_news(&start, &handle.state().settings).is_some() {
        say(&[format!("pi is now version {}; /changelog reads what changed.", env!("CARGO_PKG_VERSION"))]);
    }
    say(&start.problems);
    let services = Arc::clone(&start.services);
    let crash = tokio::task::spawn_blocking(move || take_crash_notice(&services)).await;
    say(crash.ok().flatten().as_slice());
    if let Some(name) = start.name.clone() {
        handle.send(SessionCommand::SetName { name });
    }
    let prompts: Vec<PromptDraft> = start
        .prompts
        .iter()
        .map(|prompt| PromptDraft {
            text: prompt.text.clone(),
            images: prompt.images.clone(),
            ..PromptDraft::default()
        })
        .collect();
    if !prompts.is_empty() {
        handle.send(SessionCommand::Begin { prompts });
    }
    let pick_session = start.pick_session;
    let (menus, shown_later) = mpsc::unbounded_channel();
    let mut talk = Talk {
        start,
        handle,
        narrator: Narrator::default(),
        list: None,
        question: None,
        draft: Draft::default(),
        menus,
        drafted: None,
        clipboard: ClipboardOwner::default(),
        sharing: None,
    };
    if pick_session {
        talk.run_line("/resume");
    }
    let continuations = Continuations::new().context("cannot listen for signals")?;
    let code = talk.run(events, (signals, continuations), (panicked, shown_later)).await;
    process::kill_all();
    Ok(code)
}

/// Whose turn it is.
fn activity(state: &SessionState) -> &'static str {
    if state.is_busy() { "The agent works." } else { "It is your turn." }
}

/// What to say once a command is carried out of which no event tells.
fn done(command: &SessionCommand, state: &SessionState) -> Option<String> {
    match command {
        // The question may have been all that was left to do.
        SessionCommand::Answer { .. } if !state.is_busy() => Some(activity(state).to_owned()),
        SessionCommand::DecideTrust { choice } => {
            let now = if choice.is_trusted() { "trusted" } else { "not trusted" };
            Some(format!("This folder is {now}."))
        }
        SessionCommand::Reload => Some("Reloaded settings, skills, templates and instructions.".to_owned()),
        SessionCommand::ChangeSetting { key, .. } => Some(settings::changed(key, &state.settings)),
        _ => None,
    }
}

/// Appends lines.
fn say(lines: &[String]) {
    if !lines.is_empty() {
        write_out(&(lines.join("\n") + "\n"));
    }
}

/// The conversation with the user.
struct Talk {
    start: InteractiveStart,
    handle: SessionHandle,
    narrator: Narrator,
    /// A list that waits for a number.
    list: Option<Menu>,
    /// A question of the session, which waits for its answer behind the list.
    question: Option<Menu>,
    /// Lines that wait for the rest of their prompt.
    draft: Draft,
    /// The prompt of a new session, which is offered when the session settles.
    drafted: Option<Arc<PromptDraft>>,
    /// Lists that took time to make, to be shown.
    menus: mpsc::UnboundedSender<Menu>,
    /// Owns what was copied to this machine's clipboard.
    clipboard: ClipboardOwner<arboard::Clipboard>,
    /// The step of `/share` in progress; dropping it cancels that.
    sharing: Option<Sharing>,
}

/// What follows from a line.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Quit,
}

impl Talk {
    async fn run(
        &mut self,
        mut events: SessionEvents,
        (mut signals, mut continuations): (EndSignals, Continuations),
        (mut panicked, mut menus): (mpsc::UnboundedReceiver<String>, mpsc::UnboundedReceiver<Menu>),
    ) -> ExitCode {
        let mut inputs = input::read_input();
        let mut quit_until = None;
        loop {
            tokio::select! {
                biased;
                code = signals.next() => {
                    let now = tokio::time::Instant::now();
                    if code != INTERRUPTED {
                        return self.leave(ExitCode::from(code)).await;
                    }
                    // The terminal has shown `^C`.
                    say(&[String::new()]);
                    if quit_until.is_some_and(|until| now < until) {
                        return self.leave(ExitCode::SUCCESS).await;
                    }
                    let has_ended_input = self.cancel_list() || self.cancel_sharing() || self.discard_draft();
                    quit_until = (!has_ended_input).then(|| now + QUIT_WAIT);
                    if !has_ended_input {
                        self.interrupt_or_quit();
                    }
                }
                () = continuations.next() => self.on_continued(),
                update = events.recv() => match update {
                    Some(update) => self.on_update(&update),
                    None => return ExitCode::from(1),
                },
                Some(panic) = panicked.recv() => {
                    say(&[format!("Internal error in pi: {panic}. Your session is saved.")]);
                }
                Some(menu) = menus.recv() => self.show(menu),
                input = inputs.recv() => {
                    quit_until = None;
                    let next = input.map(|input| self.on_input(input));
                    if next.is_none_or(|next| next == Next::Quit) {
                        return self.leave(ExitCode::SUCCESS).await;
                    }
                }
            }
        }
    }

    /// Ends the session, and tells how to resume it.
    async fn leave(&self, code: ExitCode) -> ExitCode {
        shut_down(&self.handle).await;
        let state = self.handle.state();
        if state.on_disk {
            let folder = self.start.custom_sessions.then_some(&*self.start.sessions);
            // The terminal may be gone, and lost standard output is a failure.
            write_err(&resume_line(&state.id, folder));
        }
        code
    }

    /// Closes the list that waits for a number. Returns whether there was one; a question is withdrawn by what
    /// asked it.
    fn cancel_list(&mut self) -> bool {
        let cancelled = self.list.take().is_some();
        if cancelled {
            say(&["Cancelled.".to_owned()]);
            self.read_what_waits();
        }
        cancelled
    }

    /// Reads the question that waits, or what waits for its answer.
    fn read_what_waits(&self) {
        match &self.question {
            Some(question) => say(&question.lines()),
            None => say(self.draft.waiting(false).as_slice()),
        }
    }

    /// Returns whether something was being shared.
    fn cancel_sharing(&mut self) -> bool {
        let is_sharing = self.sharing.take().is_some_and(|sharing| sharing.is_going_on());
        if is_sharing {
            say(&[SHARING_CANCELLED.to_owned()]);
        }
        is_sharing
    }

    /// Returns whether there were lines that waited.
    fn discard_draft(&mut self) -> bool {
        let discarded = self.draft.discard();
        say(discarded.as_slice());
        discarded.is_some()
    }

    /// The first ctrl+c; a second one quits.
    fn interrupt_or_quit(&self) {
        if self.handle.state().is_busy() {
            self.interrupt();
            say(&["Press ctrl+c again to quit.".to_owned()]);
        } else {
            say(&["Press ctrl+c again to quit, or type /quit.".to_owned()]);
        }
    }

    fn interrupt(&self) {
        self.handle.send(SessionCommand::Interrupt);
        say(&["Interrupting.".to_owned()]);
    }

    /// The shell has read out other things since pi was stopped.
    fn on_continued(&self) {
        say(&[format!("pi goes on. {}", activity(&self.handle.state()))]);
        say(&self.list.as_ref().or(self.question.as_ref()).map(Menu::lines).unwrap_or_default());
    }

    fn on_update(&mut self, update: &SessionUpdate) {
        say(&self.narrator.on_event(&update.event, &update.state));
        match &update.event {
            SessionEvent::Question(question) => {
                let menu = Menu::of_question(question);
                self.list = None;
                self.question = Some(menu);
                self.read_what_waits();
            }
            SessionEvent::QuestionClosed { id }
                if self.question.as_ref().is_some_and(|menu| menu.asks(*id)) =>
            {
                self.question = None;
                self.read_what_waits();
            }
            SessionEvent::QueueReturned(taken) => {
                for prompt in (**taken).clone().into_prompts() {
                    say(&[format!("Not sent, type it again if you still want it: {}", prompt.text)]);
                }
            }
            SessionEvent::HandoffEnded { prompt, .. } => self.drafted.clone_from(prompt),
            SessionEvent::Settled { .. } => {
                if let Some(prompt) = self.drafted.take() {
                    self.show(Menu::drafted(&prompt));
                }
            }
            SessionEvent::PromptReturned { prompt, error } => {
                say(&[format!("Error: {error}. Not sent: {}", prompt.text)]);
            }
            _ => {}
        }
    }

    fn on_input(&mut self, input: Input) -> Next {
        let lines = match input {
            Input::Lines(lines) => lines,
            Input::Cut(number) => {
                let problem = format!(
                    "Error: not sent, because line {number} is too long: the terminal drops the end of such \
                     lines. Save the text to a file and name that in the prompt."
                );
                say(&[problem]);
                self.discard_draft();
                return Next::GoOn;
            }
        };
        let mut texts = lines.iter().filter(|line| !line.trim().is_empty());
        match (texts.next(), texts.next()) {
            (line, None) => self.on_line(line.map_or("", String::as_str)),
            _ if self.are_commands(&lines) => {
                let quits = lines.iter().any(|line| self.on_line(line) == Next::Quit);
                if quits { Next::Quit } else { Next::GoOn }
            }
            _ => self.on_paste(lines),
        }
    }

    /// Whether a program has typed commands: each line is one, and the first one no `!`, which also runs
    /// several lines.
    fn are_commands(&self, lines: &[String]) -> bool {
        let is_slash = |line: &String| commands::is_command(self, line.trim());
        lines.first().is_some_and(is_slash)
            && lines.iter().all(|line| line.starts_with('!') || is_slash(line))
    }

    /// Pasted lines wait for Enter, because the last one may be on the input line. A list does not.
    fn on_paste(&mut self, lines: Vec<String>) -> Next {
        self.cancel_list();
        self.draft.paste(lines);
        say(self.draft.waiting(self.question.is_some()).as_slice());
        Next::GoOn
    }

    /// Handles a line that was typed. One that ends with a backslash continues on the next line.
    fn on_line(&mut self, line: &str) -> Next {
        if self.list.is_some() || self.question.is_some() {
            return self.run_line(line.trim());
        }
        let Some(Whole { text, is_pasted }) = self.draft.add(line) else { return Next::GoOn };
        if is_pasted && !text.starts_with('!') {
            say(&[format!("Sending {}.", counted(text.lines().count() as u64, "line"))]);
        }
        self.run_line(&text)
    }

    fn run_line(&mut self, text: &str) -> Next {
        let is_command = text.starts_with('!') || commands::is_command(self, text);
        if is_command {
            self.list = None;
        } else if let Some(menu) = self.list.take().or_else(|| self.question.take()) {
            self.choose(menu, text, None);
            return Next::GoOn;
        }
        if text.is_empty() {
            self.deliver_queue();
        } else if let Some(rest) = text.strip_prefix('!') {
            self.run_bash(rest);
        } else if is_command || text == "/" || command_name(text).is_some() {
            return commands::run(self, text);
        } else {
            self.prompt(text);
        }
        Next::GoOn
    }

    /// Runs what the user typed after the first `!`.
    fn run_bash(&self, rest: &str) {
        let (command, hidden) = rest.strip_prefix('!').map_or((rest, false), |rest| (rest, true));
        let command = command.trim().to_owned();
        if command.is_empty() {
            return say(&["Nothing to run: type a command after the exclamation mark.".to_owned()]);
        }
        self.handle.send(SessionCommand::RunBash {
            command,
            exclude_from_context: hidden,
            others: OtherCommands::Refuse,
        });
    }

    fn prompt(&self, text: &str) {
        let text = text.to_owned();
        let prompt = PromptDraft::from(text.as_str());
        let command = SessionCommand::Prompt { prompt, when_busy: WhenBusy::Steer };
        let answer = self.handle.post(command);
        tokio::spawn(async move {
            if let Err(error) = answer.await {
                say(&[format!("Error: {error}. Not sent: {text}")]);
            }
        });
    }

    /// Sends a command. Says why it was rejected, and what no event tells of; asks before it cancels what runs.
    fn request(&self, command: SessionCommand) {
        let (answer, asked) = (self.handle.post(command.clone()), command.clone());
        let (state, menus) = (self.handle.reader(), self.menus.clone());
        tokio::spawn(async move {
            match answer.await {
                Err(SessionError::Refused(Refusal::Working | Refusal::CommandRunning))
                    if asked.clone().if_busy_mut().is_some() =>
                {
                    drop(menus.send(Menu::cancel_work(asked)));
                }
                Err(error) => say(&[format!("Error: {error}")]),
                Ok(Reply::Forked(prompt)) => say(&narrator::taken_back(&prompt)),
                Ok(_) => say(&done(&asked, &state()).into_iter().collect::<Vec<_>>()),
            }
        });
    }

    /// An empty line delivers queued messages now, as in the other interface.
    fn deliver_queue(&self) {
        let state = self.handle.state();
        if state.is_busy() && !state.queue.is_empty() {
            self.handle.send(SessionCommand::DeliverNow);
            // A summary is not interrupted.
            let when = if state.phase == Phase::Compacting { "after the summary" } else { "now" };
            say(&[format!("Delivering the queued messages {when}.")]);
        }
    }

    /// Chooses from a list, of which nothing was read yet if a text behind `command` chooses.
    fn choose(&mut self, menu: Menu, text: &str, command: Option<&str>) {
        match menu.choose(text) {
            Choice::Outcome(outcome) => self.on_chosen(*outcome),
            Choice::Cancelled => {
                say(&["Cancelled.".to_owned()]);
                self.read_what_waits();
            }
            Choice::Narrowed(menu) => self.show(menu),
            Choice::Nothing(menu, why) => {
                say(&[why]);
                say(&command.map_or_else(|| vec![menu.instruction()], |command| menu.short_lines(command)));
                self.keep(menu);
            }
        }
    }

    fn on_chosen(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Command(command) => {
                self.say_unchanged(&command);
                self.request(command);
            }
            Outcome::Nothing => say(&["Nothing was changed.".to_owned()]),
            Outcome::Setting(setting) => {
                return self.show(settings::value_menu(setting, &self.handle.state().settings));
            }
            Outcome::Export(export) => reports::write(self, export),
            Outcome::Share(secrets) => reports::upload(self, secrets),
        }
        self.read_what_waits();
    }

    /// The next line chooses from the list.
    fn keep(&mut self, menu: Menu) {
        let place = if menu.is_question() { &mut self.question } else { &mut self.list };
        *place = Some(menu);
    }

    /// What is chosen already changes nothing, and no event tells of it.
    fn say_unchanged(&self, command: &SessionCommand) {
        let state = self.handle.state();
        let is_chosen = match command {
            SessionCommand::SetModel { reference, .. } => *reference == state.model.reference(),
            SessionCommand::SetThinking { level, .. } => *level == state.thinking,
            _ => false,
        };
        if is_chosen {
            say(&[narrator::selection(&state)]);
        }
    }

    /// Shows a list; the next line chooses from it.
    fn show(&mut self, menu: Menu) {
        say(&menu.lines());
        self.keep(menu);
    }

    /// The queued messages, in the order of their delivery.
    fn queue_lines(&self) -> Vec<String> {
        let queue = &self.handle.state().queue;
        let of = |kind: QueueKind, texts: &[String]| -> Vec<String> {
            let kind = if kind == QueueKind::Steering { "Steering" } else { "Follow-up" };
            texts.iter().map(|text| format!("{kind}: {}", spell_out(text, Some(" ")).0)).collect()
        };
        let mut lines = of(QueueKind::Steering, &queue.steering);
        lines.extend(of(QueueKind::FollowUp, &queue.follow_up));
        if lines.is_empty() { vec!["The queue is empty.".to_owned()] } else { lines }
    }
}
