//! RPC mode: commands as lines of JSON on standard input; responses, events and questions on
//! standard output.
//!
//! A client of the session like any other. `table` has the commands, `input` reads them,
//! `commands` carries them out, `data` makes what responses contain. This module keeps
//! responses and events in order: a response comes before the events of what it started,
//! and after those of what it reports.

mod commands;
mod controls;
mod data;
mod input;
mod table;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use crate::agent::AgentEvent;
use crate::session::{
    BashExecution, BashId, Entry, NoticeLevel, Phase, PromptDraft, Question, Services, SessionCommand,
    SessionEvent, SessionEvents, SessionHandle, SessionUpdate, SummaryDraft,
};
use crate::util::hash::fnv1a;
use crate::util::panics::crash_text;
use crate::util::process;

use super::crash_notice::caught;
use super::exit;
use super::output::write_err;
use super::print::shut_down;
use super::signals;
use super::wire::{CompactionResult, EventStyle, LineOutput, Lines, Outgoing, as_compaction, next_input};
use input::{Answer, Input, Request};
pub use table::{RPC_COMMANDS, RpcCommandRow};

/// How long commands may take and a client may read nothing at the end, before what is left is
/// dropped.
const PATIENCE: Duration = Duration::from_secs(5);

/// What RPC mode works on.
pub struct RpcStart {
    pub services: Arc<Services>,
    pub handle: SessionHandle,
    pub events: SessionEvents,
    /// The folder of this directory's sessions.
    pub sessions: PathBuf,
    /// The folder that contains all projects' folders.
    pub sessions_root: PathBuf,
    /// Problems in the user's files, one line each.
    pub problems: Vec<String>,
    /// Whether lines are bounded and nothing is written twice.
    pub slim_events: bool,
}

/// Carries out commands until the input ends, the client closes its end of the output, or a
/// signal arrives; then cancels what runs and saves. Exit code 0; 141 if the client closed its
/// end of the output; 128 plus the number of the signal; 1 if the session ended by itself.
pub async fn rpc(start: RpcStart) -> ExitCode {
    let signalled = signals::first_signal();
    for problem in &start.problems {
        write_err(&format!("pi: {problem}"));
    }
    let style = if start.slim_events { EventStyle::Slim } else { EventStyle::Whole };
    let opened = LineOutput::start(Lines::new(style), io::stdout())
        .and_then(|output| Ok((output, input::read(io::stdin())?)));
    let (output, inputs) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            write_err(&format!("pi: cannot read and write commands: {error}"));
            return ExitCode::from(1);
        }
    };
    let handle = start.handle.clone();
    let client = commands::Client::new(start.services, handle.clone(), start.sessions, start.sessions_root);
    let mut server = Server {
        client,
        events: start.events,
        output,
        replies: FuturesUnordered::new(),
        waiting: Waiting::default(),
        questions: HashMap::new(),
        n_notices: 0,
        reported: HashSet::new(),
        is_settled: true,
    };
    let (code, is_signalled) = tokio::select! {
        code = caught(server.serve(inputs)) => (code, false),
        code = signalled => {
            process::kill_all();
            (code, true)
        }
    };
    shut_down(&handle).await;
    let failure = server.finish().await;
    if is_signalled { code } else { exit::unless_output_failed(failure.as_ref(), code) }
}

/// A command that was sent to the session, on its way to a response.
type Pending = BoxFuture<'static, (Request, Outcome)>;

/// What became of a command.
pub(super) enum Outcome {
    /// `data` as JSON text; `None` for none.
    Done(Option<String>),
    Failed(String),
    /// The response follows when the session has settled.
    WhenSettled,
    /// With the summary of this compaction.
    WhenCompacted,
    /// There is nothing to compact, for this reason.
    NotCompacted(String),
    /// When the branch has been left.
    WhenNavigated,
    /// With the prompt of the new session.
    WhenHandedOff,
    /// With the result of this command.
    WhenBashEnded(BashId),
}

