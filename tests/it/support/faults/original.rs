//! The original program as the second one on a session, where it is installed.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable with the path of the original's bundle (`cli.js`).
pub(crate) const ORIGINAL: &str = "PI_ORIGINAL";

/// The bundle, if the variable names one and node can be run.
pub(crate) fn bundle() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the harness is told by its caller")]
    let path = PathBuf::from(std::env::var_os(ORIGINAL)?);
    let has_node = Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok();
    (has_node && path.is_file()).then_some(path)
}

/// Lets the original open a session and name it. Returns what it answered.
pub(crate) fn name_session(bundle: &Path, session: &Path, cwd: &Path, name: &str) -> String {
    let mut command = Command::new("node");
    command.arg(bundle).args(["--mode", "rpc", "--session"]).arg(session).current_dir(cwd);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let requests = [
        serde_json::json!({ "id": "1", "type": "set_session_name", "name": name }),
        serde_json::json!({ "id": "2", "type": "get_messages" }),
    ];
    for request in requests {
        writeln!(stdin, "{request}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
