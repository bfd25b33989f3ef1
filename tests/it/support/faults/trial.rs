//! A session that does random things.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pi::ai::{EventStream, FakeAnswer, FakeProvider, Message, Provider, Request, TestBarrier};
use pi::session::{
    Deltas, Disk, EntryId, EntryKind, IfBusy, LeftBranch, OpenSession, OtherCommands, PromptDraft, Reply,
    Scope, SessionCommand, SessionError, SessionEvent, SessionEvents, SessionHandle, SessionTree, TakenQueue,
    WhenBusy,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::disk::{Fault, TrialDisk};
use super::witness::{Shown, Witness};
use crate::support::agent_bench::TestTool;
use crate::support::session_bench::{Session, SessionBench};

/// Far longer than anything takes; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The files of a folder by name, without lock files.
pub(crate) type Files = BTreeMap<String, Arc<Vec<u8>>>;

/// The state that a kill would leave behind.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// The step that was about to happen.
    pub(crate) step: u64,
    pub(crate) what: String,
    pub(crate) files: Files,
    pub(crate) shown: Arc<Shown>,
}

/// A finished trial.
pub(crate) struct Trial {
    pub(crate) bench: SessionBench,
    pub(crate) disk: Arc<TrialDisk>,
    /// The last one is the end.
    pub(crate) moments: Vec<Moment>,
    /// What it did.
    pub(crate) deeds: Vec<String>,
    /// The error that quitting reported.
    pub(crate) quit: Option<String>,
    /// Why the trial stopped early.
    pub(crate) stopped: Option<String>,
}

/// What a trial does, and how it is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) n_deeds: usize,
    pub(crate) fault: Option<Fault>,
    /// Whether each step is a moment, or only the end.
    pub(crate) every_step: bool,
}

/// What a child does for its parent: it works in the parent's folder, and passes on what is
/// shown before each step.
pub(crate) struct ChildOf {
    pub(crate) root: PathBuf,
    pub(crate) tell: Box<dyn FnMut(&Shown) + Send>,
}

impl Trial {
    pub(crate) fn end(&self) -> &Moment {
        self.moments.last().unwrap()
    }
}

/// A bench for sessions of trials, with answers that depend on the seed.
pub(crate) fn bench(seed: u64) -> (SessionBench, Arc<RandomProvider>) {
    let provider = Arc::new(RandomProvider::new(seed));
    let settings = json!({
        "compaction": { "enabled": false, "keepRecentTokens": 5, "reserveTokens": 100 },
        "retry": { "maxRetries": 0 },
    });
    let bench = SessionBench::new([]).settings(settings).tools(tools()).answered_by(provider.clone());
    (bench, provider)
}

fn tools() -> [TestTool; 2] {
    let burst = TestTool::new("burst", |_, _| async { panic!("the tool panics on purpose") });
    [TestTool::say(), burst]
}

/// Runs a trial to its end.
pub(crate) async fn run(plan: Plan) -> Trial {
    run_as(plan, None).await
}

