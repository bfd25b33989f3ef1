//! Uploads a page of a session as a secret gist.
//!
//! pi has no account of its own there: the GitHub CLI `gh` does, and it alone sends the page.
//! Dropping the future of a step stops it, with what it runs.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::config::Env;
use crate::session::{Reply, SecretReport, Secrets, SessionError, SessionState, SessionTree, mask_secrets};
use crate::util::escapes::without_escapes;
use crate::util::process::{Command, End, Event, Running};
use crate::util::worker;

use super::request::{OTHER_SESSION, has_messages, source};
use super::{ExistingFile, ExportFormat};

/// The page of the original that shows gists, unless the user names another one.
const VIEWER_URL: &str = "https://pi.dev/session/";
/// More of what `gh` says is dropped.
const MAX_SAID_BYTES: usize = 64 * 1024;
/// More of it is not repeated in an error.
const MAX_SHOWN_CHARS: usize = 300;

/// Shares one session.
#[derive(Debug)]
pub(in super::super) struct GistShare {
    session_id: String,
    gh: PathBuf,
    viewer_url: String,
    page: PlaceOfPage,
}

/// The folder of the page while it is uploaded.
type PlaceOfPage = Arc<Mutex<Option<TempDir>>>;

/// The page of an upload. Dropping it removes the file, also where nothing runs the upload to its end any more.
#[derive(Debug, Default)]
pub(in super::super) struct SharedPage(PlaceOfPage);

impl Drop for SharedPage {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// What a step led to.
#[derive(Debug)]
pub(in super::super) enum ShareStep {
    /// The secrets in the page; the user decides.
    Checked(SecretReport),
    Uploaded(Gist),
}

/// A gist that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Gist {
    /// Where a browser shows the page.
    page_url: String,
    /// Where it can be edited and deleted.
    url: String,
}

/// What a question about sharing has to say.
pub(in super::super) const ABOUT_SHARING: &str = "gh uploads a page with all branches of the session to GitHub, as a secret gist. Everybody who has its \
     address can read it until you delete it.";

/// What is said once an upload was cancelled.
pub(in super::super) const SHARING_CANCELLED: &str =
    "Sharing was cancelled. If gh had created the gist already, gh gist list shows it.";

impl Gist {
    /// What the user is told.
    pub(in super::super) fn lines(&self) -> [String; 2] {
        [format!("Share URL: {}", self.page_url), format!("Gist: {}", self.url)]
    }

    /// The same with links.
    pub(in super::super) fn markdown(&self) -> String {
        format!("Share URL: <{}>\nGist: <{}>", self.page_url, self.url)
    }
}

impl GistShare {
    /// # Errors
    /// If the GitHub CLI is not installed.
    pub(in super::super) fn new(session_id: &str, env: &Env, page: &SharedPage) -> Result<Self, String> {
        let names: &[&str] = if cfg!(windows) { &["gh.exe"] } else { &["gh"] };
        let gh = names.iter().find_map(|name| env.find_program(name)).ok_or_else(|| {
            "there is no GitHub CLI (gh) to share with; install it from https://cli.github.com and run gh auth \
             login, or write a page with /export"
                .to_owned()
        })?;
        let viewer_url = env.get("PI_SHARE_VIEWER_URL").filter(|url| !url.is_empty());
        let viewer_url = viewer_url.unwrap_or_else(|| VIEWER_URL.to_owned());
        Ok(Self { session_id: session_id.to_owned(), gh, viewer_url, page: Arc::clone(&page.0) })
    }

