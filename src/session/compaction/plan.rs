//! Decides which part of a branch a summary replaces, and which is kept word for word.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::ai::Message;

use super::super::pins;
use super::super::projection;
use super::super::store::{
    Compaction, ContextReader, Entry, EntryBody, EntryId, SessionMessage, SessionStore, ToSummarize,
};
use super::estimate::{message_tokens, sent_tokens};
use super::limits::PlanLimits;
use super::prompts;
use super::shorten::within;

/// Length of the quotes at the end of a summary, in the `details` of a compaction.
const PINNED_BYTES: &str = "pinnedBytes";

/// The parts to summarise and to keep.
#[derive(Debug, Clone)]
pub(in super::super) struct CompactionPlan {
    /// Whole turns before the kept part, since the previous compaction.
    pub(super) history: Vec<Arc<Message>>,
    /// The beginning of the turn whose end is kept.
    pub(super) turn_prefix: Vec<Arc<Message>>,
    pub(super) previous_summary: Option<String>,
    pub(in super::super) first_kept_entry_id: String,
    /// Quotes of pinned messages that the summary would replace; they end the summary.
    pub(in super::super) quotes: String,
    pub(super) files: Files,
    /// Messages before `history` that were not read, because a summary cannot cover them.
    pub(super) n_unread: usize,
    /// About what the summarised messages take of the window, in tokens.
    n_tokens: u64,
    pub(super) limits: PlanLimits,
}

/// Why a compaction is planned, which decides how much it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum PlanAim {
    /// The window is nearly full: only what exceeds the part that is kept, if it is worth a request.
    Threshold,
    /// The user asked for it: at least half of the conversation.
    Manual,
    /// A request did not fit: something in any case, and more each time.
    Overflow {
        /// Compactions since the last request that fitted.
        n_before: u32,
    },
}

/// Why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NothingToCompact {
    #[error("the conversation is compacted already")]
    AlreadyCompacted,
    #[error("there is nothing to compact: the conversation is shorter than the part that is kept")]
    TooShort,
    #[error("there is little to compact: most of the window is taken by what a compaction keeps")]
    TooLittle,
}

/// Files that tools read and changed in the summarised part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

/// The part of an entry that planning needs.
struct Step {
    /// Index in the branch.
    at: usize,
    /// The message for the model; `None` if the model does not see the entry.
    message: Option<Arc<Message>>,
    is_system: bool,
    place: Place,
    /// About what it takes of a request.
    tokens: u64,
}

/// Whether a kept part may begin here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A message of the user, which begins a turn.
    TurnStart,
    /// An answer in the middle of a turn.
    Answer,
    /// Not here: a result belongs to its call.
    Inside,
}

impl CompactionPlan {
    /// The lists of files, for the entry's `details`.
    pub(in super::super) fn details(&self) -> Value {
        self.files.details()
    }

    /// Whether it follows another compaction.
    fn repeats(&self) -> bool {
        self.previous_summary.is_some()
    }

    /// Number of messages that the summary replaces.
    pub(in super::super) fn n_summarised(&self) -> usize {
        self.n_unread + self.history.len() + self.turn_prefix.len()
    }
}

/// Plans the compaction of the active branch, reading as much of it as a summary can cover.
///
/// # Errors
/// If there is nothing to summarise.
pub(in super::super) fn plan_of(
    context: &mut ContextReader<'_>,
    limits: PlanLimits,
    aim: PlanAim,
) -> Result<CompactionPlan, NothingToCompact> {
    let ToSummarize { entries, n_unread } = context.read_to_summarize(|entries| {
        let texts = prompts::texts(&projection::messages(entries));
        texts.iter().map(|text| text.chars().count()).sum::<usize>() >= limits.all_chars()
    });
    let plan = plan_for(&entries, limits, aim)?;
    Ok(CompactionPlan { n_unread, ..plan })
}

