//! The composition root: combines settings, models, keys, tools and session into a
//! running mode.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::runtime::{Handle, Runtime};

use crate::ai::{
    Catalog, DEMO_PROVIDER, DemoPace, DemoProvider, HttpProvider, LiveCatalog, Model, Router, ThinkingLevel,
    Transport,
};
use crate::config::{
    Authorised, Credentials, Dirs, EffectiveSettings, Env, LiveSettings, ProjectSettings, SettingChange,
    TrustFile, TrustPolicy, TrustedContents,
};
use crate::modes::{self, AcpHost, AcpStart, Prompt, RpcStart, Terminals, UsageError};
use crate::session::{
    self, AllowAll, Configured, Deltas, ModelOptions, OpenSession, ProjectFacts, PromptOptions,
    ResourceOptions, Services, SessionCommand, SessionEvents, SessionHandle, SystemDisk, TrustOptions,
    bash_config, http_options, image_limits, tools_config,
};
use crate::tools::{self, BashConfig, Editor, FileLocks};
use crate::util::clock::Clock;
use crate::util::foreground;
use crate::util::os::{self, has_input};
use crate::util::paths;
use crate::util::start_times::StartTimes;
use crate::util::worker::{self, Late, Progress};

use super::args::Args;
use super::docs::CHAPTERS;
use super::initial::{self, InitialPrompts};
use super::piped::Piped;
use super::sessions::{self, SessionFolders};
use super::words;

/// How long reading the configuration may take: a mount that does not respond would block forever.
/// A disk that has to wake up needs less.
const FILE_LIMIT: Duration = Duration::from_secs(5);

/// The configuration read before anything starts.
pub(super) struct Setup {
    pub(super) env: Env,
    pub(super) dirs: Dirs,
    pub(super) cwd: PathBuf,
    live_settings: LiveSettings,
    /// As pi starts in this directory.
    pub(super) settings: Arc<EffectiveSettings>,
    pub(super) catalog: Catalog,
    pub(super) credentials: Credentials,
    pub(super) transport: Transport,
    pub(super) clock: Clock,
    /// Problems in the user's files, one line each. None is fatal.
    pub(super) problems: Vec<String>,
    times: StartTimes,
}

impl Setup {
    /// For a sub-command: reports what is wrong with the user's files, some of which it uses.
    pub(super) fn reported(args: &Args, env: Env) -> anyhow::Result<Self> {
        let setup = Self::new(args, env)?;
        modes::report_notes(&setup.problems);
        Ok(setup)
    }

    /// Reads the configuration. If that takes longer than [`FILE_LIMIT`], the program ends.
    pub(super) fn new(args: &Args, env: Env) -> anyhow::Result<Self> {
        let dirs = Dirs::new(&env);
        if let Some(problem) = dirs.home_problem(&env) {
            anyhow::bail!(problem);
        }
        let home = dirs.home;
        let on_late = move |late: &Late| modes::give_up(late, home.as_deref());
        worker::watched(FILE_LIMIT, on_late, |progress| Self::read(args, env, progress))
    }