/// Runs a trial, perhaps as the child of another process.
pub(crate) async fn run_as(plan: Plan, parent: Option<ChildOf>) -> Trial {
    let (bench, provider) = bench(plan.seed);
    let (bench, tell) = match parent {
        Some(ChildOf { root, tell }) => (bench.at(root), Some(tell)),
        None => (bench, None),
    };
    let disk = TrialDisk::new(plan.fault);
    let bench = bench.disk(Arc::<TrialDisk>::clone(&disk) as Arc<dyn Disk>);
    let witness = Arc::new(Mutex::new(Witness::default()));
    let moments = Arc::new(Mutex::new(Vec::new()));
    let folder = bench.path("sessions");
    if plan.every_step {
        let (witness, moments, folder) = (Arc::clone(&witness), Arc::clone(&moments), folder.clone());
        disk.observe(move |what| {
            let shown = Arc::new(lock(&witness).look().clone());
            let mut moments = lock(&moments);
            let (step, files) = (moments.len() as u64, files(&folder));
            moments.push(Moment { step, what: what.to_owned(), files, shown });
        });
    }
    if let Some(mut tell) = tell {
        let witness = Arc::clone(&witness);
        disk.observe(move |_| tell(lock(&witness).look()));
    }
    let mut driver = Driver::new(plan.seed, &bench, Arc::clone(&provider), Arc::clone(&witness));
    let result = driver.run(plan.n_deeds).await;
    let (stopped, quit, deeds) = (result.err(), driver.quit.take(), std::mem::take(&mut driver.deeds));
    disk.stop_observing();
    drop(driver);
    lock(&provider.gate).take();
    let shown = Arc::new(lock(&witness).look().clone());
    let mut moments = std::mem::take(&mut *lock(&moments));
    let step = moments.len() as u64;
    moments.push(Moment { step, what: "the end".to_owned(), files: files(&folder), shown });
    Trial { bench, disk, moments, deeds, quit, stopped }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files in `folder` as they are now.
pub(crate) fn files(folder: &Path) -> Files {
    let Ok(entries) = fs::read_dir(folder) else { return Files::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| !name.ends_with(".lock"));
    names.filter_map(|name| Some((name.clone(), Arc::new(fs::read(folder.join(&name)).ok()?)))).collect()
}

/// Answers with what the dice say; after results of tools, with text.
#[derive(Debug)]
pub(crate) struct RandomProvider {
    dice: Mutex<(Dice, usize)>,
    /// Stops the next answer in its middle.
    gate: Mutex<Option<TestBarrier>>,
}

impl RandomProvider {
    fn new(seed: u64) -> Self {
        Self { dice: Mutex::new((Dice::new(seed ^ 1), 0)), gate: Mutex::default() }
    }
}

impl Provider for RandomProvider {
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let mut state = lock(&self.dice);
        state.1 += 1;
        let n = state.1;
        let dice = &mut state.0;
        let is_after_tool =
            matches!(request.messages.last().map(|last| &**last), Some(Message::ToolResult(_)));
        let has_tools = request.messages.iter().any(|message| matches!(&**message, Message::System(_)));
        let texts = [format!("Answer {n}, "), "with \"quotes\", ü and \u{1f600}\n".repeat(dice.below(4) + 1)];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let answer = if let Some(gate) = lock(&self.gate).take() {
            FakeAnswer::new().text_pieces(&texts, Some(&gate))
        } else if !is_after_tool && has_tools && dice.chance(35) {
            let calls = 0..dice.below(3) + 1;
            calls.fold(FakeAnswer::new().thinking("Which tools?").text(texts[0]), |answer, at| {
                let text = format!("Result {n}.{at}");
                let tool = if dice.chance(8) { "burst" } else { "say" };
                answer.tool_call(&format!("call-{n}-{at}"), tool, json!({ "text": text }))
            })
        } else if dice.chance(3) {
            FakeAnswer::new().text(texts[0]).panics("the provider panics on purpose")
        } else if dice.chance(5) {
            FakeAnswer::new().text(texts[0]).error("400 the request is wrong")
        } else {
            FakeAnswer::new().text_pieces(&texts, None)
        };
        FakeProvider::new([answer]).stream(request, cancel)
    }
}

/// The user of a trial: an editor with a draft, and a will of its own.
struct Driver<'a> {
    bench: &'a SessionBench,
    provider: Arc<RandomProvider>,
    witness: Arc<Mutex<Witness>>,
    dice: Dice,
    session: Option<(Session, SessionEvents)>,
    n_words: usize,
    draft: String,
    tickets: Vec<u64>,
    /// Files of all sessions so far.
    paths: Vec<PathBuf>,
    deeds: Vec<String>,
    quit: Option<String>,
}

type Done = Result<(), String>;

impl<'a> Driver<'a> {
    fn new(
        seed: u64,
        bench: &'a SessionBench,
        provider: Arc<RandomProvider>,
        witness: Arc<Mutex<Witness>>,
    ) -> Self {
        Self {
            bench,
            provider,
            witness,
            dice: Dice::new(seed),
            session: None,
            n_words: 0,
            draft: String::new(),
            tickets: Vec::new(),
            paths: Vec::new(),
            deeds: Vec::new(),
            quit: None,
        }
    }

    async fn run(&mut self, n_deeds: usize) -> Done {
        self.open(OpenSession::New).await?;
        for _ in 0..n_deeds {
            self.deed().await?;
        }
        self.shut_down().await
    }

