//! The user's `!` commands of a session. A terminal runs one at a time, other front ends
//! may run several.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ai::{Extra, Millis};
use crate::tools::{UserBashOutcome, run_user_command};
use crate::util::clock::Clock;
use crate::util::panics::panic_text;

use super::command::OtherCommands;
use super::event::SessionEvent;
use super::handle::SessionError;
use super::outbox::Outbox;
use super::refusal::Refusal;
use super::services::Services;
use super::state::UserCommand;
use super::store::BashExecution;

/// Commands that may run beside each other: a program that starts them without waiting for
/// their ends would use up the processes of the system.
const MAX_RUNNING: usize = 64;

/// A command of the user, unique in its session's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BashId(u64);

/// The events of a running command.
pub(super) enum UserBashEvent {
    Output(String),
    Ended(BashExecution),
    /// The command could not be started.
    Failed(String),
}

/// The running commands. The task behind each ends with its command, or soon after it was
/// cancelled.
pub(super) struct UserBash {
    outbox: Outbox,
    running: Vec<Running>,
    events: mpsc::UnboundedReceiver<(BashId, UserBashEvent)>,
    sender: mpsc::UnboundedSender<(BashId, UserBashEvent)>,
    last_id: BashId,
}

struct Running {
    id: BashId,
    cancel: CancellationToken,
    command: Arc<UserCommand>,
}

impl UserBash {
    pub(super) fn new(outbox: Outbox) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Self { outbox, running: Vec::new(), events, sender, last_id: BashId::default() }
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// An id for a command to start.
    ///
    /// # Errors
    /// If another command is still running and `others` forbids that, or very many are.
    pub(super) fn next_id(&mut self, others: OtherCommands) -> Result<BashId, SessionError> {
        if self.is_running() && others == OtherCommands::Refuse {
            return Err(Refusal::CommandRunning.into());
        }
        if self.running.len() >= MAX_RUNNING {
            return Err(Refusal::TooManyCommands { n_running: self.running.len() }.into());
        }
        self.last_id.0 += 1;
        Ok(self.last_id)
    }

    /// Starts a command in `cwd`.
    pub(super) fn start(&mut self, id: BashId, services: &Services, cwd: &Path, command: UserCommand) {
        let cancel = CancellationToken::new();
        let UserCommand { command: text, exclude_from_context } = command.clone();
        self.running.push(Running { id, cancel: cancel.clone(), command: Arc::new(command) });
        self.publish();
        self.outbox.send(SessionEvent::BashStarted { id, command: text.clone(), exclude_from_context });
        let (config, clock, cwd) = (services.bash.clone(), services.clock.clone(), cwd.to_owned());
        let events = self.sender.clone();
        tokio::spawn(async move {
            let output = events.clone();
            let on_output = move |chunk: &str| {
                // The session may have ended; the command is then cancelled as well.
                drop(output.send((id, UserBashEvent::Output(chunk.to_owned()))));
            };
            let started = clock.monotonic();
            let command = run_user_command(&config, &text, &cwd, &cancel, on_output);
            let event = match AssertUnwindSafe(command).catch_unwind().await {
                Ok(Ok(outcome)) => {
                    UserBashEvent::Ended(execution(text, outcome, exclude_from_context, started, &clock))
                }
                Ok(Err(error)) => UserBashEvent::Failed(error.to_string()),
                Err(panic) => UserBashEvent::Failed(panic_text(&*panic)),
            };
            drop(events.send((id, event)));
        });
    }

    /// Cancels one command, or all.
    pub(super) fn cancel(&self, id: Option<BashId>) {
        let wanted = self.running.iter().filter(|running| id.is_none_or(|id| running.id == id));
        wanted.for_each(|running| running.cancel.cancel());
    }

    /// The next event; never returns without a running command.
    pub(super) async fn next_event(&mut self) -> (BashId, UserBashEvent) {
        if !self.is_running() {
            return std::future::pending().await;
        }
        // This object holds a sender, so the channel stays open.
        let Some((id, event)) = self.events.recv().await else { return std::future::pending().await };
        if !matches!(event, UserBashEvent::Output(_)) {
            self.running.retain(|running| running.id != id);
            self.publish();
        }
        (id, event)
    }

    /// Waits for the end of a command, dropping what they print until then; `None` if none
    /// runs.
    pub(super) async fn wait(&mut self) -> Option<(BashId, UserBashEvent)> {
        while self.is_running() {
            match self.next_event().await {
                (_, UserBashEvent::Output(_)) => {}
                ended @ (_, UserBashEvent::Ended(_) | UserBashEvent::Failed(_)) => return Some(ended),
            }
        }
        None
    }

    fn publish(&self) {
        let latest = self.running.last().map(|running| Arc::clone(&running.command));
        self.outbox.update(|state| state.user_command = latest);
    }
}

fn execution(
    command: String,
    outcome: UserBashOutcome,
    exclude_from_context: bool,
    started: Duration,
    clock: &Clock,
) -> BashExecution {
    let duration = clock.monotonic().saturating_sub(started);
    BashExecution {
        command,
        output: outcome.output,
        exit_code: outcome.exit_code.map(i64::from),
        cancelled: outcome.cancelled,
        truncated: outcome.truncated,
        left_out_bytes: Some(outcome.n_left_out).filter(|n_bytes| *n_bytes > 0),
        full_output_path: outcome.full_output_path.map(|path| path.display().to_string()),
        duration_ms: Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        timestamp: Millis(clock.now_ms()),
        exclude_from_context: exclude_from_context.then_some(true),
        extra: Extra::new(),
    }
}
