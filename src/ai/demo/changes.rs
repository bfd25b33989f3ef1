//! Rules that may change files: each matches a whole sentence, needs the exact
//! text of the change, and never overwrites existing content.

use serde_json::{Value, json};

use super::rules::{Case, failure, one_call, shell_quoted, text_of};
use super::words::{argument, bare, has_word, is_end, is_path, opened_by, without};
use super::{Answer, Call};

/// "replace A with B in FILE".
pub(super) fn edit(case: &Case<'_>) -> Option<Answer> {
    let rest = case.after(&["replace", "change", "rename"])?;
    // "change color to blue" describes something; "replace color with blue" says it.
    let is_literal = case.after(&["replace"]).is_some();
    let Some(Replacement { old, new, file }) = replacement(rest, is_literal) else {
        return Some(Answer::of_text(
            "I make only literal changes, and I did not understand this one. Put quotes around phrases, \
             like this: `replace hello with \"good bye\" in notes.md`.",
        ));
    };
    if !case.tools.contains("edit") {
        return None;
    }
    let edits = json!([{ "oldText": old, "newText": new }]);
    let call = Call { tool: "edit", arguments: json!({ "path": file, "edits": edits }) };
    let ask = one_call("One exact replacement will do.", &format!("I'll change `{file}`."), call);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| format!("Done: `{old}` is now `{new}` in `{file}`."))
    })
}

#[derive(Debug, PartialEq)]
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    file: &'a str,
}

/// Parts of "A with B in FILE", each quoted or a single word; all of the text must
/// match. If `is_literal`, the texts need no quotes.
fn replacement(text: &str, is_literal: bool) -> Option<Replacement<'_>> {
    let (old, old_quoted, rest) = argument(text)?;
    let (new, new_quoted, rest) = argument(opened_by(rest, &["with", "by", "to"])?)?;
    let (file, _, rest) = argument(opened_by(rest, &["in"])?)?;
    let is_said = is_literal || old_quoted && new_quoted;
    (is_said && is_end(rest)).then(|| Replacement { old, new, file: bare(file) })
}

/// "create FILE", "create FILE with TEXT": first checks whether the file exists.
pub(super) fn create(case: &Case<'_>) -> Option<Answer> {
    let New { file, content } = new_file(case.text)?;
    if !case.tools.contains("write") {
        return None;
    }
    let quoted = shell_quoted(file);
    let look = case.bash(&format!("test -e {quoted} -o -L {quoted} && echo exists || echo new"));
    let Some(look) = look else {
        let text =
            format!("Without the bash tool I cannot check whether `{file}` exists, so I did not write it.");
        return Some(Answer::of_text(text));
    };
    match case.results.as_slice() {
        [] => Some(one_call(
            "First I check whether the name is free.",
            &format!("Is there a `{file}` already?"),
            look,
        )),
        [found] if failure(&[found]).is_some() => failure(&[found]).map(Answer::of_text),
        [found] if text_of(&[found]).lines().rev().find(|line| !line.trim().is_empty()) == Some("new") => {
            let call = Call { tool: "write", arguments: json!({ "path": file, "content": content }) };
            Some(one_call(&format!("{file} is new."), &format!("No: I'll create `{file}`."), call))
        }
        [_] => Some(Answer::of_text(format!(
            "`{file}` already exists, and I do not overwrite files. Choose another name, or change part \
             of it: `replace hello with goodbye in {file}`."
        ))),
        results => Some(Answer::of_text(failure(results).unwrap_or_else(|| {
            format!("`{file}` is written. Try: `replace hello with goodbye in {file}`.")
        }))),
    }
}

#[derive(Debug, PartialEq)]
struct New<'a> {
    file: &'a str,
    content: String,
}

fn new_file(text: &str) -> Option<New<'_>> {
    let rest = opened_by(text, &["create", "write", "make"])?;
    let rest = without(without(without(rest, &["a", "an", "the"]), &["new", "empty"]), &["text"]);
    let named = opened_by(rest, &["file"]);
    let rest = named.map_or(rest, |rest| without(rest, &["called", "named"]));
    let (file, _, rest) = argument(rest)?;
    let file = bare(file);
    // The shell and the tool must interpret the name alike.
    let is_plain = file.chars().all(|char| char.is_alphanumeric() || "._-/+".contains(char));
    if !is_plain || file.ends_with('/') || !(named.is_some() || is_path(file)) {
        return None;
    }
    if is_end(rest) {
        return Some(New { file, content: sample_file(file) });
    }
    let said = opened_by(rest, &["with the text", "with text", "containing", "saying", "with"])?;
    let content = match argument(said)? {
        (content, true, rest) if is_end(rest) => content,
        // A description of the content, not the text itself.
        (first, false, _) if has_word(first, &["a", "an", "the", "some", "all", "my", "unit", "tests"]) => {
            return None;
        }
        _ if opened_by(text, &["create"]).is_some() => said,
        _ => return None,
    };
    Some(New { file, content: format!("{content}\n") })
}

