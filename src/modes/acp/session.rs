//! One session of a connection: a task that passes prompts to the session, its events to the
//! client, and its questions there and back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, ContentBlock, ContentChunk, Error, ErrorCode, LoadSessionResponse, PromptResponse,
    RequestId, ResumeSessionResponse, SessionId, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, StopReason,
};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::AgentEvent;
use crate::ai::Message;
use crate::session::{
    NoticeLevel, Phase, PromptDraft, Question, QuestionId, QuestionKind, Refusal, Reply, Services,
    SessionCommand, SessionError, SessionEvent, SessionEvents, SessionHandle, SessionState,
    SessionUpdate as SessionChange, WhenBusy,
};

use super::super::output::write_err;
use super::super::print::shut_down;
use super::client::Client;
use super::features::ClientFeatures;
use super::methods::invalid_params;
use super::outgoing::Outgoing;
use super::permission::{self, Permission};
use super::replay::Replay;
use super::tool_calls::{Folders, text_block};
use super::turns::{Answered, Turns};
use super::updates::notice;
use super::{commands, config_options, own_commands, prompt};

/// Clients may drop updates that come right after the response that names their session.
const ANNOUNCE_DELAY: Duration = Duration::from_millis(80);

/// What the connection passes on to a session.
pub(super) enum SessionInput {
    Prompt(RequestId, Vec<ContentBlock>),
    Cancel,
    /// If the prompt with this id is open.
    CancelPrompt(RequestId),
    SetOption(RequestId, SetSessionConfigOptionRequest),
    /// Replays the conversation of the open session.
    Load(RequestId),
    Resume(RequestId),
    Close(RequestId),
}

impl SessionInput {
    /// The request that waits for a response.
    pub(super) fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Prompt(id, _)
            | Self::SetOption(id, _)
            | Self::Load(id)
            | Self::Resume(id)
            | Self::Close(id) => Some(id),
            Self::Cancel | Self::CancelPrompt(_) => None,
        }
    }
}

/// An open session.
pub(super) struct SessionTask {
    pub(super) id: SessionId,
    pub(super) client: Arc<Client>,
    pub(super) services: Arc<Services>,
    pub(super) features: ClientFeatures,
    pub(super) handle: SessionHandle,
    pub(super) events: SessionEvents,
    pub(super) inbox: mpsc::UnboundedReceiver<SessionInput>,
    /// What the user should know, once the client can show it.
    pub(super) notes: Vec<(NoticeLevel, String)>,
}

/// Something the task waits for.
enum Done {
    Prompt(RequestId, Result<Reply, SessionError>),
    Permission(Arc<Question>, Permission),
    /// The session has the answer to a question.
    Answered {
        is_budget: bool,
    },
    Compact(RequestId, Result<Reply, SessionError>),
    /// A command that is over, with what it tells the user.
    Command(RequestId, Result<String, String>),
    SetOption(RequestId, Result<Reply, SessionError>),
    Replay(RequestId, Result<Reply, SessionError>),
}

struct Running {
    task: SessionTask,
    turns: Turns,
    /// Prompts that wait until the user has decided about trust.
    held: VecDeque<(RequestId, PromptDraft)>,
    waits: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Questions that the client shows.
    questions: HashMap<QuestionId, CancellationToken>,
    compacting: Option<RequestId>,
    closing: Option<RequestId>,
}

impl SessionTask {
    /// Runs until the client closes the session or the connection.
    pub(super) async fn run(mut self) {
        let first = tokio::select! {
            input = self.inbox.recv() => Some(input),
            () = tokio::time::sleep(ANNOUNCE_DELAY) => None,
        };
        self.client.send(Outgoing::Announce(self.id.clone()));
        for (level, text) in std::mem::take(&mut self.notes) {
            self.client.update(&self.id, notice(self.features, level, &text));
        }
        let mut running = Running {
            task: self,
            turns: Turns::default(),
            held: VecDeque::new(),
            waits: FuturesUnordered::new(),
            questions: HashMap::new(),
            compacting: None,
            closing: None,
        };
        match first {
            Some(None) => {}
            Some(Some(input)) => {
                if running.on_input(input) {
                    running.serve().await;
                }
            }
            None => running.serve().await,
        }
        running.end().await;
    }
}

