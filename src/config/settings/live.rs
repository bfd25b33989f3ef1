//! The current settings while pi runs.
//!
//! All sessions of a process share the user's file and the command line; the settings of
//! a project and unsaved changes belong to one session. [`LiveSettings`] is the only
//! writer. Readers get the settings from it when they need them, or watch for changes,
//! and keep no copies.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::file::{SaveError, SettingsFile};
use super::layers::{self, EffectiveSettings, Layer, Layers};
use super::table::Row;

/// The settings of one session, or of a process without one. Clones share the session.
#[derive(Debug, Clone)]
pub struct LiveSettings {
    shared: Arc<Shared>,
    view: Arc<View>,
}

/// Layers that all sessions of a process share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    base: Mutex<Base>,
    /// Held until the written values apply.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Base {
    user: Map<String, Value>,
    command_line: Map<String, Value>,
    views: Vec<Weak<View>>,
}

/// The settings as one session sees them.
#[derive(Debug)]
struct View {
    own: Mutex<Own>,
    effective: watch::Sender<Arc<EffectiveSettings>>,
}

/// Layers of one session.
#[derive(Debug, Default)]
struct Own {
    project: ProjectSettings,
    session: Map<String, Value>,
}

/// The settings of a trusted project; by default none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectSettings {
    values: Map<String, Value>,
}

/// A change of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    pub(super) key: &'static str,
    /// `None` removes the user's value.
    pub(super) value: Option<Value>,
}

