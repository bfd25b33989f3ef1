//! First words that are no sub-commands of this version, such as `pi install` and
//! `pi exprot`. They must not be sent to a model.

use std::ffi::OsString;

use clap::Command;

use crate::modes::{self, UsageError};
use crate::util::nearest::nearest;

use super::args;

/// Sub-commands of the original that this version does not have, and what to do instead. As
/// the first word they are never a message, because the original and later versions run them.
const NOT_YET: &[(&str, &str)] = &[
    ("install", PACKAGES),
    ("list", "this version has no packages; pi models lists models, pi sessions lists sessions"),
    (
        "mcp",
        "this version has no MCP servers; give the model commands that it can run with bash, described in a skill (pi docs skills)",
    ),
    ("remove", PACKAGES),
    ("uninstall", PACKAGES),
    (
        "update",
        "install a newer version to update pi; models are in ~/.pi/agent/models.json, and there are no packages to update",
    ),
];

const PACKAGES: &str = "this version has no packages; copy their skills, prompts and themes to ~/.pi/agent/skills, prompts and themes, \
or name their directories in the settings of these names";

/// Common other names of sub-commands and flags.
const ALIASES: &[(&str, &str)] = &[
    ("continue", "pi --continue"),
    ("login", "pi auth login"),
    ("logout", "pi auth logout"),
    ("resume", "pi --resume"),
    ("settings", "pi config"),
    ("status", "pi auth status"),
    ("upgrade", "pi --version"),
    ("version", "pi --version"),
];

/// Rejects command lines that begin with a sub-command which this version does not have, or with
/// flags before a sub-command;
/// `words` are the arguments without the program's name. Their flags are not those of pi, so
/// that this comes before flags are parsed.
///
/// # Errors
/// Names what to do instead.
pub(super) fn check_first(words: &[OsString]) -> anyhow::Result<()> {
    let [first, rest @ ..] = words else { return Ok(()) };
    if let Some(name) = args::command_after_flags(words) {
        anyhow::bail!(UsageError(format!(
            "a command comes first, and its flags follow it: pi {name}; pi help {name} shows them. To ask a \
             model, use quotes: pi \"{name} …\""
        )));
    }
    let (first, next) = (first.to_str().unwrap_or_default(), rest.first().and_then(|next| next.to_str()));
    let is_meant = match next {
        _ if is_not_yet(first) => true,
        Some(command) if first == "help" && rest.len() == 1 => {
            let is_known = command == "help" || args::command().find_subcommand(command).is_some();
            anyhow::ensure!(is_known || !looks_like_a_command(command), UsageError(refusal(command)));
            false
        }
        Some(flag) if flag.starts_with('-') => !args::is_general_flag(flag) && misspelt(first).is_some(),
        _ => false,
    };
    anyhow::ensure!(!is_meant, UsageError(refusal(first)));
    Ok(())
}

/// Rejects messages that are not for a model: a first word that looks like a
/// command, and slash commands of the interactive mode, which are no prompt templates. With `is_print`, the user asked for an answer with
/// `--print`, which makes any word a prompt.
///
/// # Errors
/// Names the command to type instead.
pub(super) fn check(messages: &[String], is_print: bool) -> anyhow::Result<()> {
    for message in messages {
        if let Some(name) = modes::command_name(message).filter(|name| modes::is_command(name)) {
            anyhow::bail!(UsageError(format!(
                "/{name} is a command of the interactive mode; start pi and type it there"
            )));
        }
    }
    if is_print {
        return Ok(());
    }
    match messages.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [word] if looks_like_a_command(word) => anyhow::bail!(UsageError(refusal(word))),
        [word, argument] if is_command_line(word, argument) => anyhow::bail!(UsageError(refusal(word))),
        [word, argument, ..] if misspelt(word).is_some_and(|meant| has_sub_command(&meant, argument)) => {
            anyhow::bail!(UsageError(refusal(word)))
        }
        _ => Ok(()),
    }
}

/// Whether two words are a command and its argument: `pi exprot 0198c2`, `pi login anthropic`.
/// Two words may also be a question, so only letters in wrong order count as a mistake here.
fn is_command_line(word: &str, argument: &str) -> bool {
    let is_alias = ["login", "logout"].contains(&word);
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_swapped = misspelt(word).is_some_and(|meant| letters(&meant) == letters(word));
    !argument.contains(char::is_whitespace) && (is_alias || is_swapped)
}

fn is_not_yet(word: &str) -> bool {
    NOT_YET.iter().any(|(name, _)| *name == word)
}

fn has_sub_command(command: &str, word: &str) -> bool {
    args::command().find_subcommand(command).is_some_and(|found| found.find_subcommand(word).is_some())
}

/// The sub-command that `word` was probably meant to be.
fn misspelt(word: &str) -> Option<String> {
    if word == "help" || !looks_like_a_command(word) {
        return None;
    }
    let command = args::command();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    nearest(word, &names).filter(|meant| *meant != word).map(str::to_owned)
}

fn looks_like_a_command(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
}

