//! The user's `!` command of a session: at most one at a time.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ai::{Extra, Millis};
use crate::tools::{UserBashOutcome, run_user_command};
use crate::util::clock::Clock;

use super::event::SessionEvent;
use super::handle::SessionError;
use super::outbox::Outbox;
use super::refusal::Refusal;
use super::services::Services;
use super::state::UserCommand;
use super::store::BashExecution;

/// The events of a running command.
pub(super) enum UserBashEvent {
    Output(String),
    Ended(BashExecution),
    /// The command could not be started.
    Failed(String),
}

/// The running command, if any. The task behind it ends with the command, or soon
/// after `cancel`.
pub(super) struct UserBash {
    outbox: Outbox,
    running: Option<(CancellationToken, mpsc::UnboundedReceiver<UserBashEvent>)>,
}

impl UserBash {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { outbox, running: None }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts a command in `cwd`.
    ///
    /// # Errors
    /// If another command is still running.
    pub(super) fn start(
        &mut self,
        services: &Services,
        cwd: &Path,
        command: String,
        exclude_from_context: bool,
    ) -> Result<(), SessionError> {
        if self.is_running() {
            return Err(Refusal::CommandRunning.into());
        }
        let shown = Arc::new(UserCommand { command: command.clone(), exclude_from_context });
        self.outbox.update(|state| state.user_command = Some(shown));
        self.outbox.send(SessionEvent::BashStarted { command: command.clone(), exclude_from_context });
        let (config, clock, cwd) = (services.bash.clone(), services.clock.clone(), cwd.to_owned());
        let cancel = CancellationToken::new();
        let (events, receiver) = mpsc::unbounded_channel();
        self.running = Some((cancel.clone(), receiver));
        tokio::spawn(async move {
            let output = events.clone();
            let on_output = move |chunk: &str| {
                // The session may have ended; the command is then cancelled as well.
                drop(output.send(UserBashEvent::Output(chunk.to_owned())));
            };
            let outcome = run_user_command(&config, &command, &cwd, &cancel, on_output).await;
            let event = match outcome {
                Ok(outcome) => {
                    UserBashEvent::Ended(execution(command, outcome, exclude_from_context, &clock))
                }
                Err(error) => UserBashEvent::Failed(error.to_string()),
            };
            drop(events.send(event));
        });
        Ok(())
    }

    pub(super) fn cancel(&mut self) {
        if let Some((cancel, _)) = &self.running {
            cancel.cancel();
        }
    }

    /// The next event; never returns without a running command.
    pub(super) async fn next_event(&mut self) -> UserBashEvent {
        let Some((_, events)) = &mut self.running else { return std::future::pending().await };
        let event = events
            .recv()
            .await
            .unwrap_or_else(|| UserBashEvent::Failed("the command ended without a result".to_owned()));
        if !matches!(event, UserBashEvent::Output(_)) {
            self.running = None;
            self.outbox.update(|state| state.user_command = None);
        }
        event
    }

    /// Waits for the end of the command, dropping its remaining output.
    pub(super) async fn wait(&mut self) -> Option<UserBashEvent> {
        while self.is_running() {
            match self.next_event().await {
                UserBashEvent::Output(_) => {}
                ended @ (UserBashEvent::Ended(_) | UserBashEvent::Failed(_)) => return Some(ended),
            }
        }
        None
    }
}

fn execution(
    command: String,
    outcome: UserBashOutcome,
    exclude_from_context: bool,
    clock: &Clock,
) -> BashExecution {
    BashExecution {
        command,
        output: outcome.output,
        exit_code: outcome.exit_code.map(i64::from),
        cancelled: outcome.cancelled,
        truncated: outcome.truncated,
        full_output_path: outcome.full_output_path.map(|path| path.display().to_string()),
        timestamp: Millis(clock.now_ms()),
        exclude_from_context: exclude_from_context.then_some(true),
        extra: Extra::new(),
    }
}
