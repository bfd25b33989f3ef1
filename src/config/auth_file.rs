//! `auth.json`: the user's keys and sign-ins, shared with the original.
//!
//! The file is read when it has changed, and modified entry by entry under its lock;
//! unknown entries survive. Only its owner may read it. An unreadable file
//! is reported and never written.

use std::fmt;
use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::util::os::{self, FileId};
use crate::util::{atomic_file, repeated_keys};

use super::json_file::{self, FolderLock, LockError, LockTimes};
use super::secret::Secret;

/// The original touches its lock every fifteen seconds while it renews a token;
/// a wait outlasts such a renewal.
const LOCK: LockTimes = LockTimes {
    stale: Duration::from_secs(30),
    watch: Duration::from_secs(20),
    wait: Duration::from_secs(40),
};

/// The file. Shared by all users of keys.
pub struct AuthFile {
    path: PathBuf,
    known: Mutex<Known>,
}

/// Content of the file, in its order.
#[derive(Debug, Clone, Default)]
pub struct AuthEntries {
    entries: Vec<(String, AuthEntry)>,
    problem: Option<String>,
    /// Keys that the file has twice, one line each.
    repeated: Vec<String>,
}

/// The entry of one provider.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthEntry {
    /// A key.
    ApiKey(StoredKey),
    /// The tokens of an account.
    OAuth(OAuthEntry),
    /// Of an unknown kind.
    Unknown,
}

/// A key, as a config value: `!command`, or a template with variables.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The key, or where it comes from: `$NAME` or `!command`.
    pub key: String,
    /// Variables that override those of the environment.
    pub env: Vec<(String, String)>,
}

/// The tokens of an account.
#[derive(Clone, PartialEq)]
pub struct OAuthEntry {
    /// The token that requests are sent with.
    pub access: String,
    /// The token that renews it.
    pub refresh: String,
    /// When `access` ends, milliseconds since the Unix epoch.
    pub expires_ms: u64,
    /// Other data of the provider: account, client id, domain.
    pub extra: Map<String, Value>,
}

/// Why the file was not changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AuthFileError {
    #[error(
        "nothing was saved: the key contains an invalid character at position {position} (U+{:04X}); copy the key again",
        u32::from(*character)
    )]
    NoKey { position: usize, character: char },
    #[error("nothing was saved: {problem}; fix the file and try again")]
    Broken { problem: String },
    #[error("nothing was saved: another process has locked {}; try again", path.display())]
    Locked { path: PathBuf },
    #[error("nothing was saved: cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

struct Known {
    stamp: Option<Stamp>,
    entries: Arc<AuthEntries>,
}

/// Changes when the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
    file: FileId,
}

impl AuthFile {
    /// Reads the file at `path`, which need not exist. Blocks on the disk.
    pub fn open(path: PathBuf) -> Self {
        let known = Known { stamp: None, entries: Arc::default() };
        let file = Self { path, known: Mutex::new(known) };
        file.latest();
        file
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Current content of the file, which is read again if it has changed.
    /// Blocks on the disk, only to read the file's date if nothing has changed.
    pub fn latest(&self) -> Arc<AuthEntries> {
        let metadata = fs::metadata(&self.path);
        let is_missing = metadata.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let metadata = metadata.ok();
        let stamp = metadata.as_ref().map(Stamp::of);
        let mut known = self.lock_known();
        if known.stamp == stamp && (stamp.is_some() || is_missing && known.entries.is_empty()) {
            return Arc::clone(&known.entries);
        }
        if let Some(metadata) = &metadata {
            make_private(&self.path, metadata);
        }
        known.stamp = stamp;
        known.entries = Arc::new(AuthEntries::of(json_file::read_with_text(&self.path), &self.path));
        Arc::clone(&known.entries)
    }

    /// The content when the file was last read. Does not touch the disk.
    pub fn known(&self) -> Arc<AuthEntries> {
        Arc::clone(&self.lock_known().entries)
    }

    /// Stores the key of a provider literally, and keeps the variables of the one
    /// it replaces. Blocks.
    ///
    /// # Errors
    /// If it cannot be a key, or the file cannot be read or written.
    pub fn set_key(self: &Arc<Self>, provider: &str, key: &str) -> Result<(), AuthFileError> {
        if let Some((position, character)) = Secret::odd_character(key) {
            return Err(AuthFileError::NoKey { position, character });
        }
        // Characters of commands and variables are part of the key here.
        let mut literal = key.replace('$', "$$");
        if literal.starts_with('!') {
            literal.insert(0, '$');
        }
        self.change(|values| {
            let mut entry = match values.remove(provider) {
                Some(Value::Object(entry)) if entry.get("type") == Some(&"api_key".into()) => entry,
                Some(_) | None => Map::new(),
            };
            entry.insert("type".to_owned(), "api_key".into());
            entry.insert("key".to_owned(), literal.into());
            values.insert(provider.to_owned(), Value::Object(entry));
        })
    }

    /// Stores the account of a provider, replacing its entry. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn set_account(self: &Arc<Self>, provider: &str, account: &OAuthEntry) -> Result<(), AuthFileError> {
        self.change(|values| {
            values.insert(provider.to_owned(), Value::Object(account.onto(Map::new())));
        })
    }

