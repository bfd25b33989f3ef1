//! ACP mode: the Agent Client Protocol on standard input and output, for editors.
//!
//! A client of sessions like any other; one connection serves several. This module reads
//! requests and passes those of a session to its task. `methods` has the table, `message` the
//! lines; `session` is the task, `turns` knows which prompt an event answers, `permission`
//! asks the client. `outgoing` orders what is written: `updates` folds events, `replay` reads
//! conversations. `features` has the capabilities of both sides.

mod catalogue;
mod client;
mod commands;
mod config_options;
mod editor;
mod features;
mod long_strings;
mod message;
mod methods;
mod outgoing;
mod own_commands;
mod permission;
mod prompt;
mod replay;
mod session;
mod splice;
mod tool_calls;
mod turns;
mod updates;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, AuthenticateResponse, DeleteSessionRequest, DeleteSessionResponse, Error, ErrorCode,
    ForkSessionRequest, ForkSessionResponse, InitializeRequest, ListSessionsRequest, LoadSessionResponse,
    McpServer, NewSessionResponse, RequestId, ResumeSessionResponse, SessionId,
};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::session::{
    self as sessions, Deltas, NoticeLevel, OpenError, OpenSession, Reply, Services, SessionCommand,
    SessionEvent, SessionEvents, SessionHandle, SessionScope, SessionTree,
};
use crate::tools::Editor;
use crate::util::panics::crash_text;
use crate::util::{os, process, worker};

use super::crash_notice::caught;
use super::exit;
use super::output::write_err;
use super::signals;
use super::wire::{LineOutput, next_input, read_lines};
use catalogue::SessionPlaces;
use client::Client;
pub use commands::{ACP_COMMANDS, AcpCommandRow};
use editor::ClientFiles;
use features::ClientFeatures;
use message::Incoming;
pub use methods::{ACP_METHODS, AcpMethodRow};
use methods::{AgentNotification, AgentRequest, invalid_params};
use outgoing::{AcpLines, OpenedSession, Outgoing};
use replay::Replay;
use session::{SessionInput, SessionTask};

/// How long a client may read nothing at the end before what is left is dropped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes what sessions work with.
pub trait AcpHost: Send + Sync {
    /// The services of a session in `cwd`, whose files `editor` serves. Reads the disk.
    fn services(&self, cwd: &Path, editor: Option<Arc<dyn Editor>>) -> Arc<Services>;

    /// The folder of the sessions that work in `cwd`.
    fn folder(&self, cwd: &Path) -> PathBuf;

    /// The folder that contains all projects' folders.
    fn root(&self) -> PathBuf;
}

/// What ACP mode works on.
pub struct AcpStart {
    pub host: Arc<dyn AcpHost>,
    /// The path of this program, for clients that run it to sign in.
    pub program: Option<String>,
    /// Problems in the user's files, one line each.
    pub problems: Vec<String>,
}

/// Serves a client on standard input and output until the input ends, the client closes its
/// end of the output, or a signal arrives; then cancels what runs and saves. Exit code 0, or
/// 128 plus the number of the signal.
pub async fn acp(start: AcpStart) -> ExitCode {
    let signalled = signals::first_signal();
    let stopped = async move {
        let code = signalled.await;
        process::kill_all();
        code
    };
    // A whole conversation goes through it when a session is loaded.
    os::widen_standard_output();
    serve_acp(start, io::stdin(), io::stdout(), stopped).await
}

