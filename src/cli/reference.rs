//! `pi completions` and `pi man`, made from the table of arguments.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::{PossibleValue, TypedValueParser};
use clap_complete::Shell;

use crate::ai::VENDORS;
use crate::config::ROWS;
use crate::modes;

use super::args;
use super::docs::{CHAPTERS, EVIDENCE};

/// The arguments of `pi completions`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "pi", &mut script);
    print(script)
}

/// Prints the manual page.
pub(super) fn man() -> anyhow::Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command()).render(&mut page).context("cannot write the manual page")?;
    print(page)
}

fn print(bytes: Vec<u8>) -> anyhow::Result<ExitCode> {
    modes::say(String::from_utf8(bytes)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Accepts any text, and lets shells complete the values there are. An argument with it hides
/// them from the help, where they would be too many.
#[derive(Debug, Clone)]
pub(super) struct Suggested(pub(super) fn() -> Vec<PossibleValue>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// Keys of settings.
pub(super) fn setting_keys() -> Vec<PossibleValue> {
    ROWS.iter().map(|row| PossibleValue::new(row.key).help(row.help)).collect()
}

/// Ids of the providers that pi knows by itself.
pub(super) fn providers() -> Vec<PossibleValue> {
    VENDORS.iter().map(|vendor| PossibleValue::new(vendor.id)).collect()
}

/// Pages of the documentation.
pub(super) fn pages() -> Vec<PossibleValue> {
    CHAPTERS.iter().chain([&EVIDENCE]).map(|page| PossibleValue::new(page.name).help(page.about)).collect()
}
