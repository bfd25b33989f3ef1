//! TABLE: the slash commands of clients. They arrive as prompts; all others, such as those of
//! skills and templates, are prompts of the session.

use agent_client_protocol_schema::v1::{AvailableCommand, AvailableCommandInput, UnstructuredCommandInput};

use crate::session::{SessionState, Skill};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    Compact,
    Export,
    Model,
    Name,
    Reload,
    Session,
    Thinking,
}

/// A slash command.
#[derive(Debug)]
pub struct AcpCommandRow {
    pub name: &'static str,
    /// What follows the name; empty if nothing does.
    pub hint: &'static str,
    /// One line, imperative, no full stop.
    pub help: &'static str,
    kind: CommandKind,
}

const fn row(name: &'static str, hint: &'static str, help: &'static str, kind: CommandKind) -> AcpCommandRow {
    AcpCommandRow { name, hint, help, kind }
}

pub const ACP_COMMANDS: &[AcpCommandRow] = &[
    row(
        "compact",
        "what to emphasise",
        "Replace the beginning of the conversation with a summary",
        CommandKind::Compact,
    ),
    row("export", "file", "Write the session as a web page, as Markdown or as JSONL", CommandKind::Export),
    row("model", "model", "Select a model: an id, provider/id or part of either", CommandKind::Model),
    row("name", "name", "Name the session", CommandKind::Name),
    row("reload", "", "Reload settings, skills, templates and instructions", CommandKind::Reload),
    row("session", "", "Show file, model, tokens and cost of the session", CommandKind::Session),
    row("thinking", "level", "Select a thinking level", CommandKind::Thinking),
];

/// The commands a client offers: pi's own, templates and skills.
pub(super) fn available(state: &SessionState) -> Vec<AvailableCommand> {
    let own = ACP_COMMANDS.iter().map(|row| command(row.name, row.help, row.hint));
    let skills: &[Skill] = if state.settings.values.skill_commands { &state.skills } else { &[] };
    let is_own = |name: &str| ACP_COMMANDS.iter().any(|row| row.name == name);
    let templates = state.templates.iter().filter(|template| !is_own(&template.name));
    let templates =
        templates.map(|template| command(&template.name, &template.description, &template.argument_hint));
    let skills =
        skills.iter().map(|skill| command(&format!("skill:{}", skill.name), &skill.description, "task"));
    own.chain(templates).chain(skills).collect()
}

fn command(name: &str, help: &str, hint: &str) -> AvailableCommand {
    let command = AvailableCommand::new(name, help);
    if hint.is_empty() {
        return command;
    }
    command.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)))
}

/// The command that a prompt invokes, with what follows its name. A command without arguments
/// is one only without any.
pub(super) fn find(prompt: &str) -> Option<(CommandKind, &str)> {
    let line = prompt.trim().strip_prefix('/')?;
    if line.contains('\n') {
        return None;
    }
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let args = args.trim();
    let row = ACP_COMMANDS.iter().find(|row| row.name == name)?;
    (args.is_empty() || !row.hint.is_empty()).then_some((row.kind, args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_apart_from_prompts() {
        let check = |prompt: &str, expected: Option<(CommandKind, &str)>| {
            assert_eq!(find(prompt), expected, "{prompt}");
        };
        check("/compact", Some((CommandKind::Compact, "")));
        check(" /compact the tests ", Some((CommandKind::Compact, "the tests")));
        check("/session", Some((CommandKind::Session, "")));
        check("/session is over", None);
        check("/skill:review", None);
        check("/tmp/x is broken", None);
        check("/compact\nis a word", None);
        check("compact", None);
    }

    #[test]
    fn rows_are_sorted_and_have_help() {
        assert!(ACP_COMMANDS.is_sorted_by_key(|row| row.name));
        assert!(ACP_COMMANDS.iter().all(|row| !row.help.is_empty() && !row.help.ends_with('.')));
    }
}
