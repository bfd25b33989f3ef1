//! All models, their providers, and how their servers differ.
//!
//! `catalog` lists every model: compiled in, stored and from `models.json`. `model`
//! is one of them, `vendors` the table of services that offer models and of what is known of their servers, `compat` how
//! each server's dialect differs from its API (`compat_fields` lists the fields that
//! `models.json` may set), `image_limits` the images each service accepts.
//! `model_lists` and `local_servers` ask services and this machine for their models;
//! `vertex` and `bedrock_place` fill in addresses that depend on the account.

mod bedrock_place;
mod catalog;
mod compat;
mod compat_fields;
pub(super) mod image_limits;
mod local_servers;
mod model;
mod model_lists;
mod sampling;
mod vendors;
mod vertex;

pub use bedrock_place::{BEDROCK_DEFAULT_REGION, BEDROCK_TEMPLATE, bedrock_base_url, bedrock_region};
pub(super) use bedrock_place::{arn_region, is_region};
pub use catalog::{
    Catalog, DEMO_PROVIDER, LiveCatalog, MatchError, Matched, ProviderInfo, ScopedModel, UnmatchedPattern,
    glob_selects,
};
pub(super) use compat::{
    AnthropicCompat, BedrockCompat, CacheRetention, ChatCompat, Dialect, GoogleCompat, MaxTokensField,
    RequestTraits, ResponsesCompat, ThinkingFormat, Updates, fallback_cost,
};
pub use compat_fields::{COMPAT_FIELDS, CompatField, CompatKind};
pub(super) use image_limits::{ImageRules, fetches, for_storing, image_types};
pub use local_servers::{LOCAL_SERVERS, LocalAddresses, LocalServer, discover, local_server};
pub use model::{Cost, CostTier, Modality, Model};
pub use model_lists::{ListedModel, list_models, variable};
pub use sampling::Sampling;
pub(super) use vendors::Server;
pub(super) use vendors::is_on_plan;
pub use vendors::{EnvKey, Pricing, VENDORS, Vendor, is_flat_rate, vendor};
pub(super) use vertex::versioned;
pub use vertex::{VERTEX_TEMPLATE, VertexPlace};