    async fn open(&mut self, open: OpenSession) -> Done {
        // A panic while a session is opened reaches whoever opens it.
        let opened = AssertUnwindSafe(self.bench.open(open)).catch_unwind().await;
        let opened = opened.map_err(|_| "opening the session panics".to_owned())?;
        let session = opened.map_err(|error| error.to_string())?;
        lock(&self.witness).follow(session.handle.subscribe(Deltas::Unwanted));
        let events = session.handle.subscribe(Deltas::Unwanted);
        self.session = Some((session, events));
        self.take_left_over().await
    }

    async fn shut_down(&mut self) -> Done {
        let Some((session, _)) = &self.session else { return Ok(()) };
        if let Err(error) = session.handle.request(SessionCommand::Shutdown).await {
            self.quit = Some(error.to_string());
        }
        // Its lock is released at the end of its events.
        while self.event().await.is_ok() {}
        Ok(())
    }

    /// One of the things a user does.
    async fn deed(&mut self) -> Done {
        let deeds: [(&str, usize); 18] = [
            ("ask", 22),
            ("ask and interfere", 22),
            ("type", 6),
            ("run a command", 8),
            ("stop a command", 4),
            ("compact", 5),
            ("navigate", 7),
            ("label", 3),
            ("name", 3),
            ("pin", 2),
            ("level", 3),
            ("model", 2),
            ("setting", 2),
            ("fork", 3),
            ("clone", 2),
            ("import", 3),
            ("new", 3),
            ("restart", 3),
        ];
        let total: usize = deeds.iter().map(|(_, weight)| weight).sum();
        let mut at = self.dice.below(total);
        let (name, _) = deeds
            .into_iter()
            .find(|(_, weight)| {
                let is_it = at < *weight;
                at = at.saturating_sub(*weight);
                is_it
            })
            .unwrap();
        self.deeds.push(name.to_owned());
        match name {
            "ask" => self.ask().await,
            "ask and interfere" => self.ask_and_interfere().await,
            "type" => self.write().await,
            "run a command" => self.command(false).await,
            "stop a command" => self.command(true).await,
            "compact" => {
                self.request(SessionCommand::Compact { focus: None, with_review: false }).await?;
                self.settled().await
            }
            "navigate" => self.navigate().await,
            "fork" => self.fork().await,
            "import" => self.import().await,
            "restart" => {
                self.shut_down().await?;
                let path = self.path();
                let open = path.filter(|path| path.exists()).map_or(OpenSession::New, OpenSession::File);
                self.open(open).await
            }
            _ => {
                let command = self.simple(name).await?;
                match command {
                    Some(command) => self.request(command).await.map(drop),
                    None => Ok(()),
                }
            }
        }
    }

    /// A command that needs no more than to be sent.
    async fn simple(&mut self, name: &str) -> Result<Option<SessionCommand>, String> {
        let command = match name {
            "label" => {
                let Some(target) = self.any_entry(|_| true).await? else { return Ok(None) };
                SessionCommand::SetLabel { target, label: Some(format!("label {}", self.n_words)) }
            }
            "name" => SessionCommand::SetName { name: format!("name {}", self.n_words) },
            "pin" => SessionCommand::Pin { target: None, pinned: true },
            "level" => SessionCommand::CycleThinking,
            "model" => {
                let reference = format!("acme/m-{}", self.dice.below(2) + 1);
                SessionCommand::SetModel { reference, scope: Scope::Session }
            }
            "setting" => SessionCommand::ChangeSetting {
                key: "steeringMode".to_owned(),
                value: Some(json!(if self.dice.chance(50) { "all" } else { "one-at-a-time" })),
            },
            "clone" => SessionCommand::Clone { if_busy: IfBusy::Cancel },
            _ => SessionCommand::New { if_busy: IfBusy::Cancel },
        };
        Ok(Some(command))
    }

    // The editor.

    fn word(&mut self) -> String {
        self.n_words += 1;
        format!("w{:05}", self.n_words)
    }

    async fn write(&mut self) -> Done {
        let word = self.word();
        if !self.draft.is_empty() {
            self.draft.push(' ');
        }
        self.draft.push_str(&word);
        self.save_draft().await
    }

