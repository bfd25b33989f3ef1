//! The open questions of a session, each with the call that waits for its answer.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::agent::Gate;
use crate::ai::ToolCall;

use super::super::budget::BudgetPeriod;
use super::super::command::TrustChoice;
use super::super::event::SessionEvent;
use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::question::{
    PendingCall, Question, QuestionId, QuestionKind, TRUST_OPTIONS, ToolGate, Verdict,
};
use super::super::refusal::Refusal;
use super::super::services::Services;
use super::super::state::SessionState;

/// The options of a question about a call: to let it run, and not to.
const TOOL_OPTIONS: [&str; 2] = ["Allow", "Don't allow"];

/// The options of a question about a limit of cost.
const BUDGET_OPTIONS: [&str; 2] = ["Stop here", "Continue and raise the limit by the same amount"];

/// The meaning of an answer.
pub(super) enum Answered {
    /// The waiting call has received it.
    Call,
    Trust(TrustChoice),
    /// The limit of cost stays.
    Stop,
    /// The limit of cost is raised.
    GoOn,
}

pub(super) struct Questions {
    open: Vec<OpenQuestion>,
    last_id: u64,
    /// Whether a front end can answer questions.
    can_ask: bool,
    gate: Arc<dyn ToolGate>,
    outbox: Outbox,
}

struct OpenQuestion {
    question: Arc<Question>,
    /// Channel to the waiting call; `None` for a question of the session itself.
    reply: Option<oneshot::Sender<Gate>>,
}

impl Questions {
    pub(super) fn new(services: &Services, outbox: Outbox) -> Self {
        let (can_ask, gate) = (services.trust.can_ask, Arc::clone(&services.gate));
        Self { open: Vec::new(), last_id: 0, can_ask, gate, outbox }
    }

    /// Asks whether the project is trusted.
    pub(super) fn ask_trust(&mut self, folder: &str) {
        self.close_trust();
        let options = TRUST_OPTIONS.iter().map(|(_, label)| (*label).to_owned()).collect();
        self.ask(QuestionKind::Trust, format!("Do you trust {folder}?"), options, 0, None);
    }

    /// Passes a call to the gate, and asks the user if the gate requires it.
    pub(super) fn on_call(
        &mut self,
        pending: &PendingCall<'_>,
        is_cancelled: bool,
        reply: oneshot::Sender<Gate>,
    ) {
        let gate = match self.gate.check(pending) {
            Verdict::Allow => Gate::Allow,
            Verdict::Change { arguments } => Gate::Change { arguments },
            Verdict::Block { reason } => Gate::Block { reason },
            Verdict::Ask { .. } if is_cancelled => Gate::Withdrawn,
            Verdict::Ask { text } => return self.ask_tool(Arc::clone(pending.call), text, reply),
        };
        // The run may already be over.
        drop(reply.send(gate));
    }

    /// Asks whether a call may run; if no front end can answer, it may not.
    fn ask_tool(&mut self, call: Arc<ToolCall>, text: String, reply: oneshot::Sender<Gate>) {
        if !self.can_ask {
            let reason =
                format!("{} was not run: it needs permission, and no user is available to ask", call.name);
            // The run may already be over.
            drop(reply.send(Gate::Block { reason }));
            return;
        }
        let options = TOOL_OPTIONS.map(str::to_owned).to_vec();
        self.ask(QuestionKind::ToolCall(call), text, options, 1, Some(reply));
    }

    /// Asks whether to continue beyond a limit of cost, in place of an earlier such
    /// question. Returns false if no front end can answer.
    pub(super) fn ask_budget(&mut self, period: BudgetPeriod, text: &str) -> bool {
        self.close_budget();
        if self.can_ask {
            let options = BUDGET_OPTIONS.map(str::to_owned).to_vec();
            self.ask(QuestionKind::Budget(period), text.to_owned(), options, 0, None);
        }
        self.can_ask
    }

    /// Withdraws the question about a limit of cost.
    pub(super) fn close_budget(&mut self) {
        self.close(|open| matches!(open.question.kind, QuestionKind::Budget(_)));
    }

    fn ask(
        &mut self,
        kind: QuestionKind,
        text: String,
        options: Vec<String>,
        default: usize,
        reply: Option<oneshot::Sender<Gate>>,
    ) {
        self.last_id += 1;
        let question = Arc::new(Question { id: QuestionId(self.last_id), kind, text, options, default });
        self.open.push(OpenQuestion { question: Arc::clone(&question), reply });
        self.outbox.update(|state| self.show(state));
        self.outbox.send(SessionEvent::Question(question));
    }

    /// Handles an answer and returns its meaning.
    ///
    /// # Errors
    /// If the question is not open or has no such option; it stays open in that case.
    pub(super) fn answer(&mut self, id: QuestionId, option: usize) -> Result<Answered, SessionError> {
        let open = self.open.iter().position(|open| open.question.id == id);
        let at = open.ok_or(Refusal::QuestionClosed)?;
        let n_options = self.open[at].question.options.len();
        if option >= n_options {
            return Err(Refusal::NoSuchOption { option, n_options }.into());
        }
        let OpenQuestion { question, reply } = self.open.remove(at);
        if let Some(reply) = reply {
            let gate = match option {
                0 => Gate::Allow,
                _ => Gate::Block { reason: "The user did not allow this call.".to_owned() },
            };
            drop(reply.send(gate));
        }
        self.on_closed(&question);
        Ok(match (&question.kind, TRUST_OPTIONS.get(option)) {
            (QuestionKind::Trust, Some((choice, _))) => Answered::Trust(*choice),
            (QuestionKind::Budget(_), _) if option == 0 => Answered::Stop,
            (QuestionKind::Budget(_), _) => Answered::GoOn,
            (QuestionKind::Trust | QuestionKind::ToolCall(_), _) => Answered::Call,
        })
    }

    /// Withdraws the question about trust, which was decided otherwise or is asked again.
    pub(super) fn close_trust(&mut self) {
        self.close(|open| open.question.kind == QuestionKind::Trust);
    }

    /// Withdraws the questions of a run that is cancelled or interrupted.
    pub(super) fn withdraw_calls(&mut self) {
        self.close(|open| open.reply.is_some());
    }

    fn close(&mut self, is_meant: impl Fn(&OpenQuestion) -> bool) {
        let (closed, open) = std::mem::take(&mut self.open).into_iter().partition(|open| is_meant(open));
        self.open = open;
        let closed: Vec<OpenQuestion> = closed;
        for OpenQuestion { question, reply } in closed {
            if let Some(reply) = reply {
                drop(reply.send(Gate::Withdrawn));
            }
            self.on_closed(&question);
        }
    }

    fn on_closed(&self, question: &Question) {
        self.outbox.update(|state| self.show(state));
        self.outbox.send(SessionEvent::QuestionClosed { id: question.id });
    }

    /// Sets the snapshot's fields about questions.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.questions = self.open.iter().map(|open| Arc::clone(&open.question)).collect();
    }
}
