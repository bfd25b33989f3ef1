//! `/history` and `/read`: the entries of the session, whether they were read out or not.
//!
//! Entries have numbers, of which 1 is the latest, so that nothing has to be read to find one.

use std::sync::Arc;

use crate::ai::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason, UserContent, empty_answer_text,
    failure_text, join_text,
};
use crate::session::{
    BashExecution, Entry, EntryBody, EntryKind, Reply, SessionCommand, SessionMessage, SessionTree,
};
use crate::util::counted;
use crate::util::worker;

use super::calls::call_lines;
use super::narrator::{begun, describe, on_one_line, shortened};
use super::spoken::read_out;
use super::{Next, Talk, say};

/// Entries that `/history` names at once.
const MAX_NAMED: usize = 20;
/// Grapheme clusters of an entry's beginning.
const MAX_NAME_CLUSTERS: usize = 80;
/// Characters that are looked at for it, enough for as many clusters.
const MAX_READ_CHARS: usize = 1_000;

/// Names entries, from the number that the user typed on.
pub(super) fn history(talk: &mut Talk, args: &str) -> Next {
    with_number(talk, "history", args, |tree, path, first| {
        let latest = path.iter().rev().skip(first - 1);
        let named: Vec<Arc<Entry>> = tree.read_all(&latest.copied().take(MAX_NAMED).collect::<Vec<_>>());
        let mut lines: Vec<String> =
            (first..).zip(&named).map(|(number, entry)| format!("{number}. {}", name(&entry.body))).collect();
        let next = first + named.len();
        lines.push("Type /read with a number for the whole text.".to_owned());
        if next <= path.len() {
            let earlier = counted((path.len() + 1 - next) as u64, "earlier entry");
            lines.push(format!("{earlier} from /history {next} on."));
        }
        lines
    })
}

/// Reads the entry whose number the user typed.
pub(super) fn read(talk: &mut Talk, args: &str) -> Next {
    with_number(talk, "read", args, |tree, path, number| {
        let entry = path.iter().rev().nth(number - 1).and_then(|idx| tree.read(*idx));
        entry.map_or_else(
            || vec!["Error: it cannot be read from the file.".to_owned()],
            |entry| text(&entry.body),
        )
    })
}

/// Says what `lines` makes of the entries and the number in `args`, which one of them has.
fn with_number(
    talk: &Talk,
    command: &'static str,
    args: &str,
    lines: impl FnOnce(&SessionTree, &[usize], usize) -> Vec<String> + Send + 'static,
) -> Next {
    let number = if args.is_empty() { Some(1) } else { args.parse().ok().filter(|number| *number > 0) };
    let Some(number) = number else {
        say(&[format!("Error: type a number after the command: /{command} 3")]);
        return Next::GoOn;
    };
    let answer = talk.handle.post(SessionCommand::ReadTree);
    tokio::spawn(async move {
        let tree = match answer.await {
            Ok(Reply::Tree(tree)) => tree,
            Ok(_) => return,
            Err(error) => return say(&[format!("Error: {error}")]),
        };
        let work = move || {
            let path: Vec<usize> = tree.path(tree.leaf());
            let path: Vec<usize> =
                path.into_iter().filter(|idx| is_readable(tree.entry(*idx).kind)).collect();
            match path.len() {
                0 => vec!["There is nothing in this session yet.".to_owned()],
                n if number > n => vec![format!("Error: there is no number {number}; type 1 to {n}.")],
                _ => lines(&tree, &path, number),
            }
        };
        // It waits for the disk.
        match worker::run("history", work).await {
            Ok(lines) => say(&lines),
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    Next::GoOn
}

fn is_readable(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::User
            | EntryKind::Assistant
            | EntryKind::ToolResult
            | EntryKind::Bash
            | EntryKind::Compaction
            | EntryKind::BranchSummary
            | EntryKind::CustomMessage
    )
}

/// What an entry is, and how it begins.
fn name(body: &EntryBody) -> String {
    if let Some(outcome) = only_outcome(body) {
        return shortened(&on_one_line(&outcome), MAX_NAME_CLUSTERS);
    }
    let of_text = || begun(&on_one_line(&body.preview(MAX_READ_CHARS)), MAX_NAME_CLUSTERS);
    let begin = match body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::Assistant(answer) if is_silent(answer) => {
                let calls = answer.tool_calls().map(describe).collect::<Vec<_>>().join(", ");
                shortened(&calls, MAX_NAME_CLUSTERS)
            }
            _ => of_text(),
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            begun(&on_one_line(&typed(execution)), MAX_NAME_CLUSTERS)
        }
        _ => of_text(),
    };
    format!("{}: {begin}", title(body))
}

/// A command of the user with its mark.
fn typed(execution: &BashExecution) -> String {
    let mark = if execution.exclude_from_context == Some(true) { "!!" } else { "!" };
    format!("{mark}{}", execution.command)
}

/// Whether it consists of calls.
fn is_silent(answer: &AssistantMessage) -> bool {
    is_textless(answer) && answer.tool_calls().next().is_some()
}

fn is_textless(answer: &AssistantMessage) -> bool {
    answer.texts().all(|text| text.trim().is_empty())
}

/// How an answer ended, unless it is whole and has something to read.
fn outcome(answer: &AssistantMessage) -> Option<String> {
    if answer.stop_reason == StopReason::Aborted {
        return Some("The answer was interrupted.".to_owned());
    }
    let failure = failure_text(answer).map(|error| format!("Error: {error}"));
    failure.or_else(|| empty_answer_text(answer).map(str::to_owned))
}

/// How an answer ended of which nothing else is to be read.
fn only_outcome(body: &EntryBody) -> Option<String> {
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = body else { return None };
    let Message::Assistant(answer) = &**message else { return None };
    outcome(answer).filter(|_| is_textless(answer) && answer.tool_calls().next().is_none())
}