    /// Checks the session whose tree is the `answer`, or uploads it once the user has decided about secrets.
    ///
    /// # Errors
    /// Why the session is not shared.
    pub(in super::super) async fn step(
        &self,
        state: &SessionState,
        answer: impl Future<Output = Result<Reply, SessionError>>,
        secrets: Option<Secrets>,
    ) -> Result<ShareStep, String> {
        let tree = match answer.await {
            Ok(Reply::Tree(tree)) => tree,
            Ok(_) => return Err("the session gave no tree".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        match secrets {
            None => self.check((state, tree)).await.map(ShareStep::Checked),
            Some(secrets) => self.upload((state, tree), secrets).await.map(ShareStep::Uploaded),
        }
    }

    /// Finds secrets in the page, and whether `gh` has an account. Nothing is sent.
    async fn check(&self, (state, tree): (&SessionState, SessionTree)) -> Result<SecretReport, String> {
        self.check_session(state, &tree)?;
        let (code, said) = self.run(vec!["auth".into(), "status".into()]).await?;
        if code != 0 {
            return Err(format!("gh has no account on GitHub; run gh auth login first{}", quoted(&said)));
        }
        let source = source(state, tree);
        let look = move || source.secrets(ExportFormat::Html);
        worker::run("secrets", look).await.map_err(|error| error.to_string())
    }

    /// Creates the gist.
    async fn upload(
        &self,
        (state, tree): (&SessionState, SessionTree),
        secrets: Secrets,
    ) -> Result<Gist, String> {
        self.check_session(state, &tree)?;
        let source = source(state, tree);
        let write = move || -> io::Result<TempDir> {
            let folder = tempfile::Builder::new().prefix("pi-share-").tempdir()?;
            let page = folder.path().join("session.html");
            source.write_file(ExportFormat::Html, secrets, 0, &page, ExistingFile::Keep)?;
            Ok(folder)
        };
        let written = worker::run("share", write).await.map_err(|error| error.to_string())?;
        let folder = written.map_err(|error| format!("cannot write the page to be uploaded: {error}"))?;
        let page = folder.path().join("session.html");
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
        let _removed = SharedPage(Arc::clone(&self.page));
        let args = vec!["gist".into(), "create".into(), "--public=false".into(), page.into()];
        let (code, said) = self.run(args).await?;
        if code != 0 {
            return Err(format!("gh created no gist{}", quoted(&said)));
        }
        self.created(&said).ok_or_else(|| format!("gh gave no address of the gist{}", quoted(&said)))
    }

    /// The gist whose address is the last one in what `gh` said.
    fn created(&self, said: &str) -> Option<Gist> {
        let url = said.split_whitespace().rev().find(|word| word.starts_with("https://"))?;
        let id = url.trim_end_matches('/').rsplit('/').next()?;
        let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        is_id.then(|| Gist { page_url: format!("{}#{id}", self.viewer_url), url: url.to_owned() })
    }

    fn check_session(&self, state: &SessionState, tree: &SessionTree) -> Result<(), String> {
        // Without an entry the tree belongs to no session.
        if !has_messages(tree) {
            return Err("there is nothing to share yet".to_owned());
        }
        let is_same = self.session_id == state.id && self.session_id == tree.session_id();
        if is_same { Ok(()) } else { Err(OTHER_SESSION.to_owned()) }
    }

    /// The exit code of `gh`, and what it said, without escapes.
    async fn run(&self, args: Vec<std::ffi::OsString>) -> Result<(i32, String), String> {
        let set = |name: &str| (name.into(), Some("1".into()));
        let command = Command {
            program: self.gh.clone(),
            args,
            // It must not matter which repository pi works in.
            cwd: std::env::temp_dir(),
            env: ["GH_PROMPT_DISABLED", "GH_NO_UPDATE_NOTIFIER", "NO_COLOR"].map(set).to_vec(),
            timeout: None,
        };
        let cannot_run = |error: io::Error| format!("cannot run {}: {error}", self.gh.display());
        let mut running = Running::start(&command, CancellationToken::new()).map_err(cannot_run)?;
        let mut said = Vec::new();
        loop {
            match running.next().await {
                Event::Output(chunk) => {
                    said.extend_from_slice(&chunk);
                    said.drain(..said.len().saturating_sub(MAX_SAID_BYTES));
                }
                Event::Ended(End::Exited(code)) => {
                    let said = String::from_utf8_lossy(&said);
                    return Ok((code, without_escapes(&said).into_owned()));
                }
                Event::Ended(End::TimedOut { .. } | End::Cancelled) => {
                    return Err("gh was stopped".to_owned());
                }
            }
        }
    }
}

/// The end of an error: what `gh` said, on one line.
fn quoted(said: &str) -> String {
    let said = mask_secrets(said).split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = said.chars().take(MAX_SHOWN_CHARS).collect();
    let cut = if shown.len() < said.len() { "…" } else { "" };
    if shown.is_empty() { shown } else { format!("; gh says: {shown}{cut}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_the_gist_is_the_last_one_that_is_named() {
        let check = |said: &str, expected: Option<(&str, &str)>| {
            let viewer_url = "https://viewer.test/s/".to_owned();
            let share = GistShare {
                session_id: String::new(),
                gh: PathBuf::new(),
                viewer_url,
                page: PlaceOfPage::default(),
            };
            let expected =
                expected.map(|(page_url, url)| Gist { page_url: page_url.to_owned(), url: url.to_owned() });
            assert_eq!(share.created(said), expected, "{said}");
        };
        let gist = ("https://viewer.test/s/#ab12", "https://gist.github.com/me/ab12");
        check("https://gist.github.com/me/ab12\n", Some(gist));
        check("- Creating gist…\n✓ See https://docs.test\nhttps://gist.github.com/me/ab12\r\n", Some(gist));
        let enterprise = ("https://viewer.test/s/#ab12", "https://git.corp.test/gist/ab12/");
        check("https://git.corp.test/gist/ab12/", Some(enterprise));
        for nothing in ["", "✓ Created", "https://", "https://gist.github.com/me/a?b#c", "ftp://x/ab12"] {
            check(nothing, None);
        }
    }

    #[test]
    fn what_gh_says_is_repeated_on_one_line_and_in_part() {
        assert_eq!(quoted(" \n"), "");
        assert_eq!(quoted("X Failed\n  to log in\n"), "; gh says: X Failed to log in");
        assert_eq!(quoted(&"é ".repeat(900)).chars().count(), "; gh says: ".len() + MAX_SHOWN_CHARS + 1);
    }
}
