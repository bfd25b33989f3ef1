//! Says what happens in a session, as lines to append.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::agent::AgentEvent;
use crate::ai::{
    AssistantMessage, BlockKind, ContentBlock, Message, StopReason, StreamEvent, ToolCall, ToolResultMessage,
    empty_answer_text, failure_text, plain_error,
};
use crate::session::{
    EntryBody, Navigated, NoticeLevel, Opened, Phase, PromptDraft, QueueView, SessionEvent, SessionMessage,
    SessionState, SummarySource,
};
use crate::util::visible::spell_out;

use super::spoken::{MarkdownReader, read_out};

/// Lines of the result of a failed call that are read out.
const MAX_RESULT_LINES: usize = 5;
/// Grapheme clusters of a line about a call.
const MAX_CALL_CLUSTERS: usize = 200;
/// Grapheme clusters of what a call or a message is called afterwards.
const MAX_NAME_CLUSTERS: usize = 60;

/// Turns the events of a session into lines, and keeps what later lines depend on.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    /// Blocks of the answer that are text.
    texts: HashSet<usize>,
    /// The beginning of a line that is not complete.
    line: String,
    /// Reads the text that arrives.
    reader: MarkdownReader,
    /// The ids of calls that run, and what they are called.
    calls: Vec<(String, String)>,
    /// The queue in the last snapshot.
    queue: Arc<QueueView>,
    /// Messages that have left the queue and not arrived yet, as they were typed.
    leaving: VecDeque<String>,
    /// The model and its thinking, as they were read out last.
    selection: Option<String>,
    /// Output of the user's command that is not a whole line yet.
    output: String,
    /// The last answer with text, as the model gave it.
    last_answer: String,
    /// Why the last answer has nothing to read, until it is certain that it is not requested again.
    remark: Option<&'static str>,
    /// Whether a question of the session waits for its answer.
    is_asking: bool,
    /// Whether the last answer ended with an error, which was read out.
    has_failed: bool,
}

impl Narrator {
    pub(super) fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// The lines about an event; `state` is the snapshot that came with it.
    pub(super) fn on_event(&mut self, event: &SessionEvent, state: &SessionState) -> Vec<String> {
        self.follow_queue(state);
        match event {
            SessionEvent::Opened(opened) => self.on_opened(opened, state),
            SessionEvent::Agent(event) => self.on_agent_event(event),
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64().ceil();
                let error = plain_error(error);
                one(format!(
                    "Error: {error}. Trying again in {seconds:.0} seconds, {attempt} of {max_attempts}."
                ))
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64().ceil();
                one(format!(
                    "Error: no summary yet: {error}. Trying again in {seconds:.0} seconds, {attempt} of {max_attempts}."
                ))
            }
            SessionEvent::QueueChanged => self.on_queue(state),
            SessionEvent::CompactionStarted { .. } => one("Summarising the conversation."),
            SessionEvent::CompactionEnded { aborted: true, .. } => {
                one("The summary was cancelled; nothing was changed.")
            }
            SessionEvent::CompactionEnded { error: Some(error), .. } => {
                one(format!("Error: no summary: {error}"))
            }
            SessionEvent::CompactionEnded { .. } => one("The conversation is summarised."),
            SessionEvent::HandoffStarted => one("Drafting the prompt of a new session."),
            SessionEvent::HandoffEnded { aborted: true, .. } => {
                one("The handoff was cancelled; nothing was changed.")
            }
            SessionEvent::SummaryRetryStarted { source: SummarySource::Compaction(_) } => Vec::new(),
            SessionEvent::BashStarted { command, .. } => {
                one(format!("Running your command: {}", spell_out(command, Some(" ")).0))
            }
            SessionEvent::BashOutput { chunk, .. } => self.on_output(chunk),
            SessionEvent::BashEnded { execution, .. } => {
                let mut lines = rest(&mut self.output);
                lines.push(match execution.exit_code {
                    _ if execution.cancelled => "Your command was cancelled.".to_owned(),
                    Some(0) => "Your command is done.".to_owned(),
                    Some(code) => format!("Error: your command exited with code {code}."),
                    None => "Error: your command did not run.".to_owned(),
                });
                lines
            }
            SessionEvent::SelectionChanged => self.on_selection(state),
            SessionEvent::Notice { level, text } => one(match level {
                NoticeLevel::Info => text.clone(),
                NoticeLevel::Warning => format!("Warning: {text}"),
                NoticeLevel::Error => format!("Error: {text}"),
            }),
            SessionEvent::Ended { reason } => one(format!("Error: the session stopped: {reason}")),
            SessionEvent::EntryAppended(entry) => {
                if matches!(entry.body, EntryBody::ContextEdit(_)) {
                    self.remark = None;
                }
                Vec::new()
            }
            SessionEvent::Settled { aborted } => {
                self.leaving.clear();
                let mut lines = self.take_remark();
                lines.extend(one(match aborted {
                    // It asks whether to continue.
                    _ if self.is_asking => "The agent waits for your answer.",
                    true => "Interrupted. Your turn.",
                    false if self.has_failed => "Your turn.",
                    false => "Done. Your turn.",
                }));
                lines
            }
            SessionEvent::QueueReturned(taken) => {
                for prompt in taken.steering.iter().chain(&taken.follow_up) {
                    self.on_returned(&prompt.text);
                }
                Vec::new()
            }
            SessionEvent::Navigated(navigated) => self.on_navigated(navigated),
            SessionEvent::PromptReturned { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::HandoffEnded { aborted: false, .. }
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged => Vec::new(),
            SessionEvent::Question(_) | SessionEvent::QuestionClosed { .. } => {
                self.is_asking = matches!(event, SessionEvent::Question(_));
                Vec::new()
            }
        }
    }