    async fn save_draft(&mut self) -> Done {
        let draft = PromptDraft::from(self.draft.as_str());
        let saved = self.request(SessionCommand::SaveDraft { draft, tickets: self.tickets.clone() }).await?;
        if saved.is_some() {
            lock(&self.witness).promise(&self.draft);
        }
        Ok(())
    }

    /// Takes messages into the editor.
    async fn take(&mut self, taken: TakenQueue) -> Done {
        self.tickets.push(taken.ticket);
        for prompt in taken.into_prompts() {
            self.draft = format!("{} {}", self.draft, prompt.text).trim().to_owned();
        }
        self.save_draft().await
    }

    async fn take_left_over(&mut self) -> Done {
        // Another process has other tickets.
        self.tickets.clear();
        self.draft.clear();
        match self.request(SessionCommand::TakeLeftOver).await? {
            Some(Reply::Queue(taken)) if taken != TakenQueue::default() => self.take(taken).await,
            _ => Ok(()),
        }
    }

    /// Sends what is in the editor.
    async fn send(&mut self, when_busy: WhenBusy) -> Result<bool, String> {
        self.write().await?;
        let prompt = PromptDraft::from(self.draft.as_str());
        let command = SessionCommand::Prompt { prompt, when_busy };
        let is_sent = self.request(command).await?.is_some();
        if is_sent {
            self.draft.clear();
            self.save_draft().await?;
        }
        Ok(is_sent)
    }

    // Deeds.

    async fn ask(&mut self) -> Done {
        if self.send(WhenBusy::Steer).await? { self.settled().await } else { Ok(()) }
    }

    async fn ask_and_interfere(&mut self) -> Done {
        let gate = TestBarrier::new();
        *lock(&self.provider.gate) = Some(gate.clone());
        if !self.send(WhenBusy::Steer).await? {
            lock(&self.provider.gate).take();
            return Ok(());
        }
        // A request that fails before it is sent does not arrive there.
        let is_reached = tokio::select! {
            () = gate.reached() => true,
            settled = self.settled() => {
                settled?;
                false
            }
        };
        if is_reached {
            for _ in 0..self.dice.below(5) {
                self.interfere().await?;
            }
        }
        lock(&self.provider.gate).take();
        gate.open();
        self.settled().await
    }

    async fn interfere(&mut self) -> Done {
        match self.dice.below(8) {
            0 | 1 => self.send(WhenBusy::Steer).await.map(drop),
            2 | 3 => self.send(WhenBusy::FollowUp).await.map(drop),
            4 => self.write().await,
            5 => self.command(false).await,
            6 => match self.request(SessionCommand::TakeQueue).await? {
                Some(Reply::Queue(taken)) => self.take(taken).await,
                _ => Ok(()),
            },
            _ => {
                let command =
                    if self.dice.chance(50) { SessionCommand::Interrupt } else { SessionCommand::Abort };
                self.request(command).await.map(drop)
            }
        }
    }

    /// Runs a `!` command, and stops it if it would take long.
    async fn command(&mut self, is_long: bool) -> Done {
        let word = self.word();
        let command =
            if is_long { format!("echo {word}; exec sleep 100") } else { format!("echo ran {word}") };
        let run = SessionCommand::RunBash {
            command,
            exclude_from_context: self.dice.chance(30),
            others: OtherCommands::Refuse,
        };
        if self.request(run).await?.is_none() {
            return Ok(());
        }
        if is_long {
            self.until(|event| {
                matches!(event, SessionEvent::BashOutput { .. } | SessionEvent::BashEnded { .. })
            })
            .await?;
            self.request(SessionCommand::Abort).await?;
        }
        self.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await
    }

