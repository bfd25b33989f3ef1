//! Writes a session file of any length, to see how pi copes with it:
//! `cargo run --release --example long_session -- FILE [MESSAGES] [BYTES PER MESSAGE] [--plain]`.
//!
//! `--plain` leaves out branches, compactions and images, so that every message is part of
//! the next request.
#![expect(clippy::print_stderr, reason = "it reports what was wrong with its arguments")]

use std::path::Path;
use std::process::ExitCode;

#[path = "../tests/it/support/long_session.rs"]
mod long_session;

use long_session::LongSession;

fn main() -> ExitCode {
    let (flags, values): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let number = |at: usize, default| values.get(at).map_or(Ok(default), |text| text.parse());
    let (Some(path), Ok(n_messages), Ok(message_bytes)) =
        (values.first(), number(1, 10_000), number(2, 3_000))
    else {
        eprintln!("usage: long_session FILE [MESSAGES] [BYTES PER MESSAGE] [--plain]");
        return ExitCode::FAILURE;
    };
    let size = if flags.iter().any(|flag| flag == "--plain") {
        LongSession::plain(n_messages, message_bytes)
    } else {
        LongSession::new(n_messages, message_bytes)
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    match size.write(Path::new(path), "long", &cwd.to_string_lossy()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