impl Running {
    async fn serve(&mut self) {
        loop {
            tokio::select! {
                biased;
                change = self.task.events.recv() => match change {
                    Some(change) => {
                        if !self.on_change(change) {
                            return;
                        }
                    }
                    None => return,
                },
                Some(done) = self.waits.next() => self.on_done(done),
                input = self.task.inbox.recv() => match input {
                    Some(input) => {
                        if !self.on_input(input) {
                            return;
                        }
                    }
                    None => return,
                },
            }
        }
    }

    /// Saves, passes on the last events and answers what is open.
    async fn end(mut self) {
        self.turns.cancel();
        shut_down(&self.task.handle).await;
        while let Some(change) = self.task.events.try_recv() {
            self.on_change(change);
        }
        let open = self.turns.finish();
        self.answer(open);
        let held = std::mem::take(&mut self.held).into_iter().map(|(id, _)| id);
        for id in held.chain(self.compacting.take()) {
            self.task.client.respond(&id, Ok(PromptResponse::new(StopReason::Cancelled)));
        }
        self.task.client.send(Outgoing::Closed(self.task.id.clone()));
        if let Some(id) = self.closing {
            self.task.client.respond(&id, Ok(CloseSessionResponse::new()));
        }
    }

    // Requests.

    /// `false` if the session is to be closed.
    fn on_input(&mut self, input: SessionInput) -> bool {
        match input {
            SessionInput::Prompt(id, blocks) => self.on_prompt(id, blocks),
            SessionInput::Cancel => self.cancel(),
            SessionInput::CancelPrompt(id) => {
                let is_held = self.held.iter().any(|(held, _)| *held == id);
                if is_held || self.turns.contains(&id) || self.compacting.as_ref() == Some(&id) {
                    self.cancel();
                }
            }
            SessionInput::SetOption(id, request) => self.on_option(id, &request),
            SessionInput::Load(id) => {
                let tree = self.task.handle.post(SessionCommand::ReadTree);
                self.waits.push(async move { Done::Replay(id, tree.await) }.boxed());
            }
            SessionInput::Resume(id) => {
                let options = config_options::of(&self.task.services, &self.task.handle.state());
                self.task.client.respond(&id, Ok(ResumeSessionResponse::new().config_options(options)));
            }
            SessionInput::Close(id) => {
                self.closing = Some(id);
                return false;
            }
        }
        true
    }

    fn on_prompt(&mut self, id: RequestId, blocks: Vec<ContentBlock>) {
        let state = self.task.handle.state();
        let draft = match prompt::draft(blocks, &state.cwd) {
            Ok(draft) => draft,
            Err(error) => return self.task.client.fail(&id, error),
        };
        if let Some((kind, args)) = commands::find(&draft.text).filter(|_| draft.images.is_empty()) {
            return self.on_command(id, kind, args);
        }
        if is_trust_open(&state) {
            self.held.push_back((id, draft));
        } else {
            self.send_prompt(id, draft);
        }
    }

    fn send_prompt(&mut self, id: RequestId, prompt: PromptDraft) {
        self.turns.push(id.clone());
        let reply = self.task.handle.post(SessionCommand::Prompt { prompt, when_busy: WhenBusy::FollowUp });
        self.waits.push(async move { Done::Prompt(id, reply.await) }.boxed());
    }

    fn on_command(&mut self, id: RequestId, kind: commands::CommandKind, args: &str) {
        if kind == commands::CommandKind::Compact {
            let focus = Some(args.to_owned()).filter(|focus| !focus.is_empty());
            let reply = self.task.handle.post(SessionCommand::Compact { focus, with_review: false });
            return self.waits.push(async move { Done::Compact(id, reply.await) }.boxed());
        }
        let result = own_commands::run(&self.task.handle, kind, args);
        self.waits.push(async move { Done::Command(id, result.await) }.boxed());
    }

    /// Cancels what runs. The client answers the permissions it was asked for itself.
    fn cancel(&mut self) {
        self.turns.cancel();
        for (id, _) in std::mem::take(&mut self.held) {
            self.task.client.respond(&id, Ok(PromptResponse::new(StopReason::Cancelled)));
        }
        self.task.handle.send(SessionCommand::Interrupt);
        // A limit that ended a run is kept.
        let questions = Arc::clone(&self.task.handle.state().questions);
        for question in questions.iter().filter(|question| matches!(question.kind, QuestionKind::Budget(_))) {
            self.decide(question, question.default);
        }
    }

