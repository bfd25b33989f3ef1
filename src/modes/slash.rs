//! Distinguishes slash commands from other texts that begin with a slash.

use crate::session::PromptTemplate;
use crate::util::nearest::nearest;

/// Folders at the root of a file system: `/tmp what is in there` is a prompt about one.
const ROOT_FOLDERS: &[&str] = &[
    "applications",
    "bin",
    "boot",
    "cores",
    "data",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "library",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "system",
    "tmp",
    "users",
    "usr",
    "var",
    "volumes",
];

/// The name of the command in `text`: one line that
/// begins with a slash and a word of letters, digits and hyphens. `None` for
/// paths, and for any other text.
pub fn command_name(text: &str) -> Option<&str> {
    let line = text.trim().strip_prefix('/')?;
    if line.contains('\n') {
        return None;
    }
    let name = line.split_whitespace().next()?;
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_folder = ROOT_FOLDERS.contains(&name.to_ascii_lowercase().as_str());
    (is_word && !is_folder).then_some(name)
}

/// Commands of the original that this version does not have, and their alternatives.
const NOT_YET: &[(&str, &str)] = &[("mcp", ""), ("llama", "/model lists local servers automatically")];

/// Common other names of commands.
const ALIASES: &[(&str, &str)] = &[
    ("?", "hotkeys"),
    ("bug", "debug"),
    ("clear", "new"),
    ("commands", "hotkeys"),
    ("config", "settings"),
    ("continue", "resume"),
    ("cost", "session"),
    ("exit", "quit"),
    ("help", "hotkeys"),
    ("keys", "hotkeys"),
    ("models", "model"),
    ("q", "quit"),
    ("rename", "name"),
    ("reset", "new"),
    ("sessions", "resume"),
    ("signin", "login"),
    ("status", "session"),
    ("think", "thinking"),
];

/// Whether this is a command of the original that this version does not have.
pub(super) fn is_unsupported(name: &str) -> bool {
    NOT_YET.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// The message about a command that is not in `known`: the nearest one, that
/// this version does not have it, or how to list all.
pub(super) fn unknown_command(name: &str, known: &[&str], how_to_list: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if let Some((name, instead)) = NOT_YET.iter().find(|(other, _)| *other == lower) {
        let instead = if instead.is_empty() { String::new() } else { format!("; {instead}") };
        return format!("/{name} is not supported yet{instead}");
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, command)| *command);
    match alias.filter(|alias| known.contains(alias)).or_else(|| nearest(&lower, known)) {
        Some(command) => format!("there is no command /{name}; did you mean /{command}?"),
        None => format!("there is no command /{name}; {how_to_list}"),
    }
}

/// Why `text` is not sent without a user who could correct it: it calls a prompt template by a
/// name that is nearly one of `templates`.
pub(super) fn misspelt_template(text: &str, templates: &[PromptTemplate]) -> Option<String> {
    let name = command_name(text)?;
    let known: Vec<&str> = templates.iter().map(|template| template.name.as_str()).collect();
    let meant = nearest(&name.to_ascii_lowercase(), &known).filter(|meant| *meant != name)?;
    (!known.contains(&name)).then(|| format!("there is no prompt template /{name}; did you mean /{meant}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_texts_are_no_commands() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(command_name(text), expected, "{text}");
        check("/compact", Some("compact"));
        check(" /update now ", Some("update"));
        check("/scoped-models", Some("scoped-models"));
        check("/etc/hosts what is this", None);
        check("/tmp/x", None);
        check("/tmp what is in there?", None);
        check("/Users is empty", None);
        check("/index.html is broken", None);
        check("/skill:review it", None);
        check("/compact\nis a word", None);
        check("// a comment", None);
        check("/* a comment */", None);
        check("/5 of it", None);
        check("/", None);
        check("compact", None);
    }

    #[test]
    fn the_nearest_command_is_named() {
        let known = ["model", "new", "resume", "quit", "hotkeys", "session", "thinking"];
        let check = |name: &str, expected: &str| {
            assert_eq!(unknown_command(name, &known, "type / to list all commands"), expected);
        };
        check("modle", "there is no command /modle; did you mean /model?");
        check("resum", "there is no command /resum; did you mean /resume?");
        check("thin", "there is no command /thin; did you mean /thinking?");
        check("help", "there is no command /help; did you mean /hotkeys?");
        check("exit", "there is no command /exit; did you mean /quit?");
        check("frobnicate", "there is no command /frobnicate; type / to list all commands");
        check("mcp", "/mcp is not supported yet");
        check("Llama", "/llama is not supported yet; /model lists local servers automatically");
    }
}