/// As [`acp`], on any input and output, until `stopped` returns an exit code.
pub async fn serve_acp(
    start: AcpStart,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stopped: impl Future<Output = ExitCode>,
) -> ExitCode {
    for problem in &start.problems {
        write_err(&format!("pi: {problem}"));
    }
    let opened = LineOutput::start(AcpLines::default(), output)
        .and_then(|output| Ok((output, read_lines(input, message::parse)?)));
    let (output, inputs) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            write_err(&format!("pi: cannot read and write messages: {error}"));
            return ExitCode::from(1);
        }
    };
    let mut connection = Connection {
        start,
        client: Arc::new(Client::new(output)),
        features: None,
        sessions: HashMap::new(),
        opening: FuturesUnordered::new(),
        tasks: JoinSet::new(),
        readers: JoinSet::new(),
    };
    let (code, is_stopped) = tokio::select! {
        code = caught(connection.serve(inputs).map(|()| ExitCode::SUCCESS)) => (code, false),
        code = stopped => (code, true),
    };
    // An editor may end by closing its end of the output.
    let failure = connection.finish().await.filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
    if is_stopped { code } else { exit::unless_output_failed(failure.as_ref(), code) }
}

/// The client, and the sessions it has open.
struct Connection {
    start: AcpStart,
    client: Arc<Client>,
    /// `None` before `initialize`.
    features: Option<ClientFeatures>,
    sessions: HashMap<SessionId, mpsc::UnboundedSender<SessionInput>>,
    /// Sessions that are being opened.
    opening: FuturesUnordered<BoxFuture<'static, Opening>>,
    /// Sessions that are open. Each ends with its connection.
    tasks: JoinSet<()>,
    /// Requests that read or delete what is not open. Each ends with its response.
    readers: JoinSet<()>,
}

/// A session that was opened for a request, or why not.
struct Opening {
    id: RequestId,
    purpose: Purpose,
    /// What the client has already sent to it, if it knows its id.
    inbox: mpsc::UnboundedReceiver<SessionInput>,
    sender: mpsc::UnboundedSender<SessionInput>,
    session: Option<SessionId>,
    result: Result<Opened, Error>,
}

struct Opened {
    services: Arc<Services>,
    files: Arc<ClientFiles>,
    handle: SessionHandle,
    events: SessionEvents,
    /// What is replayed.
    tree: Option<SessionTree>,
    notes: Vec<(NoticeLevel, String)>,
}

/// The request that opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    New,
    Load,
    Resume,
    Fork,
}

impl Connection {
    async fn serve(&mut self, mut inputs: mpsc::Receiver<Incoming>) {
        loop {
            let client = Arc::clone(&self.client);
            let n_in_flight = self.opening.len() + self.readers.len();
            tokio::select! {
                biased;
                () = client.output().broken() => return,
                Some(opening) = self.opening.next() => self.on_opened(opening),
                Some(_) = self.tasks.join_next() => {}
                Some(_) = self.readers.join_next() => {}
                input = next_input(&mut inputs, n_in_flight, client.output()) => match input {
                    Some(input) => self.on_input(input),
                    None => return,
                },
            }
        }
    }

    /// Closes all sessions, and waits for the client to read what is left. Returns why that failed.
    async fn finish(mut self) -> Option<io::Error> {
        // What was asked before the end of the input is answered, although nothing follows.
        let open = async {
            while let Some(opening) = self.opening.next().await {
                self.on_opened(opening);
            }
        };
        drop(tokio::time::timeout(PATIENCE, open).await);
        self.client.on_gone();
        self.sessions.clear();
        drop(self.opening);
        while self.tasks.join_next().await.is_some() {}
        while self.readers.join_next().await.is_some() {}
        self.client.output().finish(Some(PATIENCE)).await;
        self.client.output().failure()
    }

