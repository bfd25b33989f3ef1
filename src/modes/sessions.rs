//! The output of `pi sessions`. The list goes to standard output, notes to standard error.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::session::{MessageHit, SearchHit, SessionSummary};
use crate::util::{clock, paths};

use super::output::{write_err, write_out};
use super::table::{Align, aligned};

/// A session, and where a search found it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSession {
    session: SessionSummary,
    found: Option<(Option<MessageHit>, usize)>,
}

impl From<SessionSummary> for ListedSession {
    fn from(session: SessionSummary) -> Self {
        Self { session, found: None }
    }
}

impl From<SearchHit> for ListedSession {
    fn from(hit: SearchHit) -> Self {
        Self { session: hit.session, found: Some((hit.message, hit.n_messages)) }
    }
}

/// What `pi sessions` prints.
#[derive(Debug)]
pub struct SessionsOutput<'a> {
    /// In the order in which they are printed.
    pub sessions: Vec<ListedSession>,
    /// Maximum number printed; 0 prints all.
    pub limit: usize,
    /// The words searched for.
    pub search: Option<&'a str>,
    /// Whether the sessions of all directories were asked for.
    pub is_all: bool,
    pub home: Option<&'a Path>,
    /// Wall clock, for ages.
    pub now_ms: u64,
}

/// Maximum width of a title and of a directory, in characters.
const TITLE_CHARS: usize = 72;
const CWD_CHARS: usize = 32;
/// An id is shortened to this many characters, if they are unique: the whole time in the
/// ids pi makes.
const ID_CHARS: usize = 13;

impl SessionsOutput<'_> {
    /// Prints a line per session: age, number of messages, id, directory, title; below it
    /// the text that was found. Exit code 1 if a search found nothing.
    pub fn print(&self) -> ExitCode {
        write_out(&self.text());
        self.finish()
    }

    /// Prints the sessions as a JSON array.
    pub fn print_json(&self) -> ExitCode {
        let sessions: Vec<Value> = self.shown().iter().map(to_json).collect();
        write_out(&format!("{:#}\n", Value::from(sessions)));
        self.finish()
    }

    fn shown(&self) -> &[ListedSession] {
        let n = if self.limit == 0 { self.sessions.len() } else { self.limit.min(self.sessions.len()) };
        &self.sessions[..n]
    }

    fn finish(&self) -> ExitCode {
        let (n_shown, n_all) = (self.shown().len(), self.sessions.len());
        if n_shown < n_all {
            write_err(&format!("{n_shown} of {n_all} sessions; --limit 0 shows all"));
        }
        if n_all > 0 {
            return ExitCode::SUCCESS;
        }
        let wider = if self.is_all { "" } else { "; --all includes other directories" };
        match self.search {
            Some(text) => {
                write_err(&format!("pi: no session contains {text}{wider}"));
                ExitCode::from(1)
            }
            None if self.is_all => {
                write_err("pi: there are no sessions yet");
                ExitCode::SUCCESS
            }
            None => {
                write_err(&format!("pi: this directory has no sessions{wider}"));
                ExitCode::SUCCESS
            }
        }
    }

    fn text(&self) -> String {
        let shown = self.shown();
        let rows: Vec<Vec<String>> = shown.iter().map(|listed| self.columns(listed)).collect();
        let w_age = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or_default();
        let indent = " ".repeat(w_age);
        let align = |column: usize| if column < 2 { Align::Right } else { Align::Left };
        let mut lines = Vec::new();
        for (line, listed) in aligned(&rows, align).into_iter().zip(shown) {
            lines.push(line + "\n");
            if let Some((Some(MessageHit { author, snippet, .. }), _)) = &listed.found {
                lines.push(format!("{indent}  {}: {}\n", author.name(), snippet.text));
            }
        }
        lines.concat()
    }

    fn columns(&self, listed: &ListedSession) -> Vec<String> {
        let session = &listed.session;
        let start: String = session.id.chars().take(ID_CHARS).collect();
        let n_same =
            self.sessions.iter().filter(|other| other.session.id.starts_with(&start)).take(2).count();
        let id = if n_same > 1 { session.id.clone() } else { start };
        let cwd = paths::display(Path::new(&session.cwd), self.home);
        let directory = self.is_all.then(|| last_chars(&cwd, CWD_CHARS));
        let mut columns = vec![
            age(self.now_ms, session.modified_ms),
            session.n_messages.to_string(),
            id.trim_end_matches('-').to_owned(),
        ];
        columns.extend(directory);
        columns.push(first_chars(title(session), TITLE_CHARS));
        columns
    }
}

/// The name of a session or its first message.
pub(super) fn title(session: &SessionSummary) -> &str {
    session.name.as_deref().or(session.first_message.as_deref()).unwrap_or("(no messages)")
}

/// `now`, `5m`, `3h`, `2d`, `1w`, `1mo`, `1y`.
pub(super) fn age(now_ms: u64, then_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(then_ms) / 60_000;
    let (hours, days) = (minutes / 60, minutes / 60 / 24);
    match (minutes, hours, days) {
        (0, _, _) => "now".to_owned(),
        (_, 0, _) => format!("{minutes}m"),
        (_, _, 0) => format!("{hours}h"),
        (_, _, 1..7) => format!("{days}d"),
        (_, _, 7..30) => format!("{}w", days / 7),
        (_, _, 30..365) => format!("{}mo", days / 30),
        _ => format!("{}y", days / 365),
    }
}

fn first_chars(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let start: String = text.chars().take(max_chars - 1).collect();
    format!("{}…", start.trim_end())
}

fn last_chars(text: &str, max_chars: usize) -> String {
    let n_chars = text.chars().count();
    if n_chars <= max_chars {
        return text.to_owned();
    }
    let end: String = text.chars().skip(n_chars - (max_chars - 1)).collect();
    format!("…{end}")
}

pub(super) fn to_json(listed: &ListedSession) -> Value {
    let session = &listed.session;
    let mut value = json!({
        "id": session.id,
        "path": session.path.to_string_lossy(),
        "cwd": session.cwd,
        "name": session.name,
        "firstMessage": session.first_message,
        "messages": session.n_messages,
        "created": session.created_ms.map(clock::iso8601),
        "modified": clock::iso8601(session.modified_ms),
        "parentSession": session.parent.as_ref().map(|path| path.to_string_lossy()),
    });
    if let Some((message, n_messages)) = &listed.found {
        value["matchingMessages"] = (*n_messages).into();
        value["match"] = message.as_ref().map_or(Value::Null, |message| {
            json!({
                "entryId": message.entry_id,
                "author": message.author.name(),
                "snippet": message.snippet.text,
            })
        });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let minutes = [0, 5, 60, 60 * 47, 60 * 24 * 8, 60 * 24 * 45, 60 * 24 * 800];
        let shown = minutes.map(|minutes| age(100_000_000_000_000, 100_000_000_000_000 - minutes * 60_000));
        assert_eq!(shown, ["now", "5m", "1h", "1d", "1w", "1mo", "2y"]);
    }

    #[test]
    fn long_texts_are_shortened_at_the_less_telling_end() {
        assert_eq!(first_chars("abc def", 5), "abc…");
        assert_eq!(last_chars("/home/ada/work", 8), "…da/work");
        assert_eq!((first_chars("ab", 2), last_chars("ab", 2)), ("ab".to_owned(), "ab".to_owned()));
    }
}
