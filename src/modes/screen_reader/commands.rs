//! TABLE: the slash commands of screen-reader mode.

use crate::ai::ThinkingLevel;
use crate::session::{IfBusy, QuestionKind, Scope, SessionCommand, SessionState, SessionSummary, list};
use crate::util::counted;
use crate::util::visible::spell_out;

use super::super::changelog;
use super::super::interactive;
use super::super::sessions::{age, title};
use super::super::slash::unknown_command;
use super::super::trust::TrustQuestion;
use super::super::usage::usd;
use super::history::{history, read};
use super::menu::{Menu, MenuItem};
use super::narrator::{on_one_line, selection};
use super::spoken::read_out;
use super::{Next, Talk, activity, branches, reports, say, settings};

struct Command {
    name: &'static str,
    args: &'static str,
    help: &'static str,
    run: fn(&mut Talk, &str) -> Next,
}

/// In the order in which `/help` reads them.
const COMMANDS: &[Command] = &[
    Command { name: "help", args: "", help: "Read the commands", run: |_, _| help() },
    Command { name: "last", args: "", help: "Read the last answer again", run: last },
    Command {
        name: "history",
        args: "[NUMBER]",
        help: "Name what is in the session, the latest first",
        run: history,
    },
    Command { name: "read", args: "[NUMBER]", help: "Read an entry of it, results of tools too", run: read },
    Command {
        name: "status",
        args: "",
        help: "Say what goes on, the session, the model and the costs",
        run: status,
    },
    Command { name: "stop", args: "", help: "Interrupt the agent, like ctrl+c", run: stop },
    Command { name: "queue", args: "", help: "Read the queued messages", run: queue },
    Command { name: "model", args: "[NAME]", help: "Choose a model", run: model },
    Command { name: "thinking", args: "[LEVEL]", help: "Choose how much the model thinks", run: thinking },
    Command { name: "compact", args: "[FOCUS]", help: "Summarise the conversation", run: compact },
    Command {
        name: "pin",
        args: "",
        help: "Keep your latest message word for word when the conversation is summarised",
        run: |talk, _| pin(talk),
    },
    Command {
        name: "unpin",
        args: "",
        help: "Stop keeping pinned messages word for word",
        run: |talk, _| unpin(talk),
    },
    Command {
        name: "handoff",
        args: "GOAL",
        help: "Draft the prompt of a new session for a goal from this conversation",
        run: handoff,
    },
    Command { name: "new", args: "", help: "Start a new session", run: new },
    Command { name: "resume", args: "[NAME]", help: "Choose a session to continue", run: resume },
    Command {
        name: "tree",
        args: "",
        help: "Choose a message to continue from, or another branch of the session",
        run: branches::tree,
    },
    Command {
        name: "fork",
        args: "",
        help: "Choose a message to continue from in a new session",
        run: branches::fork,
    },
    Command {
        name: "clone",
        args: "",
        help: "Copy the current branch to a new session and continue there",
        run: clone,
    },
    Command {
        name: "import",
        args: "FILE",
        help: "Copy a session file to your sessions and continue with it",
        run: reports::import,
    },
    Command {
        name: "export",
        args: "[FILE]",
        help: "Write the session to a web page (.html), or the branch to .md or .jsonl",
        run: reports::export,
    },
    Command {
        name: "share",
        args: "",
        help: "Upload a page of the session as a secret gist, with the GitHub CLI",
        run: |talk, _| reports::share(talk),
    },
    Command { name: "copy", args: "", help: "Copy the last answer", run: reports::copy },
    Command {
        name: "session",
        args: "",
        help: "Read the session's file, tokens and costs, and the limits of your plan or key",
        run: reports::session,
    },
    Command {
        name: "context",
        args: "",
        help: "Read what the model gets with the next request, by part, with tokens",
        run: reports::context,
    },
    Command {
        name: "trust",
        args: "",
        help: "Choose whether to trust this directory and load its skills, templates, settings and system prompts",
        run: trust,
    },
    Command {
        name: "settings",
        args: "[NAME] [VALUE]",
        help: "Read and change settings",
        run: settings::settings,
    },
    Command {
        name: "reload",
        args: "",
        help: "Reload settings, skills, templates and instructions",
        run: reload,
    },
    Command {
        name: "doctor",
        args: "",
        help: "Check files, providers and programs, and say what to change",
        run: reports::doctor,
    },
    Command { name: "login", args: "", help: "Hear how to connect a model", run: |_, _| login() },
    Command { name: "name", args: "[TEXT]", help: "Name the session or read its name", run: name },
    Command { name: "skill:NAME", args: "[TEXT]", help: "Run a skill", run: |_, _| Next::GoOn },
    Command { name: "changelog", args: "", help: "Read what changed in pi", run: |_, _| changes() },
    Command { name: "quit", args: "", help: "Quit", run: |_, _| Next::Quit },
];

