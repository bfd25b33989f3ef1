//! The user's configuration, read from disk and environment.
//!
//! `env` is the only reader of environment variables; unreadable files of the user are
//! never overwritten. `oauth` and `authorised` contact services
//! to sign in and to renew tokens, and `model_lists` to list their models; no other
//! module does. This layer knows no sessions or screens.

mod auth_file;
mod authorised;
mod aws;
mod certificates;
mod cloud_credentials;
mod crash_log;
mod credentials;
mod dirs;
mod env;
mod google_adc;
mod json_file;
mod list_cache;
mod model_lists;
mod models_file;
mod oauth;
mod secret;
mod seen_version;
mod settings;
mod trust;
mod trusted_contents;
mod user_credentials;
mod value;

pub use auth_file::{AuthEntries, AuthEntry, AuthFile, AuthFileError, OAuthEntry, StoredKey};
pub use authorised::Authorised;
pub use aws::{AwsCredentials, AwsEndpoints, AwsError};
pub use certificates::extra_roots;
pub use cloud_credentials::CloudCredentials;
pub use crash_log::{Crash, CrashContext, CrashLog, UnreportedCrash};
pub use credentials::{CredentialError, Credentials, KeySource, ProviderKeys};
pub use dirs::Dirs;
pub use env::Env;
pub use google_adc::{AdcError, GoogleAdc, GoogleEndpoints};
pub use model_lists::ModelLists;
pub use models_file::load_catalog;
pub use oauth::{
    Accounts, CLIENT_ID_HELP, Endpoints, SIGN_INS, SignInError, SignInFlow, SignInMethod, SignInOffer,
    SignInPrompt, SignInRequest, SignInStep, sign_in_offer,
};
pub use secret::Secret;
pub use seen_version::{record_seen_version, seen_version};
pub use settings::{
    BatchSize, BranchSummaryPolicy, BudgetLimits, CacheWarmingMode, Capability, CompactionBudget,
    CompactionOverride, CompactionPolicy, DeliveryTime, DiagramTiming, DoubleEscape, EffectiveSettings,
    ExitOutput, FullscreenSettings, InProject, Kind as SettingKind, Layer, LayoutSettings, LiveSettings,
    PictureProtocol, ProjectSettings, ROWS, ResizeMode, Row, SaveError, Scrollbar, SettingChange,
    SettingError, Settings, SettingsFile, SettingsProblem, SettingsWatch, SettingsWrite, StartDisplay,
    TransportChoice, TreeFilter, TuiMode, schema as settings_schema,
};
pub use trust::{
    Trust, TrustDefault, TrustError, TrustFile, TrustPolicy, project_skill_folders, protected_resources,
};
pub use trusted_contents::{ProjectContents, TrustedContents};
pub use user_credentials::user_credentials;
