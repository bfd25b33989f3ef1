//! The content of the demo model's answers: the first rule that matches the user's
//! last message.
//!
//! A rule sees the request and the results of the calls made since; without
//! results it calls tools, with results it reports them. Rules that may change
//! files are in `changes` and match a whole sentence of one line or not at all;
//! rules that change nothing are in `looks`. If no rule matches, the answer is the
//! guide, never an action.

use std::collections::HashSet;

use serde_json::json;

use super::words::{has_word, is_end, opened_by, request as without_courtesy};
use super::{Answer, Beat, Call, about, changes, looks, summaries};
use crate::ai::messages::{AssistantBlock, Message, ToolCall, ToolResultMessage, join_text};
use crate::ai::requests::Request;
use crate::util::manual::Page;

/// The input of a rule.
pub(super) struct Case<'a> {
    /// The user's last message, without polite phrases around it.
    pub(super) text: &'a str,
    /// Results of the calls made since, in order.
    pub(super) results: Vec<&'a ToolResultMessage>,
    /// Tools the request declares.
    pub(super) tools: HashSet<&'a str>,
    /// The last call in the conversation that changed a file.
    last_change: Option<&'a ToolCall>,
    /// What it knows about pi.
    pub(super) pages: &'static [Page],
}

type Rule = for<'a> fn(&Case<'a>) -> Option<Answer>;

/// In order of precedence.
const RULES: &[Rule] = &[
    halt,
    about::known,
    slow_command,
    count,
    undo,
    changes::edit,
    changes::create,
    looks::how_to_run,
    changes::run,
    looks::overview,
    looks::diff,
    looks::history,
    looks::project,
    looks::search,
    looks::list,
    long,
    identity,
    looks::read,
    greeting,
    help,
    about::pi,
    takes_a_model,
];

/// Decides the answer to `request`.
pub(super) fn answer(request: &Request, pages: &'static [Page]) -> Answer {
    let said = last_user_text(request);
    if let Some(summary) = summaries::answer(&said) {
        return Answer::of_text(summary);
    }
    let text = without_courtesy(behind_skill(&said));
    let case = Case {
        text,
        results: results_since(request),
        tools: declared(request),
        last_change: last_change(request),
        pages,
    };
    // Longer text was piped in or pasted, and no rule interprets it.
    let is_one_line = !text.contains('\n');
    let fitting = is_one_line.then(|| RULES.iter().find_map(|rule| rule(&case))).flatten();
    fitting.unwrap_or_else(|| guide(&case))
}

fn last_user_text(request: &Request) -> String {
    request
        .messages
        .iter()
        .rev()
        .find_map(|message| match &**message {
            Message::User(message) => Some(message.content.text()),
            Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => None,
        })
        .unwrap_or_default()
}

/// The user's text after a skill's; the rules ignore the skill.
fn behind_skill(said: &str) -> &str {
    match said.strip_prefix("<skill ").and_then(|rest| rest.rsplit_once("</skill>")) {
        Some((_, words)) => words.trim_start(),
        None => said,
    }
}

fn results_since(request: &Request) -> Vec<&ToolResultMessage> {
    let mut results: Vec<&ToolResultMessage> = request
        .messages
        .iter()
        .rev()
        .take_while(|message| !matches!(&***message, Message::User(_)))
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(&**result),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    results.reverse();
    results
}

fn declared(request: &Request) -> HashSet<&str> {
    let mut tools = HashSet::new();
    for message in &request.messages {
        if let Message::System(system) = &**message {
            tools.extend(system.tools_added.iter().map(|tool| tool.name.as_str()));
            for removed in &system.tools_removed {
                tools.remove(removed.name.as_str());
            }
        }
    }
    tools
}

fn last_change(request: &Request) -> Option<&ToolCall> {
    request.messages.iter().rev().find_map(|message| match &**message {
        Message::Assistant(message) => message.content.iter().rev().find_map(|block| match block {
            AssistantBlock::ToolCall(call) if ["edit", "write"].contains(&call.name.as_str()) => Some(call),
            _ => None,
        }),
        Message::System(_) | Message::User(_) | Message::ToolResult(_) => None,
    })
}

impl<'a> Case<'a> {
    pub(super) fn says(&self, words: &[&str]) -> bool {
        has_word(self.text, words)
    }