/// Whether a text is one line with a command that exists.
pub(super) fn is_command(talk: &Talk, text: &str) -> bool {
    let Some(line) = text.strip_prefix('/').filter(|line| !line.contains('\n')) else { return false };
    let (name, _) = parts(line);
    find(name).is_some() || is_expanded(talk, name)
}

/// Runs a command.
pub(super) fn run(talk: &mut Talk, text: &str) -> Next {
    let (name, args) = parts(text.strip_prefix('/').unwrap_or(text));
    if is_expanded(talk, name) {
        talk.prompt(text);
        return Next::GoOn;
    }
    if let Some(command) = find(name) {
        return (command.run)(talk, args.trim());
    }
    if name.is_empty() {
        return help();
    }
    let problem = unknown(name, &talk.handle.state());
    let end = if problem.ends_with('?') { "" } else { "." };
    say(&[format!("Error: {problem}{end}")]);
    Next::GoOn
}

/// Why a command does not run: it needs a screen, or is called something else.
fn unknown(name: &str, state: &SessionState) -> String {
    if interactive::is_command(name) {
        let instead = INSTEAD.iter().find(|(other, _)| *other == name);
        let instead = instead.map_or_else(String::new, |(_, instead)| format!(". {instead}"));
        return format!(
            "/{name} needs the full screen, so it does not exist in screen-reader mode{instead}. /help reads the \
             commands of this mode"
        );
    }
    let templates = state.templates.iter().map(|template| template.name.as_str());
    let known: Vec<&str> = COMMANDS.iter().map(|command| command.name).chain(templates).collect();
    unknown_command(name, &known, "/help reads all")
}

/// TABLE: what to do in place of commands that need a screen.
const INSTEAD: &[(&str, &str)] = &[
    ("transcript", "Use /history and /read"),
    ("output", "Use /history and /read"),
    ("hotkeys", "Use /help"),
    ("logout", "Run pi auth logout in a shell"),
    ("trace", "Run pi trace in a shell"),
];

/// The commands, as a table of Markdown.
pub fn screen_reader_commands_markdown() -> String {
    let row = |command: &Command| format!("| `/{}` | {} |\n", usage(command), command.help);
    let rows: String = COMMANDS.iter().map(row).collect();
    format!("| command | what it does |\n|---|---|\n{rows}")
}

fn usage(command: &Command) -> String {
    [command.name, command.args].join(" ").trim().to_owned()
}

fn parts(line: &str) -> (&str, &str) {
    line.split_once(char::is_whitespace).unwrap_or((line, ""))
}

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Whether the session makes a prompt of it: skills, and templates that are not named like a command.
fn is_expanded(talk: &Talk, name: &str) -> bool {
    let is_template = || talk.handle.state().templates.iter().any(|template| template.name == name);
    name.starts_with("skill:") || find(name).is_none() && is_template()
}

fn help() -> Next {
    let mut lines: Vec<String> =
        COMMANDS.iter().map(|command| format!("/{}: {}.", usage(command), command.help)).collect();
    lines.push("!COMMAND: Run a command and share its output with the model.".to_owned());
    lines.push("!!COMMAND: Run a command without sharing its output.".to_owned());
    lines.push("/NAME: Send the prompt template of this name.".to_owned());
    lines.push("A backslash at the end of a line continues the prompt on the next line.".to_owned());
    lines.push("Lines that you paste are one prompt, which waits for Enter.".to_owned());
    lines.push("While the agent works, a prompt is queued. ctrl+c interrupts.".to_owned());
    say(&lines);
    Next::GoOn
}

/// The dialog of the terminal is not here, but what other commands and variables do is.
fn login() -> Next {
    say(&[
        "Keys are saved outside screen-reader mode. Quit with /quit, then run:".to_owned(),
        "pi auth login PROVIDER, for example: pi auth login anthropic. It asks for the key, or signs in with \
         --with browser."
            .to_owned(),
        "Or set a variable such as ANTHROPIC_API_KEY. Then start pi again; /model lists the models.".to_owned(),
    ]);
    Next::GoOn
}

