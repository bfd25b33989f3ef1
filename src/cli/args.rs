//! TABLE: the flags and sub-commands, as one derive; help and docs/cli.md are generated from it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser as _, ValueRange};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::ai::ThinkingLevel;
use crate::util::nearest::nearest;

use super::acp::AcpArgs;
use super::auth::AuthArgs;
use super::config::ConfigArgs;
use super::docs::DocsArgs;
use super::doctor::DoctorArgs;
use super::reference::{CompletionsArgs, Suggested, providers, themes};
use super::session_list::SessionsArgs;
use super::trace::TraceArgs;
use super::transfer::{ExportArgs, ImportArgs};
use super::usage::UsageArgs;

/// The groups of flags, in the order of `--help`.
const OUTPUT: &str = "Prompt and output";
const MODEL: &str = "Model";
const SESSION: &str = "Session";
const TOOLS: &str = "Tools and instructions";
const LIMITS: &str = "Trust and limits";
const SCREEN: &str = "Screen";

/// An interactive coding agent for the terminal.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "pi",
    version,
    disable_version_flag = true,
    override_usage = "pi [OPTIONS] [MESSAGE]...\n       pi <COMMAND> [ARGUMENTS]",
    // A command is one only where it is the first word; elsewhere it is part of a message.
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    help_template = HELP_TEMPLATE,
    after_help = AFTER_HELP
)]
pub struct Args {
    /// Not part of the flags; see [`command`].
    #[arg(skip)]
    pub(super) command: Option<SubCommand>,

    /// First message; @FILE attaches a file. Further messages are sent one after the other
    #[arg(value_name = "MESSAGE")]
    pub messages: Vec<String>,

    /// Print the answer on standard output and exit
    #[arg(help_heading = OUTPUT, short, long)]
    pub print: bool,

    /// Front end: text (as --print), json (all events) or rpc (commands on standard input)
    #[arg(help_heading = OUTPUT, long, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES).try_map(parse_mode), hide_possible_values = true)]
    pub mode: Option<Mode>,

    /// With --print or --mode json: also write the last answer to this file
    #[arg(help_heading = OUTPUT, long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,

    /// With --mode json or rpc: events with lines below 1 MiB, and nothing twice
    #[arg(help_heading = OUTPUT, long, requires = "mode")]
    pub slim_events: bool,

    /// Provider of the model, such as anthropic or openrouter
    #[arg(help_heading = MODEL, long, value_name = "NAME", value_parser = Suggested(providers), hide_possible_values = true)]
    pub provider: Option<String>,

    /// Model: an id, provider/id or part of either, with an optional :LEVEL of thinking
    #[arg(help_heading = MODEL, long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Models to cycle through: ids or globs, each with an optional :LEVEL
    #[arg(help_heading = MODEL, long, value_name = "LIST", value_delimiter = ',')]
    pub models: Option<Vec<String>>,

    /// API key for the chosen provider
    #[arg(help_heading = MODEL, long, value_name = "KEY")]
    pub api_key: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh, max
    #[arg(help_heading = MODEL, long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(levels()).try_map(parse_level), ignore_case = true, hide_possible_values = true)]
    pub thinking: Option<ThinkingLevel>,

    /// List the models, or those matching SEARCH, and exit
    #[arg(help_heading = MODEL, long, value_name = "SEARCH", num_args = 0..=1)]
    pub list_models: Option<Option<String>>,

    /// Continue this directory's latest session
    #[arg(help_heading = SESSION, short, long = "continue", conflicts_with_all = ["resume", "session", "fork", "no_session"])]
    pub continue_session: bool,

    /// Choose a session to continue
    #[arg(help_heading = SESSION, short, long, conflicts_with_all = ["session", "fork", "no_session"])]
    pub resume: bool,

    /// Continue the session with this file, id or start of an id
    #[arg(help_heading = SESSION, long, value_name = "PATH|ID", conflicts_with_all = ["fork", "no_session"])]
    pub session: Option<String>,

    /// Continue this directory's session with exactly this id, or start it
    #[arg(help_heading = SESSION, long, value_name = "ID", conflicts_with_all = ["continue_session", "resume", "session", "fork"])]
    pub session_id: Option<String>,

