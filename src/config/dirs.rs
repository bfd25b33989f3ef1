//! The locations of pi's files.

use std::path::{Path, PathBuf};

use directories::BaseDirs;

use crate::util::paths;

use super::env::Env;

/// The folders of one user.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// `None` if the system reports no home directory.
    pub home: Option<PathBuf>,
    /// Settings, models, sessions: `PI_CODING_AGENT_DIR`, otherwise `~/.pi/agent`.
    pub agent: PathBuf,
    /// The sessions, one folder per project.
    pub sessions: PathBuf,
}

impl Dirs {
    /// The folders that the variables `HOME` and `PI_CODING_AGENT_DIR` name.
    pub fn new(env: &Env) -> Self {
        // On some systems this is `HOME` again.
        let of_system = || Some(BaseDirs::new()?.home_dir().to_owned()).filter(|home| home.has_root());
        Self::in_home(env.home().or_else(of_system), env)
    }

    /// Says that `HOME` is a relative path, if nothing else tells where the folders are. They would be
    /// in the current directory.
    pub fn home_problem(&self, env: &Env) -> Option<String> {
        let relative = env.path("HOME").filter(|home| !home.has_root() && self.home.is_none())?;
        let is_needed = env.get("PI_CODING_AGENT_DIR").is_none_or(|path| path.starts_with('~'));
        is_needed.then(|| {
            format!(
                "HOME is not an absolute path: {}; correct it, or set PI_CODING_AGENT_DIR",
                relative.display()
            )
        })
    }

    fn in_home(home: Option<PathBuf>, env: &Env) -> Self {
        let agent = match env.get("PI_CODING_AGENT_DIR") {
            Some(path) => paths::expand_home(&path, home.as_deref()),
            // As container runtimes do for users that the system does not know. The current
            // directory may be a project, which must not bring settings and keys along.
            None => home.clone().unwrap_or_else(|| PathBuf::from("/")).join(".pi").join("agent"),
        };
        Self { home, sessions: agent.join("sessions"), agent }
    }

    /// The user's settings.
    pub fn settings_file(&self) -> PathBuf {
        self.agent.join("settings.json")
    }

    /// The user's models.
    pub fn models_file(&self) -> PathBuf {
        self.agent.join("models.json")
    }

    /// The model lists that the original refreshes.
    pub fn models_store_file(&self) -> PathBuf {
        self.agent.join("models-store.json")
    }

    /// The model lists of providers that `models.json` names by address only.
    pub fn model_lists_file(&self) -> PathBuf {
        self.agent.join("model-lists.json")
    }

    /// The limits that providers reported last.
    pub fn quota_file(&self) -> PathBuf {
        self.agent.join("quota.json")
    }

    /// The version whose changes the user has seen.
    pub fn seen_version_file(&self) -> PathBuf {
        self.agent.join("seen-version")
    }

    /// The last crashes.
    pub fn crash_log_file(&self) -> PathBuf {
        self.agent.join("crashes.json")
    }

    /// Keys and accounts.
    pub fn auth_file(&self) -> PathBuf {
        self.agent.join("auth.json")
    }

    /// The trust decisions about projects.
    pub fn trust_file(&self) -> PathBuf {
        self.agent.join("trust.json")
    }

    /// The user's prompts, for other sessions.
    pub fn prompt_history_file(&self) -> PathBuf {
        self.agent.join("prompt-history.jsonl")
    }

    /// What trusted projects contained when they were trusted.
    pub fn trusted_contents_file(&self) -> PathBuf {
        self.agent.join("trust-contents.json")
    }

    /// The user's keys.
    pub fn keybindings_file(&self) -> PathBuf {
        self.agent.join("keybindings.json")
    }

    /// `path` with the home directory as `~`.
    pub fn display(&self, path: &Path) -> String {
        paths::display(path, self.home.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_the_current_directory_brings_nothing_along() {
        let agent = |home: Option<&str>, env: &[(&str, &str)]| {
            Dirs::in_home(home.map(PathBuf::from), &Env::of(env)).agent
        };
        assert_eq!(agent(Some("/home/ada"), &[]), Path::new("/home/ada/.pi/agent"));
        assert_eq!(agent(None, &[]), Path::new("/.pi/agent"));
        assert_eq!(agent(None, &[("PI_CODING_AGENT_DIR", "/data/pi")]), Path::new("/data/pi"));
    }

    #[test]
    fn relative_home_is_a_problem_where_it_is_needed() {
        let has_problem = |home: Option<&str>, env: &[(&str, &str)]| {
            let env = Env::of(env);
            Dirs::in_home(home.map(PathBuf::from), &env).home_problem(&env).is_some()
        };
        let relative = ("HOME", "rel");
        assert!(has_problem(None, &[relative]));
        assert!(has_problem(None, &[relative, ("PI_CODING_AGENT_DIR", "~/pi")]));
        assert!(!has_problem(None, &[relative, ("PI_CODING_AGENT_DIR", "/data/pi")]));
        assert!(!has_problem(Some("/home/ada"), &[relative]));
        assert!(!has_problem(None, &[]));
        assert_ne!(Dirs::new(&Env::of(&[relative])).home.as_deref(), Some(Path::new("rel")));
    }
}