    fn on_input(&mut self, input: Incoming) {
        match input {
            Incoming::Request { id, request } => match self.client.accept(&id) {
                Ok(()) => self.on_request(id, *request),
                Err(error) => self.client.reject(&id, &error),
            },
            Incoming::Notification(AgentNotification::Cancel(cancel)) => {
                if let Some(session) = self.sessions.get(&cancel.session_id) {
                    // A task that has ended has nothing to cancel.
                    drop(session.send(SessionInput::Cancel));
                }
            }
            Incoming::Notification(AgentNotification::CancelRequest(cancel)) => {
                for session in self.sessions.values() {
                    drop(session.send(SessionInput::CancelPrompt(cancel.request_id.clone())));
                }
            }
            Incoming::Response { id, result } => {
                self.client.on_response(&id, result);
            }
            Incoming::Incomplete { id, error } => {
                if !self.client.on_response(&id, Err(error.clone())) {
                    self.client.reject(&id, &error);
                }
            }
            Incoming::Rejected { id, error } => self.client.reject(&id, &error),
            Incoming::Ignored { why } => write_err(&format!("pi: ignored a notification: {why}")),
        }
    }

    fn on_request(&mut self, id: RequestId, request: AgentRequest) {
        match (self.features, request) {
            (None, AgentRequest::Initialize(request)) => self.initialize(&id, &request),
            (Some(features), request) => self.on_session_request(id, request, features),
            (None, _) => {
                let text = "call initialize first";
                self.client.fail(&id, Error::new(ErrorCode::InvalidRequest.into(), text));
            }
        }
    }

    fn on_session_request(&mut self, id: RequestId, request: AgentRequest, features: ClientFeatures) {
        match request {
            AgentRequest::Initialize(request) => self.initialize(&id, &request),
            AgentRequest::Authenticate(request) => self.authenticate(&id, &request, features),
            AgentRequest::NewSession(request) => {
                let servers = request.mcp_servers;
                self.open(id, Purpose::New, None, request.cwd, servers, |_, _| Ok(OpenSession::New));
            }
            AgentRequest::LoadSession(request) => {
                let (session, cwd) = (request.session_id, request.cwd);
                self.reopen(id, Purpose::Load, session, cwd, request.mcp_servers);
            }
            AgentRequest::ResumeSession(request) => {
                let (session, cwd) = (request.session_id, request.cwd);
                self.reopen(id, Purpose::Resume, session, cwd, request.mcp_servers);
            }
            AgentRequest::ForkSession(request) => self.fork(id, request),
            AgentRequest::ListSessions(request) => self.list(id, request),
            AgentRequest::DeleteSession(request) => self.delete(id, request),
            AgentRequest::CloseSession(request) => {
                self.client.assign(&id, &request.session_id);
                let sent = self.sessions.remove(&request.session_id);
                let sent = sent.and_then(|session| session.send(SessionInput::Close(id.clone())).ok());
                if sent.is_none() {
                    self.client.fail(&id, not_open(&request.session_id));
                }
            }
            AgentRequest::Prompt(request) => {
                let input = SessionInput::Prompt(id.clone(), request.prompt);
                if !self.pass(&request.session_id, input) {
                    self.client.fail(&id, not_open(&request.session_id));
                }
            }
            AgentRequest::SetMode(request) => {
                let text = format!(
                    "session/set_mode: there is no mode {}; models and thinking levels are options",
                    request.mode_id
                );
                self.client.fail(&id, invalid_params(text));
            }
            AgentRequest::SetConfigOption(request) => {
                let session = request.session_id.clone();
                if !self.pass(&session, SessionInput::SetOption(id.clone(), request)) {
                    self.client.fail(&id, not_open(&session));
                }
            }
        }
    }

    /// `false` if the session is not open.
    fn pass(&mut self, session: &SessionId, input: SessionInput) -> bool {
        if let Some(id) = input.request() {
            self.client.assign(id, session);
        }
        let sent = self.sessions.get(session).is_some_and(|inbox| inbox.send(input).is_ok());
        if !sent {
            self.sessions.remove(session);
        }
        sent
    }

    fn initialize(&mut self, id: &RequestId, request: &InitializeRequest) {
        let features = ClientFeatures::of(&request.client_capabilities);
        self.features = Some(features);
        self.client.respond(id, Ok(features::initialized(features, self.start.program.as_deref())));
    }

