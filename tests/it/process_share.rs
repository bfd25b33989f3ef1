//! `/share` with a GitHub CLI that this test wrote.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ratatui::layout::Size;
use rustix::process::Signal;

use crate::support::chat;
use crate::support::lifeline::Lifeline;
use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};

const SIZE: Size = Size { width: 100, height: 30 };

/// Looks like a token of GitHub.
fn token() -> String {
    ["gh", "p_", "q7Zk2Xw9Lm4Tb8Rv3Ns6q7Zk2Xw9Lm4Tb8Rv"].concat()
}

/// Puts a `gh` before all others, which writes its arguments to `gh.log`. `status` runs for `gh auth status`,
/// `create` for `gh gist create`.
fn install_gh(home: &TestHome, status: &str, create: &str) {
    let folder = home.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\ncd {:?}\necho \"$@\" >> gh.log\n\
         case \"$1 $2\" in\n'auth status')\n{status}\n;;\n'gist create')\n{create}\n;;\nesac\n",
        home.home()
    );
    fs::write(folder.join("gh"), script).unwrap();
    fs::set_permissions(folder.join("gh"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The same with an upload that does not end.
fn install_endless_gh(home: &TestHome) -> Lifeline {
    let life = Lifeline::new(home.home().join("life"));
    install_gh(home, "", "exec 3> life; echo up >&3; exec sleep 1000");
    life
}

fn gh_log(home: &TestHome) -> String {
    fs::read_to_string(home.home().join("gh.log")).unwrap_or_default()
}

/// A user with a model that answers once.
async fn user() -> (SseServer, TestHome) {
    let server = SseServer::start([Reply::sse(chat::text("Noted."))]).await;
    let home = TestHome::with_server(server.url());
    (server, home)
}

/// pi in a session with this prompt and this search path.
fn started(home: &TestHome, prompt: &str, path: &str, args: &[&str]) -> Pty {
    let env = [("PATH", path), ("PI_SHARE_VIEWER_URL", "https://viewer.test/")];
    let pty = Pty::start_in(home, &home.project(), SIZE, args, &env);
    if args.is_empty() {
        pty.wait_idle();
    } else {
        pty.wait_text("Type a prompt, or /help.");
    }
    pty.keys(&format!("{prompt}\r"));
    pty.wait_text("Noted.");
    pty
}

fn path(home: &TestHome) -> String {
    format!("{}/bin:/usr/bin:/bin", home.home().display())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_shared_as_a_secret_gist_after_a_question() {
    let (_server, home) = user().await;
    let create = "cp \"$4\" shared.html; echo '- Creating gist...' >&2; echo https://gist.github.com/me/ab12";
    install_gh(&home, "echo fine", create);
    let pty = started(&home, "look at this", &path(&home), &[]);
    pty.wait_idle();
    // Enter alone shares nothing.
    pty.keys("/share\r");
    pty.wait_text("Share this session?");
    pty.wait_text("its address can read it until you delete it.");
    pty.keys("\r");
    pty.wait("the question to close", |rows| !rows.iter().any(|row| row.contains("Share this session")));
    assert_eq!(gh_log(&home), "auth status\n");
    pty.keys("/share\r");
    pty.wait_text("Share it");
    pty.keys("\x1b[B\r");
    pty.wait_text("Share URL: https://viewer.test/#ab12");
    pty.wait_text("Gist: https://gist.github.com/me/ab12");
    // No notice takes their place.
    pty.keys("/unpin\r");
    pty.wait_text("No message is pinned.");
    pty.wait_text("Gist: https://gist.github.com/me/ab12");
    let log = gh_log(&home);
    let created = log.lines().last().unwrap().strip_prefix("gist create --public=false ").unwrap();
    assert!(created.ends_with("/session.html"), "{log}");
    assert!(!std::path::Path::new(created).exists(), "the page is left behind");
    let page = fs::read_to_string(home.home().join("shared.html")).unwrap();
    assert!(page.contains("look at this") && page.contains("Noted."), "{page}");
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_in_what_is_shared_if_the_user_wants_it() {
    let (_server, home) = user().await;
    install_gh(&home, "", "cp \"$4\" shared.html; echo https://gist.github.com/ab12");
    let pty = started(&home, &format!("use {}", token()), &path(&home), &[]);
    pty.wait_idle();
    pty.keys("/share\r");
    pty.wait_text("1 × GitHub token");
    pty.keys("\x1b[B\r");
    pty.wait_text("Share URL: https://viewer.test/#ab12");
    let page = fs::read_to_string(home.home().join("shared.html")).unwrap();
    assert!(!page.contains(&token()) && page.contains("[masked: GitHub token]"));
    pty.keys("\x04");
    pty.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_ends_an_upload_and_the_program_that_uploads() {
    let (_server, home) = user().await;
    let life = install_endless_gh(&home);
    let pty = started(&home, "look", &path(&home), &[]);
    pty.wait_idle();
    pty.keys("/share\r");
    pty.wait_text("Share it");
    pty.keys("\x1b[B\r");
    pty.wait_text("gh uploads the page");
    life.line().await;
    pty.keys("\x1b");
    pty.wait_text("Sharing was cancelled.");
    life.ended().await;
    assert_eq!(fs::read_dir(home.temp()).unwrap().count(), 0, "the page is left behind");
    pty.keys("\x04");
    pty.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_the_program_ends_an_upload_and_removes_the_page() {
    for signal in [Signal::TERM, Signal::HUP] {
        let (_server, home) = user().await;
        let life = install_endless_gh(&home);
        let pty = started(&home, "look", &path(&home), &[]);
        pty.wait_idle();
        pty.keys("/share\r");
        pty.wait_text("Share it");
        pty.keys("\x1b[B\r");
        life.line().await;
        pty.signal(signal);
        pty.end();
        life.ended().await;
        assert_eq!(fs::read_dir(home.temp()).unwrap().count(), 0, "{signal:?}: the page is left behind");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_session_from_being_shared_is_said() {
    let refused = |pty: &Pty, why: &str| {
        pty.keys("/share\r");
        pty.wait_text(why);
    };
    let (_server, home) = user().await;
    let empty = home.home().join("empty");
    fs::create_dir(&empty).unwrap();
    let pty = started(&home, "look", &empty.display().to_string(), &[]);
    refused(&pty, "there is no GitHub CLI (gh) to share with");
    pty.keys("\x04");
    pty.end();

    let (_server, home) = user().await;
    install_gh(&home, "echo 'You are not logged in' >&2; exit 1", "");
    let pty = started(&home, "look", &path(&home), &[]);
    refused(&pty, "run gh auth login first; gh says: You are not logged in");
    install_gh(&home, "", "echo 'HTTP 422: too large' >&2; exit 1");
    pty.keys("/share\r");
    pty.wait_text("Share it");
    pty.keys("\x1b[B\r");
    pty.wait_text("gh created no gist; gh says: HTTP 422: too large");
    install_gh(&home, "", "echo Created.");
    pty.keys("/share\r");
    pty.wait_text("Share it");
    pty.keys("\x1b[B\r");
    pty.wait_text("gh gave no address of the gist; gh says: Created.");
    pty.keys("/new\r");
    pty.wait_idle();
    pty.keys("/name nothing\r");
    pty.wait_text("is now called");
    refused(&pty, "there is nothing to share yet");
    pty.keys("\x04");
    pty.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn screen_reader_asks_by_numbers_before_it_shares() {
    let (_server, home) = user().await;
    let life = install_endless_gh(&home);
    let pty = started(&home, "look", &path(&home), &["--screen-reader"]);
    pty.wait_text("Done. Your turn.");
    pty.keys("/share\r");
    pty.wait_text("2. Share it");
    pty.keys("2\r");
    pty.wait_text("Uploading. ctrl+c cancels.");
    life.line().await;
    pty.keys("\x03");
    pty.wait_text("Sharing was cancelled.");
    life.ended().await;
    install_gh(&home, "", "echo https://gist.github.com/ab12");
    pty.keys("/share\r");
    pty.wait_log("the question again", |log| log.matches("2. Share it").count() == 2);
    pty.keys("2\r");
    pty.wait_text("Share URL: https://viewer.test/#ab12");
    pty.keys("/quit\r");
    assert!(pty.end().0.success());
}
