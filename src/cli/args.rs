//! TABLE: the flags, as one derive; help and docs/cli.md are generated from it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::ai::ThinkingLevel;

/// An interactive coding agent for the terminal.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "pi",
    version,
    disable_version_flag = true,
    after_help = "Without a key pi starts with its offline demo model; pi auth login stores one (pi auth --help).\n\
                  Keys in the terminal: /hotkeys. Settings: ~/.pi/agent/settings.json."
)]
pub struct Args {
    /// What to say first; @FILE attaches a file. Further messages follow one after the other
    #[arg(value_name = "MESSAGE")]
    pub messages: Vec<String>,

    /// Answer on standard output and exit
    #[arg(short, long)]
    pub print: bool,

    /// Provider of the model, such as anthropic or openrouter
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Model: an id, provider/id or part of one, with an optional :LEVEL of thinking
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Models to cycle through: references or globs, with an optional :LEVEL
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub models: Option<Vec<String>>,

    /// Key for the chosen provider
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,

    /// How much to think: off, minimal, low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub thinking: Option<ThinkingLevel>,

    /// List the models, or those that contain SEARCH, and exit
    #[arg(long, value_name = "SEARCH", num_args = 0..=1)]
    pub list_models: Option<Option<String>>,

    /// Continue the latest session of this directory
    #[arg(short, long = "continue", conflicts_with_all = ["resume", "session", "no_session"])]
    pub continue_session: bool,

    /// Choose a session to continue
    #[arg(short, long, conflicts_with_all = ["session", "no_session"])]
    pub resume: bool,

    /// Continue the session in a file, or with an id or the beginning of one
    #[arg(long, value_name = "PATH|ID", conflicts_with = "no_session")]
    pub session: Option<String>,

    /// Keep the session in memory only
    #[arg(long)]
    pub no_session: bool,

    /// Folder for session files
    #[arg(long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,

    /// Name of the session
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,

    /// Tools the model may call, separated by commas (read, bash, edit, write, grep, find, ls)
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', conflicts_with = "no_tools")]
    pub tools: Option<Vec<String>>,

    /// Give the model no tools [short: -nt]
    #[arg(long)]
    pub no_tools: bool,

    /// System prompt: a text, or a file with it
    #[arg(long, value_name = "TEXT|FILE")]
    pub system_prompt: Option<String>,

    /// Text, or a file with it, to add to the system prompt; can be given several times
    #[arg(long, value_name = "TEXT|FILE")]
    pub append_system_prompt: Vec<String>,

    /// Leave AGENTS.md and CLAUDE.md out [short: -nc]
    #[arg(long)]
    pub no_context_files: bool,

    /// Skill to use besides those in their folders: a SKILL.md, or a folder with skills; can be given several times
    #[arg(long, value_name = "PATH")]
    pub skill: Vec<PathBuf>,

    /// Use no skills but those of --skill [short: -ns]
    #[arg(long)]
    pub no_skills: bool,

    /// Trust this folder for this run: use its skills
    #[arg(short, long, conflicts_with = "no_approve")]
    pub approve: bool,

    /// Do not trust this folder for this run [short: -na]
    #[arg(long)]
    pub no_approve: bool,

    /// Theme: dark, light or system
    #[arg(long, value_name = "NAME")]
    pub use_theme: Option<String>,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    version: Option<bool>,
}

fn parse_level(text: &str) -> Result<ThinkingLevel, String> {
    let names: Vec<&str> = ThinkingLevel::ALL.into_iter().map(ThinkingLevel::name).collect();
    ThinkingLevel::parse(text).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// Short flags of more than one letter, which clap does not know.
const SHORT: &[(&str, &str)] =
    &[("-nt", "--no-tools"), ("-nc", "--no-context-files"), ("-ns", "--no-skills"), ("-na", "--no-approve")];

/// Spells such flags out, up to `--`.
pub(super) fn expand_short(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut options_end = false;
    args.map(|arg| {
        options_end |= arg == "--";
        let long = SHORT.iter().find(|(short, _)| !options_end && arg == *short);
        long.map_or(arg, |(_, long)| OsString::from(long))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_table_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn flags_and_messages_mix() {
        let args =
            expand_short(["pi", "-p", "hello", "@a.txt", "-nc", "--", "-nt"].into_iter().map(OsString::from));
        let args = Args::try_parse_from(args).unwrap();
        assert!(args.print && args.no_context_files && !args.no_tools);
        assert_eq!(args.messages, ["hello", "@a.txt", "-nt"]);
    }

    #[test]
    fn wrong_flags_are_errors() {
        for args in
            [&["pi", "--bogus"][..], &["pi", "-z"], &["pi", "--thinking", "hard"], &["pi", "-c", "-r"]]
        {
            assert!(Args::try_parse_from(args).is_err(), "{args:?}");
        }
    }
}
