//! The usage of single requests, read from session files.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use crate::ai::Usage;
use crate::util::{clock, os};

use super::super::store::{OpenError, read_header, session_files};

/// Caches keep prompts in parts; so many tokens of the end may be missing without a miss. The
/// original counts from here.
pub(in crate::session) const CACHE_GRAIN_TOKENS: u64 = 1_024;

/// The usage of one request: an answer, a summary, or a request outside the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRecord {
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Id of the session.
    pub session: String,
    /// The directory of the session.
    pub project: String,
    /// Id of the entry.
    pub entry: String,
    /// Id of the user message that the request belongs to; empty before the first one.
    pub turn: String,
    /// Whether the entry is on the branch that ends in the last entry of the file.
    pub on_active_branch: bool,
    /// The id of the provider.
    pub provider: String,
    /// The id of the model.
    pub model: String,
    /// Tokens and dollars.
    pub usage: Usage,
    /// Prompt tokens that the request before it on the branch had sent too, but that did not
    /// come from the cache. 0 for few, after a summary, and if no cache was reported.
    pub missed_tokens: u64,
}

/// The usage of all requests of the session in `path`, in file order, all branches
/// included. Blocks: reads the whole file, but keeps no texts.
///
/// # Errors
/// If the file cannot be read or is not a session.
pub fn read_usage(path: &Path) -> Result<Vec<UsageRecord>, OpenError> {
    let read_error = |error| OpenError::Read { path: path.to_owned(), error };
    let file = os::open_regular(path).map_err(read_error)?;
    let header = read_header(path).ok_or_else(|| OpenError::NotASession { path: path.to_owned() })?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut line, mut file) = (Vec::new(), FileUsage::default());
    while reader.read_until(b'\n', &mut line).map_err(read_error)? > 0 {
        if let Ok(entry) = serde_json::from_slice::<Line<'_>>(&line) {
            file.add(&entry, &header.id, &header.cwd);
        }
        line.clear();
    }
    Ok(file.finish())
}

/// The usage since `since_ms` of all sessions in `root`: of files in it and in its folders.
/// A request that several files contain, as forks do, counts once. Unreadable files are left
/// out. Blocks: reads every file that has changed since then.
pub fn usage_since(root: &Path, since_ms: u64) -> Vec<UsageRecord> {
    read_usage_since(root, since_ms).0
}

/// As [`usage_since`]; also returns the problems of the files that were left out. Blocks.
pub fn read_usage_since(root: &Path, since_ms: u64) -> (Vec<UsageRecord>, Vec<OpenError>) {
    let folders = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    let files = folders.iter().map(PathBuf::as_path).chain([root]).flat_map(session_files);
    // A file without a line may become a session.
    let counts = |metadata: &fs::Metadata| metadata.len() > 0 && modified_ms(metadata) >= since_ms;
    let mut files: Vec<PathBuf> =
        files.filter(|(_, metadata)| counts(metadata)).map(|(path, _)| path).collect();
    // A fork is younger than its source, and names begin with the time.
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    let mut seen: HashSet<(String, u64)> = HashSet::new();
    let (mut records, mut problems) = (Vec::new(), Vec::new());
    for path in &files {
        match read_usage(path) {
            Ok(found) => records.extend(found),
            Err(error) => problems.push(error),
        }
    }
    records
        .retain(|record| record.time_ms >= since_ms && seen.insert((record.entry.clone(), record.time_ms)));
    (records, problems)
}

/// The time of the last change, in milliseconds since the Unix epoch.
fn modified_ms(metadata: &fs::Metadata) -> u64 {
    let since_epoch =
        metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since_epoch.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// An entry without its texts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type", borrow, default)]
    entry_type: Cow<'a, str>,
    /// Of usage outside the conversation.
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<LineMessage<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(borrow, default)]
    provider: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct LineMessage<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(borrow, default)]
    provider: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
}