fn changes() -> Next {
    say(&[changelog::whole().trim_end().to_owned()]);
    Next::GoOn
}

fn last(talk: &mut Talk, _: &str) -> Next {
    match talk.narrator.last_answer() {
        "" => say(&["There is no answer yet.".to_owned()]),
        answer => say(&read_out(answer)),
    }
    Next::GoOn
}

fn status(talk: &mut Talk, _: &str) -> Next {
    let state = talk.handle.state();
    let plan = if state.totals.on_plan { ", without those of your plan" } else { "" };
    say(&[
        activity(&state).to_owned(),
        session_name(&state),
        selection(&state),
        format!("{} from you.", counted(state.totals.n_user as u64, "message")),
        format!("The requests cost {}{plan}.", usd(state.totals.cost_usd)),
    ]);
    if let Some(unsaved) = &state.unsaved {
        say(&[format!("Warning: not saved: {unsaved}")]);
    }
    Next::GoOn
}

fn stop(talk: &mut Talk, _: &str) -> Next {
    if talk.handle.state().is_busy() {
        talk.interrupt();
    } else {
        say(&["Nothing is running.".to_owned()]);
    }
    Next::GoOn
}

fn queue(talk: &mut Talk, _: &str) -> Next {
    say(&talk.queue_lines());
    Next::GoOn
}

fn model(talk: &mut Talk, args: &str) -> Next {
    let models = talk.start.services.usable_models();
    let current = talk.handle.state().model.reference();
    let item = |reference: String| {
        let (label, is_current) = (on_one_line(&reference), reference == current);
        let command = SessionCommand::SetModel { reference, scope: Scope::Session };
        MenuItem::command(label, command).current(is_current)
    };
    let items = models.iter().map(|model| item(model.reference())).collect();
    offer(talk, "model", Menu::new("Models:", items), args)
}

fn thinking(talk: &mut Talk, args: &str) -> Next {
    let state = talk.handle.state();
    let levels = state.model.thinking_levels();
    let item = |level: ThinkingLevel| {
        let command = SessionCommand::SetThinking { level, scope: Scope::Session };
        MenuItem::command(level.name(), command).current(level == state.thinking)
    };
    let items = levels.into_iter().map(item).collect();
    offer(talk, "thinking", Menu::new("Thinking levels:", items), args)
}

/// Shows the list of a command, or chooses from it at once.
pub(super) fn offer(talk: &mut Talk, command: &str, menu: Menu, args: &str) -> Next {
    if args.is_empty() {
        talk.show(menu);
    } else {
        talk.choose(menu, args, Some(command));
    }
    Next::GoOn
}

fn compact(talk: &mut Talk, args: &str) -> Next {
    let focus = (!args.is_empty()).then(|| args.to_owned());
    talk.request(SessionCommand::Compact { focus, with_review: false });
    Next::GoOn
}

fn pin(talk: &Talk) -> Next {
    talk.request(SessionCommand::Pin { target: None, pinned: true });
    Next::GoOn
}

fn unpin(talk: &Talk) -> Next {
    let pinned = &talk.handle.state().pinned;
    if pinned.is_empty() {
        say(&["No message is pinned. /pin pins your latest one.".to_owned()]);
    }
    for target in pinned.iter() {
        talk.request(SessionCommand::Pin { target: Some(target.clone()), pinned: false });
    }
    Next::GoOn
}

/// Lets the model draft a prompt; the list that offers to send it follows.
fn handoff(talk: &mut Talk, args: &str) -> Next {
    if args.is_empty() {
        say(&["Error: say what the new session is to do: /handoff GOAL".to_owned()]);
        return Next::GoOn;
    }
    talk.request(SessionCommand::Handoff { goal: args.to_owned() });
    Next::GoOn
}

fn new(talk: &mut Talk, _: &str) -> Next {
    talk.request(SessionCommand::New { if_busy: IfBusy::Refuse });
    Next::GoOn
}

fn clone(talk: &mut Talk, _: &str) -> Next {
    talk.request(SessionCommand::Clone { if_busy: IfBusy::Refuse });
    Next::GoOn
}

fn reload(talk: &mut Talk, _: &str) -> Next {
    talk.request(SessionCommand::Reload);
    Next::GoOn
}

