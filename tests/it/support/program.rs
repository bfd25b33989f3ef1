//! Runs the program without a terminal.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use super::pty::TestHome;

/// The program in the project of `home`, with an empty environment and nothing on standard input.
pub(crate) fn pi(home: &TestHome, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).stdin(Stdio::null()).args(args);
    command
}

/// Runs it off the server's threads, with `piped` on its standard input; also returns its
/// standard error.
pub(crate) async fn run(mut command: Command, piped: Option<&'static str>) -> (Output, String) {
    let output = tokio::task::spawn_blocking(move || {
        let Some(piped) = piped else { return command.output().unwrap() };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(piped.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    (output, told)
}