impl Outcome {
    pub(super) fn data(data: &Value) -> Self {
        Self::Done(Some(data.to_string()))
    }
}

/// Commands whose response follows an event.
#[derive(Default)]
struct Waiting {
    settled: Vec<Request>,
    compacted: Vec<Request>,
    navigated: Vec<Request>,
    handed_off: Vec<Request>,
    bash: HashMap<BashId, Request>,
    compaction: Option<Arc<Entry>>,
    /// A summary that was written and waits for a decision.
    draft: Option<Arc<SummaryDraft>>,
}

struct Server {
    client: commands::Client,
    events: SessionEvents,
    output: LineOutput,
    replies: FuturesUnordered<Pending>,
    waiting: Waiting,
    /// Questions that the client was asked, by the id it knows.
    questions: HashMap<String, Arc<Question>>,
    n_notices: u64,
    /// Hashes of the warnings that standard error has already.
    reported: HashSet<u64>,
    /// Whether nothing began since the session last settled.
    is_settled: bool,
}

impl Server {
    async fn serve(&mut self, mut inputs: tokio::sync::mpsc::Receiver<Input>) -> ExitCode {
        loop {
            let n_in_flight = self.replies.len();
            tokio::select! {
                biased;
                () = self.output.broken() => return ExitCode::SUCCESS,
                update = self.events.recv() => match update {
                    Some(update) => {
                        if !self.on_update(update) {
                            return ExitCode::from(1);
                        }
                    }
                    None => return ExitCode::from(1),
                },
                Some((request, outcome)) = self.replies.next() => self.on_reply(request, outcome),
                input = next_input(&mut inputs, n_in_flight, &self.output) => match input {
                    Some(input) => self.on_input(input),
                    None => break,
                },
            }
        }
        // What was asked before the end of the input is answered, although nothing follows.
        drop(tokio::time::timeout(PATIENCE, self.answer_all()).await);
        ExitCode::SUCCESS
    }

    /// Waits for the replies of the session to all commands.
    async fn answer_all(&mut self) {
        while !self.replies.is_empty() {
            tokio::select! {
                biased;
                () = self.output.broken() => return,
                Some(update) = self.events.recv() => {
                    if !self.on_update(update) {
                        return;
                    }
                }
                Some((request, outcome)) = self.replies.next() => self.on_reply(request, outcome),
            }
        }
    }

