//! Finds keys, tokens and passwords in text by how they look, and masks them.
//!
//! Pure. A pattern is no proof: some secrets look like nothing in particular, and some
//! text looks like a secret. Results name kind and place, never the secret.

mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use regex::{Regex, RegexSet};
use serde_json::{Map, Value};

use super::store::{Entry, EntryId, SessionTree};
use table::{KINDS, SIGNS, SecretKind};

static ANY: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(KINDS.iter().map(source)).expect("the patterns are constants"));

/// Compiled when one is found: most texts have no secret.
static EACH: [OnceLock<Regex>; KINDS.len()] = [const { OnceLock::new() }; KINDS.len()];

fn regex(kind: usize) -> &'static Regex {
    EACH[kind].get_or_init(|| Regex::new(&source(&KINDS[kind])).expect("the patterns are constants"))
}

/// The pattern as it is compiled. Without the classes of Unicode that takes a tenth of the time
/// and memory.
fn source(kind: &SecretKind) -> String {
    let is_of_bytes = kind.pattern.is_ascii() && !kind.pattern.contains("[^");
    [if is_of_bytes { "(?-u)" } else { "" }, kind.pattern].concat()
}

/// A part of a text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// What it looks like, for people.
    pub kind: &'static str,
    /// Its bytes.
    pub range: Range<usize>,
}

/// Longer texts, in bytes, are searched by the patterns at once.
const MAX_SIGNED_BYTES: usize = 16 << 10;

/// Whether `text` may have a secret. The patterns of all kinds take milliseconds and most of a megabyte when
/// they are first needed.
fn may_have_secret(text: &str) -> bool {
    if text.len() > MAX_SIGNED_BYTES {
        return true;
    }
    let text = text.to_ascii_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// The secrets in `text`, in order and without overlaps.
pub fn find_secrets(text: &str) -> Vec<FoundSecret> {
    if !may_have_secret(text) {
        return Vec::new();
    }
    let mut found: Vec<(usize, FoundSecret)> = Vec::new();
    for at in &ANY.matches(text) {
        let kind = &KINDS[at];
        for captures in regex(at).captures_iter(text) {
            let Some(secret) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            if !kind.must_look_random || looks_random(secret.as_str()) {
                found.push((at, FoundSecret { kind: kind.name, range: secret.range() }));
            }
        }
    }
    // Of two that overlap, the one that begins first counts, then the longer, then the first row.
    found.sort_by_key(|(row, secret)| (secret.range.start, usize::MAX - secret.range.end, *row));
    let mut end = 0;
    let mut kept: Vec<FoundSecret> = Vec::new();
    for (_, secret) in found {
        if secret.range.start >= end {
            end = secret.range.end;
            kept.push(secret);
        } else if secret.range.end > end {
            // The rest of one that begins inside another must not stay readable.
            end = secret.range.end;
            if let Some(last) = kept.last_mut() {
                last.range.end = end;
            }
        }
    }
    kept
}

/// `text` with a placeholder for each secret.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    let found = find_secrets(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for FoundSecret { kind, range } in found {
        masked.push_str(&text[from..range.start]);
        masked.push_str(&["[masked: ", kind, "]"].concat());
        from = range.end;
    }
    masked.push_str(&text[from..]);
    Cow::Owned(masked)
}

/// The kinds of the secrets in all strings and names of a JSON value.
pub fn secrets_in(value: &Value) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    visit(value, &mut |text| kinds.extend(find_secrets(text).into_iter().map(|secret| secret.kind)));
    kinds
}

