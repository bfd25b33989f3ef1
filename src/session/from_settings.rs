//! What settings say about requests and tools, for the command line and for other programs.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::ai::{Catalog, ExtraRoots, HttpOptions, Transport, WebSocketUse};
use crate::config::{
    self, Credentials, Dirs, EffectiveSettings, Env, SettingChange, SettingError, Settings, SettingsFile,
    TransportChoice,
};
use crate::tools::{self, BashConfig, CommandLimits, ImageLimits, ToolSelection, ToolsConfig, UnknownTool};
use crate::util::clock::Clock;
use crate::util::paths;

/// What the user's files and the environment say about models, connections and keys.
pub struct Configured {
    /// The models there are.
    pub catalog: Catalog,
    /// The connections.
    pub transport: Transport,
    /// The keys of providers.
    pub credentials: Credentials,
    /// What is wrong with the files and variables, one line each.
    pub problems: Vec<String>,
}

impl Configured {
    /// Reads the files; `reads` is told each before. Blocks.
    pub fn read(env: &Env, dirs: &Dirs, settings: &Settings, clock: &Clock, reads: impl Fn(&Path)) -> Self {
        reads(&dirs.models_file());
        let (mut catalog, mut problems) = config::load_catalog(dirs, env);
        let (roots, wrong) = config::extra_roots(env);
        problems.extend(wrong);
        let (transport, wrong) = transport(roots, settings);
        problems.extend(wrong);
        reads(&dirs.auth_file());
        let (credentials, wrong) = config::user_credentials(env, dirs, settings, &transport, clock);
        problems.extend(wrong);
        credentials.add_known_lists(&mut catalog);
        Self { catalog, transport, credentials, problems }
    }
}

/// The connections of the settings, trusting `roots` too; and what is wrong with the settings.
pub fn transport(roots: ExtraRoots, settings: &Settings) -> (Transport, Option<String>) {
    let transport = Transport::trusting(roots);
    let Some(proxy) = &settings.http_proxy else { return (transport, None) };
    match transport.clone().through(proxy) {
        Ok(transport) => (transport, None),
        Err(error) => {
            let problem = format!("httpProxy is ignored: \"{proxy}\" is no address of a proxy ({error})");
            (transport, Some(problem))
        }
    }
}

/// The timeouts and retries of the settings. A time of zero means no limit.
pub fn http_options(settings: &Settings) -> HttpOptions {
    let limit = |time: Duration| (time > Duration::ZERO).then_some(time);
    HttpOptions {
        idle_timeout: limit(settings.http_idle_timeout),
        content_timeout: limit(settings.http_content_timeout),
        header_timeout: settings.provider_timeout,
        max_retries: settings.provider_max_retries,
        max_retry_delay: limit(settings.provider_max_retry_delay),
        web_sockets: match settings.transport {
            TransportChoice::Auto | TransportChoice::Sse => WebSocketUse::Never,
            TransportChoice::WebSocket => WebSocketUse::PerRequest,
            TransportChoice::WebSocketCached => WebSocketUse::Kept,
        },
        web_socket_connect_timeout: limit(settings.web_socket_connect_timeout),
    }
}

/// How commands run, with the search path and the folder for temporary files of `env`. Their variables are those of the process.
pub fn bash_config(settings: &Settings, env: &Env, dirs: &Dirs) -> BashConfig {
    BashConfig {
        shell_path: settings.shell_path.as_deref().map(|path| paths::expand_home(path, dirs.home.as_deref())),
        command_prefix: settings.shell_command_prefix.clone(),
        search_path: env.path("PATH").map(Into::into),
        bin_dir: Some(dirs.agent.join("bin")),
        limits: CommandLimits {
            default_timeout: Some(settings.bash.default_timeout).filter(|timeout| !timeout.is_zero()),
            memory_mb: settings.bash.memory_limit_mb,
            processes: settings.bash.process_limit,
        },
        ..BashConfig::new(env.temp_dir())
    }
}

/// What the built-in tools need.
pub fn tools_config(settings: &Settings, dirs: &Dirs, bash: &BashConfig) -> ToolsConfig {
    ToolsConfig { home: dirs.home.clone(), images: image_limits(settings), bash: bash.clone() }
}

/// The tools that the model of a session in `cwd` may call, and what is wrong with the setting, one line for
/// each unknown name. Blocks if there is one.
pub fn default_tools(settings: &EffectiveSettings, dirs: &Dirs, cwd: &Path) -> (Vec<String>, Vec<String>) {
    let ToolSelection { names, unknown } = tools::select(&settings.values.default_tools);
    let problem = |UnknownTool { name }: &UnknownTool| {
        let is_named = |entry: &Value| {
            entry.as_str().is_some_and(|entry| entry.trim_start_matches(['+', '-']).trim() == name)
        };
        let of_project = settings.project_value(TOOLS).and_then(Value::as_array);
        let path = match of_project.is_some_and(|entries| entries.iter().any(is_named)) {
            true => cwd.join(".pi").join("settings.json"),
            false => dirs.settings_file(),
        };
        let line = SettingsFile::load(path.clone()).line_of(TOOLS).map(|line| format!(":{line}"));
        let place = paths::display(&path, dirs.home.as_deref()) + &line.unwrap_or_default();
        let names = tools::tool_names();
        format!("{place}: {TOOLS}: unknown tool \"{name}\" is ignored; choose from {names}")
    };
    let problems = unknown.iter().map(problem).collect();
    (names, problems)
}

const TOOLS: &str = "defaultTools";

/// Why a setting is not changed; the text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// There is no such setting, or it does not take the value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A name in `defaultTools`.
    #[error("{TOOLS}: {0}")]
    Tool(UnknownTool),
}

/// Sets `key` to `value`; `null` resets it.
///
/// # Errors
/// If the key is unknown, the value invalid, or an entry of `defaultTools` no tool.
pub fn setting_change(key: &str, value: Value) -> Result<SettingChange, ChangeError> {
    let change = SettingChange::set(key, value)?;
    if key == TOOLS {
        let entries = change.value().and_then(Value::as_array).into_iter().flatten();
        let entries: Vec<String> = entries.filter_map(|entry| entry.as_str().map(str::to_owned)).collect();
        tools::selected(&entries).map_err(ChangeError::Tool)?;
    }
    Ok(change)
}

/// How large images may be, and whether larger ones are made smaller.
pub fn image_limits(settings: &Settings) -> ImageLimits {
    ImageLimits { auto_resize: settings.images_auto_resize, ..ImageLimits::default() }
}
