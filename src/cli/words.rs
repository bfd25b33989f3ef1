//! First words that look like a sub-command but are none, such as `pi help` and
//! `pi update`. They must not be sent to a model.

use clap::Command;

use crate::modes;
use crate::util::nearest::nearest;

use super::args;

/// Sub-commands of the original that this version does not have, and their
/// alternatives.
const NOT_YET: &[(&str, &str)] = &[
    ("install", ""),
    ("list", "use pi --list-models for models, pi --resume for sessions"),
    ("mcp", ""),
    ("remove", ""),
    ("uninstall", ""),
    ("update", "build and install a newer version to update"),
];

/// Common other names of sub-commands and flags.
const ALIASES: &[(&str, &str)] = &[
    ("continue", "pi --continue"),
    ("login", "pi auth login"),
    ("logout", "pi auth logout"),
    ("resume", "pi --resume"),
    ("sessions", "pi --resume"),
    ("status", "pi auth status"),
    ("upgrade", "pi --version"),
    ("version", "pi --version"),
];

/// Rejects messages that are not for a model: a single word that looks like a
/// command, and slash commands of the interactive mode, which are no prompt templates. With `is_print`, the user asked for an answer with
/// `--print`, which makes any word a prompt.
///
/// # Errors
/// Names the command to type instead.
pub(super) fn check(messages: &[String], is_print: bool) -> anyhow::Result<()> {
    for message in messages {
        if let Some(name) = modes::command_name(message).filter(|name| modes::is_command(name)) {
            anyhow::bail!("/{name} is a command of the interactive mode; start pi and type it there");
        }
    }
    if is_print {
        return Ok(());
    }
    match messages {
        [word] if looks_like_a_command(word) => anyhow::bail!(refusal(word)),
        // A package, in the original's syntax.
        [word, what] if is_not_yet(word) && what.contains([':', '/', '@']) => anyhow::bail!(refusal(word)),
        [word, flag] if is_not_yet(word) && flag.starts_with('-') => anyhow::bail!(refusal(word)),
        _ => Ok(()),
    }
}

fn is_not_yet(word: &str) -> bool {
    NOT_YET.iter().any(|(name, _)| *name == word)
}

fn looks_like_a_command(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
}

fn refusal(word: &str) -> String {
    if let Some((name, instead)) = NOT_YET.iter().find(|(name, _)| *name == word) {
        let instead = if instead.is_empty() { String::new() } else { format!("; {instead}") };
        return format!("pi {name} is not supported yet{instead}");
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
        refused(&["update"], "pi update is not supported yet; build and install a newer version to update");
        refused(&["install", "npm:x"], "pi install is not supported yet");
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
    fn prompts_are_prompts() {
        for messages in [
            &["fix the bug"][..],
            &["fix", "the", "bug"],
            &["update", "the", "docs"],
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