    /// Continue a copy of the session with this file, id or start of an id, in this directory
    #[arg(help_heading = SESSION, long, value_name = "PATH|ID", conflicts_with = "no_session")]
    pub fork: Option<String>,

    /// Write a session as a web page, and exit: a file or id, and the page's file
    #[arg(help_heading = SESSION, long, value_names = ["PATH|ID", "FILE"], num_args = 1..=2)]
    pub export: Option<Vec<String>>,

    /// Keep the session in memory only
    #[arg(help_heading = SESSION, long)]
    pub no_session: bool,

    /// Directory for session files
    #[arg(help_heading = SESSION, long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,

    /// Name of the session
    #[arg(help_heading = SESSION, short, long, value_name = "NAME")]
    pub name: Option<String>,

    /// Tools the model may call, separated by commas (read, bash, edit, write, grep, find, ls); +NAME and -NAME change the selection, * matches any part
    #[arg(help_heading = TOOLS, short, long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, conflicts_with = "no_tools")]
    pub tools: Option<Vec<String>>,

    /// Tools the model may not call, separated by commas [short: -xt]
    #[arg(help_heading = TOOLS, long, value_name = "LIST", value_delimiter = ',')]
    pub exclude_tools: Option<Vec<String>>,

    /// Give the model no tools [short: -nt]
    #[arg(help_heading = TOOLS, long)]
    pub no_tools: bool,

    /// Replace the system prompt with this text or file
    #[arg(help_heading = TOOLS, long, value_name = "TEXT|FILE")]
    pub system_prompt: Option<String>,

    /// Append this text or file to the system prompt; repeatable
    #[arg(help_heading = TOOLS, long, value_name = "TEXT|FILE")]
    pub append_system_prompt: Vec<String>,

    /// Don't load AGENTS.md or CLAUDE.md [short: -nc]
    #[arg(help_heading = TOOLS, long)]
    pub no_context_files: bool,

    /// Load an additional skill: a SKILL.md or a directory of skills; repeatable
    #[arg(help_heading = TOOLS, long, value_name = "PATH")]
    pub skill: Vec<PathBuf>,

    /// Load no skills except those given with --skill [short: -ns]
    #[arg(help_heading = TOOLS, long)]
    pub no_skills: bool,

    /// Load an additional prompt template or a directory of them; repeatable
    #[arg(help_heading = TOOLS, long, value_name = "PATH")]
    pub prompt_template: Vec<PathBuf>,

    /// Load no prompt templates except those given with --prompt-template [short: -np]
    #[arg(help_heading = TOOLS, long)]
    pub no_prompt_templates: bool,

    /// Trust this directory for this run and load its skills, templates, settings and system prompts
    #[arg(help_heading = LIMITS, short, long, conflicts_with = "no_approve")]
    pub approve: bool,

    /// Don't trust this directory for this run [short: -na]
    #[arg(help_heading = LIMITS, long)]
    pub no_approve: bool,

    /// Stop when a prompt has cost more than this, in US dollars, and ask whether to continue; 0 means no limit
    #[arg(help_heading = LIMITS, long, value_name = "USD", value_parser = parse_usd, allow_negative_numbers = true)]
    pub max_turn_cost: Option<f64>,