    fn on_option(&mut self, id: RequestId, request: &SetSessionConfigOptionRequest) {
        let (state, services) = (self.task.handle.state(), &self.task.services);
        let value = request.value.as_value_id().map_or("", |value| &value.0);
        let command = match config_options::change(services, &state, &request.config_id.0, value) {
            Ok(command) => command,
            Err(error) => {
                let error = invalid_params(format!("session/set_config_option: {error}"));
                return self.task.client.fail(&id, error);
            }
        };
        let reply = self.task.handle.post(command);
        self.waits.push(async move { Done::SetOption(id, reply.await) }.boxed());
    }

    // Replies.

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Prompt(id, Ok(Reply::Duplicate)) => {
                let answered = self.turns.on_rejected(&id, duplicate());
                self.answer(answered);
            }
            Done::Prompt(id, Ok(_)) => self.turns.on_accepted(&id),
            Done::Prompt(id, Err(error)) => {
                let answered = self.turns.on_rejected(&id, refused(&error));
                self.answer(answered);
            }
            Done::Permission(question, permission) => self.on_permission(&question, &permission),
            Done::Answered { is_budget } => {
                // The run that the limit ended goes on, or that was its end.
                if is_budget && self.task.handle.state().phase == Phase::Idle {
                    let answered = self.turns.on_limit();
                    self.answer(answered);
                }
            }
            Done::Compact(id, Ok(_)) => self.compacting = Some(id),
            Done::Compact(id, Err(error)) => self.end_command(&id, &error.to_string()),
            Done::Command(id, result) => {
                let text = result.unwrap_or_else(|error| error);
                self.end_command(&id, &text);
            }
            Done::SetOption(id, result) => {
                let result = result.map_err(|error| refused(&error)).map(|_| {
                    let options = config_options::of(&self.task.services, &self.task.handle.state());
                    SetSessionConfigOptionResponse::new(options)
                });
                self.task.client.respond(&id, result);
            }
            Done::Replay(id, result) => self.on_tree(id, result),
        }
    }

    fn on_tree(&self, id: RequestId, result: Result<Reply, SessionError>) {
        let Self { task, .. } = self;
        let result = match result {
            Ok(Reply::Tree(tree)) => {
                let state = task.handle.state();
                let home = task.services.dirs.home.clone();
                let replay = Replay::start(task.id.clone(), tree, state.cwd.clone(), home);
                let options = config_options::of(&task.services, &state);
                let response = LoadSessionResponse::new().config_options(options);
                task.client.respond_after(replay, id, &response);
                return;
            }
            Ok(_) => Ok(LoadSessionResponse::new()),
            Err(error) => Err(refused(&error)),
        };
        task.client.respond(&id, result);
    }

    /// What a command says is shown as an answer.
    fn end_command(&self, id: &RequestId, text: &str) {
        let chunk = ContentChunk::new(text_block(text));
        self.task.client.update(&self.task.id, SessionUpdate::AgentMessageChunk(chunk));
        self.task.client.respond(id, Ok(PromptResponse::new(StopReason::EndTurn)));
    }

    fn answer(&self, answered: impl IntoIterator<Item = Answered>) {
        for (id, result) in answered {
            self.task.client.respond(&id, result);
        }
    }

    // Events.

    /// `false` if the session has ended.
    fn on_change(&mut self, change: SessionChange) -> bool {
        let (event, state) = (change.event.clone(), Arc::clone(&change.state));
        // A delivered prompt ends the one before it, which owns the updates so far.
        if let SessionEvent::Agent(AgentEvent::MessageStart(message)) = &event
            && matches!(**message, Message::User(_))
        {
            let answered = self.turns.on_delivered();
            self.answer(answered);
        }
        self.task.client.send(Outgoing::Change(self.task.id.clone(), Box::new(change)));
        match event {
            SessionEvent::Agent(AgentEvent::MessageEnd(message)) => {
                if let Message::Assistant(answer) = &*message {
                    self.turns.on_answer(answer);
                }
            }
            SessionEvent::Question(question) => self.ask(question),
            SessionEvent::QuestionClosed { id } => self.on_question_closed(id, &state),
            SessionEvent::CompactionEnded { aborted, error, tokens_after, .. } => {
                self.on_compacted(aborted, error.as_deref(), tokens_after);
            }
            SessionEvent::QueueReturned(taken) => {
                // The client has the prompts and shows them as cancelled.
                let (draft, tickets) = (PromptDraft::default(), vec![taken.ticket]);
                self.task.handle.send(SessionCommand::SaveDraft { draft, tickets });
            }
            SessionEvent::Settled { .. } if !is_budget_open(&state) => {
                let answered = self.turns.on_settled(state.queue.is_empty());
                self.answer(answered);
            }
            SessionEvent::Notice { level: NoticeLevel::Warning | NoticeLevel::Error, text } => {
                write_err(&format!("pi: {text}"));
            }
            SessionEvent::Ended { reason } => {
                write_err(&format!("pi: the session stopped: {reason}"));
                let text = format!("The session stopped: {reason}");
                let update = notice(self.task.features, NoticeLevel::Error, &text);
                self.task.client.update(&self.task.id, update);
                return false;
            }
            _ => {}
        }
        true
    }

    fn on_compacted(&mut self, aborted: bool, error: Option<&str>, tokens_after: Option<u64>) {
        let Some(id) = self.compacting.take() else { return };
        if aborted {
            return self.task.client.respond(&id, Ok(PromptResponse::new(StopReason::Cancelled)));
        }
        match (error, tokens_after) {
            (Some(error), _) => self.end_command(&id, &format!("Could not compact: {error}")),
            (None, Some(tokens)) => {
                self.end_command(&id, &format!("Compacted the conversation to about {tokens} tokens."));
            }
            (None, None) => self.end_command(&id, "Compacted the conversation."),
        }
    }

    // Questions.

    fn ask(&mut self, question: Arc<Question>) {
        let folders =
            Folders { cwd: self.task.handle.state().cwd.clone(), home: self.task.services.dirs.home.clone() };
        let withdrawn = CancellationToken::new();
        self.questions.insert(question.id, withdrawn.clone());
        let asked = permission::ask(&self.task.client, &self.task.id, &question, &folders);
        let wait = async move {
            let permission = tokio::select! {
                permission = asked => permission,
                () = withdrawn.cancelled() => Permission::Withdrawn,
            };
            Done::Permission(question, permission)
        };
        self.waits.push(wait.boxed());
    }

    fn on_permission(&mut self, question: &Question, permission: &Permission) {
        self.questions.remove(&question.id);
        let option = match permission {
            Permission::Withdrawn => return,
            Permission::Chosen(option) => *option,
            Permission::None(why) => {
                if let Some(why) = why {
                    write_err(&format!("pi: the client cannot ask \"{}\": {why}", question.text));
                }
                question.default
            }
        };
        self.decide(question, option);
    }

    fn decide(&mut self, question: &Question, option: usize) {
        if let Some(update) = permission::closed(question) {
            self.task.client.update(&self.task.id, update);
        }
        let reply = self.task.handle.post(SessionCommand::Answer { id: question.id, option });
        let is_budget = matches!(question.kind, QuestionKind::Budget(_));
        self.waits.push(
            async move {
                // A question that was closed meanwhile needs no answer.
                drop(reply.await);
                Done::Answered { is_budget }
            }
            .boxed(),
        );
    }

    fn on_question_closed(&mut self, id: QuestionId, state: &SessionState) {
        if let Some(withdrawn) = self.questions.remove(&id) {
            withdrawn.cancel();
        }
        if !is_trust_open(state) {
            for (id, draft) in std::mem::take(&mut self.held) {
                self.send_prompt(id, draft);
            }
        }
    }
}

fn is_trust_open(state: &SessionState) -> bool {
    state.questions.iter().any(|question| question.kind == QuestionKind::Trust)
}

fn is_budget_open(state: &SessionState) -> bool {
    state.questions.iter().any(|question| matches!(question.kind, QuestionKind::Budget(_)))
}

fn duplicate() -> Error {
    let text = "the same prompt was sent a moment ago and is waiting already";
    Error::new(ErrorCode::InvalidRequest.into(), text)
}

/// The error for a command that the session rejected.
pub(super) fn refused(error: &SessionError) -> Error {
    let code = match error {
        SessionError::Refused(Refusal::Credential(_)) => ErrorCode::AuthRequired,
        SessionError::Refused(_) => ErrorCode::InvalidRequest,
        SessionError::Ended => ErrorCode::InternalError,
    };
    Error::new(code.into(), error.to_string())
}