fn title(body: &EntryBody) -> String {
    match body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(_) => "You".to_owned(),
            Message::Assistant(answer) if is_silent(answer) => "Calls".to_owned(),
            Message::Assistant(_) => "Answer".to_owned(),
            Message::ToolResult(result) if result.is_error => format!("Failure of {}", result.tool_name),
            Message::ToolResult(result) => format!("Result of {}", result.tool_name),
            Message::System(_) => "Instructions".to_owned(),
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. }
            if execution.exclude_from_context == Some(true) =>
        {
            "Your command, which the model does not see".to_owned()
        }
        EntryBody::Message { .. } => "Your command".to_owned(),
        EntryBody::Compaction(_) | EntryBody::BranchSummary(_) => "Summary".to_owned(),
        _ => "Message".to_owned(),
    }
}

/// All of an entry that can be read.
fn text(body: &EntryBody) -> Vec<String> {
    let title = only_outcome(body).is_none().then(|| format!("{}:", on_one_line(&title(body))));
    let mut lines: Vec<String> = title.into_iter().collect();
    match body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::Assistant(answer) => {
                lines.extend(answer.content.iter().flat_map(block));
                lines.extend(outcome(answer).iter().flat_map(|outcome| plain(outcome)));
            }
            Message::ToolResult(result) => {
                let is_image = |block: &&ContentBlock| block.as_text().is_none();
                lines.extend(plain(&join_text(&result.content)));
                lines.extend(result.content.iter().filter(is_image).map(|_| "An image.".to_owned()));
            }
            Message::User(user) => lines.extend(plain(&user.content.text())),
            Message::System(_) => {}
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            lines.push(on_one_line(&typed(execution)));
            lines.extend(plain(&execution.output));
            lines.extend(
                execution.full_output_path.as_ref().map(|path| format!("All of its output is in {path}")),
            );
        }
        EntryBody::Compaction(compaction) => lines.extend(read_out(&compaction.summary)),
        EntryBody::BranchSummary(branch) => lines.extend(read_out(&branch.summary)),
        EntryBody::CustomMessage(message) => {
            let text = message.content.as_ref().map(UserContent::text).unwrap_or_default();
            lines.extend(read_out(&text));
        }
        _ => {}
    }
    if lines.len() == 1 && only_outcome(body).is_none() {
        lines.push("Nothing.".to_owned());
    }
    lines.push("End.".to_owned());
    lines
}

/// A part of an answer.
fn block(block: &AssistantBlock) -> Vec<String> {
    match block {
        AssistantBlock::Text(text) => read_out(&text.text),
        AssistantBlock::Thinking(thinking) if thinking.thinking.trim().is_empty() => Vec::new(),
        AssistantBlock::Thinking(thinking) => {
            [vec!["Thinking:".to_owned()], read_out(&thinking.thinking), vec!["End of thinking.".to_owned()]]
                .concat()
        }
        AssistantBlock::ToolCall(call) => call_lines(call),
        AssistantBlock::Unknown(_) => Vec::new(),
    }
}

fn plain(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use crate::ai::{Api, Millis, Text};

    use super::*;

    #[track_caller]
    fn check(stop_reason: StopReason, text: &str, expected_name: &str, expected: &[&str]) {
        let pending = AssistantMessage::pending(Api::ANTHROPIC_MESSAGES, "loc", "m", Millis(0));
        let error_message = (stop_reason == StopReason::Error).then(|| "400: boom\nand more".to_owned());
        let content = if text.is_empty() { Vec::new() } else { vec![AssistantBlock::Text(Text::new(text))] };
        let answer = AssistantMessage { stop_reason, error_message, content, ..pending };
        let body = EntryBody::message(Arc::new(answer.into()));
        assert_eq!(name(&body), expected_name);
        assert_eq!(super::text(&body), expected);
    }

    #[test]
    fn a_long_text_is_named_by_its_first_words() {
        let text = (1..=400).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let name = "Answer: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 (and more)";
        check(StopReason::Stop, &text, name, &["Answer:", &text, "End."]);
    }

    #[test]
    fn a_command_that_the_model_does_not_see_says_so() {
        let body = |exclude_from_context: Option<bool>| {
            EntryBody::bash(BashExecution {
                command: "echo\na".to_owned(),
                exclude_from_context,
                ..BashExecution::default()
            })
        };
        let hidden = "Your command, which the model does not see:";
        assert_eq!(name(&body(Some(true))), format!("{hidden} !!echo a"));
        assert_eq!(text(&body(Some(true))), [hidden, "!!echo a", "End."]);
        assert_eq!(name(&body(None)), "Your command: !echo a");
        assert_eq!(text(&body(None)), ["Your command:", "!echo a", "End."]);
    }

    #[test]
    fn an_answer_that_failed_or_was_interrupted_says_so() {
        let error = ["Error: loc: 400: boom", "and more"];
        check(StopReason::Error, "", &error.join(" "), &[&error[..], &["End."]].concat());
        let begun = [&["Answer:", "It is"], &error[..], &["End."]].concat();
        check(StopReason::Error, "It is", "Answer: It is", &begun);
        let interrupted = "The answer was interrupted.";
        check(StopReason::Aborted, "", interrupted, &[interrupted, "End."]);
        check(StopReason::Aborted, "It is", "Answer: It is", &["Answer:", "It is", interrupted, "End."]);
        check(StopReason::Stop, "It is", "Answer: It is", &["Answer:", "It is", "End."]);
        let empty = "The model returned an empty answer.";
        check(StopReason::Stop, "", empty, &[empty, "End."]);
    }
}