    /// Stop after this many answers to a prompt, and ask whether to continue
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = positive::<u32>, allow_negative_numbers = true)]
    pub max_turns: Option<u32>,

    /// Stop when the session has cost more than this, in US dollars, and ask whether to continue; 0 means no limit
    #[arg(help_heading = LIMITS, long, visible_alias = "max-cost", value_name = "USD", value_parser = parse_usd, allow_negative_numbers = true)]
    pub max_session_cost: Option<f64>,

    /// Stop when all sessions of the day have cost more than this, in US dollars, and ask whether to continue; 0 means no limit
    #[arg(help_heading = LIMITS, long, value_name = "USD", value_parser = parse_usd, allow_negative_numbers = true)]
    pub max_day_cost: Option<f64>,

    /// Theme: dark, light, system, one of your own, or LIGHT/DARK to follow the terminal
    #[arg(help_heading = SCREEN, long, value_name = "NAME", value_parser = Suggested(themes), hide_possible_values = true)]
    pub use_theme: Option<String>,

    /// Add a theme: a file or a directory of them; choose it with --use-theme; repeatable
    #[arg(help_heading = SCREEN, long, value_name = "PATH")]
    pub theme: Vec<PathBuf>,

    /// Use no themes except the built-in ones and those given with --theme
    #[arg(help_heading = SCREEN, long)]
    pub no_themes: bool,

    /// Screen: regular (with the terminal's scrollback) or fullscreen
    #[arg(help_heading = SCREEN, long, value_name = "MODE", value_parser = ["regular", "fullscreen"])]
    pub tui_mode: Option<String>,

    /// Write the conversation as plain lines, for screen readers
    #[arg(help_heading = SCREEN, long)]
    pub screen_reader: bool,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// The arguments of `pi models`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ModelsArgs {
    /// Only models that match this text
    pub(super) search: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum SubCommand {
    /// Serve an editor that speaks the Agent Client Protocol
    Acp(AcpArgs),
    /// Manage keys and sign-ins: status, login, logout, check
    Auth(AuthArgs),
    /// Show and change settings: list, get, set, unset, path, schema
    Config(ConfigArgs),
    /// Turn a conversation in a provider's request format into a session
    Import(ImportArgs),
    /// Write a session as a web page, as Markdown or in a provider's request format
    Export(ExportArgs),
    /// List sessions, or search their texts
    Sessions(SessionsArgs),
    /// Show the prompts, steps and tool calls of a session
    Trace(TraceArgs),
    /// Show tokens and costs by day, model and project
    Usage(UsageArgs),
    /// Check the terminal, files and providers, and say what to change
    Doctor(DoctorArgs),
    /// List the models, those with a key first, as --list-models
    Models(ModelsArgs),
    /// Print pages of the documentation, or the sections about something
    Docs(DocsArgs),
    /// Print a script that completes the arguments of pi in a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// `help` is no sub-command: `pi help me with this` is a message.
const HELP_TEMPLATE: &str = "{about-with-newline}
{usage-heading} {usage}

{all-args}{after-help}";

const AFTER_HELP: &str = "pi help COMMAND explains a command; pi docs prints the documentation. Without a key pi starts with its offline \
demo model.\nKeys and slash commands: type /hotkeys in pi. Settings: type /settings, or pi config.";

fn parse_usd(text: &str) -> Result<f64, String> {
    let dollars = text.trim_start_matches('$').parse::<f64>().ok();
    dollars.filter(|usd| (0.0..1e6).contains(usd)).ok_or_else(|| "expected an amount such as 2.50".to_owned())
}

/// A number of things.
pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more".to_owned())
}

/// A number of things that is not zero.
pub(super) fn positive<T: FromStr + PartialEq + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number != T::from(0));
    number.ok_or_else(|| "expected a whole number, 1 or more".to_owned())
}

/// The front end that the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Text,
    Json,
    Rpc,
}

const MODES: [&str; 3] = ["text", "json", "rpc"];

#[expect(clippy::needless_pass_by_value, reason = "the signature of a parser")]
fn parse_mode(text: String) -> Result<Mode, String> {
    match text.as_str() {
        "text" => Ok(Mode::Text),
        "json" => Ok(Mode::Json),
        "rpc" => Ok(Mode::Rpc),
        _ => Err("expected text, json or rpc".to_owned()),
    }
}

