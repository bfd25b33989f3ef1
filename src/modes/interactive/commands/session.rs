//! Commands about the session.

use std::path::{Path, PathBuf};

use crate::session::{EntryId, IfBusy, SessionCommand, SessionState};
use crate::tui::text::visible_name;
use crate::util::paths;

use super::super::super::export::{ExportFormat, FileExport};
use super::super::super::trace::{CallFilter, CallKind};
use super::super::app::App;
use super::super::dialogs::AskedBy;
use super::super::export::ExportRequest;
use super::super::msg::{Effect, ScreenEffect, WorldEffect};
use super::super::overlays::{Confirmation, QueuedMessages};
use super::super::reports::{self, ReportKind};
use super::super::session_picker::SessionsEffect;
use super::super::share;
use super::super::tree::{TreeEffect, TreeOptions};
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "resume",
        args: "",
        help: "Choose a session to continue",
        run: |_, _, out| {
            out.push(SessionsEffect::Open.into());
        },
    },
    Command { name: "name", args: "[TEXT]", help: "Name the session or show its name", run: name },
    Command {
        name: "compact",
        args: "[--edit] [FOCUS]",
        help: "Replace the beginning of the conversation by a summary, which --edit lets you change first",
        run: compact,
    },
    Command {
        name: "pin",
        args: "",
        help: "Keep your latest message word for word when the conversation is compacted",
        run: |_, _, out| out.push(Effect::session(SessionCommand::Pin { target: None, pinned: true })),
    },
    Command {
        name: "unpin",
        args: "",
        help: "Stop keeping pinned messages word for word",
        run: |app, _, out| unpin(app, out),
    },
    Command {
        name: "handoff",
        args: "GOAL",
        help: "Draft the prompt of a new session for a goal from this conversation",
        run: |_, args, out| out.push(Effect::session(SessionCommand::Handoff { goal: args.to_owned() })),
    },
    Command {
        name: "tree",
        args: "",
        help: "Show the session as a tree and continue anywhere in it",
        run: |app, _, out| open_tree(app, out),
    },
    Command {
        name: "fork",
        args: "",
        help: "Continue from an earlier message in a new session",
        run: |app, _, out| open_fork(app, out),
    },
    Command {
        name: "clone",
        args: "",
        help: "Copy the current branch to a new session and continue there",
        run: |_, _, out| out.push(Effect::session(SessionCommand::Clone { if_busy: IfBusy::Refuse })),
    },
    Command {
        name: "import",
        args: "FILE",
        help: "Copy a session file to your sessions and continue with it",
        run: import,
    },
    Command {
        name: "export",
        args: "[FILE]",
        help: "Write the session to a web page (.html), or the branch to .md or .jsonl",
        run: export,
    },
    Command {
        name: "share",
        args: "",
        help: "Upload a page of the session as a secret gist, with the GitHub CLI",
        run: |app, _, out| share::open(app, out),
    },
    Command { name: "new", args: "", help: "Start a new session", run: |app, _, out| new_session(app, out) },
    Command {
        name: "session",
        args: "",
        help: "Show the session's file, tokens and costs, and the limits of your plan or key",
        run: |app, _, out| reports::open(app, ReportKind::Session, out),
    },
    Command {
        name: "context",
        args: "",
        help: "Show what the model gets with the next request, by part, with tokens",
        run: |app, _, out| reports::open(app, ReportKind::Context, out),
    },
    Command {
        name: "trace",
        args: "[--failed | --slow] [--tool NAME]",
        help: "Show prompts, steps and tool calls with their durations",
        run: trace,
    },
    Command {
        name: "trust",
        args: "",
        help: "Choose whether to trust this directory and load its skills, templates, settings and system prompts",
        run: |app, _, _| app.open_trust(AskedBy::User),
    },
    Command {
        name: "reload",
        args: "",
        help: "Reload settings, theme, keybindings, skills, templates and instructions",
        run: |app, _, out| app.reload(out),
    },
    Command {
        name: "queue",
        args: "",
        help: "Reorder, edit or remove queued messages",
        run: |app, _, _| open_queue(app),
    },
    Command { name: "quit", args: "", help: "Quit", run: |_, _, out| out.push(ScreenEffect::Quit.into()) },
];

/// Returns why the arguments of `/trace` are invalid, or `None`.
pub(super) fn invalid_trace(args: &str, _: &SessionState) -> Option<String> {
    call_filter(args).err()
}

fn call_filter(args: &str) -> Result<CallFilter, String> {
    let both = || Err("/trace cannot use --failed with --slow; choose one of them".to_owned());
    let mut filter = CallFilter::default();
    let mut words = args.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--failed" if filter.kind == CallKind::Slow => return both(),
            "--slow" if filter.kind == CallKind::Failed => return both(),
            "--failed" => filter.kind = CallKind::Failed,
            "--slow" => filter.kind = CallKind::Slow,
            "--tool" => {
                let name = words.next().ok_or("name the tool: /trace --tool NAME")?;
                filter.tool = Some(name.to_owned());
            }
            other => {
                let options = "--failed, --slow and --tool NAME";
                return Err(format!("/trace does not know \"{other}\"; its options are {options}"));
            }
        }
    }
    Ok(filter)
}

