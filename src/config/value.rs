//! Config values: literal texts, templates with variables, or commands.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::util::os;
use crate::util::process::Group;

/// Time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the output of a command that has ended is waited for: a process that it left
/// running may hold the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Maximum output that is read.
const OUTPUT_LIMIT_BYTES: u64 = 64 << 10;

/// The command in a value of the form `!command`.
pub(super) fn command(value: &str) -> Option<&str> {
    value.strip_prefix('!')
}

/// The first line of a shell command's output; at most 10 s. Blocks.
///
/// # Errors
/// The reason for the failure, which never contains output of the command.
pub(super) fn output_of(command: &str) -> Result<String, String> {
    output_within(command, COMMAND_TIMEOUT)
}

fn output_within(command: &str, timeout: Duration) -> Result<String, String> {
    // Without a terminal: its messages would appear in the middle of the screen, and a question that it asks there
    // could not be answered.
    let shell = os::detached(Path::new("sh"), &["-c".into(), command.into()]);
    let mut shell = shell.map_err(|error| format!("cannot run its command: {error}"))?;
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().map_err(|error| format!("cannot run its command: {error}"))?;
    let stdout = child.stdout.take().expect("standard output is piped above");
    // The program's exit ends it too.
    let group = Group::register(Some(child.id()));
    let (sender, ended) = mpsc::channel();
    let bytes = Arc::new(Mutex::new(Vec::new()));
    // They end with the command and what it left running, at the latest when its group is killed below.
    let collecting = {
        let (bytes, sender) = (Arc::clone(&bytes), sender.clone());
        start_thread(move || {
            collect(stdout.take(OUTPUT_LIMIT_BYTES), &bytes);
            drop(sender.send(Ended::Output));
        })
    };
    let waiting = start_thread(move || drop(sender.send(Ended::Command(child.wait()))));
    if let Err(error) = collecting.and(waiting) {
        group.kill();
        return Err(format!("cannot read the output of its command: {error}"));
    }
    let late = || format!("its command ran longer than {} s", timeout.as_secs_f64());
    let status = match status_of(&ended, timeout) {
        Some(status) => status.map_err(|error| format!("cannot wait for its command: {error}"))?,
        None => {
            group.kill();
            return Err(late());
        }
    };
    let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
    if !status.success() {
        return Err(format!("its command failed ({status})"));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// What of a command has ended.
enum Ended {
    Command(io::Result<ExitStatus>),
    /// Its standard output, which a process that it left running may hold open.
    Output,
}

/// The status of a command that has ended, with its output; `None` if it runs longer than `timeout`.
fn status_of(ended: &mpsc::Receiver<Ended>, timeout: Duration) -> Option<io::Result<ExitStatus>> {
    let mut status = None;
    let mut is_output_complete = false;
    loop {
        let wait = if status.is_none() { timeout } else { OUTPUT_GRACE };
        match ended.recv_timeout(wait) {
            Ok(Ended::Command(ended)) => status = Some(ended),
            Ok(Ended::Output) => is_output_complete = true,
            Err(_) => return status,
        }
        if is_output_complete && status.is_some() {
            return status;
        }
    }
}

fn start_thread(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("key-command".to_owned()).spawn(run).map(drop)
}

fn collect(mut from: impl io::Read, bytes: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(n_read @ 1..) = from.read(&mut piece) {
        bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..n_read]);
    }
}

/// Replaces `$NAME` and `${NAME}` by variables; `$$` and `$!` are `$` and `!`.
///
/// # Errors
/// The name of a variable that is not set.
pub(super) fn expand(template: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(['$', '!']) {
            out.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            continue;
        }
        let (name, after) = match rest.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(split) => split,
            None => {
                let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if name.is_empty() {
            out.push('$');
        } else {
            let value = variable(name);
            out.push_str(&value.ok_or_else(|| format!("the environment variable {name} is not set"))?);
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_variables() {
        let variable = |name: &str| match name {
            "A" => Some("x".to_owned()),
            "B_2" => Some("y".to_owned()),
            _ => None,
        };
        let check = |template: &str, expected: Result<&str, &str>| {
            let expanded = expand(template, &variable);
            assert_eq!(expanded.as_deref().map_err(String::as_str), expected, "{template}");
        };
        check("plain", Ok("plain"));
        check("$A-${B_2}!", Ok("x-y!"));
        check("$$A $!", Ok("$A !"));
        check("cost 5$", Ok("cost 5$"));
        check("$NONE", Err("the environment variable NONE is not set"));
    }

    #[test]
    fn a_command_gives_its_first_line_or_a_reason() {
        let check = |command: &str, expected: Result<&str, &str>| {
            let output = output_within(command, Duration::from_secs(20));
            assert_eq!(output.as_deref().map_err(String::as_str), expected, "{command}");
        };
        check("echo ' key '; echo more; echo said >&2", Ok("key"));
        check("echo canary; exit 3", Err("its command failed (exit status: 3)"));
    }

    #[test]
    fn key_counts_although_a_process_in_the_background_holds_the_output_open() {
        let output = output_within("sleep 20 & echo key", Duration::from_secs(10));
        assert_eq!(output.as_deref(), Ok("key"));
    }

    #[test]
    fn a_command_that_hangs_is_given_up_with_what_it_started() {
        let late = output_within("sleep 1000 & sleep 1000", Duration::from_millis(50));
        assert_eq!(late, Err("its command ran longer than 0.05 s".to_owned()));
    }
}
