//! Reads what lists and searches need from a session file: a few facts and the texts.
//!
//! Reading can resume at the end of the last line that was read; facts and texts are then
//! the same as after reading the whole file (`reading_in_steps_equals_reading_at_once`).

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ai;
use crate::util::{clock, os};

use super::super::resources::SkillBlock;
use super::super::store::{self, End, Stamp};

/// The facts that lists show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    /// `None` if the file is not a session.
    pub(super) head: Option<Head>,
    pub(super) name: Option<String>,
    /// Start of the first user message that contains text.
    pub(super) first_message: Option<String>,
    /// Number of entries that are messages, except those of the system.
    pub(super) n_messages: usize,
    /// Time of the newest prompt or answer.
    pub(super) last_message_ms: Option<u64>,
}

/// The facts of the header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) cwd: String,
    pub(super) created_ms: Option<u64>,
    pub(super) parent: Option<String>,
}

/// The kind of a searchable text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    /// A prompt.
    User,
    /// An answer.
    Assistant,
    /// A `!` command of the user.
    Command,
    /// The summary of a compaction or of an abandoned branch.
    Summary,
}

impl Author {
    const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::Command, Self::Summary];

    /// As JSON output shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Command => "command",
            Self::Summary => "summary",
        }
    }

    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|author| author.code() == code)
    }
}

/// Receives the texts of a session in file order: the entry's id (empty in the oldest
/// files), the kind, the text.
pub(super) type TextSink<'a> = dyn FnMut(&str, Author, &str) + 'a;

/// The result of reading a file.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) stamp: Stamp,
    pub(super) facts: Facts,
    /// Where reading can resume; `None` if the last line has no line break.
    pub(super) end: Option<End>,
    /// Whether the texts continue those of the earlier reading.
    pub(super) is_resumed: bool,
    pub(super) n_bytes: u64,
}

/// An earlier reading of the same path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Earlier<'a> {
    pub(super) stamp: &'a Stamp,
    pub(super) facts: &'a Facts,
    pub(super) end: Option<End>,
}

/// A header must begin within this many bytes.
const HEADER_LIMIT_BYTES: u64 = 1 << 20;
/// How many lines are read between two questions whether to stop.
const LINES_PER_CHECK: usize = 64;

