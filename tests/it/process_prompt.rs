//! Writing prompts in a terminal: completion, earlier prompts, images.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use image::{ImageFormat, RgbImage};
use ratatui::layout::Size;
use serde_json::Value;

use crate::support::chat;
use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};

const SIZE: Size = Size { width: 80, height: 24 };

fn quit(pty: Pty) {
    pty.wait_idle();
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_earlier_processes_come_back_by_arrow_and_by_search() {
    let replies = [Reply::sse(chat::text("First answer.")), Reply::sse(chat::text("Second answer."))];
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("tell me of lighthouses\r");
    pty.wait_text("First answer.");
    pty.wait_idle();
    pty.keys("use the key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrAA\r");
    pty.wait_text("Second answer.");
    quit(pty);
    let file = fs::read_to_string(home.agent().join("prompt-history.jsonl")).unwrap();
    assert!(file.contains("lighthouses") && !file.contains("sk-ant-api03"), "{file}");

    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("\x12");
    pty.wait_text("Earlier prompts in");
    pty.keys("lightho");
    pty.wait_text("> lightho");
    pty.keys("\r");
    let rows = pty.wait("the prompt in the editor", |rows| {
        rows.iter().any(|row| row.starts_with("tell me of lighthouses"))
    });
    assert!(!rows.iter().any(|row| row.contains("Earlier prompts in")), "{rows:#?}");
    // Undo brings the draft back, and the arrow keys reach the same prompts.
    pty.keys("\x1f");
    pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.starts_with("tell me of")));
    pty.keys("\x1b\x1f");
    pty.wait("the prompt again", |rows| rows.iter().any(|row| row.starts_with("tell me of")));
    pty.keys("\x1f");
    pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.starts_with("tell me of")));
    pty.keys("\x1b[A");
    pty.wait_text("[masked: ");
    pty.keys("\x1b[A");
    pty.wait("the older prompt", |rows| rows.iter().any(|row| row.starts_with("tell me of lighthouses")));
    pty.keys("\x03");
    quit(pty);
}

#[test]
fn files_and_arguments_are_completed_while_the_window_changes() {
    let home = TestHome::new();
    for path in ["src/lighthouse.rs", "src/my file.rs", "node_modules/lighthouse.js", "图/灯塔.md"] {
        let path = home.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::write(home.project().join(".gitignore"), "node_modules\n").unwrap();
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("see @lighth");
    let rows = pty.wait_text("→ src/lighthouse.rs");
    assert!(!rows.iter().any(|row| row.contains("node_modules")), "{rows:#?}");
    pty.resize(Size { width: 40, height: 20 });
    // Until then the terminal shows what pi drew before.
    pty.wait("the list closed", |rows| !rows.iter().any(|row| row.contains("→ src/lighthouse.rs")));
    pty.keys("\t");
    pty.wait_text("see @src/lighthouse.rs");
    pty.keys("and @灯");
    pty.wait_text("→ 图/灯塔.md");
    pty.keys("\t");
    pty.wait_text("and @图/灯塔.md");
    pty.keys("\x03");
    pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.contains("@图")));
    pty.keys("!cat src/my\t");
    pty.wait_text(r"!cat src/my\ file.rs");
    pty.keys("\x03");
    pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.contains("!cat")));
    pty.keys("/thinking hi");
    pty.wait_text("→ high");
    pty.keys("\x03");
    quit(pty);
}

#[test]
fn keys_that_arrive_together_complete_like_keys_one_by_one() {
    let home = TestHome::new();
    for path in ["src/lighthouse.rs", "src/mole.rs", "odd/x;touch y"] {
        let path = home.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("see @lighth\tand src/mo\t, @src/li\tok");
    pty.wait_text("see @src/lighthouse.rs and src/mole.rs , @src/lighthouse.rs ok");
    pty.keys("\x03");
    pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.contains("@src")));
    pty.keys("!cat odd/x\t\r");
    pty.wait_text(r"$ cat odd/x\;touch\ y");
    pty.wait_idle();
    assert!(!home.project().join("y").exists());
    quit(pty);
}