    fn authenticate(&mut self, id: &RequestId, request: &AuthenticateRequest, features: ClientFeatures) {
        let known = features::auth_methods(features, self.start.program.as_deref());
        if !known.iter().any(|method| *method.id() == request.method_id) {
            let text = format!("authenticate: there is no method {}", request.method_id);
            return self.client.fail(id, invalid_params(text));
        }
        let client = Arc::clone(&self.client);
        let (host, id) = (Arc::clone(&self.start.host), id.clone());
        self.readers.spawn(async move {
            let check = move || has_model(&host.services(&host.root(), None));
            let result = match worker::run("acp", check).await {
                Ok(true) => Ok(AuthenticateResponse::new()),
                Ok(false) => Err(sign_in_first()),
                Err(error) => Err(internal(&error)),
            };
            client.respond(&id, result);
        });
    }

    // Opening.

    fn reopen(
        &mut self,
        id: RequestId,
        purpose: Purpose,
        session: SessionId,
        cwd: PathBuf,
        servers: Vec<McpServer>,
    ) {
        if let Some(inbox) = self.sessions.get(&session) {
            let input = match purpose {
                Purpose::Load => SessionInput::Load(id.clone()),
                _ => SessionInput::Resume(id.clone()),
            };
            self.client.assign(&id, &session);
            if inbox.send(input).is_ok() {
                return;
            }
            self.sessions.remove(&session);
        }
        let known = Some(session.clone());
        self.open(id, purpose, known, cwd, servers, move |places, cwd| {
            catalogue::find(places, cwd, &session.0).map(OpenSession::File)
        });
    }

    fn fork(&mut self, id: RequestId, request: ForkSessionRequest) {
        let session = request.session_id;
        self.open(id, Purpose::Fork, None, request.cwd, request.mcp_servers, move |places, cwd| {
            let source = catalogue::find(places, cwd, &session.0)?;
            let now_ms = crate::util::clock::Clock::system().now_ms();
            let copy = sessions::fork_session(&source, cwd, &places.folder, now_ms);
            copy.map(OpenSession::File).map_err(|error| cannot_open(&error))
        });
    }

    /// Opens what `choose` finds, on a thread that may block. Requests for a session whose id
    /// the client knows wait until it is open.
    fn open(
        &mut self,
        id: RequestId,
        purpose: Purpose,
        session: Option<SessionId>,
        cwd: PathBuf,
        servers: Vec<McpServer>,
        choose: impl FnOnce(&SessionPlaces, &Path) -> Result<OpenSession, Error> + Send + 'static,
    ) {
        let host = Arc::clone(&self.start.host);
        let files = Arc::new(ClientFiles::new(Arc::clone(&self.client), self.features.unwrap_or_default()));
        let (sender, inbox) = mpsc::unbounded_channel();
        if let Some(session) = &session {
            self.sessions.insert(session.clone(), sender.clone());
        }
        let opening = async move {
            let result = open(host, files, purpose, cwd, servers, choose).await;
            Opening { id, purpose, inbox, sender, session, result }
        };
        self.opening.push(opening.boxed());
    }