/// Why a change is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SettingError {
    #[error("there is no setting \"{key}\"{}", tip(*meant))]
    Unknown { key: String, meant: Option<&'static str> },
    #[error("\"{key}\" must be {expected}")]
    Wrong { key: &'static str, expected: String },
}

fn tip(meant: Option<&str>) -> String {
    meant.map_or_else(|| "; pi config lists all".to_owned(), |meant| format!("; did you mean \"{meant}\"?"))
}

impl SettingChange {
    /// Sets `key` to `value`; `null` resets it.
    ///
    /// # Errors
    /// If the key is unknown or the value is invalid.
    pub fn set(key: &str, value: Value) -> Result<Self, SettingError> {
        let row = Row::named(key)?;
        let value = Some(value).filter(|value| !value.is_null());
        if value.as_ref().is_some_and(|value| !row.kind.accepts(value)) {
            return Err(SettingError::Wrong { key: row.key, expected: row.kind.describe() });
        }
        Ok(Self { key: row.key, value })
    }

    /// The new value; `None` removes the user's value.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Whether it removes the user's value.
    pub fn is_reset(&self) -> bool {
        self.value.is_none()
    }

    /// Removes the user's value of `key`.
    ///
    /// # Errors
    /// If the key is unknown.
    pub fn reset(key: &str) -> Result<Self, SettingError> {
        Self::set(key, Value::Null)
    }
}

impl ProjectSettings {
    /// Reads `.pi/settings.json` of a trusted project; also returns its problems, one
    /// line each. Blocks.
    pub fn load(cwd: &Path) -> (Self, Vec<String>) {
        let path = cwd.join(".pi").join("settings.json");
        let (values, problems) = read(&path, Layer::Project, "the settings of the project do not apply");
        (Self { values: values.unwrap_or_default() }, problems)
    }

    /// The setting `skills` of the project.
    pub fn skills(&self) -> Vec<String> {
        self.list("skills")
    }

    /// The setting `prompts` of the project.
    pub fn prompts(&self) -> Vec<String> {
        self.list("prompts")
    }

    fn list(&self, key: &str) -> Vec<String> {
        let entries = layers::lookup(&self.values, key).cloned().unwrap_or_default();
        serde_json::from_value(entries).unwrap_or_default()
    }
}

/// The valid values of a file, if it is readable, and its problems. `otherwise` says what applies
/// if it is not.
fn read(path: &Path, layer: Layer, otherwise: &str) -> (Option<Map<String, Value>>, Vec<String>) {
    let file = SettingsFile::load(path.to_owned());
    if let Some(problem) = file.problem() {
        return (None, vec![format!("{problem}; {otherwise}")]);
    }
    let (values, wrong) = layers::checked(file.values(), layer);
    let place = |key: &str| match file.line_of(key) {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    };
    let repeated = file.repeated_keys();
    let repeated = repeated.iter().map(|key| format!("{}:{}: {key}", path.display(), key.line));
    let wrong = wrong.iter().map(|problem| format!("{}: {problem}", place(problem.key())));
    (Some(values), wrong.chain(repeated).collect())
}

impl LiveSettings {
    /// Reads the user's file at `path`; also returns its problems, one line each. `flags`
    /// are the command line layer. Blocks.
    pub fn load(path: PathBuf, flags: impl IntoIterator<Item = SettingChange>) -> (Self, Vec<String>) {
        let (user, problems) = read(&path, Layer::User, "pi starts with the default settings");
        let mut command_line = Map::new();
        for flag in flags {
            layers::set(&mut command_line, flag.key, flag.value.as_ref());
        }
        let base = Base { user: user.unwrap_or_default(), command_line, views: Vec::new() };
        let shared = Arc::new(Shared { path, base: Mutex::new(base), writing: Mutex::new(()) });
        (Self::view_of(shared, ProjectSettings::default()), problems)
    }

    fn view_of(shared: Arc<Shared>, project: ProjectSettings) -> Self {
        let own = Own { project, session: Map::new() };
        let mut base = lock(&shared.base);
        let effective = watch::Sender::new(Arc::new(base.effective(&own)));
        let view = Arc::new(View { own: Mutex::new(own), effective });
        base.views.retain(|view| view.strong_count() > 0);
        base.views.push(Arc::downgrade(&view));
        drop(base);
        Self { shared, view }
    }

    /// The settings of another session, with `project` as its project layer.
    pub fn for_session(&self, project: ProjectSettings) -> Self {
        Self::view_of(Arc::clone(&self.shared), project)
    }

    /// The current settings.
    pub fn get(&self) -> Arc<EffectiveSettings> {
        self.view.effective.borrow().clone()
    }

    /// Watches for changes from now on.
    pub fn watch(&self) -> SettingsWatch {
        let receiver = self.view.effective.subscribe();
        let seen = self.get();
        SettingsWatch { receiver, seen }
    }

    /// Replaces the project layer.
    pub fn use_project(&self, project: ProjectSettings) {
        lock(&self.view.own).project = project;
        self.shared.refresh();
    }

    /// Applies changes to this session at once; [`SettingsWrite::save`] stores them and
    /// applies them to all sessions.
    pub fn change(&self, changes: Vec<SettingChange>) -> SettingsWrite {
        let mut own = lock(&self.view.own);
        for change in &changes {
            layers::set(&mut own.session, change.key, change.value.as_ref());
        }
        drop(own);
        self.shared.refresh();
        SettingsWrite { settings: self.clone(), changes }
    }

    /// Reloads the user's file and drops changes that apply to this session alone; see
    /// [`Self::use_project`] for the project's file. An unreadable file changes nothing.
    /// Returns problems, one line each. Blocks.
    pub fn reload(&self) -> Vec<String> {
        let writing = lock(&self.shared.writing);
        let (user, problems) = read(&self.shared.path, Layer::User, "the settings read before stay");
        if let Some(user) = user {
            lock(&self.shared.base).user = user;
            lock(&self.view.own).session.clear();
        }
        self.shared.refresh();
        drop(writing);
        problems
    }
}

impl Shared {
    /// Applies the layers to every session.
    fn refresh(&self) {
        let base = lock(&self.base);
        for view in base.views.iter().filter_map(Weak::upgrade) {
            let effective = base.effective(&lock(&view.own));
            view.effective.send_if_modified(|current| {
                let is_other = **current != effective;
                if is_other {
                    *current = Arc::new(effective);
                }
                is_other
            });
        }
    }
}

impl Base {
    fn effective(&self, own: &Own) -> EffectiveSettings {
        EffectiveSettings::of(Layers {
            user: self.user.clone(),
            project: own.project.values.clone(),
            command_line: self.command_line.clone(),
            session: own.session.clone(),
        })
    }
}

/// Changes that apply and are not saved yet.
#[derive(Debug)]
#[must_use = "the changes are forgotten when pi exits, unless they are saved"]
pub struct SettingsWrite {
    settings: LiveSettings,
    changes: Vec<SettingChange>,
}

impl SettingsWrite {
    /// Makes the changes in the user's file. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written; it is unchanged then. The changes still apply
    /// to their session.
    pub fn save(self) -> Result<(), SaveError> {
        let Self { settings, changes } = self;
        let shared = &settings.shared;
        let writing = lock(&shared.writing);
        let mut file = SettingsFile::load(shared.path.clone());
        file.save(&changes)?;
        lock(&shared.base).user = layers::checked(file.values(), Layer::User).0;
        settings.drop_saved(&changes);
        shared.refresh();
        drop(writing);
        Ok(())
    }
}

impl LiveSettings {
    /// Removes saved changes from the session layer, unless a stronger layer would hide
    /// them.
    fn drop_saved(&self, changes: &[SettingChange]) {
        let base = lock(&self.shared.base);
        let mut own = lock(&self.view.own);
        for change in changes {
            // There may be a later change.
            if layers::lookup(&own.session, change.key) != change.value.as_ref() {
                continue;
            }
            let kept = own.session.clone();
            layers::remove(&mut own.session, change.key);
            let shown = base.effective(&own).value(change.key);
            if change.value.is_some() && shown != change.value {
                own.session = kept;
            }
        }
    }
}

/// Reports changed settings.
#[derive(Debug)]
pub struct SettingsWatch {
    receiver: watch::Receiver<Arc<EffectiveSettings>>,
    seen: Arc<EffectiveSettings>,
}

impl SettingsWatch {
    /// Waits for changes and returns the keys with other values, which are none if only
    /// the origin of a value changed. Cancel-safe. Waits forever once the settings were
    /// dropped.
    pub async fn changed(&mut self) -> Vec<&'static str> {
        loop {
            if self.receiver.changed().await.is_err() {
                return std::future::pending().await;
            }
            if let Some(keys) = self.take() {
                return keys;
            }
        }
    }

    /// As [`Self::changed`], without waiting; `None` if nothing changed.
    pub fn take(&mut self) -> Option<Vec<&'static str>> {
        let now = self.receiver.borrow_and_update().clone();
        if Arc::ptr_eq(&now, &self.seen) {
            return None;
        }
        let keys = now.changed_since(&self.seen);
        self.seen = now;
        Some(keys)
    }
}

