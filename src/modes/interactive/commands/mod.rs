//! TABLE: the slash commands. Parser, completion and help read it.

mod login;
mod model;
mod session;
mod view;

use crate::session::{Phase, SessionState};

use super::app::App;
use super::msg::Effect;

pub(super) use model::open_models;
pub(super) use session::{ask_to_import, new_session, open_fork, open_queue, open_tree, open_tree_at};
pub(super) use view::on_themes;

use session::unquoted;

/// A slash command.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// The arguments, for help; empty if there are none.
    pub(super) args: &'static str,
    /// One line, imperative, no full stop.
    pub(super) help: &'static str,
    /// Receives the text after the name, trimmed.
    pub(super) run: fn(&mut App, &str, &mut Vec<Effect>),
}

// Commands that open a list come first, because Enter after a lone slash runs the first command.
const TABLES: &[&[Command]] = &[model::COMMANDS, session::COMMANDS, login::COMMANDS, view::COMMANDS];

/// Commands that end or delete something. They are never first among
/// others, and Enter runs one only if at least half of it was typed.
pub(super) const ENDING: &[&str] = &["new", "quit", "logout"];

/// Commands that the session refuses while the agent works.
const WAIT_FOR_AGENT: &[&str] = &["compact", "handoff", "reload"];

/// Whether the session would refuse this command now, because the agent works.
pub(super) fn waits_for_agent(command: &Command, args: &str, session: &SessionState) -> bool {
    // A summary that waits for the user is shown at any time.
    let shows_draft =
        session.summary_draft.is_some() && args.split_whitespace().next().is_some_and(|arg| arg == "--edit");
    session.phase != Phase::Idle && WAIT_FOR_AGENT.contains(&command.name) && !shows_draft
}

/// Returns why the arguments of a command are invalid, or `None`; called before it runs.
type Check = fn(&str, &SessionState) -> Option<String>;

const CHECKS: &[(&str, Check)] = &[
    ("compact", session::invalid_compact),
    ("export", session::invalid_export),
    ("thinking", model::invalid_level),
    ("trace", session::invalid_trace),
];

/// Why this command cannot do anything with these arguments.
pub(super) fn wrong_arguments(command: &Command, args: &str, session: &SessionState) -> Option<String> {
    let name = command.name;
    if lacks_arguments(command, args) {
        return Some(format!("/{name} needs an argument: /{name} {}", command.args));
    }
    let (_, check) = CHECKS.iter().find(|(checked, _)| *checked == name)?;
    check(args, session)
}

/// Whether the command does nothing without arguments and has none; brackets in the table mark
/// optional ones.
pub(super) fn lacks_arguments(command: &Command, args: &str) -> bool {
    !command.args.is_empty() && !command.args.starts_with('[') && unquoted(args).is_empty()
}

/// The name in a line that has no slash; empty if it begins with no word.
pub(super) fn name_of(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// All commands, in the order help lists them.
pub(super) fn all() -> impl Iterator<Item = &'static Command> {
    TABLES.iter().copied().flatten()
}

/// Whether the interactive mode has a command of this name.
pub fn is_command(name: &str) -> bool {
    all().any(|command| command.name == name)
}

/// The command that a line invokes; one without arguments matches only a line without any.
pub(super) fn find(line: &str) -> Option<(&'static Command, &str)> {
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let args = args.trim();
    let command = all().find(|command| command.name == name)?;
    (args.is_empty() || !command.args.is_empty()).then_some((command, args))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_have_help() {
        let mut names = HashSet::new();
        for command in all() {
            assert!(names.insert(command.name), "{} twice", command.name);
            assert!(!command.help.is_empty() && !command.help.ends_with('.'), "{}", command.name);
        }
        for name in CHECKS.iter().map(|(name, _)| name).chain(WAIT_FOR_AGENT).chain(ENDING) {
            assert!(names.contains(name), "no command {name}");
        }
    }

    #[test]
    fn a_command_without_arguments_is_not_called_with_some() {
        assert!(find("quit").is_some());
        assert!(find("quit now").is_none());
        assert!(find("model").is_some());
        assert_eq!(find("model  opus ").map(|(command, args)| (command.name, args)), Some(("model", "opus")));
        assert!(find("modelx").is_none());
    }
}