fn levels() -> [&'static str; ThinkingLevel::ALL.len()] {
    ThinkingLevel::ALL.map(ThinkingLevel::name)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a parser")]
fn parse_level(text: String) -> Result<ThinkingLevel, String> {
    ThinkingLevel::parse(&text).ok_or_else(|| format!("expected one of {}", levels().join(", ")))
}

/// A flag of the original without effect in this version.
#[derive(Debug, Clone, Copy)]
pub struct IgnoredFlag {
    pub long: &'static str,
    /// Short form, empty if there is none.
    pub short: &'static str,
    pub takes_value: bool,
    /// Why it has no effect.
    pub why: &'static str,
}

const fn ignored(
    long: &'static str,
    short: &'static str,
    takes_value: bool,
    why: &'static str,
) -> IgnoredFlag {
    IgnoredFlag { long, short, takes_value, why }
}

/// Flags of the original that are accepted with a note, so that scripts and
/// habits need not change.
pub const IGNORED: &[IgnoredFlag] = &[
    ignored("--offline", "", false, "pi contacts only the model's provider"),
    ignored("--verbose", "", false, "there is no extended startup output"),
    ignored("--extension", "-e", true, "there are no extensions yet"),
    ignored("--no-extensions", "-ne", false, "there are no extensions yet"),
    ignored("--no-mcp", "", false, "there are no MCP servers yet"),
];

/// Short flags of more than one letter, which clap does not support, and alternative
/// spellings.
const SHORT: &[(&str, &str)] = &[
    ("-nt", "--no-tools"),
    ("-nbt", "--no-tools"),
    ("--no-builtin-tools", "--no-tools"),
    ("-nc", "--no-context-files"),
    ("-ns", "--no-skills"),
    ("-np", "--no-prompt-templates"),
    ("-na", "--no-approve"),
    ("-xt", "--exclude-tools"),
];

/// Whether `pi FLAG` means something.
pub(super) fn is_general_flag(flag: &str) -> bool {
    let name = flag.split('=').next().unwrap_or(flag);
    let is_of_clap = |arg: &clap::Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => arg.get_short().is_some_and(|short| name.strip_prefix('-') == Some(&*short.to_string())),
    };
    ["--", "--help", "-h"].contains(&name)
        || IGNORED.iter().any(|flag| [flag.long, flag.short].contains(&name))
        || SHORT.iter().any(|(short, _)| *short == name)
        || Args::command().get_arguments().any(is_of_clap)
}

/// The sub-command that follows flags of pi in `words`, the arguments without the program's name; `None` if
/// the flags ask for an answer with `--print` or `--mode`, or the word is the value of a flag.
pub(super) fn command_after_flags(words: &[OsString]) -> Option<&str> {
    let is_command = |word: &OsString| word.to_str().is_some_and(SubCommand::has_subcommand);
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    // Most starts end here, without the table of flags.
    if !words.first().is_some_and(is_flag) || !words.iter().any(is_command) {
        return None;
    }
    let command = Args::command();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if !is_flag(word) {
            return word.to_str().filter(|word| SubCommand::has_subcommand(word));
        }
        let FlagShape { asks_for_answer, values } = FlagShape::of(&command, word.to_str()?)?;
        if asks_for_answer {
            return None;
        }
        for n in 0..values.max_values() {
            let is_value = n < values.min_values() || words.peek().is_some_and(|next| !is_flag(next));
            if is_value {
                words.next();
            }
        }
    }
    None
}

/// What a word with flags does to the words after it.
struct FlagShape {
    asks_for_answer: bool,
    /// Number of words after it that are values.
    values: ValueRange,
}

impl FlagShape {
    /// `None` for a word that is no flag of pi, and for `--`.
    fn of(command: &clap::Command, word: &str) -> Option<Self> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let long = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| *long);
        let shape = |n_values: ValueRange, asks_for_answer: bool| Self {
            asks_for_answer,
            values: if value.is_some() { ValueRange::EMPTY } else { n_values },
        };
        if let Some(flag) = IGNORED.iter().find(|flag| [flag.long, flag.short].contains(&long)) {
            return Some(shape(usize::from(flag.takes_value).into(), false));
        }
        let n_values = |arg: &clap::Arg| match arg.get_num_args() {
            Some(range) => range,
            None => usize::from(arg.get_action().takes_values()).into(),
        };
        let mut args = command.get_arguments();
        if let Some(name) = long.strip_prefix("--") {
            let is_it = |arg: &&clap::Arg| {
                arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name))
            };
            return Some(shape(n_values(args.find(is_it)?), ["print", "mode"].contains(&name)));
        }
        // Several letters, of which the last one may have a value, in the same word or the next.
        let mut asks_for_answer = false;
        let letters = name.strip_prefix('-')?;
        for (idx, letter) in letters.char_indices() {
            let arg = command.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
            asks_for_answer |= letter == 'p';
            let range = n_values(arg);
            if range.takes_values() {
                let is_last = idx + letter.len_utf8() == letters.len();
                let range = if is_last { range } else { ValueRange::EMPTY };
                return Some(shape(range, asks_for_answer));
            }
        }
        Some(shape(ValueRange::EMPTY, asks_for_answer))
    }
}