/// Plans what `aim` asks for, by keeping less if the part that is kept leaves nothing to give up.
fn plan_for(
    branch: &[Arc<Entry>],
    limits: PlanLimits,
    aim: PlanAim,
) -> Result<CompactionPlan, NothingToCompact> {
    let keep = match aim {
        PlanAim::Overflow { n_before } => limits.keep_recent >> n_before.min(32),
        PlanAim::Threshold | PlanAim::Manual => limits.keep_recent,
    };
    let plan = plan(branch, keep.max(1), limits, aim);
    match (aim, plan) {
        (PlanAim::Threshold, Ok(plan)) if plan.repeats() && plan.n_tokens < limits.least_freed() => {
            Err(NothingToCompact::TooLittle)
        }
        (PlanAim::Manual | PlanAim::Overflow { .. }, Err(NothingToCompact::TooShort)) => {
            plan_with_less(branch, keep / 2, limits, aim)
        }
        (_, plan) => plan,
    }
}

/// Halves what is kept, beginning with half of the conversation, until there is something to give up.
fn plan_with_less(
    branch: &[Arc<Entry>],
    most: u64,
    limits: PlanLimits,
    aim: PlanAim,
) -> Result<CompactionPlan, NothingToCompact> {
    let all: u64 = projection::messages(branch).iter().map(|message| message_tokens(message)).sum();
    let mut keep = most.min(all / 2).max(1);
    loop {
        match plan(branch, keep, limits, aim) {
            // A summary of the only question saves nothing.
            Ok(plan) if aim == PlanAim::Manual && plan.n_summarised() < 2 => {
                return Err(NothingToCompact::TooShort);
            }
            Err(NothingToCompact::TooShort) if keep > 1 => keep /= 2,
            other => return other,
        }
    }
}

/// The `details` of a compaction whose summary ends with `quotes`.
pub(in super::super) fn with_quotes(mut details: Value, quotes: &str) -> Value {
    if !quotes.is_empty() {
        details[PINNED_BYTES] = quotes.len().into();
    }
    details
}

impl Files {
    /// The lists, for an entry's `details`.
    pub(super) fn details(&self) -> Value {
        let read: Vec<&String> = self.read.difference(&self.modified).collect();
        json!({ "readFiles": read, "modifiedFiles": self.modified })
    }

    /// The lists as the model reads them, after a summary.
    pub(super) fn lists(&self) -> String {
        let read: Vec<&str> = self.read.difference(&self.modified).map(String::as_str).collect();
        let modified: Vec<&str> = self.modified.iter().map(String::as_str).collect();
        let list = |name: &str, files: &[&str]| match files {
            [] => String::new(),
            files => format!("\n\n<{name}>\n{}\n</{name}>", files.join("\n")),
        };
        list("read-files", &read) + &list("modified-files", &modified)
    }

    /// Adds what the tools of a message read and changed.
    pub(super) fn add_message(&mut self, message: &Message) {
        let Message::Assistant(answer) = message else { return };
        for call in answer.tool_calls() {
            let arguments = call.sent_arguments();
            let Some(path) = arguments.get("path").and_then(Value::as_str) else { continue };
            match call.name.as_str() {
                "read" => self.read.insert(path.to_owned()),
                "edit" | "write" => self.modified.insert(path.to_owned()),
                _ => false,
            };
        }
    }

    /// Adds the lists of an earlier summary; those of an extension mean something else.
    pub(super) fn add_details(&mut self, details: Option<&Value>, from_hook: Option<bool>) {
        let Some(details) = details.filter(|_| from_hook != Some(true)) else { return };
        let list = |key: &str| -> Vec<String> {
            let items = details.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        self.read.extend(list("readFiles"));
        self.modified.extend(list("modifiedFiles"));
    }
}

/// What `/compact` would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPreview {
    /// How many messages the summary would replace.
    pub n_messages: usize,
    /// The first entry that would stay word for word.
    pub first_kept: EntryId,
}

