//! Rules that change nothing: their calls read, list and search.

use serde_json::json;

use super::rules::{Case, failure, one_call, shell_quoted, text_of};
use super::words::{bare, path, quoted};
use super::{Answer, Call};
use crate::ai::messages::join_text;
use crate::util::counted;

pub(super) fn list(case: &Case<'_>) -> Option<Answer> {
    let openings = [
        "list",
        "ls",
        "show me the files",
        "show the files",
        "show files",
        "show me all files",
        "what files",
        "which files",
        "what is here",
        "what's here",
        "what is in here",
        "what's in here",
        "what is in this",
        "what's in this",
        "where am i",
    ];
    case.after(&openings)?;
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

pub(super) fn read(case: &Case<'_>) -> Option<Answer> {
    let openings = [
        "read",
        "show",
        "open",
        "cat",
        "view",
        "see",
        "look at",
        "look into",
        "print",
        "display",
        "summarize",
        "summarise",
        "explain",
        "describe",
        "review",
        "check",
        "what is in",
        "what's in",
        "what is",
        "what does",
        "what do you think of",
        "how many lines",
        "how long is",
        "count the lines",
        "count lines",
    ];
    case.after(&openings)?;
    let file = path(case.text).or_else(|| quoted(case.text)).map(bare)?;
    if !case.tools.contains("read") {
        return None;
    }
    let call = Call { tool: "read", arguments: json!({ "path": file }) };
    let ask =
        one_call(&format!("{file} is what the user asks about."), &format!("I'll read `{file}`."), call);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| {
            format!("{} A real model would tell you what it means.", start_of(file, &text_of(results)))
        })
    })
}

/// The length of a text, and its first line that is not blank.
fn start_of(name: &str, text: &str) -> String {
    let words = text.split_whitespace().count();
    let heading = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)").trim();
    let heading: String = heading.chars().take(80).collect();
    let (lines, words) = (counted(text.lines().count() as u64, "line"), counted(words as u64, "word"));
    format!("`{name}` has {lines} and {words}. It begins with:\n\n> {heading}\n\n")
}

pub(super) fn search(case: &Case<'_>) -> Option<Answer> {
    let openings = ["search for", "grep for", "look for", "find", "grep", "search", "where is", "where are"];
    let rest = case.after(&openings)?;
    let needle = quoted(rest).unwrap_or_else(|| rest.trim_end_matches(['?', '.', '!']));
    // A description cannot be searched for.
    if needle.is_empty() || quoted(rest).is_none() && needle.split_whitespace().count() > 2 {
        return None;
    }
    let call = if case.tools.contains("grep") {
        Call { tool: "grep", arguments: json!({ "pattern": needle, "literal": true }) }
    } else {
        // An empty result is an answer, not a failure.
        case.bash(&format!("grep -rnIF --exclude-dir=.git -e {} . | head -n 50", shell_quoted(needle)))?
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

/// The output if there is no README, which the report repeats.
const NO_README: &str = "no README here";
const NO_REPOSITORY: &str = "no git repository here";

/// Prints the start of the README; never fails.
fn readme_command() -> String {
    format!("cat README* readme* 2>/dev/null | head -n 20 | grep . || echo '{NO_README}'")
}

fn in_repository(command: &str) -> String {
    format!("if git rev-parse --git-dir >/dev/null 2>&1; then {command}; else echo '{NO_REPOSITORY}'; fi")
}

pub(super) fn overview(case: &Case<'_>) -> Option<Answer> {
    let openings =
        ["give me", "show me", "an", "a", "overview", "tour", "several", "parallel", "do", "use", "run"];
    case.after(&openings)?;
    if !case.says(&["overview", "tour", "parallel"]) {
        return None;
    }
    let looks = [
        ("listing", "ls -A | head -n 30".to_owned()),
        ("history", in_repository("git --no-pager log --oneline -n 5 2>/dev/null || echo 'no commits yet'")),
        ("start of the README", readme_command()),
    ];
    let calls: Option<Vec<Call>> = looks.iter().map(|(_, command)| case.bash(command)).collect();
    let ask = Answer {
        thinking: Some("Three independent calls can run at the same time.".to_owned()),
        calls: calls?,
        ..Answer::of_text("Three tools at once: a listing, the history, and the start of the README.")
    };
    case.ask_then(ask, |results| {
        let mut report =
            "All of them have answered:\n\n| what | tool | lines | outcome |\n|---|---|---:|---|\n"
                .to_owned();
        for ((what, _), result) in looks.iter().zip(results) {
            let text = join_text(&result.content);
            let (n_lines, outcome) = match text.trim() {
                _ if result.is_error => (text.lines().count(), "failed"),
                missing if [NO_README, NO_REPOSITORY].contains(&missing) => (0, missing),
                text => (text.lines().count(), "ok"),
            };
            let n_lines = n_lines.to_string();
            report.push_str(
                &["| ", what, " | ", &result.tool_name, " | ", &n_lines, " | ", outcome, " |\n"].concat(),
            );
        }
        report
    })
}

/// "what does this project do"
pub(super) fn project(case: &Case<'_>) -> Option<Answer> {
    let openings = [
        "what",
        "what's",
        "explain",
        "describe",
        "summarize",
        "summarise",
        "tell me",
        "how does",
        "give me",
        "introduce",
    ];
    case.after(&openings)?;
    if path(case.text).is_some()
        || !case.says(&["project", "repo", "repository", "codebase", "program", "app"])
    {
        return None;
    }
    let ask = one_call(
        "The README should say what this is.",
        "The README should say it; I'll look at its start.",
        case.bash(&readme_command())?,
    );
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| match text_of(results).trim() {
            NO_README => "There is no README here, and I cannot work it out from the code: I only follow rules. `give me an \
                          overview` shows what is here; a real model would read it for you (`/login`)."
                .to_owned(),
            _ => "That is how the project describes itself. I only follow rules; a real model would read on and explain \
                  it (`/login`)."
                .to_owned(),
        })
    })
}