fn refusal(word: &str) -> String {
    if let Some((name, instead)) = NOT_YET.iter().find(|(name, _)| *name == word) {
        return format!(
            "pi {name} is not supported yet: {instead}. To ask a model, use quotes: pi \"{name} …\""
        );
    }
    let command = args::command();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).chain(["help"]).collect();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, command)| (*command).to_owned());
    let tip = match alias.or_else(|| nearest(word, &names).map(|name| format!("pi {name}"))) {
        Some(command) => format!("did you mean {command}?"),
        None => "pi --help lists all commands.".to_owned(),
    };
    format!("pi has no command \"{word}\"; {tip} To ask a model, use more words, or pi -p {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(messages: &[&str], expected: &str) {
        let messages: Vec<String> = messages.iter().map(|&message| message.to_owned()).collect();
        assert_eq!(check(&messages, false).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_lone_word_that_looks_like_a_command_is_no_prompt() {
        refused(
            &["improt"],
            "pi has no command \"improt\"; did you mean pi import? To ask a model, use more words, or pi -p improt",
        );
        refused(
            &["resume"],
            "pi has no command \"resume\"; did you mean pi --resume? To ask a model, use more words, or pi -p resume",
        );
        refused(
            &["frobnicate"],
            "pi has no command \"frobnicate\"; pi --help lists all commands. To ask a model, use more \
             words, or pi -p frobnicate",
        );
        refused(&["/compact"], "/compact is a command of the interactive mode; start pi and type it there");
    }

    #[test]
    fn a_misspelt_command_with_its_arguments_is_no_prompt() {
        for (messages, meant) in [
            (&["exprot", "0198c2"][..], "pi export?"),
            (&["auht", "login"], "pi auth?"),
            (&["confg", "set", "theme", "dark"], "pi config?"),
            (&["login", "anthropic"], "pi auth login?"),
            (&["logout", "anthropic"], "pi auth logout?"),
        ] {
            let messages: Vec<String> = messages.iter().map(|&message| message.to_owned()).collect();
            let told = check(&messages, false).unwrap_err().to_string();
            assert!(told.contains(meant), "{messages:?}: {told}");
            assert!(check(&messages, true).is_ok(), "{messages:?}");
        }
    }

    /// The error for these arguments, before flags are parsed.
    fn first(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        check_first(&words).err().map(|error| error.to_string())
    }

    #[test]
    fn sub_commands_of_the_original_say_what_to_do_instead_whatever_follows() {
        for (name, instead) in NOT_YET {
            for rest in [&[][..], &["x"], &["-l", "npm:x"], &["--all"], &["the", "docs"], &["--help"]] {
                let told = first(&[&[*name], rest].concat()).unwrap_or_default();
                let expected = format!(
                    "pi {name} is not supported yet: {instead}. To ask a model, use quotes: pi \"{name} …\""
                );
                assert_eq!(told, expected, "{rest:?}");
            }
            assert!(first(&["help", name]).is_some() && first(&["-p", name]).is_none());
            assert!(first(&[&format!("{name} the docs")]).is_none());
        }
    }

    #[test]
    fn flags_of_a_misspelt_command_are_not_taken_for_those_of_pi() {
        assert!(first(&["sesions", "--json"]).unwrap().contains("did you mean pi sessions?"));
        assert!(first(&["help", "sesions"]).unwrap().contains("did you mean pi sessions?"));
        assert!(first(&["help", "nope"]).unwrap().contains("pi --help lists all commands."));
        for words in [
            &["sesions", "--model", "m"][..],
            &["hello", "--jsn"],
            &["sessions", "--json"],
            &["help", "auth"],
            &["help", "me", "out"],
        ] {
            assert_eq!(first(words), None, "{words:?}");
        }
    }

    #[test]
    fn flags_before_a_command_are_refused_unless_an_answer_is_asked_for() {
        for words in [
            "-a config list",
            "--model m sessions --json",
            "--model=m sessions",
            "-n name trace",
            "-nname trace",
            "-xt bash,ls doctor",
            "--offline -e x.ts auth status",
            "--list-models x models",
            "--session-dir d export abc a.md",
            "-ca usage",
        ] {
            let told = first(&words.split(' ').collect::<Vec<_>>()).unwrap_or_default();
            assert!(
                told.starts_with("a command comes first, and its flags follow it: pi "),
                "{words}: {told}"
            );
        }
        for words in [
            "-p config list",
            "-pa config",
            "--mode json config",
            "--mode=text config list",
            "-a -- config list",
            "-n config hello",
            "--session import",
            "-xt auth hello",
            "--list-models auth",
            "--export auth models",
            "--nosuch config",
            "-a fix the config",
        ] {
            assert_eq!(first(&words.split(' ').collect::<Vec<_>>()), None, "{words}");
        }
    }

    #[test]
    fn prompts_are_prompts() {
        for messages in [
            &["fix the bug"][..],
            &["fix", "the", "bug"],
            &["does", "this"],
            &["explore", "src"],
            &["track", "changes"],
            &["session", "handling", "is", "broken"],
            &["why?"],
            &["Hello"],
            &["@a.txt"],
            &["/etc/hosts what is this"],
            &["/my-template an argument"],
            &["日本"],
            &[],
        ] {
            let messages: Vec<String> = messages.iter().map(|&message| message.to_owned()).collect();
            assert!(check(&messages, false).is_ok(), "{messages:?}");
        }
        assert!(check(&["update".to_owned()], true).is_ok());
    }
}