/// A prompt that a provider may have cached.
#[derive(Debug, Clone, Copy, Default)]
struct SentPrompt {
    tokens: u64,
    /// Whether it, or one before it, was read from a cache or written to one.
    is_cached: bool,
}

impl SentPrompt {
    /// The prompt of the next request, and how many tokens of this one it paid for again.
    fn then(self, usage: &Usage) -> (Self, u64) {
        let tokens = usage.prompt_tokens();
        if tokens == 0 {
            return (self, 0);
        }
        let is_cached = self.is_cached || usage.cache_read > 0 || usage.cache_write > 0;
        let missed = self.tokens.min(tokens).saturating_sub(usage.cache_read);
        let counts = is_cached && missed > CACHE_GRAIN_TOKENS;
        (Self { tokens, is_cached }, if counts { missed } else { 0 })
    }
}

#[derive(Default)]
struct FileUsage {
    records: Vec<UsageRecord>,
    parents: HashMap<String, Option<String>>,
    /// The latest user message at or above each entry.
    turns: HashMap<String, String>,
    /// The prompt of the latest request at or above each entry.
    prompts: HashMap<String, SentPrompt>,
    /// Model of the latest answer, for summaries, which do not name theirs.
    model: (String, String),
    leaf: Option<String>,
}

impl FileUsage {
    fn add(&mut self, line: &Line<'_>, session: &str, project: &str) {
        let id = line.id.to_string();
        let parent = line.parent_id.as_deref().map(str::to_owned);
        let role = line.message.as_ref().map(|message| message.role.as_ref());
        let turn = match role {
            Some("user") => id.clone(),
            _ => parent.as_ref().and_then(|parent| self.turns.get(parent)).cloned().unwrap_or_default(),
        };
        let message = line.message.as_ref();
        let names = |provider: &Option<Cow<'_, str>>, model: &Option<Cow<'_, str>>| {
            Some((provider.as_deref()?.to_owned(), model.as_deref()?.to_owned()))
        };
        let model = match message {
            Some(message) => names(&message.provider, &message.model),
            None => names(&line.provider, &line.model),
        };
        if let Some(model) = model {
            self.model = model;
        }
        let before = parent.as_ref().and_then(|parent| self.prompts.get(parent)).copied();
        let mut prompt = match line.entry_type.as_ref() {
            // The next prompt is another one.
            "compaction" | "branch_summary" => SentPrompt::default(),
            _ => before.unwrap_or_default(),
        };
        let (is_answer, mut missed_tokens) = (role == Some("assistant"), 0);
        if let Some(usage) = message.and_then(|message| message.usage.as_ref()).or(line.usage.as_ref()) {
            let (provider, model) = self.model.clone();
            if is_answer || line.kind.as_deref() == Some("cache_warm") {
                (prompt, missed_tokens) = prompt.then(usage);
            }
            self.records.push(UsageRecord {
                time_ms: line.timestamp.as_deref().and_then(clock::parse_iso8601).unwrap_or_default(),
                session: session.to_owned(),
                project: project.to_owned(),
                entry: id.clone(),
                turn: turn.clone(),
                on_active_branch: false,
                provider,
                model,
                usage: usage.clone(),
                missed_tokens: if is_answer { missed_tokens } else { 0 },
            });
        }
        self.turns.insert(id.clone(), turn);
        self.prompts.insert(id.clone(), prompt);
        self.parents.insert(id.clone(), parent);
        self.leaf = Some(id);
    }

    fn finish(mut self) -> Vec<UsageRecord> {
        let mut active: HashSet<String> = HashSet::new();
        let mut at = self.leaf.take();
        while let Some(id) = at {
            at = self.parents.get(&id).cloned().flatten();
            // Damaged files may contain cycles.
            if !active.insert(id) {
                break;
            }
        }
        for record in &mut self.records {
            record.on_active_branch = active.contains(&record.entry);
        }
        self.records
    }
}