    /// The rest of the text after one of `openings`.
    pub(super) fn after(&self, openings: &[&str]) -> Option<&'a str> {
        opened_by(self.text, openings)
    }

    /// The calls of a rule with a single step, or its report once there are results.
    pub(super) fn ask_then(
        &self,
        ask: Answer,
        report: impl FnOnce(&[&ToolResultMessage]) -> String,
    ) -> Option<Answer> {
        Some(if self.results.is_empty() { ask } else { Answer::of_text(report(&self.results)) })
    }

    pub(super) fn bash(&self, command: &str) -> Option<Call> {
        self.tools.contains("bash").then(|| Call { tool: "bash", arguments: json!({ "command": command }) })
    }
}

/// The message of a user who interrupts a slow command.
fn halt(case: &Case<'_>) -> Option<Answer> {
    let rest = case.after(&["stop", "wait", "no", "enough", "cancel", "never mind", "nevermind", "abort"])?;
    let is_short = rest.split_whitespace().count() <= 2;
    is_short.then(|| Answer::of_text("I stopped. What should I do instead?"))
}

fn count(case: &Case<'_>) -> Option<Answer> {
    let asks = case.after(&["count"]).is_some() || case.after(&["slow", "slowly"]).is_some_and(is_end);
    if !asks {
        return None;
    }
    let numbers = |from: u32, to: u32| {
        let mut text = String::new();
        for n in from..=to {
            text.push_str(&n.to_string());
            text.push_str(if n % 10 == 0 { "\n\n" } else { " " });
        }
        text
    };
    if !case.results.is_empty() {
        return Some(failure(&case.results).map_or_else(
            || Answer { text: numbers(41, 60), beat: Beat::Slow, ..Answer::default() },
            Answer::of_text,
        ));
    }
    let intro = "I count slowly, with a command in the middle, so that you can practise. Type something and press \
                 Enter: it reaches me before the command runs. Escape interrupts me.\n\n";
    let command = "for n in $(seq 21 40); do echo $n; sleep 0.25; done";
    let calls: Vec<Call> = case.bash(command).into_iter().collect();
    // Without commands there is no reason to wait.
    let last = if calls.is_empty() { 60 } else { 20 };
    Some(Answer {
        text: format!("{intro}{}", numbers(1, last)),
        calls,
        beat: Beat::Slow,
        ..Answer::default()
    })
}

fn slow_command(case: &Case<'_>) -> Option<Answer> {
    let asks = case.says(&["slow"]) && case.says(&["something", "command", "tool"]);
    if !asks || case.after(&["run", "execute", "a", "do", "start", "something"]).is_none() {
        return None;
    }
    let call = case.bash("for i in $(seq 1 20); do echo \"step $i of 20\"; sleep 1; done")?;
    let ask = one_call(
        "A command that takes a while shows live output.",
        "This takes twenty seconds. Watch its output, steer, or press Escape.",
        call,
    );
    case.ask_then(ask, |results| failure(results).unwrap_or_else(|| "It ran to the end.".to_owned()))
}

fn undo(case: &Case<'_>) -> Option<Answer> {
    case.after(&["undo", "revert", "roll back", "take that back", "take it back", "go back"])?;
    let last = case.last_change.and_then(|call| {
        let file = call.arguments["path"].as_str()?;
        if call.name == "write" {
            return Some(format!("My last change created `{file}`. `!rm {file}` removes it."));
        }
        let edit = &call.arguments["edits"][0];
        let (old, new) = (edit["oldText"].as_str()?, edit["newText"].as_str()?);
        Some(format!("To reverse my last change, say: replace `{new}` with `{old}` in {file}"))
    });
    let text = last.unwrap_or_else(|| {
        "I have changed nothing in this conversation, so there is nothing to undo. `!git status` shows what differs \
         from the last commit."
            .to_owned()
    });
    Some(Answer::of_text(text))
}

fn long(case: &Case<'_>) -> Option<Answer> {
    let asks = case.says(&["long"]) && case.says(&["answer", "text", "story"])
        || case.after(&["a story", "tell me a story", "an essay", "markdown", "show me markdown"]).is_some();
    asks.then(|| Answer {
        thinking: Some("A longer text with every kind of block shows how streaming looks.".to_owned()),
        ..Answer::of_text(include_str!("long.md"))
    })
}