    fn on_opened(&mut self, opened: &Opened, state: &SessionState) -> Vec<String> {
        *self = Self { queue: Arc::clone(&state.queue), ..Self::default() };
        self.selection = Some(selection(state));
        let name =
            state.name.as_ref().map_or_else(String::new, |name| format!(" “{}”", spell_out(name, None).0));
        let mut lines = vec![format!("Session{name}, model {}.", on_one_line(&state.model.id))];
        lines.extend(self.on_branch(opened));
        lines
    }

    /// The conversation continues at another place of the session.
    fn on_navigated(&mut self, navigated: &Navigated) -> Vec<String> {
        let mut lines = vec!["The conversation continues there. /tree also leads back.".to_owned()];
        self.last_answer.clear();
        lines.extend(self.on_branch(&navigated.branch));
        lines.extend(navigated.prompt.iter().flat_map(taken_back));
        lines
    }

    /// The last answer of the branch that is shown now.
    fn on_branch(&mut self, opened: &Opened) -> Vec<String> {
        let mut lines = Vec::new();
        let answer = opened.tail.iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::Assistant(answer) => Some(text_of(answer)).filter(|text| !text.is_empty()),
                Message::User(_) | Message::System(_) | Message::ToolResult(_) => None,
            },
            _ => None,
        });
        if let Some(answer) = answer {
            lines.push("The last answer was:".to_owned());
            lines.extend(read_out(&answer));
            self.last_answer = answer;
        }
        lines
    }

    fn on_agent_event(&mut self, event: &AgentEvent) -> Vec<String> {
        match event {
            AgentEvent::AgentStart => {
                self.calls.clear();
                self.has_failed = false;
                one("Working.")
            }
            AgentEvent::AssistantStart(_) => {
                self.texts.clear();
                self.rest_of_text()
            }
            AgentEvent::MessageUpdate(update) => self.on_update(update),
            AgentEvent::MessageEnd(message) => match &**message {
                Message::Assistant(answer) => {
                    self.has_failed = answer.stop_reason == StopReason::Error;
                    self.on_answer(answer)
                }
                Message::User(_) => self.on_delivered(),
                Message::System(_) | Message::ToolResult(_) => Vec::new(),
            },
            AgentEvent::ToolStart { call } => {
                let what = describe(call);
                let (name, number) = self.call_name(&shortened(&what, MAX_NAME_CLUSTERS));
                self.calls.push((call.id.clone(), name));
                one(format!("Running {}{number}", shortened(&what, MAX_CALL_CLUSTERS)))
            }
            AgentEvent::ToolEnd { call_id, result } => self.on_result(call_id, result),
            AgentEvent::TurnStart
            | AgentEvent::MessageStart(_)
            | AgentEvent::ToolRunning { .. }
            | AgentEvent::ToolUpdate { .. }
            | AgentEvent::TurnEnd { .. } => Vec::new(),
            AgentEvent::AgentEnd { .. } => {
                // What did not arrive is queued again.
                self.leaving.clear();
                Vec::new()
            }
        }
    }

    /// Whole lines of the answer, as they arrive.
    fn on_update(&mut self, update: &StreamEvent) -> Vec<String> {
        match update {
            StreamEvent::BlockStart { index, kind } => {
                let mut lines = self.rest_of_text();
                match kind {
                    BlockKind::Text => drop(self.texts.insert(*index)),
                    BlockKind::Thinking => lines.push("Thinking.".to_owned()),
                    BlockKind::ToolCall { .. } => {}
                }
                lines
            }
            StreamEvent::Delta { index, text } if self.texts.contains(index) => {
                self.line.push_str(text);
                self.reader.lines(whole_lines(&mut self.line))
            }
            StreamEvent::Start
            | StreamEvent::Delta { .. }
            | StreamEvent::BlockEnd { .. }
            | StreamEvent::Done(_) => Vec::new(),
        }
    }

    fn take_remark(&mut self) -> Vec<String> {
        self.remark.take().map(str::to_owned).into_iter().collect()
    }

    fn on_answer(&mut self, answer: &AssistantMessage) -> Vec<String> {
        let mut lines = self.take_remark();
        lines.extend(self.rest_of_text());
        let text = text_of(answer);
        if self.texts.is_empty() {
            // It did not arrive in pieces.
            lines.extend(read_out(&text));
        }
        if !text.is_empty() || answer.stop_reason == StopReason::Stop {
            self.last_answer = text;
        }
        match answer.stop_reason {
            StopReason::Error => lines.push(format!(
                "Error: {}",
                failure_text(answer).or_else(|| answer.error_message.clone()).unwrap_or_default()
            )),
            StopReason::Length => {
                lines.push("Warning: the answer was truncated at its length limit.".to_owned());
            }
            StopReason::Stop | StopReason::ToolUse => {
                self.remark = empty_answer_text(answer);
            }
            StopReason::Aborted | StopReason::Deferred | StopReason::Pending => {}
        }
        lines
    }

    /// What a call is called, which no other call that runs is, and the number that tells it from those.
    fn call_name(&self, name: &str) -> (String, String) {
        let numbers = (2_usize..).map(|n| format!(" ({n})"));
        let mut names =
            std::iter::once(String::new()).chain(numbers).map(|number| (format!("{name}{number}"), number));
        let is_free = |named: &(String, String)| self.calls.iter().all(|(_, other)| *other != named.0);
        // There are more numbers than calls.
        names.find(is_free).unwrap_or_default()
    }

    fn on_result(&mut self, call_id: &str, result: &ToolResultMessage) -> Vec<String> {
        let position = self.calls.iter().position(|(id, _)| id == call_id);
        let name = position.map_or_else(|| result.tool_name.clone(), |at| self.calls.remove(at).1);
        if !result.is_error {
            return one(format!("Done: {name}"));
        }
        let text: String = result
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        let mut lines = vec![format!("Failed: {name}")];
        lines.extend(
            text.lines().filter(|line| !line.trim().is_empty()).take(MAX_RESULT_LINES).map(str::to_owned),
        );
        lines
    }

    /// What is left of a text, which ends here.
    fn rest_of_text(&mut self) -> Vec<String> {
        let mut lines = self.reader.lines(rest(&mut self.line));
        lines.append(&mut self.reader.finish());
        self.reader = MarkdownReader::default();
        lines
    }

    /// How many messages wait, and for what.
    fn on_queue(&mut self, state: &SessionState) -> Vec<String> {
        if state.phase == Phase::Idle || state.queue.is_empty() {
            return Vec::new();
        }
        let (steering, follow_up) = (&state.queue.steering, &state.queue.follow_up);
        let n = steering.len() + follow_up.len();
        let messages = if n == 1 { "1 message is" } else { &format!("{n} messages are") };
        let when = match follow_up.len() {
            0 => String::new(),
            n_late if n_late == n => " for when the agent is done".to_owned(),
            n_late => format!(", {n_late} of them for when the agent is done"),
        };
        one(format!("{messages} queued{when}. An empty line delivers now, /queue reads the queue."))
    }

    /// Notices which messages have left the queue since the last snapshot.
    fn follow_queue(&mut self, state: &SessionState) {
        if Arc::ptr_eq(&self.queue, &state.queue) {
            return;
        }
        let before = std::mem::replace(&mut self.queue, Arc::clone(&state.queue));
        let mut staying: Vec<&String> = texts(&self.queue).collect();
        for text in texts(&before) {
            // Texts may be equal, and messages may have moved.
            match staying.iter().position(|other| *other == text) {
                Some(at) => drop(staying.remove(at)),
                None => self.leaving.push_back(text.clone()),
            }
        }
    }

    /// A message left the queue for the user, and not for the model.
    fn on_returned(&mut self, text: &str) {
        if let Some(at) = self.leaving.iter().position(|leaving| leaving == text) {
            self.leaving.remove(at);
        }
    }

    /// A message of the user was sent. One that did not come from the queue was typed just now.
    fn on_delivered(&mut self) -> Vec<String> {
        let Some(text) = self.leaving.pop_front() else { return Vec::new() };
        one(format!("Delivered your message: {}", shortened(&on_one_line(&text), MAX_NAME_CLUSTERS)))
    }

    /// The event also reports other changes, such as that of the session's name.
    fn on_selection(&mut self, state: &SessionState) -> Vec<String> {
        let selection = selection(state);
        if self.selection.as_ref() == Some(&selection) {
            return Vec::new();
        }
        self.selection = Some(selection.clone());
        one(selection)
    }

    fn on_output(&mut self, chunk: &str) -> Vec<String> {
        let mut versions = chunk.split('\r');
        self.output.push_str(versions.next().unwrap_or_default());
        let mut lines = whole_lines(&mut self.output);
        for version in versions {
            // A new version of the line, which was not read yet.
            self.output.clear();
            self.output.push_str(version);
            lines.extend(whole_lines(&mut self.output));
        }
        lines
    }
}

