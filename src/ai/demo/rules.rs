//! What the demo model says and does: the first rule that fits the last thing
//! the user said.
//!
//! A rule sees the request and the results of the calls made since; with no
//! results it asks for tools, with results it reports them.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::words::{after, find_ignoring_case, has_word, path, quoted};
use super::{Answer, Beat, Call};
use crate::ai::messages::{Message, ToolResultMessage, join_text};
use crate::ai::requests::Request;

/// What a rule may look at.
struct Case<'a> {
    /// The last thing the user said.
    text: &'a str,
    /// Results of the calls made since, in order.
    results: Vec<&'a ToolResultMessage>,
    /// Tools the request declares.
    tools: HashSet<&'a str>,
}

type Rule = for<'a> fn(&Case<'a>) -> Option<Answer>;

/// In order of precedence.
const RULES: &[Rule] = &[slow_command, slow, long, parallel, edit, create, run, read, search, list, identity];

/// Decides the answer to `request`.
pub(super) fn answer(request: &Request) -> Answer {
    let said = last_user_text(request);
    let case = Case { text: behind_skill(&said), results: results_since(request), tools: declared(request) };
    RULES.iter().find_map(|rule| rule(&case)).unwrap_or_else(|| guide(&case))
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

/// What the user adds to the text of a skill, which is not for the rules.
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

impl Case<'_> {
    fn says(&self, words: &[&str]) -> bool {
        has_word(self.text, words)
    }

    /// The single call of a rule's first step, or its report once there are results.
    fn ask_then(&self, ask: Answer, report: impl FnOnce(&[&ToolResultMessage]) -> String) -> Option<Answer> {
        if self.results.is_empty() {
            return Some(ask);
        }
        Some(Answer { text: report(&self.results), ..Answer::default() })
    }

    fn bash(&self, command: &str) -> Option<Call> {
        self.tools.contains("bash").then(|| Call { tool: "bash", arguments: json!({ "command": command }) })
    }
}

fn list(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["list", "ls", "files", "directory", "folder", "here"]) {
        return None;
    }
    let folder = path(case.text).unwrap_or(".");
    let call = if case.tools.contains("ls") {
        Call { tool: "ls", arguments: json!({ "path": folder }) }
    } else {
        case.bash(&format!("ls -la {}", shell_quoted(folder)))?
    };
    let ask = one_call("The user wants to see what is here.", "Let me look at what is here.", call);
    case.ask_then(ask, |results| {
        let n = text_of(results).lines().filter(|line| !line.starts_with("total ")).count();
        failure(results).unwrap_or_else(|| {
            format!("That is the listing: **{n} lines**. Ask me to `read` one of the files to see its text.")
        })
    })
}

fn read(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["read", "show", "open", "cat", "summarize", "summarise", "view"]) {
        return None;
    }
    let file = path(case.text).or_else(|| quoted(case.text)).unwrap_or("README.md");
    let call = Call { tool: "read", arguments: json!({ "path": file }) };
    let ask =
        one_call(&format!("{file} is what the user asks about."), &format!("I'll read `{file}`."), call);
    case.ask_then(ask, |results| {
        let text = text_of(results);
        let words = text.split_whitespace().count();
        let heading = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)").trim();
        let heading: String = heading.chars().take(80).collect();
        failure(results).unwrap_or_else(|| {
            let n_lines = text.lines().count();
            format!(
                "`{file}` has {n_lines} lines and {words} words. It begins with:\n\n> {heading}\n\nA real model \
                 would tell you what it means."
            )
        })
    })
}

fn search(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["search", "grep", "find", "where"]) {
        return None;
    }
    let markers = ["search for ", "grep for ", "look for ", "find ", "grep ", "search ", "where is "];
    let needle = quoted(case.text).or_else(|| after(case.text, &markers)).unwrap_or("TODO");
    let needle = needle.trim_end_matches(['?', '.', '!']);
    let call = if case.tools.contains("grep") {
        Call { tool: "grep", arguments: json!({ "pattern": needle, "literal": true }) }
    } else {
        case.bash(&format!("grep -rnI --exclude-dir=.git -- {} . | head -n 50", shell_quoted(needle)))?
    };
    let ask =
        one_call("A search through the files answers this.", &format!("Searching for `{needle}`."), call);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| {
            match text_of(results).lines().filter(|line| line.contains(':')).count() {
                0 => format!("Nothing here contains `{needle}`."),
                1 => format!("One line contains `{needle}`."),
                n => format!("{n} lines contain `{needle}`."),
            }
        })
    })
}

