//! What a session needs from outside: models, tools, settings, time.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::{QueueMode, SteeringDelivery, ToolRegistry};
use crate::ai::{Catalog, Provider, ProviderInfo};
use crate::config::{Credentials, Dirs, Settings};
use crate::tools::BashConfig;
use crate::util::clock::Clock;

use super::recovery::RetryPolicy;
use super::selection::Wishes;

/// Shared by all sessions of one process; put together in `cli::start`, and by tests.
pub struct Services {
    pub provider: Arc<dyn Provider>,
    pub catalog: Arc<Catalog>,
    pub credentials: Credentials,
    pub tools: ToolRegistry,
    /// How the user's own commands are run, and what the model's are told.
    pub bash: BashConfig,
    pub settings: Settings,
    pub dirs: Dirs,
    pub clock: Clock,
    pub wishes: Wishes,
    pub prompt: PromptOptions,
    /// Where new sessions go; `None` keeps them in memory.
    pub sessions: Option<PathBuf>,
    /// Whether the reader of events wants every piece of an answer.
    pub wants_deltas: bool,
}

/// What the command line says about the system prompt.
#[derive(Debug, Clone, Default)]
pub struct PromptOptions {
    pub custom: Option<String>,
    pub addendum: Option<String>,
    /// Leaves instruction files out.
    pub no_context_files: bool,
}

impl Services {
    pub(super) fn is_usable(&self, provider: &ProviderInfo) -> bool {
        self.credentials.is_available(provider)
    }

    pub(super) fn retry_policy(&self) -> RetryPolicy {
        let settings = &self.settings;
        RetryPolicy {
            max_retries: if settings.retry_enabled { settings.retry_max } else { 0 },
            base_delay: settings.retry_base_delay,
            max_delay: settings.retry_max_delay,
        }
    }

    pub(super) fn steering_delivery(&self) -> SteeringDelivery {
        match self.settings.steering_delivery.as_str() {
            "turn" => SteeringDelivery::Turn,
            "now" => SteeringDelivery::Now,
            _ => SteeringDelivery::Tools,
        }
    }

    /// Steering mode and follow-up mode.
    pub(super) fn queue_modes(&self) -> (QueueMode, QueueMode) {
        let mode = |name: &str| if name == "all" { QueueMode::All } else { QueueMode::OneAtATime };
        (mode(&self.settings.steering_mode), mode(&self.settings.follow_up_mode))
    }
}
