//! Opens sessions inside other programs.
//!
//! `cli::start` does the same for the command line, with its flags and front ends. A
//! builder reads only what it was given: one folder, and the environment if that was
//! passed. The invariant: without [`SessionBuilder::env`] nothing depends on the process.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::{Tool, ToolError, ToolRegistry};
use crate::ai::{DemoPace, DemoProvider, HttpProvider, LiveCatalog, MatchError, Model, Provider, Router};
use crate::config::{
    Authorised, Dirs, Env, LiveSettings, Settings, extra_roots, load_catalog, user_credentials,
};
use crate::tools::{self, BashConfig, UnknownTool};
use crate::util::clock::Clock;
use crate::util::disk::SystemDisk;

use super::agent_session::start;
use super::client::Session;
use super::from_settings::{bash_config, default_tools, http_options, tools_config, transport};
use super::open::OpenSession;
use super::outbox::Deltas;
use super::question::{AllowAll, ToolGate};
use super::services::{ModelOptions, PromptOptions, ResourceOptions, Services, TrustOptions};
use super::store::OpenError;

/// Puts together what a session needs, and opens it.
///
/// ```
/// use pi::session::SessionBuilder;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (project, agent) = (folder.path(), folder.path().join("agent"));
/// let mut session = SessionBuilder::new(project, agent).model("demo/pi").start().await?;
/// let answer = session.prompt("hello").await?;
/// println!("{}", answer.text());
/// session.close().await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct SessionBuilder {
    cwd: PathBuf,
    agent_dir: PathBuf,
    env: Env,
    model: Option<String>,
    hosted: Vec<(Model, Arc<dyn Provider>)>,
    tools: Vec<Arc<dyn Tool>>,
    builtin_tools: Option<Vec<String>>,
    prompt: PromptOptions,
    trust: Option<bool>,
    answers_questions: bool,
    warms_caches: bool,
    gate: Arc<dyn ToolGate>,
    sessions: Option<PathBuf>,
}