/// A command that prints a key may want to say something, or to ask for a password.
#[tokio::test(flavor = "multi_thread")]
async fn command_for_a_key_does_not_get_the_terminal() {
    let server = SseServer::start([Reply::sse(chat::text("An answer."))]).await;
    let home = TestHome::with_server(server.url());
    let models = home.agent().join("models.json");
    let command = r"!(echo NOISE > /dev/tty) 2>&- && echo worse || echo kk";
    let text =
        fs::read_to_string(&models).unwrap().replace(r#""key""#, &serde_json::json!(command).to_string());
    fs::write(&models, text).unwrap();
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("hello\r");
    pty.wait_text("An answer.");
    assert!(!pty.text_log().contains("NOISE"), "{}", pty.text_log());
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer kk"));
    quit(pty);
}

#[tokio::test(flavor = "multi_thread")]
async fn user_who_looks_elsewhere_is_notified_when_pi_is_done() {
    let replies = [Reply::sse(chat::text("First answer.")), Reply::sse(chat::text("Second answer."))];
    let server = SseServer::start(replies).await;
    let settings = serde_json::json!({"terminal": {"showTerminalProgress": true}});
    let home = TestHome::with_server(server.url()).settings(&settings);
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("one\r");
    pty.wait_text("First answer.");
    pty.wait_idle();
    pty.keys("\x1b[O");
    pty.keys("two\r");
    pty.wait_text("Second answer.");
    quit(pty_with_focus(pty));
}

/// The program with the focus again, after it was checked what it had written until then.
fn pty_with_focus(pty: Pty) -> Pty {
    pty.wait_idle();
    let log = String::from_utf8_lossy(&pty.log()).into_owned();
    assert_eq!(log.matches("\x1b]9;project is done").count(), 1, "{log:?}");
    let busy = log.matches("\x1b]9;4;3;").count();
    assert_eq!((busy, log.matches("\x1b]9;4;0;").count()), (2, 2), "{log:?}");
    pty.keys("\x1b[I");
    pty
}

/// The content of the only message of the user.
fn content(home: &TestHome) -> Value {
    let entries = home.entries();
    let of_user = |entry: &&Value| entry["message"]["role"] == "user";
    entries.iter().find(of_user).unwrap()["message"]["content"].clone()
}

fn write_image(path: &Path) {
    RgbImage::new(8, 6).save_with_format(path, ImageFormat::Png).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_attached_from_the_clipboard_and_by_dropping_files() {
    let server = SseServer::start([Reply::sse(chat::text("I see."))]).await;
    let home = TestHome::with_server(server.url());
    let bin = home.home().join("bin");
    fs::create_dir(&bin).unwrap();
    write_image(&bin.join("clip.png"));
    let script =
        "#!/bin/sh\ncase \"$*\" in\n--list-types) echo image/png;;\n*) cat \"${0%/*}/clip.png\";;\nesac\n";
    fs::write(bin.join("wl-paste"), script).unwrap();
    fs::set_permissions(bin.join("wl-paste"), fs::Permissions::from_mode(0o755)).unwrap();
    let dropped = home.project().join("my shot.png");
    write_image(&dropped);

    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let env = [("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-test")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
    pty.wait_idle();
    pty.keys("compare \x16");
    pty.wait_text("compare [image #1]");
    pty.keys("with ");
    pty.keys(&format!("\x1b[200~'{}'\x1b[201~", dropped.display()));
    pty.wait_text("with [image #2]");
    pty.wait_text("does not see images: 2 attached");
    pty.keys("and tell\r");
    pty.wait_text("I see.");
    let content = content(&home);
    assert_eq!(content[0]["text"], "compare [image #1] with [image #2] and tell");
    let kinds: Vec<&str> =
        content.as_array().unwrap().iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "image", "image"]);
    quit(pty);
}

/// The session knows more than the editor, for example that there is nothing to compact.
#[test]
fn a_command_that_the_session_refuses_returns_to_the_editor() {
    let home = TestHome::with_server("http://127.0.0.1:1");
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("/compact keep the names of files\r");
    pty.wait_text("there is nothing to compact");
    pty.wait("the line in the editor", |rows| {
        rows.iter().any(|row| row.trim() == "/compact keep the names of files")
    });
    pty.keys("\x03\x04");
    assert!(pty.end().0.success());
}
