//! `pi config`: settings from the shell.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::config::{Env, Row, SettingChange, SettingsFile, TrustedContents, settings_schema};
use crate::modes::{self, ConfigOutput, UsageError};
use crate::session;
use crate::util::paths;

use super::reference::{Suggested, setting_keys};
use super::start::Setup;
use super::transfer::general_args;

/// The arguments of `pi config`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
}

#[derive(Debug, Clone, Subcommand)]
enum ConfigCommand {
    /// Show all settings with their values and origins (the default)
    List {
        /// Only keys that contain this text
        search: Option<String>,
        /// Only values that are not the default
        #[arg(long)]
        changed: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a setting
    Get {
        /// The setting, such as theme; pi config lists all
        #[arg(value_parser = Suggested(setting_keys), hide_possible_values = true)]
        key: String,
        /// Print JSON, with the origin
        #[arg(long)]
        json: bool,
    },
    /// Save a value; a list is a JSON array or words separated by commas
    Set {
        /// The setting, such as theme; pi config lists all
        #[arg(value_parser = Suggested(setting_keys), hide_possible_values = true)]
        key: String,
        /// The value: JSON, or a text without quotes
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        file: FileChoice,
    },
    /// Remove a saved value
    Unset {
        /// The setting, such as theme; pi config lists all
        #[arg(value_parser = Suggested(setting_keys), hide_possible_values = true)]
        key: String,
        #[command(flatten)]
        file: FileChoice,
    },
    /// Print the path of the settings file
    Path {
        #[command(flatten)]
        file: FileChoice,
    },
    /// Print the JSON schema of settings files, for editors
    Schema,
}

#[derive(Debug, Clone, clap::Args)]
struct FileChoice {
    /// This directory's .pi/settings.json in place of your own file
    #[arg(short = 'l', long)]
    project: bool,
}

/// Runs `pi config`.
pub(super) fn run(args: ConfigArgs, env: Env) -> anyhow::Result<ExitCode> {
    let list = ConfigCommand::List { search: None, changed: false, json: false };
    let setup = Setup::new(&general_args(None, None)?, env)?;
    match args.command.unwrap_or(list) {
        ConfigCommand::List { search, changed, json } => {
            let output = if json { ConfigOutput::Json } else { ConfigOutput::Text };
            let code = modes::list_settings(setup.settings(), search.as_deref(), changed, output);
            modes::report_notes(&setup.problems);
            return Ok(code);
        }
        ConfigCommand::Get { key, json } => {
            let row = Row::named(&key).map_err(UsageError::new)?;
            let output = if json { ConfigOutput::Json } else { ConfigOutput::Text };
            modes::show_setting(setup.settings(), row, output);
            modes::report_notes(&setup.problems);
        }
        ConfigCommand::Set { key, value, file } => {
            let row = Row::named(&key).map_err(UsageError::new)?;
            let value = row.kind.parse(&value);
            save(&setup, &file, session::setting_change(&key, value).map_err(UsageError::new)?, row)?;
        }
        ConfigCommand::Unset { key, file } => {
            let change = SettingChange::reset(&key).map_err(UsageError::new)?;
            save(&setup, &file, change, Row::named(&key)?)?;
        }
        ConfigCommand::Path { file } => modes::say(&path_of(&setup, &file).display().to_string()),
        ConfigCommand::Schema => modes::say(&serde_json::to_string_pretty(&settings_schema())?),
    }
    Ok(ExitCode::SUCCESS)
}

fn path_of(setup: &Setup, file: &FileChoice) -> PathBuf {
    if file.project { setup.cwd.join(".pi").join("settings.json") } else { setup.dirs.settings_file() }
}

/// Makes the change, and says where, and what may hide it.
fn save(setup: &Setup, file: &FileChoice, change: SettingChange, row: &Row) -> anyhow::Result<()> {
    if file.project && !row.may_be_in_project() {
        anyhow::bail!(UsageError(format!(
            "\"{}\" works only in your own settings.json; leave out --project",
            row.key
        )));
    }
    let path = path_of(setup, file);
    let value = change.value().cloned();
    let done = if change.is_reset() { "Removed {} from" } else { "Saved {} in" }.replace("{}", row.key);
    SettingsFile::load(path.clone()).save(&[change])?;
    if file.project {
        // The user's own change needs no new question.
        TrustedContents::load(setup.dirs.trusted_contents_file()).accept(&setup.cwd, &path)?;
    }
    let home = setup.dirs.home.as_deref();
    modes::say(&format!("{done} {}.", paths::display(&path, home)));
    if row.key == "theme"
        && let Some(Value::String(name)) = &value
    {
        let project = setup.trusts_project().then_some(setup.cwd.as_path());
        let settings = setup.settings();
        modes::report_notes(&modes::theme_problems(&setup.env, &setup.dirs, settings, project, name));
    }
    if row.kept.is_some() {
        modes::report_notes(&[format!("{}: {}", row.key, row.help)]);
    }
    if !file.project && setup.settings().project_value(row.key).is_some() {
        modes::report_notes(&[format!(
            "this directory's .pi/settings.json has its own value of {}",
            row.key
        )]);
    }
    if file.project && !setup.trusts_project() {
        modes::report_notes(&[
            "the settings of this directory count once you trust it; type /trust in pi, or use --approve"
                .to_owned(),
        ]);
    }
    Ok(())
}