/// Stands before the dashes of a message that begins with them, which would be a flag for clap.
const DASHES: &str = "\0";

/// The arguments for clap, and notes about the others.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sorted {
    pub(super) args: Vec<OsString>,
    pub(super) notes: Vec<String>,
}

/// Expands short flags and removes ignored flags of the original, up to `--`. The word after
/// `--print` is a message if it begins with three dashes, as a text with frontmatter does.
pub(super) fn sort_out(args: impl Iterator<Item = OsString>) -> Sorted {
    let mut sorted = Sorted::default();
    let mut args = args;
    while let Some(arg) = args.next() {
        if arg == "--" {
            sorted.args.push(arg);
            sorted.args.extend(args);
            break;
        }
        let text = arg.to_string_lossy();
        let is_printed = sorted.args.last().is_some_and(|last| last == "-p" || last == "--print");
        if is_printed && text.starts_with("---") {
            let message = [DASHES, &*text].concat().into();
            sorted.args.push(message);
            continue;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_ref(), None),
        };
        let is = |long: &str, short: &str| name == long || !short.is_empty() && name == short;
        if let Some(flag) = IGNORED.iter().find(|flag| is(flag.long, flag.short)) {
            if flag.takes_value && value.is_none() {
                args.next();
            }
            sorted.notes.push(format!("{name} has no effect: {}", flag.why));
            continue;
        }
        let long = SHORT.iter().find(|(short, _)| text == *short).map(|(_, long)| OsString::from(long));
        sorted.args.push(long.unwrap_or(arg));
    }
    sorted
}

/// The flags and the sub-commands.
pub fn command() -> clap::Command {
    SubCommand::augment_subcommands(Args::command())
}

/// Parses the arguments, the program's name first. The error for an unknown flag suggests
/// one of the command's flags with a similar spelling.
pub(super) fn parse(words: Vec<OsString>) -> Result<Args, clap::Error> {
    let is_first = |word: &OsString| word.to_str().is_some_and(SubCommand::has_subcommand);
    let asks_for_help = || words.iter().any(|word| word == "--help" || word == "-h");
    // Most starts need no sub-command, and all of them are much to set up.
    let has_commands = words.get(1).is_some_and(is_first) || asks_for_help();
    let mut command = if has_commands { command() } else { Args::command() };
    let parsed = command.try_get_matches_from_mut(&words).and_then(|found| {
        let mut args = Args::from_arg_matches(&found)?;
        if found.subcommand_name().is_some() {
            args.command = Some(SubCommand::from_arg_matches(&found)?);
        }
        for message in &mut args.messages {
            if let Some(text) = message.strip_prefix(DASHES) {
                *message = text.to_owned();
            }
        }
        Ok(args)
    });
    parsed.map_err(|error| with_tip(error, named(&mut command, words.get(1..).unwrap_or_default())))
}

/// The innermost sub-command in the first of `words`.
fn named<'c>(command: &'c mut clap::Command, words: &[OsString]) -> &'c mut clap::Command {
    match words {
        [name, rest @ ..] if command.find_subcommand(name).is_some() => {
            named(command.find_subcommand_mut(name).expect("found just now"), rest)
        }
        _ => command,
    }
}