    fn on_opened(&mut self, opening: Opening) {
        let Opening { id, purpose, mut inbox, sender, session, result } = opening;
        let opened = match result {
            Ok(opened) => opened,
            Err(error) => {
                self.client.fail(&id, error);
                let Some(session) = session else { return };
                self.sessions.remove(&session);
                while let Ok(input) = inbox.try_recv() {
                    if let Some(id) = input.request() {
                        self.client.fail(id, not_open(&session));
                    }
                }
                return;
            }
        };
        let is_closed = session.is_some_and(|session| !self.sessions.contains_key(&session));
        let Opened { services, files, handle, events, tree, notes } = opened;
        let (state, client) = (handle.state(), Arc::clone(&self.client));
        let features = self.features.unwrap_or_default();
        let session = SessionId::new(state.id.as_str());
        files.on_open(&session);
        let known = OpenedSession { services: Arc::clone(&services), features, state: Arc::clone(&state) };
        client.send(Outgoing::Open(session.clone(), Box::new(known)));
        let options = config_options::of(&services, &state);
        match purpose {
            Purpose::New => {
                client.respond(&id, Ok(NewSessionResponse::new(session.clone()).config_options(options)));
            }
            Purpose::Fork => {
                client.respond(&id, Ok(ForkSessionResponse::new(session.clone()).config_options(options)));
            }
            Purpose::Load => {
                let response = LoadSessionResponse::new().config_options(options);
                match tree {
                    Some(tree) => {
                        let home = services.dirs.home.clone();
                        let replay = Replay::start(session.clone(), tree, state.cwd.clone(), home);
                        client.respond_after(replay, id, &response);
                    }
                    None => client.respond(&id, Ok(response)),
                }
            }
            Purpose::Resume => {
                client.respond(&id, Ok(ResumeSessionResponse::new().config_options(options)));
            }
        }
        let task =
            SessionTask { id: session.clone(), client, services, features, handle, events, inbox, notes };
        let (client, lost) = (Arc::clone(&self.client), session.clone());
        let running = async move {
            if let Err(panic) = AssertUnwindSafe(task.run()).catch_unwind().await {
                client.on_session_lost(&lost, &crash_text(&*panic));
            }
        };
        if !is_closed {
            self.sessions.insert(session, sender);
        }
        self.tasks.spawn(running);
    }

    // Sessions that need not be open.

    fn list(&mut self, id: RequestId, request: ListSessionsRequest) {
        let (client, host) = (Arc::clone(&self.client), Arc::clone(&self.start.host));
        self.readers.spawn(async move {
            let list = move || {
                let scope = match request.cwd {
                    Some(cwd) => SessionScope::Folder { folder: host.folder(&cwd), cwd: Some(cwd) },
                    None => SessionScope::All,
                };
                catalogue::list(&host.root(), &scope, request.cursor.as_deref())
            };
            let result = worker::run("acp", list).await.unwrap_or_else(|error| Err(internal(&error)));
            client.respond(&id, result);
        });
    }

    fn delete(&mut self, id: RequestId, request: DeleteSessionRequest) {
        let session = request.session_id;
        if self.sessions.contains_key(&session) {
            let text = format!("session {session} is open; close it first");
            return self.client.fail(&id, invalid_params(text));
        }
        let (client, host) = (Arc::clone(&self.client), Arc::clone(&self.start.host));
        self.readers.spawn(async move {
            let delete = move || catalogue::delete(&host.root(), &session.0);
            let result = worker::run("acp", delete).await.unwrap_or_else(|error| Err(internal(&error)));
            client.respond(&id, result.map(|()| DeleteSessionResponse::new()));
        });
    }
}

/// Opens a session and waits until it is read.
async fn open(
    host: Arc<dyn AcpHost>,
    files: Arc<ClientFiles>,
    purpose: Purpose,
    cwd: PathBuf,
    servers: Vec<McpServer>,
    choose: impl FnOnce(&SessionPlaces, &Path) -> Result<OpenSession, Error> + Send + 'static,
) -> Result<Opened, Error> {
    let (folder, editor) = (cwd.clone(), Arc::clone(&files));
    let prepare = move || -> Result<(OpenSession, Arc<Services>), Error> {
        check_folder(&folder)?;
        let places = SessionPlaces { folder: host.folder(&folder), root: host.root() };
        let open = choose(&places, &folder)?;
        Ok((open, host.services(&folder, Some(editor))))
    };
    let prepared = worker::run("acp", prepare).await.map_err(|error| internal(&error))?;
    let (open, services) = prepared?;
    let started = sessions::start(Arc::clone(&services), cwd, open, Deltas::Wanted).await;
    let (handle, mut events) = started.map_err(|error| cannot_open(&error))?;
    let mut notes = Vec::new();
    until_open(&mut events, &mut notes).await?;
    if !is_usable(&services, &handle) {
        drop(handle.request(SessionCommand::Shutdown).await);
        return Err(sign_in_first());
    }
    let tree = match purpose {
        Purpose::Load => match handle.request(SessionCommand::ReadTree).await {
            Ok(Reply::Tree(tree)) => Some(tree),
            Ok(_) => None,
            Err(error) => return Err(session::refused(&error)),
        },
        Purpose::New | Purpose::Resume | Purpose::Fork => None,
    };
    notes.extend(unused_servers(&servers));
    Ok(Opened { services, files, handle, events, tree, notes })
}