/// Plans the compaction of a session without performing it, keeping about
/// `keep_recent_tokens` at its end. Blocks: reads what follows the latest compaction.
///
/// # Errors
/// If there is nothing to summarise.
pub fn preview_compaction(
    store: &mut SessionStore,
    keep_recent_tokens: u64,
) -> Result<CompactionPreview, NothingToCompact> {
    let pinned = pins::pinned(&store.custom_entries());
    let read = ContextReader::new(store, &pinned).read_to_summarize(|_| false);
    let limits = PlanLimits { keep_recent: keep_recent_tokens, ..PlanLimits::default() };
    let plan = plan_for(&read.entries, limits, PlanAim::Manual)?;
    Ok(CompactionPreview {
        n_messages: plan.n_summarised(),
        first_kept: EntryId::new(&plan.first_kept_entry_id),
    })
}

/// Plans the compaction of `branch`, keeping about `keep` tokens at its end.
///
/// # Errors
/// If there is nothing to summarise.
fn plan(
    branch: &[Arc<Entry>],
    keep: u64,
    limits: PlanLimits,
    aim: PlanAim,
) -> Result<CompactionPlan, NothingToCompact> {
    let previous = branch.iter().rposition(|entry| matches!(entry.body, EntryBody::Compaction(_)));
    let steps = steps(branch, previous, limits);
    let mut seen = steps.iter().filter(|step| step.message.is_some() && !step.is_system);
    let is_forced = matches!(aim, PlanAim::Overflow { .. });
    if let Some(previous) = previous.filter(|_| !is_forced)
        && seen.all(|step| step.at < previous)
    {
        return Err(NothingToCompact::AlreadyCompacted);
    }
    let cut = cut(&steps, keep).ok_or(NothingToCompact::TooShort)?;
    let turn_start = match steps[cut].place {
        Place::TurnStart | Place::Inside => cut,
        Place::Answer => steps[..cut].iter().rposition(|step| step.place == Place::TurnStart).unwrap_or(cut),
    };
    let texts = |steps: &[Step]| -> Vec<Arc<Message>> {
        steps.iter().filter(|step| !step.is_system).filter_map(|step| step.message.clone()).collect()
    };
    let (history, turn_prefix) = (texts(&steps[..turn_start]), texts(&steps[turn_start..cut]));
    if history.is_empty() && turn_prefix.is_empty() {
        return Err(NothingToCompact::TooShort);
    }
    // Entries that concern only the session stay with the message after them.
    let first_kept = steps[..cut].iter().rposition(|step| step.message.is_some()).map_or(0, |at| at + 1);
    let summarised: Vec<&Arc<Message>> = history.iter().chain(&turn_prefix).collect();
    let quotes = pins::quotes(branch, steps[first_kept].at, limits.quotes_chars());
    let before = previous.and_then(|at| match &branch[at].body {
        EntryBody::Compaction(compaction) => Some(&**compaction),
        _ => None,
    });
    Ok(CompactionPlan {
        files: files(&summarised, before),
        previous_summary: before
            .map(without_quotes)
            .filter(|text| !text.is_empty())
            .map(|text| within(text.to_owned(), limits.summary_chars())),
        n_tokens: steps[..cut].iter().map(|step| step.tokens).sum(),
        quotes,
        first_kept_entry_id: branch[steps[first_kept].at].id.to_string(),
        history,
        turn_prefix,
        n_unread: 0,
        limits,
    })
}

/// The summary of `compaction` without the quotes of pinned messages at its end.
fn without_quotes(compaction: &Compaction) -> &str {
    let summary = compaction.summary.as_str();
    let n_bytes = compaction.details.as_ref().and_then(|details| details.get(PINNED_BYTES)?.as_u64());
    let end = n_bytes.and_then(|n_bytes| summary.len().checked_sub(usize::try_from(n_bytes).ok()?));
    end.and_then(|end| summary.get(..end)).unwrap_or(summary)
}