fn identity(case: &Case<'_>) -> Option<Answer> {
    let openings = [
        "who are you",
        "what are you",
        "are you",
        "which model",
        "what model",
        "is this a real",
        "connect",
        "log in",
        "login",
        "sign in",
        "how do i connect",
        "how can i connect",
        "how do i log in",
        "how do i sign in",
    ];
    case.after(&openings)?;
    Some(Answer::of_text(
        "I am the **demo model** built into pi: a handful of rules, no artificial intelligence, no network. The tools \
         I call are real and work on this directory.\n\nTo talk to a real model type `/login`, or quit and set a key, \
         for example:\n\n```bash\nexport ANTHROPIC_API_KEY=…   # or OPENAI_API_KEY, OPENROUTER_API_KEY, …\npi\n```\n\n\
         Or describe your own server in `~/.pi/agent/models.json`.",
    ))
}

fn greeting(case: &Case<'_>) -> Option<Answer> {
    let rest =
        case.after(&["hi", "hello", "hey", "good morning", "good evening", "thanks", "thank you", "bye"])?;
    let is_short = rest.split_whitespace().count() <= 3;
    is_short.then(|| {
        Answer::of_text(
            "Hello! I am the offline demo model. Try `give me an overview`, `count slowly` or `help`; `/login` \
             connects a real model.",
        )
    })
}

/// Requests that need a real model: says so and offers alternatives.
fn takes_a_model(case: &Case<'_>) -> Option<Answer> {
    const WORK: &[&str] = &[
        "add",
        "append",
        "build",
        "change",
        "clean",
        "commit",
        "convert",
        "copy",
        "create",
        "debug",
        "delete",
        "deploy",
        "document",
        "edit",
        "extend",
        "extract",
        "fix",
        "format",
        "generate",
        "implement",
        "improve",
        "install",
        "make",
        "merge",
        "migrate",
        "move",
        "optimise",
        "optimize",
        "overwrite",
        "port",
        "push",
        "refactor",
        "release",
        "remove",
        "rename",
        "replace",
        "reset",
        "review",
        "rewrite",
        "set",
        "simplify",
        "sort",
        "split",
        "summarise",
        "summarize",
        "test",
        "translate",
        "update",
        "upgrade",
        "write",
    ];
    (case.results.is_empty() && case.says(WORK)).then(|| {
        Answer::of_text(
            "That needs a real model: I follow rules and make only literal changes. I did nothing. What \
             I can do: `replace hello with goodbye in FILE`, `create FILE with TEXT`, run `COMMAND`. \
             Type `/login` to connect a real model, or `help` for more to try.",
        )
    })
}

fn guide(case: &Case<'_>) -> Answer {
    if !case.results.is_empty() {
        return Answer::of_text("That is the result.");
    }
    Answer::of_text(format!(
        "I am the offline **demo model**: I follow rules and do not understand this. Try one of:\n\n{EXAMPLES}"
    ))
}

/// "help": the guide for those who ask for it.
fn help(case: &Case<'_>) -> Option<Answer> {
    let questions = ["help", "what can you do", "what can i do", "what can i ask", "what do you understand"];
    let is_whole = is_end(case.after(&questions)?);
    is_whole.then(|| {
        Answer::of_text(format!(
            "I am the offline **demo model** and follow rules. Try one of:\n\n{EXAMPLES}"
        ))
    })
}

const EXAMPLES: &str = "- `give me an overview` · `list the files` · `read README.md` · `search for TODO`\n\
         - `create hello.txt with hello world` · `replace hello with goodbye in hello.txt`\n\
         - `run git status` · `run something slow` · `count slowly`, to practise steering and interrupting\n\
         - `a long answer` · `who are you?` · `how do I change the theme?`, or another question about pi\n\n\
         `/login` connects a real model.";

pub(super) fn one_call(thinking: &str, text: &str, call: Call) -> Answer {
    Answer { thinking: Some(thinking.to_owned()), calls: vec![call], ..Answer::of_text(text) }
}

pub(super) fn text_of(results: &[&ToolResultMessage]) -> String {
    results.iter().map(|result| join_text(&result.content)).collect()
}

/// The answer if the last tool failed.
pub(super) fn failure(results: &[&ToolResultMessage]) -> Option<String> {
    let failed = results.last().filter(|result| result.is_error)?;
    let text = join_text(&failed.content);
    let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim();
    Some(format!("That did not work: {reason}"))
}