pub(super) fn diff(case: &Case<'_>) -> Option<Answer> {
    let openings = ["show", "what", "what's", "which", "git", "diff", "see", "print", "display", "list"];
    case.after(&openings)?;
    if !case.says(&["diff", "changed", "changes", "uncommitted"]) || path(case.text).is_some() {
        return None;
    }
    // Includes staged changes; without a commit there are only those.
    let command = in_repository("git --no-pager diff HEAD 2>/dev/null | head -n 300");
    let ask = one_call("git knows what has changed.", "I'll ask git.", case.bash(&command)?);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| match text_of(results).trim() {
            NO_REPOSITORY => {
                "This directory is not in a git repository, so there is nothing to compare with.".to_owned()
            }
            "" | "(no output)" => "git sees no changes since the last commit.".to_owned(),
            text => format!("That is the difference from the last commit: {} lines.", text.lines().count()),
        })
    })
}

pub(super) fn history(case: &Case<'_>) -> Option<Answer> {
    case.after(&["show", "what", "list", "git log", "history", "print", "give me", "the last", "last"])?;
    if !case.says(&["log", "history", "commits", "commit"]) || path(case.text).is_some() {
        return None;
    }
    let command = in_repository("git --no-pager log --oneline -n 10 2>/dev/null || echo 'no commits yet'");
    let ask = one_call("git has the history.", "I'll ask git.", case.bash(&command)?);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| match text_of(results).trim() {
            NO_REPOSITORY => "This directory is not in a git repository, so it has no history.".to_owned(),
            text => format!("Those are the last commits: {} lines.", text.lines().count()),
        })
    })
}

/// Files that define how a project is tested and built: name, test command, build
/// command.
const PROJECT_FILES: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "cargo test", "cargo build"),
    ("go.mod", "go test ./...", "go build ./..."),
    ("package.json", "npm test", "npm run build"),
    ("pyproject.toml", "pytest", "python -m build"),
    ("setup.py", "pytest", "python -m build"),
    ("mix.exs", "mix test", "mix compile"),
    ("pom.xml", "mvn test", "mvn package"),
    ("build.gradle", "gradle test", "gradle build"),
    ("Makefile", "make test", "make"),
];

/// "run the tests": finds the command and leaves running it to the user,
/// because tests and builds may change anything.
pub(super) fn how_to_run(case: &Case<'_>) -> Option<Answer> {
    let rest = case.after(&["run", "execute", "do", "start", "build", "compile", "test", "are", "does"])?;
    let is_build = case.after(&["build", "compile"]).is_some() || case.says(&["build"]);
    let asks = is_build || case.says(&["test", "tests"]) || case.after(&["test"]).is_some();
    // Anything more specific is a command or needs understanding.
    const AROUND: &[&str] = &[
        "the", "all", "my", "our", "its", "unit", "test", "tests", "suite", "build", "project", "it", "this",
        "code", "again", "pass", "passing", "a", "does",
    ];
    let is_vague = rest.split_whitespace().all(|word| AROUND.contains(&bare(word).to_lowercase().as_str()));
    if !asks || !is_vague {
        return None;
    }
    let ask = one_call(
        "The files here show how that is done.",
        "I'll check how that is done here.",
        case.bash("ls")?,
    );
    case.ask_then(ask, |results| {
        let text = text_of(results);
        let found = PROJECT_FILES.iter().find(|(file, ..)| text.lines().any(|line| line.trim() == *file));
        failure(results).unwrap_or_else(|| match found {
            Some((file, test, build)) => {
                let command = if is_build { build } else { test };
                format!("With a `{file}` here that is probably `{command}`. I have not run it. Say: run `{command}`")
            }
            None => "I cannot tell how that is done here. Name the command and I'll run it: run `COMMAND`".to_owned(),
        })
    })
}
