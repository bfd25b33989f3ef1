//! What settings say about requests and tools, for the command line and for other programs.

use std::path::Path;
use std::time::Duration;

use crate::ai::{Catalog, ExtraRoots, HttpOptions, Transport, WebSocketUse};
use crate::config::{self, Credentials, Dirs, Env, Settings, TransportChoice};
use crate::tools::{BashConfig, ImageLimits, ToolsConfig};
use crate::util::clock::Clock;

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
        let (catalog, mut problems) = config::load_catalog(dirs, env);
        let (roots, wrong) = config::extra_roots(env);
        problems.extend(wrong);
        let (transport, wrong) = transport(roots, settings);
        problems.extend(wrong);
        reads(&dirs.auth_file());
        let (credentials, wrong) = config::user_credentials(env, dirs, settings, &transport, clock);
        problems.extend(wrong);
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
        shell_path: settings.shell_path.clone().map(Into::into),
        command_prefix: settings.shell_command_prefix.clone(),
        search_path: env.path("PATH").map(Into::into),
        bin_dir: Some(dirs.agent.join("bin")),
        ..BashConfig::new(env.temp_dir())
    }
}

/// What the built-in tools need.
pub fn tools_config(settings: &Settings, dirs: &Dirs, bash: &BashConfig) -> ToolsConfig {
    ToolsConfig { home: dirs.home.clone(), images: image_limits(settings), bash: bash.clone() }
}

/// How large images may be, and whether larger ones are made smaller.
pub fn image_limits(settings: &Settings) -> ImageLimits {
    ImageLimits { auto_resize: settings.images_auto_resize, ..ImageLimits::default() }
}
