//! What the user has configured, read from disk and environment.
//!
//! `env` is the only reader of environment variables; settings files are never
//! overwritten when they cannot be read. Nothing here knows sessions or screens.

mod credentials;
mod dirs;
mod env;
mod models_file;
mod settings;
mod settings_file;

pub use credentials::{CredentialError, Credentials};
pub use dirs::Dirs;
pub use env::Env;
pub use models_file::load_catalog;
pub use settings::{Kind as SettingKind, ROWS, Row, Settings, SettingsProblem};
pub use settings_file::{SaveError, SettingsFile};
