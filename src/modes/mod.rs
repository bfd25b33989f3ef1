//! Front ends; each is a client of a session handle.
//!
//! Only this layer writes to standard output and error. `interactive` is the
//! only one that knows the terminal toolkit.

mod acp;
mod auth;
mod changelog;
mod config;
mod crash_notice;
mod exit;
mod export;
mod interactive;
mod json;
mod models;
mod opening;
mod output;
mod print;
mod rpc;
mod screen_reader;
mod sessions;
mod signals;
mod slash;
mod table;
mod trace;
mod transfer;
mod trust;
mod usage;
mod wire;

use crate::ai::Image;

pub use acp::{ACP_COMMANDS, ACP_METHODS, AcpCommandRow, AcpHost, AcpMethodRow, AcpStart, acp, serve_acp};
pub use auth::{auth_status, read_key, say, sign_in};
pub use config::{ConfigOutput, list_settings, show_setting};
pub use crash_notice::watch_crashes;
pub use exit::{EXIT_CODES, UsageError, after_crash};
pub use export::{ExistingFile, ExportFormat, ExportSource, default_file};
pub use interactive::{
    DoctorInput, InteractiveStart, commands_markdown, doctor, is_command, keybindings_markdown,
    run as interactive, theme_problems,
};
pub use json::json;
pub use models::list_models;
pub use opening::open_session;
pub use output::{Terminals, after_output, give_up, report_error, report_notes, report_usage, tell_if_slow};
pub use print::print;
pub use rpc::{RPC_COMMANDS, RpcCommandRow, RpcStart, rpc};
pub use screen_reader::{screen_reader, screen_reader_commands_markdown};
pub use sessions::{ListedSession, SessionsOutput};
pub use slash::command_name;
pub use trace::{CallFilter, CallKind, TraceView, show_trace};
pub use transfer::{
    show_export, show_export_file, show_import, show_secret_kinds, show_secrets, show_session_export,
    write_export,
};
pub use usage::{UsageView, show_usage};

/// A prompt for the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Image>,
}
