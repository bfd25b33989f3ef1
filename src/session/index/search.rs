//! Full text search: a linear scan over the texts in the cache.
//!
//! Only one segment of text is in memory at a time. A session without usable texts in the
//! cache is read from its file.

use std::ops::Range;
use std::path::Path;

use crate::util::composed::composed;

use super::contents::{self, Author};
use super::packs::{Record, records};
use super::query::{SearchQuery, WordSet};
use super::{SessionIndex, SessionScope, SessionSummary};

/// A session that contains all words of a search, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionSummary,
    /// How well it fits.
    pub rank: HitRank,
    /// The first of the messages with the most words; `None` if only the name, the id or
    /// the directory match.
    pub message: Option<MessageHit>,
    /// Number of messages that contain all words.
    pub n_messages: usize,
}

/// A message that contains words of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageHit {
    /// The id of its entry; empty in the oldest files, whose entries have none.
    pub entry_id: String,
    /// Who wrote the message.
    pub author: Author,
    /// The words around the first hit.
    pub snippet: Snippet,
}

/// How well a session fits; see [`HitRank::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HitRank {
    /// All words are in the name.
    Name,
    /// One message contains all words.
    Message,
    /// The words are in several messages, or in messages and the name.
    Session,
    /// A word is only in the id or the directory.
    Header,
}

impl HitRank {
    /// Hits with a smaller place come first; those with the same one are ordered by time.
    pub fn place(self) -> u8 {
        match self {
            Self::Name => 0,
            Self::Message | Self::Session => 1,
            Self::Header => 2,
        }
    }
}

/// A line of text around the first match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The text, one line.
    pub text: String,
    /// The matches in `text`: byte ranges, ascending, not overlapping.
    pub marks: Vec<Range<usize>>,
}

/// Bytes of text before the first match and after it.
const BEFORE_BYTES: usize = 32;
const AFTER_BYTES: usize = 240;

impl Snippet {
    fn new(text: &str, query: &SearchQuery) -> Self {
        let found = query.first_in(text).unwrap_or(0..0);
        let mut start = text.floor_char_boundary(found.start.saturating_sub(BEFORE_BYTES));
        if start > 0 {
            // Not in the middle of a word, if there is another.
            let word_start = text[start..found.start].find(char::is_whitespace);
            start += word_start.unwrap_or_default();
        }
        let end = text.ceil_char_boundary((found.end + AFTER_BYTES).min(text.len()));
        // Any length: an expression can match everything.
        let end = end.min(text.ceil_char_boundary(start + BEFORE_BYTES + 2 * AFTER_BYTES));
        let words: Vec<&str> = text[start..end].split_whitespace().collect();
        let mut line = words.join(" ");
        if start > 0 {
            line.insert(0, '…');
        }
        if end < text.len() {
            line.push('…');
        }
        Self { marks: query.marks(&line), text: line }
    }
}

impl SessionIndex {
    /// Searches the sessions of `scope` as of the last refresh, the latest first, and
    /// passes each hit to `on_hit`. Blocks; asks `is_cancelled` before each session.
    pub fn search(
        &mut self,
        scope: &SessionScope,
        query: &SearchQuery,
        is_cancelled: &dyn Fn() -> bool,
        on_hit: &mut dyn FnMut(SearchHit),
    ) {
        let mut damaged = Vec::new();
        let mut buffer = Vec::new();
        for session in self.sessions(scope) {
            if is_cancelled() {
                break;
            }
            let mut scan = SessionScan::new(query, &session);
            let scanned = self.scan_texts(&session.path, &mut scan, &mut buffer);
            if scanned.is_none() {
                damaged.push(session.path.clone());
                scan = SessionScan::new(query, &session);
                scan_file(&session.path, &mut scan, is_cancelled);
            }
            if let Some(hit) = scan.finish(session) {
                on_hit(hit);
            }
        }
        damaged.retain(|path| self.rows.get(path.as_os_str()).is_some_and(|row| row.texts.is_some()));
        self.distrust(damaged);
    }

    /// Scans the texts in the cache. `None` if there are none or they are damaged.
    fn scan_texts(&mut self, path: &Path, scan: &mut SessionScan<'_>, buffer: &mut Vec<u8>) -> Option<()> {
        let segments = self.rows.get(path.as_os_str())?.texts.as_ref()?;
        // Most sessions lack a word; that is known before their messages are looked at.
        let mut missing = if scan.query.is_pattern() { 0 } else { scan.missing() };
        for segment in segments {
            self.packs.read(segment, buffer)?;
            missing &= !scan.query.found_in(buffer, missing);
            if missing == 0 {
                break;
            }
        }
        if missing != 0 {
            return Some(());
        }
        for segment in segments {
            // The only segment is still in the buffer.
            if segments.len() > 1 {
                self.packs.read(segment, buffer)?;
            }
            records(buffer).for_each(|record| scan.on_record(record));
        }
        Some(())
    }
}

fn scan_file(path: &Path, scan: &mut SessionScan<'_>, is_cancelled: &dyn Fn() -> bool) {
    // A file that cannot be read has no matches.
    drop(contents::read(path, None, is_cancelled, &mut |id, author, text| {
        let text = composed(text);
        scan.on_record(Record { id, author, text: text.trim() });
    }));
}

/// The search in one session.
struct SessionScan<'q> {
    query: &'q SearchQuery,
    in_name: WordSet,
    /// Words in the name, the id or the directory.
    in_facts: WordSet,
    in_messages: WordSet,
    best: Option<MessageHit>,
    /// Words in the best message.
    in_best: WordSet,
    n_messages: usize,
    /// The entry of the latest message that contains all words.
    last_counted: Option<String>,
}

impl<'q> SessionScan<'q> {
    fn new(query: &'q SearchQuery, session: &SessionSummary) -> Self {
        let found = |text: &str| query.found_in(composed(text).as_bytes(), query.all());
        let in_name = found(session.name.as_deref().unwrap_or_default());
        let in_facts = in_name | found(&session.id) | found(&session.cwd);
        Self {
            query,
            in_name,
            in_facts,
            in_messages: 0,
            best: None,
            in_best: 0,
            n_messages: 0,
            last_counted: None,
        }
    }

    fn missing(&self) -> WordSet {
        self.query.all() & !self.in_facts
    }

    fn on_record(&mut self, record: Record<'_>) {
        let found = self.query.found_in(record.text.as_bytes(), self.query.all());
        if found == 0 {
            return;
        }
        self.in_messages |= found;
        if found == self.query.all() && self.last_counted.as_deref() != Some(record.id) {
            self.n_messages += 1;
            // The pieces of a long text follow each other.
            self.last_counted = Some(record.id.to_owned()).filter(|id| !id.is_empty());
        }
        if self.best.is_none() || found.count_ones() > self.in_best.count_ones() {
            let snippet = Snippet::new(record.text, self.query);
            self.best = Some(MessageHit { entry_id: record.id.to_owned(), author: record.author, snippet });
            self.in_best = found;
        }
    }

    fn finish(self, session: SessionSummary) -> Option<SearchHit> {
        let all = self.query.all();
        if self.in_facts | self.in_messages != all {
            return None;
        }
        let rank = match () {
            () if self.in_name == all => HitRank::Name,
            () if self.in_best == all => HitRank::Message,
            () if self.in_name | self.in_messages == all => HitRank::Session,
            () => HitRank::Header,
        };
        Some(SearchHit { session, rank, message: self.best, n_messages: self.n_messages })
    }
}