fn run(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["run", "execute", "bash", "command"]) {
        return None;
    }
    let markers = ["run the command ", "execute the command ", "run ", "execute ", "command ", "bash "];
    let command = quoted(case.text).or_else(|| after(case.text, &markers))?;
    let ask = one_call("The user names a command.", "Running it.", case.bash(command)?);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| {
            let n = text_of(results).lines().count();
            format!("`{command}` succeeded with {n} lines of output.")
        })
    })
}

fn create(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["create", "write", "make", "add", "new"]) {
        return None;
    }
    let file = path(case.text)?;
    let content = match after(case.text, &["containing ", "with the text ", "with text ", "saying ", "with "])
    {
        Some(text) => format!("{}\n", text.trim_matches(['"', '`', '\''])),
        None => sample_file(file),
    };
    let call = Call { tool: "write", arguments: json!({ "path": file, "content": content }) };
    let ask = one_call(&format!("I have to write {file}."), &format!("I'll create `{file}`."), call);
    case.ask_then(ask, |results| {
        failure(results)
            .unwrap_or_else(|| format!("`{file}` is written. Try: `replace hello with goodbye in {file}`."))
    })
}

fn edit(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["replace", "edit", "change", "rename"]) {
        return None;
    }
    let Some((old, new, file)) = replacement(case.text) else {
        let text = "Tell me what to change, like this: `replace hello with goodbye in notes.md`.";
        return Some(Answer { text: text.to_owned(), ..Answer::default() });
    };
    let edits = json!([{ "oldText": old, "newText": new }]);
    let call = Call { tool: "edit", arguments: json!({ "path": file, "edits": edits }) };
    let ask = one_call("One exact replacement will do.", &format!("I'll change `{file}`."), call);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| format!("Done: `{old}` is now `{new}` in `{file}`."))
    })
}

/// Old text, new text and file of "replace A with B in FILE".
fn replacement(text: &str) -> Option<(&str, &str, &str)> {
    let verb = ["replace ", "change ", "rename "].into_iter().find_map(|verb| {
        let at = find_ignoring_case(text, verb)?;
        text.get(at + verb.len()..)
    })?;
    let (old, rest) = [" with ", " to "].into_iter().find_map(|marker| {
        let at = find_ignoring_case(verb, marker)?;
        Some((verb.get(..at)?, verb.get(at + marker.len()..)?))
    })?;
    let at = rest.to_ascii_lowercase().rfind(" in ")?;
    let (new, file) = (rest.get(..at)?, rest.get(at + 4..)?);
    Some((unquoted(old), unquoted(new), unquoted(file).trim_end_matches(['.', '!'])))
}