fn visit(value: &Value, on_text: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => on_text(text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, on_text)),
        Value::Object(fields) => {
            let is_image = is_image(fields);
            for (name, value) in fields {
                on_text(name);
                if !is_opaque(name, is_image) {
                    visit(value, on_text);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks the secrets in all strings and names of a JSON value. Returns their number.
pub fn mask_secrets_in(value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            let n_found = find_secrets(text).len();
            if n_found > 0 {
                *text = mask_secrets(text).into_owned();
            }
            n_found
        }
        Value::Array(items) => items.iter_mut().map(mask_secrets_in).sum(),
        Value::Object(fields) => {
            let is_image = is_image(fields);
            let below = fields.iter_mut().filter(|(name, _)| !is_opaque(name, is_image));
            let n_below: usize = below.map(|(_, value)| mask_secrets_in(value)).sum();
            let n_names: usize = fields.keys().map(|name| find_secrets(name).len()).sum();
            if n_names > 0 {
                let old = std::mem::take(fields);
                for (name, value) in old {
                    fields.insert(mask_secrets(&name).into_owned(), value);
                }
            }
            n_below + n_names
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_image(fields: &Map<String, Value>) -> bool {
    fields.get("type").and_then(Value::as_str) == Some("image")
}

/// Long random bytes that are no secret: pictures, and what services sign.
fn is_opaque(name: &str, is_image: bool) -> bool {
    (is_image && name == "data") || matches!(name, "thinkingSignature" | "textSignature" | "thoughtSignature")
}

/// Fields that link entries; a mask would cut the tree apart.
const LINKS: &[&str] = &["id", "parentId", "targetId", "fromId", "firstKeptEntryId"];

/// A line of a session file with its secrets masked, except in the ids that link entries;
/// `None` if there are none. A line that is not JSON is masked as text.
pub(super) fn mask_line(line: &str) -> Option<String> {
    masked_line(line, LINKS)
}

fn masked_line(line: &str, kept: &[&str]) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) else {
        return match mask_secrets(line) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        };
    };
    let mut n_masked = 0;
    let mut masked = Map::new();
    for (name, mut value) in fields {
        if kept.contains(&name.as_str()) {
            masked.insert(name, value);
            continue;
        }
        n_masked += find_secrets(&name).len() + mask_secrets_in(&mut value);
        masked.insert(mask_secrets(&name).into_owned(), value);
    }
    (n_masked > 0).then(|| Value::Object(masked).to_string())
}

/// Like [`SessionTree::read`], with the secrets of the entry masked, also in its ids. Blocks.
pub fn read_masked(tree: &SessionTree, idx: usize) -> Option<Arc<Entry>> {
    match masked_line(&tree.line(idx)?, &[]) {
        None => tree.read(idx),
        Some(masked) => Entry::parse(&masked).ok().map(Arc::new),
    }
}

fn secrets_of_line(line: &str) -> Vec<&'static str> {
    match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|name, _| !LINKS.contains(&name.as_str()));
            secrets_in(&Value::Object(fields))
        }
        _ => find_secrets(line).into_iter().map(|secret| secret.kind).collect(),
    }
}

/// Whether a value is more than a word, a path or a placeholder: it has both letters and
/// digits, and is not one character repeated.
fn looks_random(value: &str) -> bool {
    let n_digits = value.bytes().filter(u8::is_ascii_digit).count();
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let mut seen: Vec<u8> = value.bytes().collect();
    seen.sort_unstable();
    seen.dedup();
    n_digits >= 2 && has_letter && seen.len() >= 6
}

/// The secrets of some entries of a session: how many of each kind, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretReport {
    kinds: BTreeMap<&'static str, KindPlaces>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct KindPlaces {
    n_secrets: usize,
    /// The first entries with one.
    entries: Vec<EntryId>,
    last: Option<EntryId>,
    n_entries: usize,
}

/// Entries named for each kind.
const MAX_PLACES: usize = 5;

impl SecretReport {
    /// Looks through `entries` of a session. Reads each of them; blocks.
    pub fn of(tree: &SessionTree, entries: impl IntoIterator<Item = usize>) -> Self {
        let mut report = Self::default();
        for idx in entries {
            let Some(line) = tree.line(idx) else { continue };
            report.add(tree.entry(idx).id, &secrets_of_line(&line));
        }
        report
    }

    /// Adds the secrets found at a place.
    pub fn add(&mut self, entry: &EntryId, kinds: &[&'static str]) {
        for kind in kinds {
            let places = self.kinds.entry(kind).or_default();
            places.n_secrets += 1;
            if places.last.as_ref() != Some(entry) {
                places.last = Some(entry.clone());
                places.n_entries += 1;
                if places.entries.len() < MAX_PLACES {
                    places.entries.push(entry.clone());
                }
            }
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many different secrets were found.
    pub fn n_secrets(&self) -> usize {
        self.kinds.values().map(|places| places.n_secrets).sum()
    }

    /// One line for each kind: number, kind, entries.
    pub fn lines(&self) -> Vec<String> {
        let line = |(kind, places): (&&str, &KindPlaces)| {
            let names: Vec<String> = places.entries.iter().map(ToString::to_string).collect();
            let word = if places.n_entries == 1 { "entry" } else { "entries" };
            let n_more = places.n_entries - names.len();
            let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
            format!("{} × {kind}: {word} {}{more}", places.n_secrets, names.join(", "))
        };
        self.kinds.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests;