fn sample_file(file: &str) -> String {
    match file.rsplit('.').next() {
        Some("rs") => "fn main() {\n    println!(\"hello from the demo model\");\n}\n".to_owned(),
        Some("py") => "print(\"hello from the demo model\")\n".to_owned(),
        Some("json") => format!("{}\n", Value::from("hello from the demo model")),
        _ => "hello from the demo model\n".to_owned(),
    }
}

/// "run `COMMAND`"; without backticks, only commands that change nothing.
pub(super) fn run(case: &Case<'_>) -> Option<Answer> {
    let rest = case.after(&["run the command", "execute the command", "run", "execute"])?;
    let command = match argument(rest)? {
        (command, true, rest) if is_end(rest) => command,
        (_, false, _) if only_looks(rest.trim_end_matches(['.', '?', '!'])) => {
            rest.trim_end_matches(['.', '?', '!'])
        }
        _ => {
            return Some(Answer::of_text(
                "I run only commands you spell out: put one in backticks, like this: run `cargo \
                 --version`. Or run it yourself with `!cargo --version`.",
            ));
        }
    };
    let ask = one_call("The user names a command.", "Running it.", case.bash(command)?);
    case.ask_then(ask, |results| {
        failure(results).unwrap_or_else(|| {
            let n = text_of(results).lines().count();
            let s = if n == 1 { "" } else { "s" };
            format!("`{command}` succeeded with {n} line{s} of output.")
        })
    })
}

/// Whether these words are a command that changes nothing with any arguments.
fn only_looks(command: &str) -> bool {
    let is_plain = command.chars().all(|char| char.is_alphanumeric() || " ._-/=,:+@".contains(char));
    let mut words = command.split_whitespace();
    let first = words.next().unwrap_or_default();
    let is_known = match first {
        "ls" | "pwd" | "whoami" | "uname" | "echo" | "cat" | "head" | "wc" | "du" | "df" => true,
        "git" => {
            let is_look = words.next().is_some_and(|word| ["status", "log", "diff", "show"].contains(&word));
            // git log and git diff can write files.
            is_look && words.all(|word| !word.starts_with("--output"))
        }
        _ => false,
    };
    is_plain && is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_understood_as_a_whole_or_not_at_all() {
        let check = |text: &str, expected: Option<(&str, &str, &str)>| {
            let expected = expected.map(|(old, new, file)| Replacement { old, new, file });
            assert_eq!(replacement(text, true), expected, "{text}");
        };
        check("a with b in c.md", Some(("a", "b", "c.md")));
        check("`a in b` with `c with d` in `e.md`.", Some(("a in b", "c with d", "e.md")));
        check("a with b in c.md and d.md", None);
        check("the a with b in c.md", None);
        check("a with b", None);
    }

    #[test]
    fn a_new_file_has_a_plain_name_and_its_words_given() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(file, content)| New { file, content: content.to_owned() });
            assert_eq!(new_file(text), expected, "{text}");
        };
        check("create hello.txt with hello world", Some(("hello.txt", "hello world\n")));
        check("create a new file called TODO with `buy milk`", Some(("TODO", "buy milk\n")));
        check("write hi.txt with \"hi there\"", Some(("hi.txt", "hi there\n")));
        for file in ["new.txt", "file.txt", "a.txt", "text.md", "the-end.md", "empty/new.txt", "called.txt"] {
            check(&format!("create {file} with abc"), Some((file, "abc\n")));
            check(&format!("create a new file called {file} with abc"), Some((file, "abc\n")));
        }
        check("write hi.txt with hi there", None);
        check("create x.py with the function mul", None);
        check("create $(date).txt with x", None);
        check("create ~/x.txt with x", None);
        check("create src/", None);
        check("create a summary of README.md", None);
    }

    #[test]
    fn only_commands_that_look_need_no_backticks() {
        for command in ["git status", "git log --oneline -n 5", "ls -la src", "echo hello"] {
            assert!(only_looks(command), "{command}");
        }
        for command in [
            "git push",
            "git branch -D main",
            "git diff --output=x",
            "ls; rm x",
            "ls > x",
            "rm x",
            "cat $(rm x)",
            "",
        ] {
            assert!(!only_looks(command), "{command}");
        }
    }
}