    /// Removes the entry of a provider; `false` if there was none. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn remove(self: &Arc<Self>, provider: &str) -> Result<bool, AuthFileError> {
        self.lock()?.change(|values| {
            let removed = values.shift_remove(provider).is_some();
            if removed { Change::Save(true) } else { Change::Leave(false) }
        })
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), AuthFileError> {
        self.lock()?.change(|values| {
            change(values);
            Change::Save(())
        })
    }

    /// Locks the file against all other processes, and reads it. Blocks
    /// until the lock is free.
    ///
    /// # Errors
    /// If the lock is not free in time, or the file is invalid.
    pub(super) fn lock(self: &Arc<Self>) -> Result<AuthLock, AuthFileError> {
        if let Some(folder) = self.path.parent() {
            let mut builder = fs::DirBuilder::new();
            os::make_folder_private(&mut builder);
            let created = builder.recursive(true).create(folder);
            created.map_err(|source| AuthFileError::Write { path: folder.to_owned(), source })?;
        }
        let lock = FolderLock::acquire(&self.path, LOCK)?;
        let values = json_file::read(&self.path).map_err(|problem| AuthFileError::Broken { problem })?;
        Ok(AuthLock { file: Arc::clone(self), values, lock })
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The locked file; the lock is released on drop.
pub(super) struct AuthLock {
    file: Arc<AuthFile>,
    /// The values when the lock was acquired.
    values: Map<String, Value>,
    lock: FolderLock,
}

/// The decision about the inspected values, and the result.
enum Change<T> {
    Save(T),
    Leave(T),
}

impl AuthLock {
    /// The account of a provider when the lock was acquired.
    pub(super) fn account(&self, provider: &str) -> Option<OAuthEntry> {
        account_in(&self.values, provider)
    }

    /// Stores the renewed tokens of the account `before`; unknown fields stay.
    /// Returns the account that is valid from now on: if another program ignored the lock
    /// and changed the entry, its change stays. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn save_account(
        self,
        provider: &str,
        before: &OAuthEntry,
        renewed: &OAuthEntry,
    ) -> Result<OAuthEntry, AuthFileError> {
        self.change(|values| match account_in(values, provider) {
            Some(stored) if (&stored.access, &stored.refresh) != (&before.access, &before.refresh) => {
                Change::Leave(stored)
            }
            // The user signed out.
            None => Change::Leave(renewed.clone()),
            Some(_) => {
                let fields = match values.get(provider) {
                    Some(Value::Object(entry)) => entry.clone(),
                    Some(_) | None => Map::new(),
                };
                values.insert(provider.to_owned(), Value::Object(renewed.onto(fields)));
                Change::Save(renewed.clone())
            }
        })
    }

    /// Shows other processes that the lock is still in use.
    pub(super) fn touch(&self) {
        self.lock.touch();
    }

    /// Changes the current file. If another process took over the lock, waits for it
    /// once more.
    fn change<T>(
        self,
        change: impl FnOnce(&mut Map<String, Value>) -> Change<T>,
    ) -> Result<T, AuthFileError> {
        let held = if self.lock.is_held() { self } else { self.file.lock()? };
        let path = &held.file.path;
        let mut values = json_file::read(path).map_err(|problem| AuthFileError::Broken { problem })?;
        let done = match change(&mut values) {
            Change::Save(done) => done,
            Change::Leave(done) => return Ok(done),
        };
        let written =
            create_private(path).and_then(|()| atomic_file::write(path, json_file::text(&values).as_bytes()));
        written.map_err(|source| AuthFileError::Write { path: path.clone(), source })?;
        held.file.latest();
        Ok(done)
    }
}

fn account_in(values: &Map<String, Value>, provider: &str) -> Option<OAuthEntry> {
    match AuthEntry::of(values.get(provider)?) {
        AuthEntry::OAuth(account) => Some(account),
        AuthEntry::ApiKey(_) | AuthEntry::Unknown => None,
    }
}