/// Shows the trace of what is on disk.
fn trace(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    // Invalid arguments were refused before.
    let Ok(filter) = call_filter(args) else { return };
    match app.session.path.clone().filter(|_| app.session.on_disk) {
        Some(path) => out.push(WorldEffect::ReadTrace { path, filter }.into()),
        None => app.tell("This session has no file to trace yet."),
    }
}

fn name(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    if args.is_empty() {
        let text = match &app.session.name {
            Some(name) => format!("This session is called “{}”.", visible_name(name)),
            None => "This session has no name; set one with /name TEXT.".to_owned(),
        };
        return app.tell(&text);
    }
    if app.session.is_read_only {
        return app.fail("the session is open elsewhere and read-only here; name it there");
    }
    out.push(Effect::session(SessionCommand::SetName { name: args.to_owned() }));
    app.tell(&format!("This session is now called “{}”.", visible_name(args)));
}

fn unpin(app: &mut App, out: &mut Vec<Effect>) {
    if app.session.pinned.is_empty() {
        let key = app.keymap.hint("app.tree.togglePin");
        let others = if key.is_empty() { key } else { format!(", and {key} in /tree any other") };
        return app.tell(&format!("No message is pinned. /pin pins your latest one{others}."));
    }
    out.extend(
        app.session.pinned.iter().map(|target| {
            Effect::session(SessionCommand::Pin { target: Some(target.clone()), pinned: false })
        }),
    );
}

/// Shows the tree of the session.
pub(in super::super) fn open_tree(app: &mut App, out: &mut Vec<Effect>) {
    open_tree_at(app, None, out);
}

/// Shows the tree with `select` selected, or the end of the active branch.
pub(in super::super) fn open_tree_at(app: &mut App, select: Option<EntryId>, out: &mut Vec<Effect>) {
    out.push(TreeEffect::Read { options: TreeOptions::of(&app.session.settings.values), select }.into());
}

/// Lists the user's messages to fork from.
pub(in super::super) fn open_fork(_: &mut App, out: &mut Vec<Effect>) {
    out.push(TreeEffect::ListPrompts.into());
}

/// Looks whether there is something to import before it asks.
fn import(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    let path = path_argument(app, args);
    out.push(WorldEffect::CheckImport { path, line: format!("import {args}") }.into());
}

/// Asks before the session in a file takes the place of this one.
pub(in super::super) fn ask_to_import(app: &mut App, path: PathBuf) {
    if app.session.is_busy() {
        // One question is enough.
        let import = SessionCommand::Import { path, if_busy: IfBusy::Refuse };
        app.dialogs.show(Confirmation::cancel_work(import));
    } else {
        app.dialogs.show(Confirmation::import(path));
    }
}

/// Returns why the arguments of `/export` are invalid, or `None`.
pub(super) fn invalid_export(args: &str, _: &SessionState) -> Option<String> {
    if args.starts_with("--") {
        return Some(
            "/export takes only the name of a file; pi export --force in a shell replaces one".to_owned(),
        );
    }
    let is_known = args.is_empty() || ExportFormat::of_file(Path::new(unquoted(args))).is_some();
    (!is_known).then(|| "end the name of the file in .html, .md or .jsonl: /export FILE".to_owned())
}

fn export(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    let path = (!args.is_empty()).then(|| path_argument(app, args));
    let line = ["export", args].join(" ").trim_end().to_owned();
    let file = FileExport::new(&app.session.id, path);
    out.push(WorldEffect::Export(ExportRequest { file, line }).into());
}

/// A path as the user typed it, in quotes or not.
fn path_argument(app: &App, args: &str) -> PathBuf {
    app.session.cwd.join(paths::expand_home(unquoted(args), app.home.as_deref()))
}

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let within = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

/// Starts a new session; asks first if that would cancel work.
pub(in super::super) fn new_session(_: &mut App, out: &mut Vec<Effect>) {
    out.push(Effect::session(SessionCommand::New { if_busy: IfBusy::Refuse }));
}

/// Returns why the arguments of `/compact` are invalid, or `None`.
pub(super) fn invalid_compact(args: &str, _: &SessionState) -> Option<String> {
    let option = args.split_whitespace().next().filter(|word| word.starts_with("--") && *word != "--edit")?;
    Some(format!("/compact has no option {option}; there is only --edit"))
}

fn compact(_: &mut App, args: &str, out: &mut Vec<Effect>) {
    let (with_review, focus) = match args.split_once(char::is_whitespace).unwrap_or((args, "")) {
        ("--edit", focus) => (true, focus.trim()),
        _ => (false, args),
    };
    let focus = (!focus.is_empty()).then(|| focus.to_owned());
    out.push(Effect::session(SessionCommand::Compact { focus, with_review }));
}

/// Lists the queued messages.
pub(in super::super) fn open_queue(app: &mut App) {
    if app.session.queue.is_empty() {
        let mut keys = ["tui.input.submit", "app.message.followUp"].map(|id| app.keymap.hint(id)).to_vec();
        keys.retain(|key| !key.is_empty());
        let how = match keys.as_slice() {
            [] => String::new(),
            [key] => format!(" While the agent works, {key} queues a message."),
            keys => format!(" While the agent works, {} queue a message.", keys.join(" and ")),
        };
        return app.tell(&format!("The queue is empty.{how}"));
    }
    app.dialogs.show(QueuedMessages::new(&app.session.queue));
}
