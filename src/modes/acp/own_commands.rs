//! Carries out the slash commands that answer at once.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::ai::ThinkingLevel;
use crate::session::{Reply, Scope, Secrets, SessionCommand, SessionHandle, SessionState};
use crate::util::worker;

use super::super::export::{ExistingFile, ExportFormat, ExportSource, default_file};
use super::commands::CommandKind;

/// What a command tells the user, or why it failed.
type Told = BoxFuture<'static, Result<String, String>>;

/// Sends the command to the session at once. `Compact` is not one of these.
pub(super) fn run(handle: &SessionHandle, kind: CommandKind, args: &str) -> Told {
    match kind {
        CommandKind::Compact => told(Err("the conversation is compacted elsewhere".to_owned())),
        CommandKind::Export => export(handle, args),
        CommandKind::Model if args.is_empty() => {
            told(Ok(format!("The model is {}.", handle.state().model.reference())))
        }
        CommandKind::Model => {
            let command = SessionCommand::SetModel { reference: args.to_owned(), scope: Scope::Session };
            then(handle, command, |state| format!("The model is {}.", state.model.reference()))
        }
        CommandKind::Name if args.is_empty() => told(Err("give a name: /name NAME".to_owned())),
        CommandKind::Name => {
            let command = SessionCommand::SetName { name: args.to_owned() };
            then(handle, command, |state| {
                format!("The session is named {}.", state.name.as_deref().unwrap_or_default())
            })
        }
        CommandKind::Reload => then(handle, SessionCommand::Reload, |_| {
            "Reloaded settings, skills, templates and instructions.".to_owned()
        }),
        CommandKind::Session => told(Ok(facts(&handle.state()))),
        CommandKind::Thinking => thinking(handle, args),
    }
}

fn told(result: Result<String, String>) -> Told {
    std::future::ready(result).boxed()
}

fn then(
    handle: &SessionHandle,
    command: SessionCommand,
    text: impl FnOnce(&SessionState) -> String + Send + 'static,
) -> Told {
    let (reply, handle) = (handle.post(command), handle.clone());
    async move { reply.await.map(|_| text(&handle.state())).map_err(|error| error.to_string()) }.boxed()
}

fn thinking(handle: &SessionHandle, args: &str) -> Told {
    let state = handle.state();
    let names: Vec<&str> = state.model.thinking_levels().into_iter().map(ThinkingLevel::name).collect();
    if args.is_empty() {
        return told(Ok(format!("The thinking level is {}, one of {}.", state.thinking, names.join(", "))));
    }
    let Some(level) = ThinkingLevel::parse(args) else {
        return told(Err(format!("unknown thinking level {args}; choose one of {}", names.join(", "))));
    };
    let command = SessionCommand::SetThinking { level, scope: Scope::Session };
    then(handle, command, |state| format!("The thinking level is {}.", state.thinking))
}

fn export(handle: &SessionHandle, args: &str) -> Told {
    let (state, tree) = (handle.state(), handle.post(SessionCommand::ReadTree));
    let args = args.to_owned();
    async move {
        let Reply::Tree(tree) = tree.await.map_err(|error| error.to_string())? else {
            return Err("the session cannot be read".to_owned());
        };
        if tree.is_empty() {
            return Err("there is nothing to export yet".to_owned());
        }
        let path = match args.as_str() {
            "" => default_file(&state.cwd, state.path.as_deref(), &state.id),
            name => state.cwd.join(name),
        };
        let Some(format) = ExportFormat::of_file(&path) else {
            return Err("the name of the file ends with .html, .md or .jsonl".to_owned());
        };
        let source = ExportSource { tree, header: (*state.header).clone(), name: state.name.clone() };
        let target = path.clone();
        let write = move || source.write_file(format, Secrets::Keep, 0, &target, ExistingFile::Keep);
        let written = worker::run("acp", write).await.map_err(|error| error.to_string())?;
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(format!("Wrote {}.", shown(&path, &state.cwd)))
    }
    .boxed()
}

fn shown(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

/// File, model, tokens and cost, one fact per line.
fn facts(state: &SessionState) -> String {
    let totals = &state.totals;
    let file = match &state.path {
        Some(path) => path.display().to_string(),
        None => "not saved".to_owned(),
    };
    let context = match state.context.tokens {
        Some(tokens) if state.context.is_estimate => {
            format!("about {tokens} of {} tokens", state.context.window)
        }
        Some(tokens) => format!("{tokens} of {} tokens", state.context.window),
        None => format!("unknown, of {} tokens", state.context.window),
    };
    [
        format!("- Session: {}", state.name.as_deref().unwrap_or(&state.id)),
        format!("- File: {file}"),
        format!("- Model: {} (thinking: {})", state.model.reference(), state.thinking),
        format!("- Context: {context}"),
        format!(
            "- Tokens: {} input, {} output, {} read from the cache, {} written to it",
            totals.input, totals.output, totals.cache_read, totals.cache_write
        ),
        format!("- Cost: ${:.4}", totals.cost_usd),
    ]
    .join("\n")
}