impl From<LockError> for AuthFileError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path } => Self::Locked { path },
            LockError::Create { path, source } => Self::Write { path, source },
        }
    }
}

impl AuthEntries {
    fn of(read: Result<(Map<String, Value>, String), String>, path: &Path) -> Self {
        match read {
            Ok((values, text)) => {
                let entries = values.iter().map(|(provider, value)| (provider.clone(), AuthEntry::of(value)));
                let repeated = repeated_keys(&text);
                let repeated = repeated.iter().map(|key| format!("{}:{}: {key}", path.display(), key.line));
                Self { entries: entries.collect(), problem: None, repeated: repeated.collect() }
            }
            Err(problem) => Self { problem: Some(problem), ..Self::default() },
        }
    }

    /// The entry of a provider.
    pub fn get(&self, provider: &str) -> Option<&AuthEntry> {
        self.entries.iter().find(|(id, _)| id == provider).map(|(_, entry)| entry)
    }

    /// All entries, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AuthEntry)> {
        self.entries.iter().map(|(id, entry)| (id.as_str(), entry))
    }

    /// Why the file could not be read, with its path and line.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Keys that the file has more than once, with path and lines; one line each.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.problem.is_none()
    }
}

impl AuthEntry {
    fn of(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        match value.get("type").and_then(Value::as_str) {
            Some("api_key") => {
                let variables = value.get("env").and_then(Value::as_object).into_iter().flatten();
                let env =
                    variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                Self::ApiKey(StoredKey { key: text("key").unwrap_or_default(), env: env.collect() })
            }
            Some("oauth") => {
                let (Some(access), Some(refresh)) = (text("access"), text("refresh")) else {
                    return Self::Unknown;
                };
                let expires = value.get("expires");
                // The original computes with floating point numbers.
                let expires_ms =
                    expires.and_then(|at| at.as_u64().or_else(|| at.as_f64().map(|ms| ms as u64)));
                let mut extra = value.as_object().cloned().unwrap_or_default();
                for name in OAUTH_FIELDS {
                    extra.shift_remove(name);
                }
                let expires_ms = expires_ms.unwrap_or_default();
                Self::OAuth(OAuthEntry { access, refresh, expires_ms, extra })
            }
            Some(_) | None => Self::Unknown,
        }
    }
}

const OAUTH_FIELDS: [&str; 4] = ["type", "access", "refresh", "expires"];

impl OAuthEntry {
    /// The text of an extra field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.extra.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The stored form, including fields of `before` that it does not replace.
    fn onto(&self, before: Map<String, Value>) -> Map<String, Value> {
        let mut entry = before;
        entry.insert("type".to_owned(), "oauth".into());
        entry.insert("access".to_owned(), self.access.clone().into());
        entry.insert("refresh".to_owned(), self.refresh.clone().into());
        entry.insert("expires".to_owned(), self.expires_ms.into());
        entry.extend(self.extra.clone());
        entry
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredKey(…)")
    }
}

impl fmt::Debug for OAuthEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthEntry").field("expires_ms", &self.expires_ms).finish_non_exhaustive()
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().ok(), len: metadata.len(), file: os::file_id(metadata) }
    }
}