/// The entries of a request, in its order, without the compaction itself.
fn steps(branch: &[Arc<Entry>], previous: Option<usize>, limits: PlanLimits) -> Vec<Step> {
    let kept_from = previous.map_or(0, |at| match &branch[at].body {
        EntryBody::Compaction(compaction) => branch[..at]
            .iter()
            .position(|entry| entry.id.as_str() == compaction.first_kept_entry_id)
            .unwrap_or(at),
        _ => at,
    });
    let selected: Vec<usize> = (kept_from..branch.len())
        .filter(|at| !matches!(branch[*at].body, EntryBody::Compaction(_)))
        .collect();
    let entries: Vec<Arc<Entry>> = selected.iter().map(|at| Arc::clone(&branch[*at])).collect();
    let messages = projection::per_entry(&entries);
    selected
        .into_iter()
        .zip(messages)
        .map(|(at, message)| {
            let is_system = message.as_deref().is_some_and(|message| matches!(message, Message::System(_)));
            // System messages are replayed in any case.
            let tokens = message
                .as_deref()
                .filter(|_| !is_system)
                .map_or(0, |message| sent_tokens(message, limits.result_tokens()));
            Step { at, place: place(&branch[at], message.as_deref()), is_system, message, tokens }
        })
        .collect()
}

fn place(entry: &Entry, message: Option<&Message>) -> Place {
    match (&entry.body, message) {
        (_, None) => Place::Inside,
        (EntryBody::Message { message: SessionMessage::Model(_), .. }, Some(message)) => match message {
            Message::User(_) => Place::TurnStart,
            Message::Assistant(_) => Place::Answer,
            Message::System(_) | Message::ToolResult(_) => Place::Inside,
        },
        (_, Some(_)) => Place::TurnStart,
    }
}

/// The beginning of the kept part, which contains at least `keep` tokens if there are enough.
fn cut(steps: &[Step], keep: u64) -> Option<usize> {
    let mut sum = 0_u64;
    let reached = steps.iter().rposition(|step| {
        sum = sum.saturating_add(step.tokens);
        step.message.is_some() && !step.is_system && sum >= keep
    })?;
    let is_cut = |at: &usize| steps[*at].place != Place::Inside;
    // If the results of the last answer alone exceed the limit, search backwards.
    (reached..steps.len()).find(is_cut).or_else(|| (0..reached).rev().find(is_cut))
}