/// A message that the user may send anew.
pub(super) fn taken_back(prompt: &PromptDraft) -> Vec<String> {
    let text = spell_out(&prompt.text, Some(" ")).0;
    one(format!("Your message was taken back. Type it again, changed or not: {text}"))
}

fn one(line: impl Into<String>) -> Vec<String> {
    vec![line.into()]
}

/// Removes and returns the lines of `text` that are complete.
fn whole_lines(text: &mut String) -> Vec<String> {
    let Some(end) = text.rfind('\n') else { return Vec::new() };
    let rest = text.split_off(end + 1);
    let whole = std::mem::replace(text, rest);
    whole.lines().map(str::to_owned).collect()
}

/// Removes and returns what is left of a text.
fn rest(text: &mut String) -> Vec<String> {
    let text = std::mem::take(text);
    text.lines().map(str::to_owned).collect()
}

fn text_of(answer: &AssistantMessage) -> String {
    answer.texts().collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A call in one line: its name, and the argument that says most.
pub(super) fn describe(call: &ToolCall) -> String {
    let argument = described_argument(call);
    let line = argument.map_or_else(|| call.name.clone(), |(_, text)| format!("{}: {text}", call.name));
    on_one_line(&line)
}

/// The name and the text of that argument.
pub(super) fn described_argument(call: &ToolCall) -> Option<(&'static str, &str)> {
    const NAMES: [&str; 4] = ["command", "path", "pattern", "query"];
    NAMES.into_iter().find_map(|name| Some((name, call.arguments.get(name)?.as_str()?)))
}

pub(super) fn on_one_line(text: &str) -> String {
    spell_out(text, Some(" ")).0.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// In the place of what a shortened text lost: an ellipsis is not read by all screen readers.
const LEFT_OUT: &str = " (part left out) ";
/// The same at the end.
const AND_MORE: &str = " (and more)";

/// At most `n` grapheme clusters from the beginning and the end of a text, because paths often begin alike, and
/// that it is shortened. A text that this would not shorten stays whole.
pub(super) fn shortened(text: &str, n: usize) -> String {
    if text.graphemes(true).nth(n + LEFT_OUT.len()).is_none() {
        return text.to_owned();
    }
    let n_end = n / 2;
    let (first, last) = (beginning(text, n - n_end), end(text, n_end));
    [first.trim_end(), LEFT_OUT, last.trim_start()].concat()
}

/// The same with the beginning alone.
pub(super) fn begun(text: &str, n: usize) -> String {
    match text.graphemes(true).nth(n + AND_MORE.len()) {
        None => text.to_owned(),
        Some(_) => [beginning(text, n).trim_end(), AND_MORE].concat(),
    }
}

/// Whole words of at most `n` grapheme clusters, or that many of a long word.
fn beginning(text: &str, n: usize) -> &str {
    let limit = text.grapheme_indices(true).nth(n).map_or(text.len(), |(at, _)| at);
    let whole = text.split_word_bound_indices().map(|(at, _)| at).take_while(|at| *at <= limit).last();
    &text[..whole.filter(|at| *at > limit / 2).unwrap_or(limit)]
}

/// The same at the end of a text.
fn end(text: &str, n: usize) -> &str {
    let limit = text.grapheme_indices(true).rev().nth(n.saturating_sub(1)).map_or(0, |(at, _)| at);
    let whole = text.split_word_bound_indices().map(|(at, _)| at).find(|at| *at >= limit);
    &text[whole.filter(|at| *at < limit.midpoint(text.len())).unwrap_or(limit)..]
}

/// The queued messages, in the order of their delivery.
fn texts(queue: &QueueView) -> impl Iterator<Item = &String> {
    queue.steering.iter().chain(&queue.follow_up)
}

/// The model and its thinking.
pub(super) fn selection(state: &SessionState) -> String {
    format!("Model {}, thinking {}.", on_one_line(&state.model.reference()), state.thinking)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use crate::ai::{Api, Millis, ThinkingLevel, UserMessage};
    use crate::session::{CompactionReason, TakenQueue};

    use super::*;

    fn state() -> SessionState {
        let model = json!({ "id": "m", "name": "M", "api": "openai-completions", "provider": "p" });
        SessionState::of(&Arc::new(serde_json::from_value(model).unwrap()), Path::new("/p"))
    }

    fn say(narrator: &mut Narrator, event: AgentEvent) -> Vec<String> {
        narrator.on_event(&SessionEvent::Agent(event), &state())
    }

    #[test]
    fn long_names_lose_their_middle_between_words() {
        let check = |text: &str, n: usize, expected: &str| assert_eq!(shortened(text, n), expected);
        check("what is as short", 3, "what is as short");
        let left_out = " (part left out) ";
        let numbers = (15..=99).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        check(&numbers, 14, &["15 16", left_out, "98 99"].concat());
        check(&numbers, 16, &["15 16 17", left_out, "97 98 99"].concat());
        let command = "cd /home/me/project/src && ls -l /home/me/project/docs";
        check(command, 30, &["cd /home/me/", left_out, "me/project/docs"].concat());
        // A word that is longer is cut between clusters.
        let accented = |n: usize| "e\u{301}".repeat(n);
        check(&accented(30), 6, &[&accented(3), left_out, &accented(3)].concat());
        assert_eq!(begun("15 16 1723 18", 8), "15 16 1723 18");
        assert_eq!(begun("15 16 1723 18 19 20 21", 8), "15 16 (and more)");
        assert_eq!(begun(&"粗体".repeat(20), 4), "粗体粗体 (and more)");
    }

    #[test]
    fn cancelled_summary_is_no_error() {
        let ended = |aborted: bool, error: Option<&str>| SessionEvent::CompactionEnded {
            reason: CompactionReason::Manual,
            aborted,
            error: error.map(str::to_owned),
            will_retry: false,
            tokens_after: None,
        };
        let said = |event: SessionEvent| Narrator::default().on_event(&event, &state()).concat();
        assert_eq!(said(ended(true, Some("cancelled"))), "The summary was cancelled; nothing was changed.");
        assert_eq!(said(ended(false, Some("no key"))), "Error: no summary: no key");
        assert_eq!(said(ended(false, None)), "The conversation is summarised.");
    }

    #[test]
    fn an_answer_without_text_is_told() {
        let mut narrator = Narrator::default();
        let mut end = |content: serde_json::Value| {
            let answer = json!({ "role": "assistant", "content": content, "stopReason": "stop" });
            let answer: AssistantMessage = serde_json::from_value(answer).unwrap();
            let mut lines = say(&mut narrator, AgentEvent::MessageEnd(Arc::new(answer.into())));
            // It may be requested again until the session has settled.
            let settled = SessionEvent::Settled { aborted: false };
            lines.extend(narrator.on_event(&settled, &Deliveries::new().state));
            lines
        };
        let thinking = json!({ "type": "thinking", "thinking": "Hm." });
        let done = "Done. Your turn.";
        assert_eq!(end(json!([])), ["The model returned an empty answer.", done]);
        assert_eq!(end(json!([thinking])), ["The model stopped after thinking, without an answer.", done]);
        assert_eq!(end(json!([thinking, { "type": "text", "text": "Yes." }])), ["Yes.", done]);
    }

    #[test]
    fn calls_that_end_are_told_apart() {
        let mut narrator = Narrator::default();
        let calls = ["sleep 1", "false"].map(|command| {
            let arguments = json!({ "command": command }).as_object().unwrap().clone();
            Arc::new(ToolCall::new(command, "bash", arguments))
        });
        for call in &calls {
            let started = say(&mut narrator, AgentEvent::ToolStart { call: Arc::clone(call) });
            assert_eq!(started, [format!("Running bash: {}", call.id)]);
        }
        let [done, failed] = calls;
        let end = |call: &ToolCall, is_error: bool| {
            let result = call.result().text("why");
            let result = Arc::new(if is_error { result.failed().build() } else { result.build() });
            AgentEvent::ToolEnd { call_id: call.id.clone(), result }
        };
        assert_eq!(say(&mut narrator, end(&failed, true)), ["Failed: bash: false", "why"]);
        assert_eq!(say(&mut narrator, end(&done, false)), ["Done: bash: sleep 1"]);
    }

    #[test]
    fn equal_calls_that_run_at_the_same_time_have_numbers() {
        let mut narrator = Narrator::default();
        let start = |narrator: &mut Narrator, id: &str| {
            let arguments = json!({ "command": "cargo test" }).as_object().unwrap().clone();
            let call = Arc::new(ToolCall::new(id, "bash", arguments));
            (say(narrator, AgentEvent::ToolStart { call: Arc::clone(&call) }).concat(), call)
        };
        let end = |narrator: &mut Narrator, call: &ToolCall| {
            let result = Arc::new(call.result().text("").build());
            say(narrator, AgentEvent::ToolEnd { call_id: call.id.clone(), result }).concat()
        };
        let (started, calls): (Vec<String>, Vec<_>) =
            ["a", "b", "c"].map(|id| start(&mut narrator, id)).into_iter().unzip();
        assert_eq!(started, ["", " (2)", " (3)"].map(|n| format!("Running bash: cargo test{n}")));
        assert_eq!(end(&mut narrator, &calls[1]), "Done: bash: cargo test (2)");
        // A number is free again when its call has ended.
        let (started, again) = start(&mut narrator, "d");
        assert_eq!(started, "Running bash: cargo test (2)");
        let ended = [&calls[0], &again, &calls[2]].map(|call| end(&mut narrator, call));
        assert_eq!(ended, ["", " (2)", " (3)"].map(|n| format!("Done: bash: cargo test{n}")));
        assert_eq!(start(&mut narrator, "e").0, "Running bash: cargo test");
    }

    #[test]
    fn calls_with_a_common_beginning_are_told_apart() {
        let mut narrator = Narrator::default();
        let mut names = Vec::new();
        for end in ["cargo test", "cargo clippy"] {
            let command =
                format!("cd /home/me/a/project/with/a/very/long/path/all/the/way/to/it/and/more && {end}");
            let arguments = json!({ "command": command }).as_object().unwrap().clone();
            let call = Arc::new(ToolCall::new(end, "bash", arguments));
            let started = say(&mut narrator, AgentEvent::ToolStart { call: Arc::clone(&call) });
            assert_eq!(started, [format!("Running bash: {command}")]);
            let result = Arc::new(call.result().text("").build());
            names.extend(say(&mut narrator, AgentEvent::ToolEnd { call_id: call.id.clone(), result }));
        }
        assert_eq!(
            names,
            [
                "Done: bash: cd /home/me/a/project/ (part left out) /to/it/and/more && cargo test",
                "Done: bash: cd /home/me/a/project/ (part left out) to/it/and/more && cargo clippy",
            ]
        );
    }

    fn view(steering: &[&str], follow_up: &[&str]) -> Arc<QueueView> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        QueueView { steering: owned(steering), follow_up: owned(follow_up) }.into()
    }

    /// What is said about deliveries, while the queue changes and messages arrive as a session sends them.
    struct Deliveries {
        narrator: Narrator,
        state: SessionState,
    }

    impl Deliveries {
        fn new() -> Self {
            let state = SessionState { phase: Phase::Running, ..state() };
            Self { narrator: Narrator::default(), state }
        }

        fn queue(&mut self, steering: &[&str], follow_up: &[&str]) -> String {
            self.state.queue = view(steering, follow_up);
            self.narrator.on_event(&SessionEvent::QueueChanged, &self.state).join("\n")
        }

        fn event(&mut self, event: SessionEvent) -> Vec<String> {
            self.narrator.on_event(&event, &self.state)
        }

        /// A message arrives as the model will read it.
        fn arrives(&mut self, text: &str) -> String {
            let message = Message::User(UserMessage::new(text, vec![], Millis(0)));
            let event = SessionEvent::Agent(AgentEvent::MessageEnd(Arc::new(message)));
            self.narrator.on_event(&event, &self.state).join("\n")
        }
    }

    #[test]
    fn delivery_of_a_queued_message_is_announced_once() {
        let mut session = Deliveries::new();
        assert_eq!(session.arrives("typed"), "");
        let queued = session.queue(&["use tabs"], &["then\ntest"]);
        assert!(
            queued.starts_with("2 messages are queued, 1 of them for when the agent is done."),
            "{queued}"
        );
        let queued = session.queue(&[], &["then\ntest"]);
        assert!(queued.starts_with("1 message is queued for when the agent is done."), "{queued}");
        assert_eq!(session.arrives("use tabs"), "Delivered your message: use tabs");
        assert_eq!(session.arrives("use tabs"), "");
        session.queue(&[], &[]);
        assert_eq!(session.arrives("then\ntest"), "Delivered your message: then test");
    }

    #[test]
    fn delivery_of_a_template_and_of_equal_texts_is_announced() {
        let mut session = Deliveries::new();
        session.queue(&["/skill:pdf it", "again", "again"], &[]);
        session.queue(&["again", "again"], &[]);
        assert_eq!(session.arrives("<skill>…</skill>"), "Delivered your message: /skill:pdf it");
        session.queue(&[], &[]);
        for _ in 0..2 {
            assert_eq!(session.arrives("again"), "Delivered your message: again");
        }
        assert_eq!(session.arrives("again"), "");
    }

    #[test]
    fn message_that_was_taken_back_is_typed_anew() {
        let mut session = Deliveries::new();
        session.queue(&["one"], &["two"]);
        session.queue(&[], &[]);
        let drafts = |text: &str| vec![PromptDraft { text: text.to_owned(), ..PromptDraft::default() }];
        let taken = TakenQueue { steering: drafts("one"), follow_up: drafts("two"), ..TakenQueue::default() };
        session.event(SessionEvent::QueueReturned(Arc::new(taken)));
        assert_eq!(session.arrives("one"), "");
    }

    #[test]
    fn queue_that_an_abort_keeps_is_announced_when_it_is_delivered() {
        let mut session = Deliveries::new();
        session.queue(&["later", "last"], &[]);
        // The loop takes one, and ends before it arrives.
        session.queue(&["last"], &[]);
        session.event(SessionEvent::Agent(AgentEvent::AgentEnd { messages: Vec::new() }));
        session.queue(&["later", "last"], &[]);
        session.event(SessionEvent::Settled { aborted: true });
        session.queue(&["last"], &[]);
        assert_eq!(session.arrives("later"), "Delivered your message: later");
    }

    #[test]
    fn a_run_that_failed_is_not_done() {
        let mut session = Deliveries::new();
        let mut end = |stop_reason| {
            session.event(SessionEvent::Agent(AgentEvent::AgentStart));
            let pending = AssistantMessage::pending(Api::ANTHROPIC_MESSAGES, "p", "m", Millis(0));
            let answer = AssistantMessage { stop_reason, ..pending };
            session.event(SessionEvent::Agent(AgentEvent::MessageEnd(Arc::new(answer.into()))));
            session.event(SessionEvent::Settled { aborted: false })
        };
        assert_eq!(end(StopReason::Error), ["Your turn."]);
        assert_eq!(end(StopReason::Stop), ["The model returned an empty answer.", "Done. Your turn."]);
    }

    #[test]
    fn model_is_read_out_when_it_changes() {
        let mut session = Deliveries::new();
        let mut changed = |change: &dyn Fn(&mut SessionState)| {
            change(&mut session.state);
            session.narrator.on_event(&SessionEvent::SelectionChanged, &session.state)
        };
        assert_eq!(changed(&|_| ()), ["Model p/m, thinking off."]);
        assert_eq!(changed(&|state| state.name = Some("abc".to_owned())), [""; 0]);
        assert_eq!(changed(&|state| state.thinking = ThinkingLevel::High), ["Model p/m, thinking high."]);
        // Another provider may have a model with the same id.
        let other = changed(&|state| Arc::make_mut(&mut state.model).provider = "q".into());
        assert_eq!(other, ["Model q/m, thinking high."]);
    }
}