/// Creates the file with access for its owner only, before it has content.
fn create_private(path: &Path) -> io::Result<()> {
    let target = atomic_file::follow_links(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    os::make_file_private(&mut options);
    match options.open(&target) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            make_private(&target, &fs::metadata(&target)?);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Restricts the file to its owner. A file of another user stays unchanged.
fn make_private(path: &Path, metadata: &Metadata) {
    if metadata.is_file() && os::is_open_to_others(metadata) {
        drop(os::restrict_to_owner(path));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(content: &Value) -> (tempfile::TempDir, Arc<AuthFile>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        fs::write(&path, content.to_string()).unwrap();
        (folder, Arc::new(AuthFile::open(path)))
    }

    fn content(file: &AuthFile) -> Value {
        serde_json::from_str(&fs::read_to_string(&file.path).unwrap()).unwrap()
    }

    #[test]
    fn what_is_not_known_survives() {
        let (_folder, file) = file(&json!({
            "acme": {"type": "hologram", "x": 1},
            "openai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 7.5, "novel": [1]},
            "groq": {"type": "api_key", "key": "old", "env": {"A": "b"}},
        }));
        file.set_key("groq", "new").unwrap();
        let lock = file.lock().unwrap();
        let account = lock.account("openai").unwrap();
        assert_eq!(account.expires_ms, 7);
        let renewed = OAuthEntry { access: "a2".to_owned(), ..account.clone() };
        lock.save_account("openai", &account, &renewed).unwrap();
        assert!(file.remove("none").is_ok_and(|removed| !removed));
        assert_eq!(
            content(&file),
            json!({
                "acme": {"type": "hologram", "x": 1},
                "openai": {"type": "oauth", "access": "a2", "refresh": "r", "expires": 7, "novel": [1]},
                "groq": {"type": "api_key", "key": "new", "env": {"A": "b"}},
            })
        );
        assert!(file.remove("acme").unwrap());
        assert_eq!(content(&file).as_object().unwrap().len(), 2);
    }

    /// Like programs that judge a lock only by its age.
    fn rob(file: &AuthFile) {
        fs::remove_dir(file.path.with_extension("json.lock")).unwrap();
    }

    #[test]
    fn what_was_changed_while_the_lock_was_lost_stays() {
        let account =
            |access: &str| json!({"type": "oauth", "access": access, "refresh": access, "expires": 1});
        let check = |meanwhile: &Value, expected: &Value, access: &str| {
            let (_folder, file) = file(&json!({"openai": account("old")}));
            let lock = file.lock().unwrap();
            let before = lock.account("openai").unwrap();
            rob(&file);
            fs::write(&file.path, meanwhile.to_string()).unwrap();
            let renewed =
                OAuthEntry { access: "new".to_owned(), refresh: "new".to_owned(), ..before.clone() };
            let holds = lock.save_account("openai", &before, &renewed).unwrap();
            assert_eq!((content(&file), holds.access.as_str()), (expected.clone(), access));
            assert!(!file.path.with_extension("json.lock").exists());
        };
        let key = json!({"type": "api_key", "key": "k"});
        // Another entry, which must not be overwritten.
        let meanwhile = json!({"openai": account("old"), "groq": key});
        check(&meanwhile, &json!({"openai": account("new"), "groq": key}), "new");
        // The same entry: renewed by another process, or signed out.
        let theirs = json!({"openai": account("theirs")});
        check(&theirs, &theirs, "theirs");
        check(&json!({}), &json!({}), "new");
    }

    #[test]
    fn a_key_that_looks_like_a_command_is_still_a_key() {
        let (_folder, file) = file(&json!({}));
        file.set_key("groq", "!a$b").unwrap();
        assert_eq!(content(&file)["groq"]["key"], "$!a$$b");
    }

    #[test]
    fn changes_of_others_are_seen() {
        let (_folder, file) = file(&json!({"groq": {"type": "api_key", "key": "one"}}));
        let key = |entries: &AuthEntries| match entries.get("groq") {
            Some(AuthEntry::ApiKey(stored)) => stored.key.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(key(&file.latest()), "one");
        let other = json!({"groq": {"type": "api_key", "key": "another"}});
        fs::write(&file.path, other.to_string()).unwrap();
        assert_eq!(key(&file.known()), "one");
        assert_eq!(key(&file.latest()), "another");
        fs::remove_file(&file.path).unwrap();
        assert_eq!(key(&file.latest()), "None");
    }

    #[test]
    fn a_broken_file_is_named_with_its_line_and_never_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        let text = "{\n  \"openai\": {\n";
        fs::write(&path, text).unwrap();
        let file = Arc::new(AuthFile::open(path));
        let problem = file.latest().problem().unwrap().to_owned();
        assert!(problem.contains("auth.json") && problem.contains("line 3"), "{problem}");
        let error = file.set_key("openai", "k").unwrap_err().to_string();
        assert!(error.contains("fix the file and try again"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
    }

    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (_folder, shared) = file(&json!({}));
        fs::set_permissions(&shared.path, fs::Permissions::from_mode(0o644)).unwrap();
        let shared = AuthFile::open(shared.path.clone());
        assert_eq!(mode(&shared.path), 0o600, "repaired when read");
        fs::set_permissions(&shared.path, fs::Permissions::from_mode(0o664)).unwrap();
        let shared = Arc::new(shared);
        shared.set_key("groq", "k").unwrap();
        assert_eq!(mode(&shared.path), 0o600, "and when written");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/agent/auth.json");
        Arc::new(AuthFile::open(path.clone())).set_key("groq", "k").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn what_is_printed_holds_no_secret() {
        let (_folder, file) = file(&json!({
            "openai": {"type": "oauth", "access": "canary", "refresh": "canary", "expires": 1, "x": "canary"},
            "groq": {"type": "api_key", "key": "canary", "env": {"A": "canary"}},
        }));
        assert!(!format!("{:?}", file.latest()).contains("canary"));
    }
}