/// A panic cannot leave the values behind these locks half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    struct World {
        folder: tempfile::TempDir,
        live: LiveSettings,
    }

    impl World {
        fn new(user: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            fs::write(&path, user).unwrap();
            let (live, problems) = LiveSettings::load(path, []);
            assert!(problems.is_empty(), "{problems:?}");
            Self { folder, live }
        }

        fn user(&self) -> PathBuf {
            self.folder.path().join("settings.json")
        }

        fn stored(&self) -> Value {
            serde_json::from_str(&fs::read_to_string(self.user()).unwrap()).unwrap()
        }

        fn project(&self, text: &str) -> ProjectSettings {
            fs::create_dir_all(self.folder.path().join(".pi")).unwrap();
            fs::write(self.folder.path().join(".pi/settings.json"), text).unwrap();
            ProjectSettings::load(self.folder.path()).0
        }
    }

    fn set(key: &str, value: Value) -> Vec<SettingChange> {
        vec![SettingChange::set(key, value).unwrap()]
    }

    fn theme(live: &LiveSettings) -> (String, Layer) {
        let settings = live.get();
        (settings.values.theme.clone(), settings.origin("theme").unwrap())
    }

    #[test]
    fn a_change_counts_at_once_and_for_all_when_it_is_saved() {
        let world = World::new(r#"{"novel": 1}"#);
        let (one, two) = (world.live.for_session(ProjectSettings::default()), world.live.clone());
        let write = one.change(set("theme", json!("dark")));
        assert_eq!(
            (theme(&one), theme(&two)),
            (("dark".into(), Layer::Session), ("system".into(), Layer::BuiltIn))
        );
        write.save().unwrap();
        assert_eq!((theme(&one), theme(&two)), (("dark".into(), Layer::User), ("dark".into(), Layer::User)));
        assert_eq!(world.stored(), json!({"novel": 1, "theme": "dark"}));
        one.change(vec![SettingChange::reset("theme").unwrap()]).save().unwrap();
        assert_eq!((theme(&one).1, theme(&two).1), (Layer::BuiltIn, Layer::BuiltIn));
        assert_eq!(world.stored(), json!({"novel": 1}));
    }

    #[test]
    fn a_change_counts_although_the_project_says_otherwise() {
        let world = World::new("{}");
        let project = world.project(r#"{"theme": "light"}"#);
        let live = world.live.for_session(project.clone());
        assert_eq!(theme(&live), ("light".into(), Layer::Project));
        live.change(set("theme", json!("dark"))).save().unwrap();
        assert_eq!(theme(&live), ("dark".into(), Layer::Session));
        assert_eq!(theme(&world.live.for_session(project)), ("light".into(), Layer::Project));
        live.change(vec![SettingChange::reset("theme").unwrap()]).save().unwrap();
        assert_eq!(theme(&live), ("light".into(), Layer::Project));
    }

    #[test]
    fn a_change_that_cannot_be_saved_counts_for_its_session() {
        let world = World::new(r#"{"theme": "light"}"#);
        fs::write(world.user(), "{ broken").unwrap();
        let live = world.live.for_session(ProjectSettings::default());
        let error = live.change(set("theme", json!("dark"))).save().unwrap_err();
        assert!(error.to_string().contains("fix the file"), "{error}");
        assert_eq!((theme(&live).1, theme(&world.live).1), (Layer::Session, Layer::User));
        assert_eq!(fs::read_to_string(world.user()).unwrap(), "{ broken");
    }

    #[test]
    fn a_reload_reads_the_file_again_and_keeps_what_cannot_be_read() {
        let world = World::new(r#"{"theme": "dark"}"#);
        let live = world.live.for_session(world.project(r#"{"retry": {"maxRetries": 7}}"#));
        let mut watch = live.watch();
        fs::write(world.user(), r#"{"theme": "light", "quietStartup": 1}"#).unwrap();
        let problems = live.reload();
        assert!(
            problems.len() == 1 && problems[0].contains("settings.json:1: \"quietStartup\""),
            "{problems:?}"
        );
        live.use_project(world.project(r#"{"retry": {"maxRetries": 8}}"#));
        assert_eq!(watch.take(), Some(vec!["theme", "retry.maxRetries"]));
        assert_eq!(watch.take(), None);
        fs::write(world.user(), "{ broken").unwrap();
        let broken = format!("{}: key must be a string at line 1 column 3", world.user().display());
        assert_eq!(live.reload(), [format!("{broken}; the settings read before stay")]);
        assert_eq!(theme(&live).0, "light");
        let (fresh, problems) = LiveSettings::load(world.user(), []);
        assert_eq!(problems, [format!("{broken}; pi starts with the default settings")]);
        assert_eq!(theme(&fresh).1, Layer::BuiltIn);
        world.project("{ broken");
        let (_, problems) = ProjectSettings::load(world.folder.path());
        assert!(problems[0].ends_with("; the settings of the project do not apply"), "{problems:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |key, value, expected: &str| {
            let error = SettingChange::set(key, value).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("colour", json!(1), "there is no setting \"colour\"; pi config lists all");
        check("retry.enabled", json!("yes"), "\"retry.enabled\" must be true or false");
    }

    #[tokio::test]
    async fn a_change_of_another_session_is_noticed() {
        let world = World::new("{}");
        let mut watch = world.live.for_session(ProjectSettings::default()).watch();
        // The session of the watch may be gone; its settings then change no more.
        let live = world.live.for_session(ProjectSettings::default());
        let mut seen = live.watch();
        world.live.change(set("theme", json!("dark"))).save().unwrap();
        assert_eq!(seen.changed().await, ["theme"]);
        assert_eq!(watch.take(), None);
    }

    #[test]
    fn an_origin_that_changes_is_reported_without_a_key() {
        let world = World::new("{}");
        let live = world.live.for_session(ProjectSettings::default());
        let mut watch = live.watch();
        let write = live.change(set("theme", json!("dark")));
        assert_eq!(watch.take(), Some(vec!["theme"]));
        write.save().unwrap();
        assert_eq!(watch.take(), Some(Vec::new()));
    }
}