/// Why a session was not opened; the text is for the user.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No model is meant by this name, or several are.
    #[error(transparent)]
    Model(#[from] MatchError),
    /// A name that no built-in tool has.
    #[error("there is no built-in tool {name}; choose from {}", tools::tool_names())]
    NoSuchTool {
        /// The name.
        name: String,
    },
    /// Every provider would reject the declaration of a tool.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The session file or its directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl SessionBuilder {
    /// A session that works in the directory `cwd`. `agent_dir` is the folder with settings,
    /// keys, `models.json` and skills, which need not exist:
    /// `Dirs::new(&Env::process()).agent` for that of the user, an empty one for none.
    pub fn new(cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            agent_dir: agent_dir.into(),
            env: Env::default(),
            model: None,
            hosted: Vec::new(),
            tools: Vec::new(),
            builtin_tools: None,
            prompt: PromptOptions::default(),
            trust: None,
            answers_questions: false,
            gate: Arc::new(AllowAll),
            warms_caches: false,
            sessions: None,
        }
    }

    /// Lets sessions send requests that keep the provider's cache, as the setting
    /// `cacheWarming` says. Without it, they send none that nobody asked for.
    pub fn warms_caches(mut self) -> Self {
        self.warms_caches = true;
        self
    }

    /// Reads keys, the home directory and the search path of commands from `env`:
    /// `Env::process()` for those of this process. Without it, keys come from `agent_dir`.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Selects the model: an id, `provider/id` or part of one, with an optional `:level`
    /// of thinking. Without it, the settings and the keys decide, as on the command line.
    pub fn model(mut self, reference: impl Into<String>) -> Self {
        self.model = Some(reference.into());
        self
    }

    /// Adds a model that `provider` answers, and selects it unless [`Self::model`] names
    /// another. Its `provider` field must be an id of its own; models with the same id share
    /// the provider that was added first. It needs no key.
    pub fn provider(mut self, model: Model, provider: Arc<dyn Provider>) -> Self {
        self.hosted.push((model, provider));
        self
    }

    /// Adds a tool, in place of the built-in one with its name if there is one. Sessions of
    /// one [`Services`] share it.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Offers exactly these built-in tools, in place of those of the settings.
    pub fn builtin_tools(mut self, names: &[&str]) -> Self {
        self.builtin_tools = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Changes the system prompt, as the flags of the command line do.
    pub fn prompt_options(mut self, prompt: PromptOptions) -> Self {
        self.prompt = prompt;
        self
    }

    /// Decides whether skills, settings and prompts of the project are used. Without it,
    /// only a decision that the user made earlier counts.
    pub fn trust_project(mut self, trusted: bool) -> Self {
        self.trust = Some(trusted);
        self
    }

    /// Declares that the program answers
    /// [`SessionEvent::Question`](super::SessionEvent::Question)s. Without it, calls that need
    /// permission are blocked, and undecided projects are not trusted.
    pub fn answers_questions(mut self) -> Self {
        self.answers_questions = true;
        self
    }

    /// Asks `gate` before every tool call. Without it, every call runs.
    pub fn gate(mut self, gate: impl ToolGate + 'static) -> Self {
        self.gate = Arc::new(gate);
        self
    }

    /// Keeps the session in a file of this folder, which is created when needed. Without
    /// it, the session is in memory only.
    pub fn save_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sessions = Some(folder.into());
        self
    }

    /// Opens a new session. Needs a tokio runtime with time and I/O; the session runs in
    /// tasks of that runtime.
    ///
    /// # Errors
    /// If model, tools or directory cannot be used. Problems in the files of `agent_dir`
    /// are no errors: [`Session::problems`] has them.
    pub async fn start(self) -> Result<Session, BuildError> {
        self.open(OpenSession::New).await
    }

    /// As [`Self::start`], for a session that may exist already.
    ///
    /// # Errors
    /// As for [`Self::start`], and if the session cannot be read.
    pub async fn open(self, open: OpenSession) -> Result<Session, BuildError> {
        let cwd = self.cwd.clone();
        let (services, problems) = self.services()?;
        let session = Session::open(&Arc::new(services), cwd, open).await?;
        Ok(session.with_problems(problems))
    }

    /// What sessions need, for several of them ([`Session::open`]) or for changes that this
    /// builder does not offer; and problems in the files of `agent_dir`, one line each.
    /// Blocks: reads these files.
    ///
    /// # Errors
    /// If model or tools cannot be used.
    pub fn services(self) -> Result<(Services, Vec<String>), BuildError> {
        let home = self.env.home();
        let dirs = Dirs { home, sessions: self.agent_dir.join("sessions"), agent: self.agent_dir };
        let (live, mut problems) = LiveSettings::load(dirs.settings_file(), []);
        let effective = live.get();
        let settings = &effective.values;
        let (roots, wrong) = extra_roots(&self.env);
        problems.extend(wrong);
        let (transport, wrong) = transport(roots, settings);
        problems.extend(wrong);
        let clock = Clock::system();
        let (credentials, wrong) = user_credentials(&self.env, &dirs, settings, &transport, &clock);
        problems.extend(wrong);
        let (mut catalog, wrong) = load_catalog(&dirs, &self.env);
        problems.extend(wrong);
        catalog.add_hosted(self.hosted.iter().map(|(model, _)| model.clone()));
        let first = self.hosted.first().map(|(model, _)| model.reference());
        let model = match self.model.or(first) {
            Some(reference) => {
                let matched = catalog.find(&reference, None, &credentials.usable_in(&catalog))?;
                ModelOptions { model: Some(matched.model), thinking: matched.thinking }
            }
            None => ModelOptions::default(),
        };
        let bash = bash_config(settings, &self.env, &dirs);
        let names = match &self.builtin_tools {
            Some(names) => {
                tools::selected(names).map_err(|UnknownTool { name }| BuildError::NoSuchTool { name })?
            }
            None => {
                let (names, wrong) = default_tools(&effective, &dirs, &self.cwd);
                problems.extend(wrong);
                names
            }
        };
        let tools = tool_registry(&dirs, settings, &bash, &names, self.tools)?;
        let http = HttpProvider::new(transport.clone(), clock.clone(), http_options(settings));
        let router = Router::new(http, Some(Arc::new(DemoProvider::new(DemoPace::Instant))));
        let router = self
            .hosted
            .into_iter()
            .fold(router, |router, (model, provider)| router.with_provider(model.provider, provider));
        let catalog = Arc::new(LiveCatalog::new(catalog));
        let provider = Authorised::new(Arc::new(router), credentials.clone(), Arc::clone(&catalog));
        let services = Services {
            provider: Arc::new(provider),
            catalog,
            credentials,
            tools,
            bash,
            settings: live,
            dirs,
            clock,
            model,
            prompt: self.prompt,
            skills: ResourceOptions::default(),
            templates: ResourceOptions::default(),
            trust: TrustOptions { flag: self.trust, can_ask: self.answers_questions },
            gate: self.gate,
            disk: Arc::new(SystemDisk),
            sessions: self.sessions,
            long_cache: false,
            warms_caches: self.warms_caches,
            quotas: transport.quotas().clone(),
        };
        Ok((services, problems))
    }
}

impl Session {
    /// Opens a session in the directory `cwd`, with its deltas. Sessions that share
    /// `services` share models, keys, settings and custom tools, and nothing else.
    ///
    /// # Errors
    /// If the session cannot be read, or its directory does not exist.
    pub async fn open(
        services: &Arc<Services>,
        cwd: impl Into<PathBuf>,
        open: OpenSession,
    ) -> Result<Self, OpenError> {
        let (handle, events) = start(Arc::clone(services), cwd.into(), open, Deltas::Wanted).await?;
        Ok(Self::new(handle, events))
    }
}

/// The built-in tools `names`, for each session its own, and the tools of the program, for
/// all the same.
fn tool_registry(
    dirs: &Dirs,
    settings: &Settings,
    bash: &BashConfig,
    names: &[String],
    own: Vec<Arc<dyn Tool>>,
) -> Result<ToolRegistry, BuildError> {
    for tool in &own {
        tool.spec().check()?;
    }
    let builtin = tools::registry(&tools_config(settings, dirs, bash), names);
    Ok(ToolRegistry::per_session(move || {
        let mut tools = builtin.for_session();
        for tool in &own {
            tools.add(Arc::clone(tool));
        }
        tools.iter().cloned().collect()
    }))
}