    fn read(args: &Args, env: Env, progress: &Progress) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let cwd =
            std::env::current_dir().context("the current directory does not exist; change to another one")?;
        let dirs = Dirs::new(&env);
        progress.reads(&dirs.settings_file());
        let (live_settings, mut problems) = LiveSettings::load(dirs.settings_file(), flags(args)?);
        progress.reads(&cwd.join(".pi"));
        let settings = starting_settings(&live_settings, args, &dirs, &cwd);
        let Configured { catalog, transport, credentials, problems: wrong } =
            Configured::read(&env, &dirs, &settings.values, &clock, |path| progress.reads(path));
        problems.extend(wrong);
        let home = dirs.home.as_deref();
        problems = problems.iter().map(|problem| paths::with_tilde(problem, home)).collect();
        let mut times = StartTimes::new(env.get("PI_TIMING").is_some_and(|value| value == "1"));
        times.mark("settings, models and keys", clock.monotonic());
        Ok(Self {
            env,
            dirs,
            cwd,
            live_settings,
            settings,
            catalog,
            credentials,
            transport,
            clock,
            problems,
            times,
        })
    }

    /// The settings in this directory.
    pub(super) fn settings(&self) -> &EffectiveSettings {
        &self.settings
    }

    /// Whether the settings of this directory count.
    pub(super) fn trusts_project(&self) -> bool {
        let file = TrustFile::load(self.dirs.trust_file());
        let policy = TrustPolicy { flag: None, default: self.settings.values.project_trust, can_ask: false };
        policy.decide(file.nearest(&self.cwd)).is_trusted()
    }

    /// The model and thinking level that the command line asks for.
    fn model_options(&mut self, args: &Args) -> anyhow::Result<ModelOptions> {
        self.check_scope();
        let mut options = ModelOptions { model: None, thinking: args.thinking };
        if let Some(provider) = &args.provider
            && self.catalog.provider(provider).is_none()
        {
            let known: Vec<&str> =
                self.catalog.providers().iter().map(|provider| provider.id.as_str()).collect();
            anyhow::bail!("unknown provider \"{provider}\"; choose one of {}", known.join(", "));
        }
        let matched = match (&args.model, &args.provider) {
            (Some(reference), provider) => Some(self.find(reference, provider.as_deref())?),
            (None, Some(provider)) => {
                let default = self.catalog.provider(provider).and_then(|info| info.default_model.clone());
                let first = || self.catalog.models_of(provider).first();
                let id = default.or_else(|| first().map(|model| model.id.clone()));
                let id =
                    id.with_context(|| format!("pi knows no model of {provider}; choose one with --model"))?;
                Some(self.find(&id, Some(provider))?)
            }
            (None, None) => None,
        };
        if let Some((model, thinking)) = matched {
            options.thinking = options.thinking.or(thinking);
            options.model = Some(model);
        }
        if let Some(key) = &args.api_key {
            let model = options.model.as_ref();
            let model = model.ok_or_else(|| UsageError::new("--api-key needs --provider or --model"))?;
            anyhow::ensure!(
                !key.trim().is_empty(),
                UsageError::new("--api-key is empty; leave it out to use the saved key or the environment")
            );
            self.credentials.set_command_line_key(&model.provider, key);
        }
        if let (Some(level), Some(model)) = (options.thinking, &options.model)
            && !model.supports(level)
        {
            let clamped = model.clamp_thinking(level);
            self.problems
                .push(format!("{} does not support thinking level {level}; using {clamped}", model.id));
        }
        Ok(options)
    }

    fn find(
        &mut self,
        reference: &str,
        provider: Option<&str>,
    ) -> anyhow::Result<(Arc<Model>, Option<ThinkingLevel>)> {
        let usable = self.credentials.usable_in(&self.catalog);
        let matched = self.catalog.find(reference, provider, &usable)?;
        if matched.assumed {
            self.problems.push(session::assumed(&matched.model));
            if let Some((known, suffix)) = matched.model.id.rsplit_once(':')
                && self.catalog.get(&matched.model.provider, known).is_some()
            {
                let levels = ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
                self.problems.push(format!(
                    "\"{suffix}\" of {} is no thinking level and is sent as part of the id; the levels are {levels}",
                    matched.model.id
                ));
            }
        }
        Ok((matched.model, matched.thinking))
    }

    /// Notes what is wrong with the models to cycle through.
    fn check_scope(&mut self) {
        let patterns = &self.settings.values.enabled_models;
        let (_, unmatched) = self.catalog.scope(patterns, &self.credentials.usable_in(&self.catalog));
        let origin = self.settings.origin("enabledModels");
        self.problems.extend(unmatched.iter().map(|pattern| session::unmatched(pattern, origin)));
    }

    /// The tools of a session in this directory. Notes what is wrong with the setting.
    pub(super) fn tool_names(&mut self, args: &Args) -> Vec<String> {
        if args.no_tools {
            return Vec::new();
        }
        let (names, wrong) = session::default_tools(&self.settings, &self.dirs, &self.cwd);
        self.problems.extend(wrong);
        names
    }

    /// Also returns the problems in the user's files.
    fn into_services(
        mut self,
        args: &Args,
        sessions: Option<PathBuf>,
        front: Front,
    ) -> anyhow::Result<(Services, Vec<String>)> {
        // A model that cannot be found may be in a file that cannot be read.
        let model = self.model_options(args).inspect_err(|_| modes::report_notes(&self.problems));
        let model = model?;
        let chose_demo = model.model.as_ref().is_some_and(|model| model.provider == DEMO_PROVIDER);
        if front != Front::Interactive && !chose_demo {
            self.credentials.refuse_demo();
        }
        let names = self.tool_names(args);
        let settings = Arc::clone(&self.settings);
        let settings = &settings.values;
        let env = vec![("AI_AGENT".into(), "pi".into()), ("PI_CODING_AGENT".into(), "true".into())];
        let bash = BashConfig { env, ..bash_config(settings, &self.env, &self.dirs) };
        let config = tools_config(settings, &self.dirs, &bash);
        let tools = tools::registry(&config, &names);
        let prompt = PromptOptions {
            custom: args
                .system_prompt
                .as_deref()
                .map(|text| text_or_file("--system-prompt", text))
                .transpose()?,
            addendum: addendum(args)?,
            no_context_files: args.no_context_files,
            docs_command: docs_command(),
        };
        self.problems.extend(prompts_like_paths(args));
        let skills = self.resource_options(&args.skill, args.no_skills);
        let templates = self.resource_options(&args.prompt_template, args.no_prompt_templates);
        let trust = TrustOptions { flag: trust_flag(args), can_ask: front != Front::Print };
        let clock = self.clock;
        let pace = if self.env.is_set("PI_DEMO_INSTANT") { DemoPace::Instant } else { DemoPace::Natural };
        let demo = Arc::new(DemoProvider::new(pace).with_pages(CHAPTERS));
        let quotas = self.transport.quotas().clone();
        let http = HttpProvider::new(self.transport, clock.clone(), http_options(settings));
        let http = if front == Front::Interactive { http.on_own_thread() } else { http };
        let provider = Router::new(http, Some(demo));
        let catalog = Arc::new(LiveCatalog::new(self.catalog));
        let credentials = self.credentials;
        let provider = Authorised::new(Arc::new(provider), credentials.clone(), Arc::clone(&catalog));
        let problems = self.problems;
        let services = Services {
            quotas,
            provider: Arc::new(provider),
            catalog,
            credentials,
            tools,
            bash,
            settings: self.live_settings,
            dirs: self.dirs,
            clock,
            model,
            prompt,
            skills,
            templates,
            trust,
            gate: Arc::new(AllowAll),
            disk: Arc::new(SystemDisk),
            sessions,
            warms_caches: front != Front::Print,
            long_cache: self.env.get("PI_CACHE_RETENTION").is_some_and(|wish| wish == "long"),
        };
        Ok((services, problems))
    }

    fn resource_options(&self, paths: &[PathBuf], only_paths: bool) -> ResourceOptions {
        let absolute = |path: &PathBuf| match path.to_str() {
            Some(text) => self.cwd.join(paths::expand_home(text, self.dirs.home.as_deref())),
            None => self.cwd.join(path),
        };
        ResourceOptions { paths: paths.iter().map(absolute).collect(), only_paths }
    }

    pub(super) fn folders(&self, args: &Args) -> SessionFolders {
        SessionFolders::new(args, &self.env, &self.settings.values, &self.dirs, &self.cwd)
    }
}

