//! What settings say about requests and tools, for the command line and for other programs.

use std::time::Duration;

use crate::ai::HttpOptions;
use crate::config::{Dirs, Env, Settings};
use crate::tools::{BashConfig, ImageLimits, ToolsConfig};

/// How requests are sent and repeated. A timeout of zero in the settings means none.
pub fn http_options(settings: &Settings) -> HttpOptions {
    let idle = settings.http_idle_timeout;
    HttpOptions {
        idle_timeout: (idle > Duration::ZERO).then_some(idle),
        max_retries: settings.provider_max_retries,
        ..HttpOptions::default()
    }
}

/// How commands run, with the search path of `env`. Their variables are those of the process.
pub fn bash_config(settings: &Settings, env: &Env, dirs: &Dirs) -> BashConfig {
    BashConfig {
        shell_path: settings.shell_path.clone().map(Into::into),
        command_prefix: settings.shell_command_prefix.clone(),
        search_path: env.path("PATH").map(Into::into),
        bin_dir: Some(dirs.agent.join("bin")),
        ..BashConfig::new(std::env::temp_dir())
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