/// Reads the session in `path`, or the lines added since `earlier`. `Ok(None)` if it was
/// cancelled. Blocks.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(
    path: &Path,
    earlier: Option<Earlier<'_>>,
    is_cancelled: &dyn Fn() -> bool,
    texts: &mut TextSink<'_>,
) -> io::Result<Option<Reading>> {
    let mut file = os::open_regular(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let resumed = earlier.and_then(|earlier| {
        let end = earlier.end.filter(|end| stamp.can_extend(earlier.stamp) && end.is_in(&file))?;
        Some((earlier.facts.clone(), end.offset))
    });
    let is_resumed = resumed.is_some();
    let (mut facts, start) = resumed.unwrap_or_default();
    file.seek(SeekFrom::Start(start))?;
    let checked = file.try_clone()?;
    // Lines added from here on belong to the next reading.
    let limited = store::past_bad_blocks(file, start, stamp.size).take(stamp.size.saturating_sub(start));
    let mut reader = BufReader::with_capacity(64 << 10, limited);
    let mut line = Vec::new();
    let mut offset = start;
    let mut is_terminated = true;
    for n_lines in 0.. {
        if n_lines % LINES_PER_CHECK == 0 && is_cancelled() {
            return Ok(None);
        }
        line.clear();
        let n_read = reader.read_until(b'\n', &mut line)?;
        if n_read == 0 {
            break;
        }
        offset += n_read as u64;
        is_terminated = line.last() == Some(&b'\n');
        if !facts.add_line(line.trim_ascii(), texts) || facts.head.is_none() && offset > HEADER_LIMIT_BYTES {
            // Not a session, and the lines after its first one cannot change that.
            facts = Facts::default();
            is_terminated = false;
            break;
        }
    }
    let end = if is_terminated { End::new(&checked, offset) } else { None };
    Ok(Some(Reading { stamp, facts, end, is_resumed, n_bytes: offset - start }))
}

impl Facts {
    /// Adds a line. `false` if the file turns out not to be a session.
    fn add_line(&mut self, body: &[u8], texts: &mut TextSink<'_>) -> bool {
        if body.is_empty() {
            return true;
        }
        if self.head.is_none() {
            if let Some(header) = store::parse_header(body) {
                self.head = Some(Head {
                    id: header.id,
                    cwd: header.cwd,
                    created_ms: clock::parse_iso8601(&header.timestamp),
                    parent: header.parent_session,
                });
                return true;
            }
            if !store::is_entry(body) {
                // A damaged line before the header is skipped.
                return serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err();
            }
            // The header is damaged. Where the session belongs is then told by its folder.
            self.head = Some(Head::default());
        }
        if self.add_entry(body, texts).is_none() {
            for range in store::ranges_of_entries(body) {
                self.add_entry(&body[range], texts);
            }
        }
        true
    }

    /// `None` if the line is not an entry.
    fn add_entry(&mut self, body: &[u8], texts: &mut TextSink<'_>) -> Option<()> {
        // The check alone is much faster than the search for what to replace.
        let text = std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed);
        let line: Line<'_> = serde_json::from_str(&text).ok()?;
        let id = line.id.as_deref().unwrap_or_default();
        if line.kind == "session_info" {
            self.name = line.name.and_then(string).and_then(|name| store::clean_name(&name));
        }
        if let Some(summary) = line.summary.and_then(string) {
            texts(id, Author::Summary, &summary);
        }
        let Some(message) = line.message else { return Some(()) };
        if matches!(message.role.as_ref(), "user" | "assistant") {
            let time_ms = message
                .timestamp
                .and_then(milliseconds)
                .or_else(|| line.timestamp.and_then(string).and_then(|time| clock::parse_iso8601(&time)));
            self.last_message_ms = self.last_message_ms.max(time_ms);
        }
        // Nobody counts those among what was said.
        self.n_messages += usize::from(message.role != "system");
        match message.role.as_ref() {
            "user" => {
                let text = message.content.map(content_text).unwrap_or_default();
                let typed = SkillBlock::parse(&text).map(|block| block.command());
                let text = typed.unwrap_or(text);
                if self.first_message.is_none() {
                    self.first_message = first_words(&text);
                }
                texts(id, Author::User, &text);
            }
            "assistant" => {
                let text = message.content.map(content_text).unwrap_or_default();
                texts(id, Author::Assistant, &text);
            }
            "bashExecution" => {
                let command = message.command.and_then(string).unwrap_or_default();
                texts(id, Author::Command, &command);
            }
            _ => {}
        }
        Some(())
    }
}

/// Maximum number of characters of a session's first message in a list.
const FIRST_MESSAGE_CHARS: usize = 200;

/// The start of `text` on one line; `None` if it is blank.
fn first_words(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > FIRST_MESSAGE_CHARS * 4 {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    (!line.is_empty()).then(|| line.chars().take(FIRST_MESSAGE_CHARS).collect())
}

/// The parts of a line that matter here; the rest is skipped without being copied.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<LineMessage<'a>>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct LineMessage<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    command: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// The texts of a message's content, one per line.
fn content_text(content: &RawValue) -> String {
    if let Some(text) = string(content) {
        return text;
    }
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(content.get()) else { return String::new() };
    let texts: Vec<String> = blocks
        .into_iter()
        .filter_map(|block| serde_json::from_str::<Block<'_>>(block.get()).ok())
        .filter(|block| block.kind == "text")
        .filter_map(|block| block.text.and_then(string))
        .collect();
    texts.join("\n")
}

/// The time in `value`, in whole milliseconds since the Unix epoch; `None` if it is something else.
fn milliseconds(value: &RawValue) -> Option<u64> {
    serde_json::from_str(value.get()).ok().filter(|time_ms| *time_ms > 0)
}

/// The string in `value`; `None` if it is something else.
fn string(value: &RawValue) -> Option<String> {
    let json = value.get();
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&ai::replace_lone_surrogates(json))).ok()
}