/// `text` as one word of a shell command.
pub(super) fn shell_quoted(text: &str) -> String {
    let is_plain = text.chars().all(|char| char.is_ascii_alphanumeric() || "._/-".contains(char));
    if is_plain && !text.starts_with('-') && !text.is_empty() {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_see_what_the_user_says_and_not_the_skill() {
        let check = |said: &str, expected: &str| assert_eq!(behind_skill(said), expected);
        check("run `ls`", "run `ls`");
        check("<skill name=\"a\" location=\"/a\">\nrun `b`\n</skill>\n\nread c.md", "read c.md");
        check("<skill name=\"a\" location=\"/a\">\nrun `b`\n</skill>", "");
        check("<skill of mine", "<skill of mine");
    }

    /// A case without a conversation, with the tools of a new session.
    fn case(text: &str) -> Case<'_> {
        let tools = HashSet::from(["read", "bash", "edit", "write"]);
        Case { text: without_courtesy(text), results: Vec::new(), tools, last_change: None, pages: &[] }
    }

    /// The calls of the first answer, as `tool argument`.
    fn calls(text: &str) -> Vec<String> {
        let case = case(text);
        let answer = RULES.iter().find_map(|rule| rule(&case)).unwrap_or_else(|| guide(&case));
        let argument = |call: &Call| {
            let arguments = &call.arguments;
            let shown = arguments["command"].as_str().or_else(|| arguments["path"].as_str());
            format!("{} {}", call.tool, shown.unwrap_or_default())
        };
        answer.calls.iter().map(argument).collect()
    }

    #[test]
    fn what_is_told_word_for_word_is_done() {
        let check = |text: &str, expected: &[&str]| assert_eq!(calls(text), expected, "{text}");
        check("replace hello with goodbye in hello.py", &["edit hello.py"]);
        check("Please replace `a b` with \"c\" in x.md.", &["edit x.md"]);
        check("rename `mul` to `times` in calc.py", &["edit calc.py"]);
        check("run git status", &["bash git status"]);
        check("can you run `cargo test`?", &["bash cargo test"]);
        check(
            "create hello.txt with hello world",
            &["bash test -e hello.txt -o -L hello.txt && echo exists || echo new"],
        );
        check(
            "create a file called Makefile",
            &["bash test -e Makefile -o -L Makefile && echo exists || echo new"],
        );
        check("create new.txt with abc", &["bash test -e new.txt -o -L new.txt && echo exists || echo new"]);
        check("read README.md", &["read README.md"]);
        check("what is in docs/cli.md?", &["read docs/cli.md"]);
        check("how many lines does calc.py have?", &["read calc.py"]);
    }

    #[test]
    fn help_gets_the_guide_and_not_an_apology() {
        for text in ["help", "what can you do?", "Please help!"] {
            let case = case(text);
            let answer = RULES.iter().find_map(|rule| rule(&case)).unwrap_or_else(|| guide(&case)).text;
            assert!(
                answer.contains("Try one of") && !answer.contains("do not understand"),
                "{text}: {answer}"
            );
        }
    }

    #[test]
    fn what_takes_understanding_is_not_done() {
        for text in [
            "replace the tabs with spaces in src/main.rs",
            "change color to blue in style.css",
            "rename foo to bar in calc.py",
            "replace a with b in c.py and d.py",
            "create calc.py with a function mul",
            "write tests.py with unit tests",
            "create a test for calc.py",
            "create ~/.bashrc with x",
            "run rm -rf build",
            "run `make` and fix what breaks",
            "run git status > README.md",
            "run git diff --output=README.md",
            "do not run `rm -rf .`",
            "what happens when I run `rm -rf .`?",
            "add a function mul to calc.py",
        ] {
            assert_eq!(calls(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn counting_has_a_command_to_steer_into() {
        let [command] = calls("count slowly").try_into().unwrap();
        assert!(command.starts_with("bash for n in"), "{command}");
        let answer = count(&case("count slowly")).unwrap();
        assert_eq!(answer.beat, Beat::Slow);
        assert!(answer.text.ends_with("20\n\n") && !answer.text.contains("21"), "{}", answer.text);
        assert_eq!(calls("stop"), [""; 0]);
    }
}