/// Shows what in the folder needs trust, and the choices.
fn trust(talk: &mut Talk, _: &str) -> Next {
    let state = talk.handle.state();
    if state.questions.iter().any(|question| question.kind == QuestionKind::Trust) {
        talk.read_what_waits();
        return Next::GoOn;
    }
    let home = talk.start.services.dirs.home.as_deref();
    let TrustQuestion { title, about, options, is_open } =
        TrustQuestion::new(&state.project, &state.cwd, home);
    let title = [title].into_iter().chain(about).collect::<Vec<_>>().join("\n");
    let item = |(choice, label)| MenuItem::command(label, SessionCommand::DecideTrust { choice });
    let items = options.into_iter().map(item).collect();
    talk.show(if is_open { Menu::asking(title, items) } else { Menu::new(title, items) });
    Next::GoOn
}

fn resume(talk: &mut Talk, args: &str) -> Next {
    let current = talk.handle.state().id.clone();
    let now_ms = talk.start.services.clock.now_ms();
    let sessions = list(&talk.start.sessions, talk.start.sessions_filter.as_deref());
    let items: Vec<MenuItem> = sessions
        .into_iter()
        .map(|session| {
            let (label, is_current) = (label(&session, now_ms), session.id == current);
            let command = SessionCommand::Open { path: session.path, if_busy: IfBusy::Refuse };
            MenuItem::command(label, command).current(is_current)
        })
        .collect();
    if items.is_empty() {
        say(&["There are no sessions in this directory.".to_owned()]);
        return Next::GoOn;
    }
    offer(talk, "resume", Menu::new("Sessions, the latest first:", items), args)
}

/// A session in one line.
fn label(session: &SessionSummary, now_ms: u64) -> String {
    let title = on_one_line(title(session));
    let n_messages = counted(session.n_messages as u64, "message");
    format!("{title}, {}, {n_messages}", age(now_ms, session.modified_ms))
}

fn name(talk: &mut Talk, args: &str) -> Next {
    if args.is_empty() {
        say(&[session_name(&talk.handle.state())]);
    } else {
        let said = format!("This session is now called “{}”.", spell_out(args, None).0);
        let answer = talk.handle.post(SessionCommand::SetName { name: args.to_owned() });
        tokio::spawn(async move {
            match answer.await {
                Ok(_) => say(&[said]),
                Err(error) => say(&[format!("Error: {error}")]),
            }
        });
    }
    Next::GoOn
}

fn session_name(state: &SessionState) -> String {
    match &state.name {
        Some(name) => format!("This session is called “{}”.", on_one_line(name)),
        None => "This session has no name; /name TEXT names it.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sessions_show_what_cannot_be_seen() {
        let session = SessionSummary {
            path: "/s.jsonl".into(),
            id: "s".to_owned(),
            cwd: "/p".to_owned(),
            name: Some("a\u{200b}b \u{202e}txt\nc".to_owned()),
            first_message: None,
            n_messages: 2,
            created_ms: None,
            modified_ms: 0,
            parent: None,
        };
        let label = label(&session, 0);
        assert!(label.starts_with("a<U+200B>b <U+202E>txt c, "), "{label}");
        assert!(label.ends_with(", 2 messages"), "{label}");
    }

    #[test]
    fn a_command_that_does_not_run_leads_to_one_that_does() {
        let state = SessionState::of(&std::sync::Arc::default(), std::path::Path::new("/p"));
        let check = |name: &str, expected: &str| assert_eq!(unknown(name, &state), expected);
        let needs_screen = "needs the full screen, so it does not exist in screen-reader mode";
        let help = "/help reads the commands of this mode";
        check("theme", &format!("/theme {needs_screen}. {help}"));
        check("transcript", &format!("/transcript {needs_screen}. Use /history and /read. {help}"));
        check("setings", "there is no command /setings; did you mean /settings?");
        check("exit", "there is no command /exit; did you mean /quit?");
        check("nothing", "there is no command /nothing; /help reads all");
        for (name, _) in INSTEAD {
            assert!(interactive::is_command(name) && find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_command_has_a_name_of_its_own_and_help() {
        for (index, command) in COMMANDS.iter().enumerate() {
            assert!(!command.help.is_empty() && !command.help.ends_with('.'), "{}", command.name);
            assert!(COMMANDS[..index].iter().all(|other| other.name != command.name), "{}", command.name);
        }
    }
}