/// Waits until the whole file is read. Notices until then are shown later.
async fn until_open(events: &mut SessionEvents, notes: &mut Vec<(NoticeLevel, String)>) -> Result<(), Error> {
    while let Some(update) = events.recv().await {
        match update.event {
            SessionEvent::Opened(opened) if opened.n_earlier.is_some() => return Ok(()),
            SessionEvent::Notice { level, text } => notes.push((level, text)),
            SessionEvent::Ended { reason } => {
                return Err(Error::new(ErrorCode::InternalError.into(), reason));
            }
            _ => {}
        }
    }
    Err(Error::new(ErrorCode::InternalError.into(), "the session ended unexpectedly"))
}

fn check_folder(cwd: &Path) -> Result<(), Error> {
    if !cwd.is_absolute() {
        return Err(invalid_params(format!("cwd is not an absolute path: {}", cwd.display())));
    }
    if !cwd.is_dir() {
        return Err(invalid_params(format!("cwd is not a directory: {}", cwd.display())));
    }
    Ok(())
}

/// Whether the session's model has a key or needs none, or another one has.
fn is_usable(services: &Services, handle: &SessionHandle) -> bool {
    let (catalog, state) = (services.catalog.get(), handle.state());
    let provider = catalog.provider(&state.model.provider);
    provider.is_some_and(|info| services.credentials.is_available(info)) || has_model(services)
}

/// Also sees keys that were saved since pi was started.
fn has_model(services: &Services) -> bool {
    if let Some(file) = services.credentials.file() {
        file.latest();
    }
    !services.usable_models().is_empty()
}

fn sign_in_first() -> Error {
    let text = "no model can be used without a key; set a key such as ANTHROPIC_API_KEY, or run pi auth login PROVIDER in a terminal";
    Error::new(ErrorCode::AuthRequired.into(), text)
}

/// Says that the client's MCP servers are not used.
fn unused_servers(servers: &[McpServer]) -> Option<(NoticeLevel, String)> {
    if servers.is_empty() {
        return None;
    }
    let names: Vec<&str> = servers
        .iter()
        .map(|server| match server {
            McpServer::Http(server) => server.name.as_str(),
            McpServer::Sse(server) => server.name.as_str(),
            McpServer::Stdio(server) => server.name.as_str(),
            _ => "another",
        })
        .collect();
    let text = format!("pi does not use MCP servers yet; it ignores {}.", names.join(", "));
    write_err(&format!("pi: {text}"));
    Some((NoticeLevel::Warning, text))
}

fn not_open(session: &SessionId) -> Error {
    let text = format!("session {session} is not open; open it with session/load or session/resume");
    Error::new(ErrorCode::ResourceNotFound.into(), text)
}

fn cannot_open(error: &OpenError) -> Error {
    let code = match error {
        OpenError::Missing { .. } => ErrorCode::ResourceNotFound,
        OpenError::NoDirectory { .. } | OpenError::NotASession { .. } => ErrorCode::InvalidParams,
        _ => ErrorCode::InternalError,
    };
    Error::new(code.into(), error.to_string())
}

fn internal(error: &worker::WorkError) -> Error {
    Error::new(ErrorCode::InternalError.into(), error.to_string())
}