    async fn navigate(&mut self) -> Done {
        let Some(target) = self.any_entry(|_| true).await? else { return Ok(()) };
        let summary =
            if self.dice.chance(40) { LeftBranch::Summarize { focus: None } } else { LeftBranch::Leave };
        let command = SessionCommand::Navigate { target, summary, if_busy: IfBusy::Cancel };
        if self.request(command).await?.is_none() {
            return Ok(());
        }
        loop {
            match self.event().await? {
                SessionEvent::Navigated(navigated) => {
                    if let Some(prompt) = &navigated.prompt {
                        let prompt = prompt.clone();
                        let taken = TakenQueue { steering: vec![prompt], ..TakenQueue::default() };
                        return self.take(taken).await;
                    }
                    return Ok(());
                }
                SessionEvent::BranchSummaryEnded { error, aborted, .. } if error.is_some() || aborted => {
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    async fn fork(&mut self) -> Done {
        let Some(target) = self.any_entry(|kind| kind == EntryKind::User).await? else { return Ok(()) };
        match self.request(SessionCommand::Fork { target, if_busy: IfBusy::Cancel }).await? {
            Some(Reply::Forked(prompt)) => {
                self.take(TakenQueue { steering: vec![prompt], ..TakenQueue::default() }).await
            }
            _ => Ok(()),
        }
    }

    /// Imports a session in the first format, which is migrated when it is opened.
    async fn import(&mut self) -> Done {
        let word = self.word();
        let path = self.bench.path("first format.jsonl");
        let time = "2026-11-21T09:00:00.000Z";
        let said = json!({ "role": "user", "content": word, "timestamp": 1 });
        let lines = [
            json!({ "type": "session", "id": word, "timestamp": time, "cwd": self.bench.path("work") }),
            json!({ "type": "message", "timestamp": time, "message": said }),
        ];
        fs::write(&path, lines.map(|line| line.to_string() + "\n").concat()).unwrap();
        if self.request(SessionCommand::Import { path, if_busy: IfBusy::Cancel }).await?.is_some() {
            lock(&self.witness).promise(&word);
        }
        Ok(())
    }

    async fn any_entry(&mut self, fits: impl Fn(EntryKind) -> bool) -> Result<Option<EntryId>, String> {
        let Some(Reply::Tree(tree)) = self.request(SessionCommand::ReadTree).await? else { return Ok(None) };
        let entries = ids(&tree, fits);
        if entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(entries[self.dice.below(entries.len())].clone()))
    }

    // The session.

    fn handle(&self) -> &SessionHandle {
        &self.session.as_ref().unwrap().0.handle
    }

    fn path(&self) -> Option<PathBuf> {
        self.handle().state().path.clone()
    }

    /// The reply; `None` if the session refuses.
    async fn request(&mut self, command: SessionCommand) -> Result<Option<Reply>, String> {
        let name = format!("{command:?}").chars().take(80).collect::<String>();
        let reply = tokio::time::timeout(PATIENCE, self.handle().request(command)).await;
        let path = self.path();
        self.paths.extend(path.filter(|path| !self.paths.contains(path)));
        match reply {
            Err(_) => Err(format!("no reply to {name}")),
            Ok(Err(SessionError::Ended)) => Err("the session has ended".to_owned()),
            Ok(Err(SessionError::Refused(_))) => Ok(None),
            Ok(Ok(reply)) => Ok(Some(reply)),
        }
    }

    async fn event(&mut self) -> Result<SessionEvent, String> {
        let events = &mut self.session.as_mut().unwrap().1;
        let event = tokio::time::timeout(PATIENCE, events.recv()).await;
        let event = event.map_err(|_| "nothing happens".to_owned())?;
        let event = event.ok_or_else(|| "the session has ended".to_owned())?.event;
        if let SessionEvent::QueueReturned(taken) = &event {
            let taken = (**taken).clone();
            Box::pin(self.take(taken)).await?;
        }
        Ok(event)
    }

    async fn until(&mut self, fits: impl Fn(&SessionEvent) -> bool) -> Done {
        while !fits(&self.event().await?) {}
        Ok(())
    }

    /// Waits until the session is idle.
    async fn settled(&mut self) -> Done {
        while self.handle().state().is_busy() {
            self.until(|event| {
                matches!(event, SessionEvent::Settled { .. } | SessionEvent::BashEnded { .. })
            })
            .await?;
        }
        Ok(())
    }
}

fn ids(tree: &SessionTree, fits: impl Fn(EntryKind) -> bool) -> Vec<EntryId> {
    tree.entries().filter(|entry| fits(entry.kind)).map(|entry| entry.id.clone()).collect()
}