    /// Writes what the end of the session brought, and waits for the client to read it. Returns
    /// why that failed.
    async fn finish(mut self) -> Option<io::Error> {
        while let Some(update) = self.events.try_recv() {
            self.on_update(update);
        }
        self.on_ready_replies();
        self.output.finish(Some(PATIENCE)).await;
        self.output.failure()
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Command(request, command) => {
                let outcome = self.client.carry_out(command);
                let outcome = AssertUnwindSafe(outcome).catch_unwind();
                let reply = async move {
                    let failed = |panic: Box<dyn Any + Send>| Outcome::Failed(crash_text(&*panic));
                    (request, outcome.await.unwrap_or_else(failed))
                };
                self.replies.push(reply.boxed());
            }
            Input::Answer(answer) => self.on_answer(answer),
            Input::Rejected(request, error) => self.respond(request, Err(&error)),
        }
    }

    fn on_reply(&mut self, request: Request, outcome: Outcome) {
        match outcome {
            Outcome::Done(data) => self.respond(request, Ok(data.as_deref())),
            Outcome::Failed(error) => self.respond(request, Err(&error)),
            Outcome::WhenSettled => {
                // The session reports that it has settled after it has become idle.
                if self.is_settled && self.client.state().phase == Phase::Idle {
                    self.respond(request, Ok(None));
                } else {
                    self.waiting.settled.push(request);
                }
            }
            Outcome::WhenCompacted => self.waiting.compacted.push(request),
            Outcome::NotCompacted(error) => {
                // The original tries first, and clients may wait for the end of that.
                for event in [compaction_start(), compaction_end(&error)] {
                    self.output.send(Outgoing::Line(event.to_string()));
                }
                self.respond(request, Err(&error));
            }
            Outcome::WhenNavigated => self.waiting.navigated.push(request),
            Outcome::WhenHandedOff => self.waiting.handed_off.push(request),
            Outcome::WhenBashEnded(id) => {
                self.output.send(Outgoing::NameBash(id, request.id.clone()));
                self.waiting.bash.insert(id, request);
            }
        }
    }

    fn on_ready_replies(&mut self) {
        while let Some(Some((request, outcome))) = self.replies.next().now_or_never() {
            self.on_reply(request, outcome);
        }
    }

    /// `false` if the session has ended.
    fn on_update(&mut self, update: SessionUpdate) -> bool {
        // A reply that is there came before these, and belongs before them.
        if begins(&update.event) {
            self.on_ready_replies();
        }
        match &update.event {
            SessionEvent::Notice { level, text } => self.notify(*level, text),
            SessionEvent::Question(question) => self.ask(Arc::clone(question)),
            SessionEvent::QuestionClosed { id } => self.questions.retain(|_, question| question.id != *id),
            SessionEvent::EntryAppended(entry) if as_compaction(entry).is_some() => {
                self.waiting.compaction = Some(Arc::clone(entry));
            }
            SessionEvent::SummaryDrafted(draft) => self.waiting.draft = Some(Arc::clone(draft)),
            SessionEvent::Ended { reason } => {
                write_err(&format!("pi: the session stopped: {reason}"));
                return false;
            }
            _ => {}
        }
        let event = update.event.clone();
        self.output.send(Outgoing::Update(update));
        self.after(&event);
        true
    }

    /// Responds to commands that waited for `event`.
    fn after(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Agent(AgentEvent::AgentStart)
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::HandoffStarted
            | SessionEvent::BranchSummaryStarted => self.is_settled = false,
            SessionEvent::Settled { .. } => {
                self.is_settled = true;
                for request in std::mem::take(&mut self.waiting.settled) {
                    self.respond(request, Ok(None));
                }
            }
            SessionEvent::CompactionEnded { aborted, error, tokens_after, .. } => {
                let compaction = self.waiting.compaction.take();
                let drafted = self.waiting.draft.take();
                let compaction = compaction.as_deref().and_then(as_compaction);
                let data = match (compaction, &drafted) {
                    (Some(compaction), _) => {
                        Some(json!(CompactionResult::new(compaction, *tokens_after)).to_string())
                    }
                    (None, Some(drafted)) => Some(controls::draft(Some(drafted)).to_string()),
                    (None, None) => None,
                };
                let error = if *aborted { Some("Compaction cancelled") } else { error.as_deref() };
                for request in std::mem::take(&mut self.waiting.compacted) {
                    self.respond(request, error.map_or(Ok(data.as_deref()), Err));
                }
            }
            SessionEvent::Navigated(_) => self.navigated(false),
            SessionEvent::BranchSummaryEnded { aborted: true, .. } => self.navigated(true),
            SessionEvent::BranchSummaryEnded { error: Some(error), .. } => {
                for request in std::mem::take(&mut self.waiting.navigated) {
                    self.respond(request, Err(error));
                }
            }
            SessionEvent::HandoffEnded { prompt, aborted } => self.handed_off(prompt.as_deref(), *aborted),
            SessionEvent::BashEnded { id, execution } => self.bash_ended(*id, execution),
            _ => {}
        }
    }

    fn navigated(&mut self, cancelled: bool) {
        let data = json!({ "cancelled": cancelled }).to_string();
        for request in std::mem::take(&mut self.waiting.navigated) {
            self.respond(request, Ok(Some(&data)));
        }
    }

    fn handed_off(&mut self, prompt: Option<&PromptDraft>, aborted: bool) {
        let result = match prompt {
            Some(prompt) => Ok(json!({ "text": prompt.text, "cancelled": false }).to_string()),
            None if aborted => Ok(json!({ "cancelled": true }).to_string()),
            None => Err("the prompt of the new session could not be written; a notice says why"),
        };
        for request in std::mem::take(&mut self.waiting.handed_off) {
            self.respond(request, result.as_ref().map(|data| Some(data.as_str())).map_err(|error| *error));
        }
    }

    fn bash_ended(&mut self, id: BashId, execution: &BashExecution) {
        let Some(request) = self.waiting.bash.remove(&id) else { return };
        if execution.command.is_empty() {
            return self.respond(request, Err("the command could not be started"));
        }
        self.respond(request, Ok(Some(&data::bash(execution).to_string())));
    }

    fn respond(&self, request: Request, result: Result<Option<&str>, &str>) {
        self.output.send(Outgoing::Line(response(&request, result)));
    }

    // Questions and notices.

    fn notify(&mut self, level: NoticeLevel, text: &str) {
        self.n_notices += 1;
        let kind = match level {
            NoticeLevel::Info => "info",
            NoticeLevel::Warning => "warning",
            NoticeLevel::Error => "error",
        };
        let request = json!({
            "type": "extension_ui_request",
            "id": format!("notice-{}", self.n_notices),
            "method": "notify",
            "message": text,
            "notifyType": kind,
        });
        self.output.send(Outgoing::Line(request.to_string()));
        let is_warning = matches!(level, NoticeLevel::Warning | NoticeLevel::Error);
        if is_warning && self.reported.insert(fnv1a(text.bytes())) {
            write_err(&format!("pi: {text}"));
        }
    }

    fn ask(&mut self, question: Arc<Question>) {
        let id = format!("question-{}", question.id.get());
        let request = json!({
            "type": "extension_ui_request",
            "id": id,
            "method": "select",
            "title": question.text,
            "options": question.options,
        });
        self.output.send(Outgoing::Line(request.to_string()));
        self.questions.insert(id, question);
    }

    fn on_answer(&mut self, answer: Answer) {
        let request =
            Request { id: Some(answer.id.as_str().into()), command: "extension_ui_response".to_owned() };
        let Some(question) = self.questions.get(&answer.id) else {
            return self.respond(request, Err("the question is no longer open"));
        };
        let option = match &answer.value {
            None => Some(question.default),
            Some(value) => question.options.iter().position(|option| option == value),
        };
        let Some(option) = option else {
            let options = question.options.join(", ");
            return self.respond(request, Err(&format!("no such option; choose one of: {options}")));
        };
        let id = question.id;
        self.questions.remove(&answer.id);
        self.client.send(SessionCommand::Answer { id, option });
    }
}

/// Whether `event` follows the reply to the command that caused it.
fn begins(event: &SessionEvent) -> bool {
    matches!(
        event,
        SessionEvent::Agent(AgentEvent::AgentStart)
            | SessionEvent::BashOutput { .. }
            | SessionEvent::BashEnded { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::BranchSummaryEnded { .. }
    )
}

fn compaction_start() -> Value {
    json!({ "type": "compaction_start", "reason": "manual" })
}

fn compaction_end(error: &str) -> Value {
    json!({
        "type": "compaction_end",
        "reason": "manual",
        "aborted": false,
        "willRetry": false,
        "errorMessage": error,
    })
}

/// A response as a line: the id first, `data` as it is.
fn response(request: &Request, result: Result<Option<&str>, &str>) -> String {
    let id = request.id.as_ref().map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let command = Value::from(request.command.as_str());
    let rest = match result {
        Ok(None) => String::new(),
        Ok(Some(data)) => format!(r#","data":{data}"#),
        Err(error) => format!(r#","error":{}"#, Value::from(error)),
    };
    format!(r#"{{{id}"type":"response","command":{command},"success":{}{rest}}}"#, result.is_ok())
}