/// The value of the setting that --tools and --exclude-tools ask for.
fn tool_list(args: &Args) -> anyhow::Result<Option<Vec<String>>> {
    let trimmed = |names: &Option<Vec<String>>| -> Vec<String> {
        names.iter().flatten().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let (mut list, excluded) = (trimmed(&args.tools), trimmed(&args.exclude_tools));
    if list.iter().any(|name| name.starts_with(['+', '-'])) && !tools::only_edits(&list) {
        anyhow::bail!(UsageError::new(
            "--tools either selects tools (read,bash) or changes the selection (+grep,-bash); not both at once"
        ));
    }
    list.extend(excluded.iter().map(|name| format!("-{name}")));
    tools::selected(&list).map_err(UsageError::new)?;
    Ok((args.tools.is_some() || !excluded.is_empty()).then_some(list))
}

/// The settings that the command line overrides.
fn flags(args: &Args) -> anyhow::Result<Vec<SettingChange>> {
    let flags = [
        ("budget.turnUsd", args.max_turn_cost.map(Value::from)),
        ("budget.turns", args.max_turns.map(Value::from)),
        ("budget.sessionUsd", args.max_session_cost.map(Value::from)),
        ("budget.dayUsd", args.max_day_cost.map(Value::from)),
        ("theme", args.use_theme.clone().map(Value::from)),
        ("tuiMode", args.tui_mode.clone().map(Value::from)),
        ("screenReader", args.screen_reader.then_some(Value::Bool(true))),
        ("enabledModels", args.models.clone().map(Value::from)),
        ("defaultTools", tool_list(args)?.map(Value::from)),
    ];
    let flags = flags.into_iter().filter_map(|(key, value)| Some((key, value?)));
    Ok(flags
        .map(|(key, value)| SettingChange::set(key, value))
        .collect::<Result<_, _>>()
        .map_err(UsageError::new)?)
}

fn trust_flag(args: &Args) -> Option<bool> {
    args.approve.then_some(true).or(args.no_approve.then_some(false))
}

/// The settings pi starts with in `cwd`: those of the project count if it is trusted
/// already.
fn starting_settings(live: &LiveSettings, args: &Args, dirs: &Dirs, cwd: &Path) -> Arc<EffectiveSettings> {
    let user = live.get();
    let file = TrustFile::load(dirs.trust_file());
    let (flag, default) = (trust_flag(args), user.values.project_trust);
    let trust = TrustPolicy { flag, default, can_ask: false }.decide(file.nearest(cwd));
    if file.problem().is_some() && flag.is_none() || !trust.is_trusted() {
        return user;
    }
    let settings_file = cwd.join(".pi").join("settings.json");
    let records = TrustedContents::load(dirs.trusted_contents_file());
    if flag.is_none() && file.nearest(cwd) == Some(true) && !records.has(cwd, &settings_file) {
        // The session asks about it.
        return user;
    }
    // What is wrong in it is reported when the session is opened.
    let (project, _) = ProjectSettings::load(cwd);
    live.for_session(project).get()
}

/// The command line that prints the pages, by the path of this program: another `pi` may be
/// on the search path. `None` if the path would need quotes.
fn docs_command() -> Option<String> {
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    let is_plain = program.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    is_plain.then(|| format!("{program} docs"))
}

/// What `--append-system-prompt` adds to the prompt.
fn addendum(args: &Args) -> anyhow::Result<Option<String>> {
    let texts = args.append_system_prompt.iter().map(|text| text_or_file("--append-system-prompt", text));
    let texts = texts.collect::<anyhow::Result<Vec<String>>>()?;
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// Longer files are no system prompts.
const PROMPT_LIMIT_BYTES: u64 = 4 << 20;

/// The text of a flag, or that of the file it names.
fn text_or_file(flag: &str, text: &str) -> anyhow::Result<String> {
    if !Path::new(text).is_file() {
        return Ok(text.to_owned());
    }
    let read = os::read_regular(Path::new(text), PROMPT_LIMIT_BYTES)
        .with_context(|| format!("{flag}: cannot read {text}"))?;
    Ok(String::from_utf8_lossy(&read).trim().to_owned())
}

/// Notes about prompts of the command line that look like files but are none.
fn prompts_like_paths(args: &Args) -> Vec<String> {
    let flags = args.system_prompt.iter().map(|text| ("--system-prompt", text));
    let flags = flags.chain(args.append_system_prompt.iter().map(|text| ("--append-system-prompt", text)));
    let like_a_path = |text: &str| {
        let ends = [".md", ".txt"].iter().any(|end| text.ends_with(end));
        !text.contains(char::is_whitespace) && (ends || text.starts_with(['/', '.', '~']))
    };
    let is_none = |(_, text): &(&str, &String)| like_a_path(text) && !Path::new(text).is_file();
    let notes = flags
        .filter(is_none)
        .map(|(flag, text)| format!("{flag}: there is no file {text}; it is sent as text"));
    notes.collect()
}

/// The settings, instructions, skills and templates of the directory and the user, and what is wrong with them.
pub(super) fn project_facts(args: &Args, setup: Setup) -> ProjectFacts {
    let cwd = setup.cwd.clone();
    match setup.into_services(args, None, Front::Print) {
        Ok((services, _)) => session::project_facts(&services, &cwd, None),
        Err(error) => ProjectFacts { problems: vec![format!("{error:#}")], ..ProjectFacts::default() },
    }
}

/// The front end of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    Interactive,
    /// Print and JSON mode: nobody can answer questions.
    Print,
    /// RPC and ACP mode.
    Rpc,
}

/// A notice about answers of the demo model that the user requested.
fn demo_notice(services: &Services, model: &Model) -> Option<String> {
    if model.provider != DEMO_PROVIDER {
        return None;
    }
    let text = "this is the offline demo model, which follows fixed rules";
    Some(match services.instead_of_demo(model) {
        Some(provider) => {
            format!("{text}; {provider} is set up: choose one of its models with --model {provider}/ID")
        }
        None => format!("{text}; set a key such as ANTHROPIC_API_KEY to use a real one"),
    })
}

/// Runs print mode: answers on standard output.
pub(super) fn print(
    runtime: &Runtime,
    args: &Args,
    setup: Setup,
    terminals: Terminals,
    is_dumb: bool,
) -> anyhow::Result<ExitCode> {
    let piped = piped_text(terminals, &args.messages)?;
    let is_piped = piped.as_ref().is_some_and(|piped| !piped.text.trim().is_empty());
    words::check(&args.messages, args.print || args.mode.is_some() || is_piped)?;
    let prompts = first_prompts(&setup, args, piped)?;
    if prompts.is_empty() && args.print {
        anyhow::bail!(UsageError::new("no prompt; pass one with pi -p \"…\", or pipe it in"));
    }
    if prompts.is_empty() && is_dumb && terminals.can_interact() {
        anyhow::bail!(
            "TERM=dumb is a terminal without a cursor; use pi --screen-reader there, or pi -p \"…\" for one prompt"
        );
    }
    if prompts.is_empty() {
        anyhow::bail!("interactive mode needs a terminal; use pi -p \"…\" for one prompt");
    }
    let chosen = Chosen::new(args, setup, Front::Print)?;
    runtime.block_on(chosen.run(args, Deltas::Unwanted, |started| async move {
        let file = args.output_last_message.as_deref();
        modes::print(&started.handle, started.events, prompts, &started.problems, file).await
    }))
}

/// A session that a front end without a screen is going to open.
struct Chosen {
    services: Arc<Services>,
    folders: SessionFolders,
    cwd: PathBuf,
    open: OpenSession,
    problems: Vec<String>,
}

/// The same, open.
struct Started {
    services: Arc<Services>,
    folders: SessionFolders,
    handle: SessionHandle,
    events: SessionEvents,
    /// Problems in the user's files, one line each.
    problems: Vec<String>,
}

impl Chosen {
    fn new(args: &Args, mut setup: Setup, front: Front) -> anyhow::Result<Self> {
        let (cwd, folders) = (setup.cwd.clone(), setup.folders(args));
        let open = sessions::choose(args, &folders, &cwd)?;
        setup.discover_models(args, front)?;
        let (services, mut problems) = setup.into_services(args, keep(args, &folders), front)?;
        problems.extend(sessions::passed_over(args, &folders, &open));
        problems.extend(services.model.model.as_ref().and_then(|model| demo_notice(&services, model)));
        Ok(Self { services: Arc::new(services), folders, cwd, open, problems })
    }

    /// Opens the session and hands it to `front`, which ends it.
    async fn run<F: Future<Output = ExitCode>>(
        self,
        args: &Args,
        deltas: Deltas,
        front: impl FnOnce(Started) -> F,
    ) -> anyhow::Result<ExitCode> {
        let Self { services, folders, cwd, open, problems } = self;
        let credentials = services.credentials.clone();
        let (handle, events) = modes::open_session(&services, cwd, open, deltas, &Handle::current()).await?;
        if let Some(name) = &args.name {
            handle.send(SessionCommand::SetName { name: name.clone() });
        }
        let code = front(Started { services, folders, handle, events, problems }).await;
        modes::tell_if_slow(credentials.settled()).await;
        Ok(code)
    }
}

/// Runs JSON mode: all events on standard output.
pub(super) fn json(
    runtime: &Runtime,
    args: &Args,
    setup: Setup,
    terminals: Terminals,
) -> anyhow::Result<ExitCode> {
    let piped = piped_text(terminals, &args.messages)?;
    words::check(&args.messages, true)?;
    let prompts = first_prompts(&setup, args, piped)?;
    let chosen = Chosen::new(args, setup, Front::Print)?;
    runtime.block_on(chosen.run(args, Deltas::Wanted, |started| async move {
        let Started { handle, events, problems, .. } = started;
        let file = args.output_last_message.as_deref();
        modes::json(&handle, events, prompts, &problems, args.slim_events, file).await
    }))
}

/// Runs RPC mode: commands from standard input.
pub(super) fn rpc(runtime: &Runtime, args: &Args, setup: Setup) -> anyhow::Result<ExitCode> {
    if let Some(word) = args.messages.first() {
        anyhow::bail!(UsageError(format!(
            "--mode rpc takes no messages (\"{word}\"); send a prompt command on standard input"
        )));
    }
    let chosen = Chosen::new(args, setup, Front::Rpc)?;
    runtime.block_on(chosen.run(args, Deltas::Wanted, |started| async move {
        let Started { services, folders, handle, events, problems } = started;
        let (sessions, sessions_root) = (folders.folder, folders.root);
        let slim_events = args.slim_events;
        modes::rpc(RpcStart { services, handle, events, sessions, sessions_root, problems, slim_events })
            .await
    }))
}

/// Runs ACP mode: sessions for an editor, over standard input and output.
pub(super) fn acp(runtime: &Runtime, args: &Args, mut setup: Setup) -> anyhow::Result<ExitCode> {
    if let Some(word) = args.messages.first() {
        anyhow::bail!(UsageError(format!("pi acp takes no messages (\"{word}\"); the client sends prompts")));
    }
    // The directory that pi starts in is none of a session.
    setup.settings = setup.live_settings.get();
    setup.discover_models(args, Front::Rpc)?;
    let (env, dirs) = (setup.env.clone(), setup.dirs.clone());
    let (services, problems) = setup.into_services(args, None, Front::Rpc)?;
    let credentials = services.credentials.clone();
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let host = Arc::new(AcpSessions { services, locks: FileLocks::default(), args: args.clone(), env, dirs });
    let start = AcpStart { host, program, problems };
    let code = runtime.block_on(async move {
        let code = modes::acp(start).await;
        modes::tell_if_slow(credentials.settled()).await;
        code
    });
    Ok(code)
}

/// What the sessions of an ACP client work with.
struct AcpSessions {
    /// Those of a session that is not saved, in no directory.
    services: Services,
    /// Sessions may work on the same files.
    locks: FileLocks,
    args: Args,
    env: Env,
    dirs: Dirs,
}

impl AcpSessions {
    fn folders(&self, cwd: &Path) -> SessionFolders {
        let settings = self.services.settings.get();
        SessionFolders::new(&self.args, &self.env, &settings.values, &self.dirs, cwd)
    }
}

impl AcpHost for AcpSessions {
    fn services(&self, cwd: &Path, editor: Option<Arc<dyn Editor>>) -> Arc<Services> {
        let settings = starting_settings(&self.services.settings, &self.args, &self.dirs, cwd);
        let settings = &settings.values;
        let env = vec![("AI_AGENT".into(), "pi".into()), ("PI_CODING_AGENT".into(), "true".into())];
        let bash = BashConfig { env, ..bash_config(settings, &self.env, &self.dirs) };
        let config = tools_config(settings, &self.dirs, &bash);
        let names =
            if self.args.no_tools { Vec::new() } else { tools::select(&settings.default_tools).names };
        let tools = tools::registry_with(&config, &names, self.locks.clone(), editor);
        let sessions = keep(&self.args, &self.folders(cwd));
        Arc::new(Services { bash, tools, sessions, ..self.services.clone() })
    }

    fn folder(&self, cwd: &Path) -> PathBuf {
        self.folders(cwd).folder
    }

    fn root(&self) -> PathBuf {
        self.folders(Path::new("/")).root
    }
}

/// Runs interactive mode until the user quits, and its session on a runtime of its own.
pub(super) fn interactive(
    runtime: &Runtime,
    session_runtime: Handle,
    args: &Args,
    mut setup: Setup,
) -> anyhow::Result<ExitCode> {
    words::check(&args.messages, false)?;
    let prompts = first_prompts(&setup, args, None)?;
    let (cwd, folders) = (setup.cwd.clone(), setup.folders(args));
    let open = sessions::choose(args, &folders, &cwd)?;
    let (env, mut times) = (setup.env.clone(), setup.times.clone());
    times.mark("choice of the session", setup.clock.monotonic());
    let is_read_out = setup.settings.values.screen_reader;
    let themes = setup.resource_options(&args.theme, args.no_themes);
    setup.discover_models(args, Front::Interactive)?;
    let (services, mut problems) = setup.into_services(args, keep(args, &folders), Front::Interactive)?;
    problems.extend(sessions::passed_over(args, &folders, &open));
    let credentials = services.credentials.clone();
    let start = modes::InteractiveStart {
        services: Arc::new(services),
        cwd: cwd.clone(),
        open,
        env,
        prompts,
        problems,
        pick_session: args.resume,
        sessions_root: folders.root.clone(),
        sessions: folders.folder.clone(),
        sessions_filter: Some(cwd.clone()),
        custom_sessions: folders.is_custom,
        name: args.name.clone(),
        themes,
        times,
        session_runtime,
    };
    foreground::block_on(runtime, async move {
        let code =
            if is_read_out { modes::screen_reader(start).await } else { modes::interactive(start).await };
        modes::tell_if_slow(credentials.settled()).await;
        code
    })
}

fn first_prompts(setup: &Setup, args: &Args, piped: Option<Piped>) -> anyhow::Result<Vec<Prompt>> {
    let home = setup.dirs.home.as_deref();
    let limits = image_limits(&setup.settings.values);
    let InitialPrompts { prompts, notes } =
        initial::prompts(piped, &args.messages, &setup.cwd, home, &limits)?;
    modes::report_notes(&notes);
    Ok(prompts)
}

fn keep(args: &Args, folders: &SessionFolders) -> Option<PathBuf> {
    (!args.no_session).then(|| folders.folder.clone())
}

/// How long input that never begins is waited for if there is a message without it.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(3);

/// Reads standard input to its end, unless it is a terminal. A wrapper may leave a pipe open
/// that nobody writes to: with `messages`, pi starts without it.
fn piped_text(terminals: Terminals, messages: &[String]) -> anyhow::Result<Option<Piped>> {
    if terminals.stdin {
        return Ok(None);
    }
    if !messages.is_empty() && !has_input(std::io::stdin(), FIRST_BYTE_LIMIT) {
        modes::report_notes(&["standard input is open but silent, so pi starts without it; \
             redirect it from /dev/null to avoid the wait"
            .to_owned()]);
        return Ok(None);
    }
    Piped::read(std::io::stdin()).map(Some)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn input_that_is_silent_and_open_is_told_apart() {
        let (input, mut output) = std::io::pipe().unwrap();
        assert!(!has_input(&input, Duration::ZERO));
        output.write_all(b"x").unwrap();
        assert!(has_input(&input, Duration::ZERO));
        let (ended, _) = std::io::pipe().unwrap();
        assert!(has_input(ended, Duration::ZERO));
    }
}