fn parallel(case: &Case<'_>) -> Option<Answer> {
    if !case.says(&["parallel", "several", "overview", "tour", "everything"]) {
        return None;
    }
    let calls: Vec<Call> = [
        case.bash("ls -A | head -n 30"),
        case.bash("git log --oneline -n 5 2>/dev/null || echo 'no git history here'"),
        case.tools
            .contains("read")
            .then(|| Call { tool: "read", arguments: json!({ "path": "README.md", "limit": 20 }) }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let ask = Answer {
        thinking: Some("Three independent looks can run at the same time.".to_owned()),
        text: "Three tools at once: a listing, the history, and the start of the README.".to_owned(),
        calls,
        ..Answer::default()
    };
    case.ask_then(ask, |results| {
        let mut report =
            "All of them have answered:\n\n| tool | lines | outcome |\n|---|---:|---|\n".to_owned();
        for result in results {
            let outcome = if result.is_error { "failed" } else { "ok" };
            let n_lines = join_text(&result.content).lines().count();
            report.push_str(
                &["| ", &result.tool_name, " | ", &n_lines.to_string(), " | ", outcome, " |\n"].concat(),
            );
        }
        report
    })
}

fn long(case: &Case<'_>) -> Option<Answer> {
    let asks = case.says(&["long", "markdown", "essay", "explain", "story", "code"]);
    asks.then(|| Answer {
        thinking: Some("A longer text with every kind of block shows how streaming looks.".to_owned()),
        text: include_str!("long.md").to_owned(),
        ..Answer::default()
    })
}

fn slow(case: &Case<'_>) -> Option<Answer> {
    case.says(&["slow", "slowly", "count"]).then(|| {
        let mut text =
            "I count slowly, so that you can practise. Type something and press Enter to steer me, \
                        or press Escape to interrupt.\n\n"
                .to_owned();
        for n in 1..=60 {
            text.push_str(&n.to_string());
            text.push_str(if n % 10 == 0 { "\n\n" } else { " " });
        }
        Answer { text, beat: Beat::Slow, ..Answer::default() }
    })
}

fn slow_command(case: &Case<'_>) -> Option<Answer> {
    let asks = case.says(&["slow"]) && case.says(&["command", "tool", "run", "bash"]);
    if !asks {
        return None;
    }
    let call = case.bash("for i in $(seq 1 20); do echo \"step $i of 20\"; sleep 1; done")?;
    let ask = one_call(
        "A command that takes a while shows live output.",
        "This takes twenty seconds. Watch its output, steer, or press Escape.",
        call,
    );
    case.ask_then(ask, |results| failure(results).unwrap_or_else(|| "It ran to its end.".to_owned()))
}

fn identity(case: &Case<'_>) -> Option<Answer> {
    let asks = case.says(&["who", "you", "demo", "model", "real"]) && !case.says(&["can"]);
    asks.then(|| Answer {
        text: "I am the **demo model** built into pi: a handful of rules, no artificial intelligence, no network. \
               The tools I call are real and work on this directory.\n\nTo talk to a real model, quit and set a key, \
               for example:\n\n```bash\nexport ANTHROPIC_API_KEY=…   # or OPENAI_API_KEY, OPENROUTER_API_KEY, …\npi\n```\n\n\
               or describe your own server in `~/.pi/agent/models.json`."
            .to_owned(),
        ..Answer::default()
    })
}

fn guide(case: &Case<'_>) -> Answer {
    if !case.results.is_empty() {
        return Answer { text: "That is what came back.".to_owned(), ..Answer::default() };
    }
    Answer {
        text: "I am the offline **demo model**: I follow rules and do not understand more than this. Try one of:\n\n\
               - `list the files` · `read README.md` · `search for TODO`\n\
               - `run git status` · `run something slow`\n\
               - `create hello.txt with hello world`\n\
               - `replace hello with goodbye in hello.txt`\n\
               - `give me an overview`: several tools in parallel\n\
               - `a long answer`: markdown with code\n\
               - `count slowly`: to practise steering (type and press Enter) and interrupting (Escape)\n\
               - `who are you?`: what I am, and how to connect a real model"
            .to_owned(),
        ..Answer::default()
    }
}

fn one_call(thinking: &str, text: &str, call: Call) -> Answer {
    Answer {
        thinking: Some(thinking.to_owned()),
        text: text.to_owned(),
        calls: vec![call],
        ..Answer::default()
    }
}

fn text_of(results: &[&ToolResultMessage]) -> String {
    results.iter().map(|result| join_text(&result.content)).collect()
}

/// What to say if the last tool failed.
fn failure(results: &[&ToolResultMessage]) -> Option<String> {
    let failed = results.last().filter(|result| result.is_error)?;
    let text = join_text(&failed.content);
    let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim();
    Some(format!("That did not work: {reason}"))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '`', '\''])
}

/// `text` as one word of a shell command.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn sample_file(file: &str) -> String {
    match file.rsplit('.').next() {
        Some("rs") => "fn main() {\n    println!(\"hello from the demo model\");\n}\n".to_owned(),
        Some("py") => "print(\"hello from the demo model\")\n".to_owned(),
        Some("json") => format!("{}\n", Value::from("hello from the demo model")),
        _ => "hello from the demo model\n".to_owned(),
    }
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
}