fn files(messages: &[&Arc<Message>], before: Option<&Compaction>) -> Files {
    let mut files = Files::default();
    if let Some(before) = before {
        files.add_details(before.details.as_ref(), before.from_hook);
    }
    for message in messages {
        files.add_message(message);
    }
    files
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::estimate::context_tokens_up_to;
    use super::*;

    /// A plan that keeps exactly that much, in a window without end.
    fn plan(branch: &[Arc<Entry>], keep: u64) -> Result<CompactionPlan, NothingToCompact> {
        super::plan(branch, keep, PlanLimits::default(), PlanAim::Threshold)
    }

    /// Entries by letters: `u` a prompt, `a` an answer, `c` an answer with a call of `edit`,
    /// `r` its result, `m` a change of the model, `b` a command; each message has four
    /// tokens. `C` is a compaction that keeps the entry before it.
    fn branch(kinds: &str) -> Vec<Arc<Entry>> {
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        for (at, kind) in kinds.chars().enumerate() {
            let text = format!("{at:02}{}", "x".repeat(14));
            let line = match kind {
                'u' => format!(r#""type":"message","message":{{"role":"user","content":"{text}"}}"#),
                'a' => format!(
                    r#""type":"message","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
                ),
                'c' => format!(
                    r#""type":"message","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"t{at}","name":"edit","arguments":{{"path":"f{at}"}}}}]}}"#
                ),
                'r' => format!(
                    r#""type":"message","message":{{"role":"toolResult","toolCallId":"t","toolName":"edit","content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#
                ),
                'b' => format!(
                    r#""type":"message","message":{{"role":"bashExecution","command":"ls","output":"{text}","cancelled":false,"truncated":false,"timestamp":1}}"#
                ),
                'm' => r#""type":"model_change","provider":"p","modelId":"m""#.to_owned(),
                'C' => format!(
                    r#""type":"compaction","summary":"S","firstKeptEntryId":"e{}","tokensBefore":1,"details":{{"readFiles":["old"],"modifiedFiles":[]}}"#,
                    at - 1
                ),
                other => panic!("{other}"),
            };
            let line =
                format!(r#"{{"id":"e{at}","parentId":null,"timestamp":"2026-11-21T09:00:00.000Z",{line}}}"#);
            entries.push(Arc::new(Entry::parse(&line).unwrap()));
        }
        entries
    }

    /// The plan as positions of history and of the turn's beginning, and the first kept entry.
    fn shown(kinds: &str, keep: u64) -> String {
        let places = |messages: &[Arc<Message>]| -> String {
            let texts = messages.iter().map(|message| match &**message {
                Message::Assistant(answer) => answer.tool_calls().next().map_or_else(
                    || answer.texts().collect::<String>(),
                    |call| format!("{:0>2}", call.id.trim_start_matches('t')),
                ),
                Message::User(user) => user.content.text().replace("Ran `ls`\n```\n", ""),
                Message::ToolResult(result) => crate::ai::join_text(&result.content),
                Message::System(_) => String::new(),
            });
            texts.map(|text| text.chars().take(2).collect::<String>()).collect::<Vec<_>>().join(" ")
        };
        match plan(&branch(kinds), keep) {
            Ok(plan) => {
                format!(
                    "{} | {} | {}",
                    places(&plan.history),
                    places(&plan.turn_prefix),
                    plan.first_kept_entry_id
                )
            }
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn whole_turns_are_summarised_up_to_what_is_kept() {
        assert_eq!(shown("uauaua", 8), "00 01 02 03 |  | e4");
        assert_eq!(shown("uaua", 100), "TooShort");
        assert_eq!(shown("ua", 8), "TooShort");
        assert_eq!(shown("", 8), "TooShort");
    }

    #[test]
    fn a_long_turn_is_split_at_an_answer_and_never_before_a_result() {
        assert_eq!(shown("uaucrcra", 12), "00 01 | 02 03 04 | e5");
        assert_eq!(shown("ucrcra", 4), " | 00 01 02 03 04 | e5");
        // The result alone exceeds the limit, so its call stays with it.
        assert_eq!(shown("uaucr", 4), "00 01 | 02 | e3");
    }

    #[test]
    fn changes_of_the_model_stay_with_what_they_stand_before() {
        assert_eq!(shown("uammua", 8), "00 01 |  | e2");
    }

    #[test]
    fn commands_begin_a_turn() {
        assert_eq!(shown("uabua", 12), "00 01 |  | e2");
    }

    #[test]
    fn the_next_one_begins_behind_the_last_and_takes_its_files_along() {
        assert_eq!(shown("uauCuaua", 8), "02 04 05 |  | e6");
        assert_eq!(shown("uauC", 8), "AlreadyCompacted");
        assert_eq!(shown("uauCm", 8), "AlreadyCompacted");
        let plan = plan(&branch("uauCucrua"), 8).unwrap();
        assert_eq!(plan.previous_summary.as_deref(), Some("S"));
        assert_eq!(plan.details(), json!({"readFiles": ["old"], "modifiedFiles": ["f5"]}));
        assert_eq!(
            plan.files.lists(),
            "\n\n<read-files>\nold\n</read-files>\n\n<modified-files>\nf5\n</modified-files>"
        );
    }

    #[test]
    fn preview_counts_what_a_summary_would_replace() {
        let (_folder, mut store) = stored(&branch("uauaua"));
        let preview = preview_compaction(&mut store, 8).unwrap();
        assert_eq!((preview.n_messages, preview.first_kept.as_str()), (4, "e4"));
        // Half of the conversation, though all of it could be kept.
        let preview = preview_compaction(&mut store, 1_000).unwrap();
        assert_eq!((preview.n_messages, preview.first_kept.as_str()), (3, "e3"));
        let (_folder, mut store) = stored(&branch("ua"));
        assert_eq!(preview_compaction(&mut store, 1_000), Err(NothingToCompact::TooShort));
    }

    /// The plan for an aim, as the first kept entry.
    #[track_caller]
    fn check_aim(kinds: &str, keep: u64, aim: PlanAim, expected: &str) {
        let limits = PlanLimits { keep_recent: keep, window: 1_000, reserve: 100, fixed: 0 };
        let found = plan_for(&branch(kinds), limits, aim);
        let found = found.map_or_else(|error| format!("{error:?}"), |plan| plan.first_kept_entry_id);
        assert_eq!(found, expected, "{kinds} {keep} {aim:?}");
    }

    #[test]
    fn overflow_always_gives_something_up() {
        let overflow = |n_before| PlanAim::Overflow { n_before };
        check_aim("uauauau", 300, PlanAim::Threshold, "TooShort");
        check_aim("uauauau", 300, overflow(0), "e3");
        check_aim("uauauau", 8, overflow(0), "e5");
        check_aim("uauauau", 8, overflow(1), "e6");
        check_aim("ucr", 300, overflow(0), "e1");
        check_aim("u", 300, overflow(0), "TooShort");
        // Also of what the compaction before has kept.
        check_aim("uacrucruC", 300, PlanAim::Manual, "AlreadyCompacted");
        check_aim("uaC", 300, overflow(0), "TooShort");
        check_aim("uaCua", 300, overflow(1), "e3");
    }

    #[test]
    fn compaction_by_hand_gives_half_up_unless_there_is_one_exchange() {
        check_aim("uauaua", 300, PlanAim::Manual, "e3");
        check_aim("uaua", 300, PlanAim::Manual, "e2");
        check_aim("ucrcrcra", 300, PlanAim::Manual, "e5");
        check_aim("ua", 300, PlanAim::Manual, "TooShort");
        check_aim("", 300, PlanAim::Manual, "TooShort");
    }

    #[test]
    fn window_is_not_compacted_again_for_little() {
        check_aim("uaua", 4, PlanAim::Threshold, "e3");
        check_aim("uaCuaua", 4, PlanAim::Threshold, "TooLittle");
        let many = "ua".repeat(20);
        check_aim(&format!("uaC{many}"), 4, PlanAim::Threshold, "e42");
    }

    #[test]
    fn large_result_counts_as_it_is_sent() {
        let long = "x".repeat(40_000);
        let mut entries = branch("uaucr");
        append(
            &mut entries,
            &format!(
                r#""type":"message","message":{{"role":"toolResult","toolCallId":"t","toolName":"edit","content":[{{"type":"text","text":"{long}"}}],"isError":false}}"#
            ),
        );
        grown(&mut entries, "a");
        let limits = PlanLimits { keep_recent: 330, window: 1_000, reserve: 100, fixed: 0 };
        let plan = plan_for(&entries, limits, PlanAim::Threshold).unwrap();
        // The result has 333 tokens in a request, so its call is not given up with it.
        assert_eq!((plan.first_kept_entry_id.as_str(), plan.n_summarised()), ("e6", 6));
    }

    /// Appends `kinds` to a branch; ids and texts go on.
    fn grown(entries: &mut Vec<Arc<Entry>>, kinds: &str) {
        let n_before = entries.len();
        let all = "m".repeat(n_before) + kinds;
        entries.extend(branch(&all).into_iter().skip(n_before));
    }

    fn append(entries: &mut Vec<Arc<Entry>>, fields: &str) {
        let id = entries.len();
        let line =
            format!(r#"{{"id":"e{id}","parentId":null,"timestamp":"2026-11-21T09:00:00.000Z",{fields}}}"#);
        entries.push(Arc::new(Entry::parse(&line).unwrap()));
    }

    /// The entries in a file, each the child of the one before.
    fn stored(entries: &[Arc<Entry>]) -> (tempfile::TempDir, SessionStore) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut text =
            r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#.to_owned() + "\n";
        let mut parent_id = None;
        for entry in entries {
            text += &(Entry { parent_id, ..(**entry).clone() }.to_line() + "\n");
            parent_id = Some(entry.id.clone());
        }
        std::fs::write(&path, text).unwrap();
        let store = SessionStore::open(&path, || unreachable!("it has a header")).unwrap();
        (folder, store)
    }

    proptest! {
        /// Over any number of compactions, pinned messages are in the next request word
        /// for word.
        #[test]
        fn pinned_messages_survive_any_compactions(
            rounds in proptest::collection::vec(("[uacb]{1,12}", 0_usize..200, any::<bool>(), 1_u64..40), 1..6),
        ) {
            let mut entries: Vec<Arc<Entry>> = Vec::new();
            for (kinds, pin, is_pinned, keep) in rounds {
                grown(&mut entries, &kinds);
                let target = entries[pin % entries.len()].id.clone();
                append(&mut entries, &format!(
                    r#""type":"custom","customType":"pi.pin","data":{{"targetId":"{target}","pinned":{is_pinned}}}"#
                ));
                // What the store reads for a plan is enough.
                let (_folder, mut store) = stored(&entries);
                let pinned = pins::pinned(&store.custom_entries());
                let read = ContextReader::new(&mut store, &pinned).read_to_summarize(|_| false);
                prop_assert_eq!(read.n_unread, 0);
                prop_assert_eq!(format!("{:?}", plan(&read.entries, keep)), format!("{:?}", plan(&entries, keep)));
                let Ok(plan) = plan(&entries, keep) else { continue };
                let body = json!({"summary": format!("S{}", plan.quotes), "details": with_quotes(plan.details(), &plan.quotes),
                    "firstKeptEntryId": plan.first_kept_entry_id, "tokensBefore": 1, "type": "compaction"});
                let body = body.to_string();
                append(&mut entries, body.trim_start_matches('{').trim_end_matches('}'));
                prop_assert!(!plan.previous_summary.unwrap_or_default().contains("pinned-messages"));
            }
            let sent: Vec<String> = projection::messages(&entries)
                .iter()
                .map(|message| serde_json::to_string(message).unwrap())
                .collect();
            let sent = sent.concat();
            for id in pins::pinned(&entries) {
                let entry = entries.iter().find(|entry| entry.id == id).unwrap();
                let Some(message) = projection::per_entry(std::slice::from_ref(entry)).pop().flatten() else {
                    continue;
                };
                let text = match &*message {
                    Message::User(user) => user.content.text(),
                    Message::Assistant(answer) => answer.texts().collect::<String>(),
                    _ => continue,
                };
                let quoted = serde_json::to_string(&text).unwrap();
                prop_assert!(sent.contains(quoted.trim_matches('"')), "{text} is not in {sent}");
            }
        }
    }

    /// A session of `n` questions of ten thousand characters, each followed by an answer, and
    /// before them a pinned question.
    fn long_session(n: usize) -> (tempfile::TempDir, SessionStore) {
        let mut entries = Vec::new();
        append(&mut entries, r#""type":"message","message":{"role":"user","content":"pinned"}"#);
        append(
            &mut entries,
            r#""type":"custom","customType":"pi.pin","data":{"targetId":"e0","pinned":true}"#,
        );
        for at in 0..n {
            let text = format!("{at:05}{}", "x".repeat(9_995));
            append(
                &mut entries,
                &format!(r#""type":"message","message":{{"role":"user","content":"{text}"}}"#),
            );
            append(
                &mut entries,
                r#""type":"message","message":{"role":"assistant","content":[{"type":"text","text":"ok"}]}"#,
            );
        }
        stored(&entries)
    }

    #[test]
    fn of_a_conversation_of_any_length_only_what_a_summary_can_cover_is_read() {
        let (_folder, mut store) = long_session(1_000);
        let pinned = pins::pinned(&store.custom_entries());
        // Eight portions of 40,000 characters are 32 questions.
        let limits = PlanLimits { keep_recent: 2_500, window: 20_000, reserve: 5_000, fixed: 0 };
        let mut context = ContextReader::new(&mut store, &pinned);
        let tokens = context_tokens_up_to(&mut context, 20_000, u64::MAX);
        assert!((2_500_000..2_700_000).contains(&tokens), "{tokens}");
        let plan = plan_of(&mut context, limits, PlanAim::Threshold).unwrap();
        assert!(plan.quotes.contains("pinned"), "{}", plan.quotes);
        assert_eq!(plan.n_summarised(), 1 + 2 * 999);
        let n_read = store.reads().n_bodies;
        assert!((64..400).contains(&n_read), "{n_read} of 2,002 entries");
        let system = ContextReader::new(&mut store, &pinned).system();
        assert_eq!((system.len(), store.reads().n_bodies), (0, n_read));
    }

    /// The plan as [`shown`] returns it, from the letters alone. `tokens` has the size of each
    /// message, 0 for entries without one.
    fn plain(kinds: &[char], tokens: &[u64], keep: u64) -> String {
        const TOO_SHORT: &str = "TooShort";
        let is_message = |at: &usize| tokens[*at] > 0;
        let (mut sum, mut reached) = (0, None);
        for at in (0..kinds.len()).rev().filter(is_message) {
            sum += tokens[at];
            if sum >= keep {
                reached = Some(at);
                break;
            }
        }
        let Some(reached) = reached else { return TOO_SHORT.to_owned() };
        let is_cut = |at: &usize| "ubac".contains(kinds[*at]);
        let cut = (reached..kinds.len()).find(is_cut).or_else(|| (0..reached).rev().find(is_cut));
        let Some(cut) = cut else { return TOO_SHORT.to_owned() };
        let is_start = |at: &usize| "ub".contains(kinds[*at]);
        let start = if is_start(&cut) { cut } else { (0..cut).rev().find(is_start).unwrap_or(cut) };
        let places = |range: std::ops::Range<usize>| {
            range.filter(is_message).map(|at| format!("{at:02}")).collect::<Vec<_>>().join(" ")
        };
        let (history, prefix) = (places(0..start), places(start..cut));
        if history.is_empty() && prefix.is_empty() {
            return TOO_SHORT.to_owned();
        }
        let kept = (0..cut).rev().find(is_message).map_or(0, |at| at + 1);
        format!("{history} | {prefix} | e{kept}")
    }

    proptest! {
        /// The rules of the plan, written down once more over letters.
        #[test]
        fn plan_agrees_with_a_plain_model(kinds in "[ubacrm]{1,24}", keep in 1_u64..120) {
            let tokens: Vec<u64> = projection::per_entry(&branch(&kinds))
                .iter()
                .map(|message| message.as_deref().map_or(0, message_tokens))
                .collect();
            let letters: Vec<char> = kinds.chars().collect();
            prop_assert_eq!(shown(&kinds, keep), plain(&letters, &tokens, keep), "{} {}", kinds, keep);
        }

        /// For any branch: nothing that the model reads is lost or duplicated, and a
        /// result is never kept without its call.
        #[test]
        fn every_message_is_either_summarised_or_kept(turns in prop::collection::vec("(u|um|b)(cr|crr|a|m){0,4}", 1..8), keep in 0_u64..80) {
            let kinds = turns.concat();
            let branch = branch(&kinds);
            if let Ok(plan) = plan(&branch, keep) {
                let kept = branch.iter().position(|entry| entry.id.as_str() == plan.first_kept_entry_id).unwrap();
                let n_before = projection::messages(&branch[..kept]).len();
                prop_assert_eq!(plan.history.len() + plan.turn_prefix.len(), n_before);
                let first = branch[kept..].iter().find_map(|entry| projection::messages(&[Arc::clone(entry)]).pop());
                prop_assert!(first.is_some_and(|first| !matches!(*first, Message::ToolResult(_))));
            }
        }
    }
}