/// Suggests a flag with a similar spelling for one that `command` does not know.
/// The parser's own suggestions are less likely.
fn with_tip(mut error: clap::Error, command: &mut clap::Command) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let wrong = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) => wrong.clone(),
        _ => return error,
    };
    command.build();
    let known: Vec<String> =
        command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let word = wrong.split('=').next().unwrap_or_default();
    let meant = word.starts_with("--").then(|| nearest(word, &names)).flatten();
    error.remove(ContextKind::Suggested);
    error.remove(ContextKind::SuggestedArg);
    if let Some(meant) = meant {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(meant.to_owned()));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn flags_and_messages_mix() {
        let args = sort(&["pi", "-p", "hello", "@a.txt", "-nc", "--", "-nt"]).args;
        let args = parse(args).unwrap();
        assert!(args.print && args.no_context_files && !args.no_tools);
        assert_eq!(args.messages, ["hello", "@a.txt", "-nt"]);
    }

    fn sort(args: &[&str]) -> Sorted {
        sort_out(args.iter().map(OsString::from))
    }

    #[test]
    fn the_word_after_print_may_begin_with_three_dashes() {
        let text = "---\nname: x\n---\ngo";
        let args = parse(sort(&["pi", "-p", text, "-nc", "then"]).args).unwrap();
        assert_eq!((args.messages, args.no_context_files), (vec![text.to_owned(), "then".to_owned()], true));
        let error = parse(sort(&["pi", "-nc", "---x"]).args).unwrap_err().to_string();
        assert!(error.starts_with("error: unexpected argument '---x' found"), "{error}");
    }

    #[test]
    fn flags_of_the_original_are_accepted_with_a_note() {
        let args = ["pi", "--offline", "-ne", "-n", "x", "--extension=a", "go", "--", "--verbose"];
        let sorted = sort(&args);
        assert_eq!(sorted.args, ["pi", "-n", "x", "go", "--", "--verbose"].map(OsString::from));
        let notes = "--offline -ne --extension".split(' ');
        assert!(
            sorted
                .notes
                .iter()
                .zip(notes)
                .all(|(note, flag)| note.starts_with(&format!("{flag} has no effect: ")))
        );
        assert_eq!(sorted.notes.len(), 3);
    }

    #[test]
    fn tools_are_excluded_in_every_spelling() {
        let excluded = |words: &[&str]| parse(sort(words).args).unwrap().exclude_tools.unwrap();
        assert_eq!(excluded(&["pi", "-xt", "bash,write"]), ["bash", "write"]);
        assert_eq!(excluded(&["pi", "--exclude-tools=bash", "go"]), ["bash"]);
        let args = parse(sort(&["pi", "-t", "-bash,+ls", "go"]).args).unwrap();
        assert_eq!(
            (args.tools.unwrap(), args.messages),
            (vec!["-bash".to_owned(), "+ls".to_owned()], vec!["go".to_owned()])
        );
    }

    #[test]
    fn a_misspelt_flag_is_told_apart_from_an_unknown_one() {
        let tip_for = |words: &[&str]| {
            let words: Vec<OsString> = ["pi"].iter().chain(words).map(OsString::from).collect();
            let text = parse(words).unwrap_err().to_string();
            text.lines().find_map(|line| line.trim().strip_prefix("tip: ").map(str::to_owned))
        };
        let tip = |flag: &str| tip_for(&[flag]);
        let means = |flag: &str| Some(format!("a similar argument exists: '{flag}'"));
        assert_eq!(tip("--modle"), means("--model"));
        assert_eq!(tip("--resum"), means("--resume"));
        assert_eq!(tip("--no-contextfiles"), means("--no-context-files"));
        assert_eq!(tip("--bogus"), None);
        assert_eq!(tip("--force"), means("--fork"));
        assert_eq!(tip_for(&["export", "--froce"]), means("--force"));
        assert_eq!(tip_for(&["auth", "status", "--jsn"]), means("--json"));
    }

    #[test]
    fn help_lists_the_sub_commands() {
        let help = command().render_help().to_string();
        let (_, listed) = help.split_once("\nCommands:\n").unwrap();
        let listed: Vec<&str> = listed.lines().map_while(|line| line.strip_prefix("  ")).collect();
        let expected = [
            "acp          Serve an editor that speaks the Agent Client Protocol",
            "auth         Manage keys and sign-ins: status, login, logout, check",
            "config       Show and change settings: list, get, set, unset, path, schema",
            "import       Turn a conversation in a provider's request format into a session",
            "export       Write a session as a web page, as Markdown or in a provider's request format",
            "sessions     List sessions, or search their texts",
            "trace        Show the prompts, steps and tool calls of a session",
            "usage        Show tokens and costs by day, model and project",
            "doctor       Check the terminal, files and providers, and say what to change",
            "models       List the models, those with a key first, as --list-models",
            "docs         Print pages of the documentation, or the sections about something",
            "completions  Print a script that completes the arguments of pi in a shell",
            "man          Print the manual page",
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn help_shows_flags_in_groups() {
        let help = command().render_help().to_string();
        let headings = help.lines().filter(|line| !line.starts_with(' ') && line.ends_with(':'));
        let headings: Vec<&str> = headings.collect();
        let groups = [OUTPUT, MODEL, SESSION, TOOLS, LIMITS, SCREEN].map(|group| format!("{group}:"));
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        assert_eq!(headings, [&["Commands:", "Arguments:", "Options:"][..], &groups].concat());
        let (_, general) = help.split_once("\nOptions:\n").unwrap();
        let general: Vec<&str> = general.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(general.len(), 2, "only --version and --help are in no group: {general:?}");
    }

    #[test]
    fn a_sub_command_is_the_first_word_and_its_help_names_it() {
        let parse = |words: &[&str]| parse([&["pi"], words].concat().iter().map(OsString::from).collect());
        assert!(matches!(parse(&["auth", "status"]).unwrap().command, Some(SubCommand::Auth(_))));
        for words in [&["-p", "auth"][..], &["--model", "m", "import"], &["--", "export"], &["fix", "auth"]] {
            let args = parse(words).unwrap();
            assert!(args.command.is_none(), "{words:?}");
            assert_eq!(args.messages.last().map(String::as_str), words.last().copied());
        }
        for (words, usage) in [
            (&["auth", "--help"][..], "Usage: pi auth <COMMAND>"),
            (&["auth", "login", "--help"], "Usage: pi auth login [OPTIONS] <PROVIDER>"),
            (&["import", "--help"], "Usage: pi import [OPTIONS] --from <FORMAT> <FILE>"),
            (&["export", "-h"], "Usage: pi export [OPTIONS] <SESSION> [FILE]"),
            (&["sessions", "--help"], "Usage: pi sessions [OPTIONS]"),
        ] {
            let help = parse(words).unwrap_err();
            assert!(!help.use_stderr() && help.to_string().contains(usage), "{help}");
        }
        for (words, usage) in [(&["import"][..], "pi import --from"), (&["auth"], "Usage: pi auth")] {
            let error = parse(words).unwrap_err();
            assert!(error.use_stderr() && error.to_string().contains(usage), "{error}");
        }
    }

    #[test]
    fn wrong_numbers_are_answered_with_what_is_expected() {
        let check = |words: &[&str], expected: &str| {
            let words = [&["pi"], words].concat();
            let error = parse(words.iter().map(OsString::from).collect()).unwrap_err().to_string();
            assert!(error.contains(expected), "{words:?}: {error}");
        };
        check(&["--max-turns", "0"], "expected a whole number, 1 or more");
        check(&["--max-turns", "-1"], "expected a whole number, 1 or more");
        check(&["--max-turns", "99999999999"], "expected a whole number, 1 or more");
        check(&["--max-cost", "-1"], "expected an amount such as 2.50");
        check(&["--max-turn-cost", "inf"], "expected an amount such as 2.50");
        check(&["usage", "--days", "0"], "expected a whole number, 1 or more");
        check(&["sessions", "--limit", "-1"], "expected a whole number, 0 or more");
        check(&["trace", "--limit", "some"], "expected a whole number, 1 or more");
    }

    #[test]
    fn every_argument_has_help() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} of {}", arg.get_id(), command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }

    #[test]
    fn thinking_levels_are_read_in_any_case() {
        let args = parse(["pi", "--thinking", "HIGH"].map(OsString::from).to_vec()).unwrap();
        assert_eq!(args.thinking, Some(ThinkingLevel::High));
    }

    #[test]
    fn wrong_flags_are_errors() {
        for args in
            [&["pi", "--bogus"][..], &["pi", "-z"], &["pi", "--thinking", "hard"], &["pi", "-c", "-r"]]
        {
            assert!(parse(args.iter().map(OsString::from).collect()).is_err(), "{args:?}");
        }
    }
}
