//! Programs that read or write the clipboard, with limits: they may wait for its owner for ever,
//! and print without end.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::util::os;

/// Longer output is no image that can be sent.
const MAX_BYTES: u64 = 64 << 20;

/// Why a program gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProgramProblem {
    #[error("{0} is not installed")]
    Missing(String),
    #[error("{0} failed")]
    Failed(String),
    #[error("{program} did not answer within {} s", limit.as_secs_f64())]
    Late { program: String, limit: Duration },
    #[error("{0} printed more than 64 MB")]
    TooLong(String),
}

/// Runs `program`, and returns what it prints; with `input`, only writes that to it. Blocks, for
/// `limit` at most.
///
/// # Errors
/// If it cannot be started, fails, or exceeds a limit; then it is killed.
pub(super) fn run(
    program: &str,
    arguments: &[&str],
    input: &str,
    limit: Duration,
) -> Result<Vec<u8>, ProgramProblem> {
    let failed = || ProgramProblem::Failed(program.to_owned());
    let child = detached(program, arguments).and_then(|mut command| {
        let is_read = input.is_empty();
        command.stdin(if is_read { Stdio::null() } else { Stdio::piped() });
        command.stdout(if is_read { Stdio::piped() } else { Stdio::null() });
        command.stderr(Stdio::null()).spawn()
    });
    let child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ProgramProblem::Missing(program.to_owned()),
        _ => failed(),
    })?;
    let leader = child.id();
    let (answer, answered) = mpsc::sync_channel(1);
    let input = input.to_owned();
    // The thread ends with the program.
    let talking = thread::Builder::new().name("clipboard program".to_owned()).spawn(move || {
        answer.send(talk(child, &input)).unwrap_or_default();
    });
    talking.map_err(|_| failed())?;
    match answered.recv_timeout(limit) {
        Ok(Ok(ProgramOutput::Ended(output))) => Ok(output),
        Ok(Ok(ProgramOutput::TooLong)) => Err(ProgramProblem::TooLong(program.to_owned())),
        Ok(Err(_)) => Err(failed()),
        Err(_) => {
            os::kill_group(leader);
            Err(ProgramProblem::Late { program: program.to_owned(), limit })
        }
    }
}

enum ProgramOutput {
    Ended(Vec<u8>),
    TooLong,
}

/// Writes the input, reads the output, and waits for the end.
fn talk(mut child: Child, input: &str) -> io::Result<ProgramOutput> {
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(MAX_BYTES + 1).read_to_end(&mut output)?;
    }
    if output.len() as u64 > MAX_BYTES {
        os::kill_group(child.id());
        child.wait()?;
        return Ok(ProgramOutput::TooLong);
    }
    let status = child.wait()?;
    written?;
    if status.success() { Ok(ProgramOutput::Ended(output)) } else { Err(io::ErrorKind::Other.into()) }
}

/// A program that cannot write to the terminal.
fn detached(program: &str, arguments: &[&str]) -> io::Result<Command> {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    os::detached(Path::new(program), &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn shell(line: &str, input: &str, limit: Duration) -> Result<Vec<u8>, ProgramProblem> {
        run("sh", &["-c", line], input, limit)
    }

    #[test]
    fn output_of_a_program_is_returned_and_failures_are_told_apart() {
        let sh = || "sh".to_owned();
        assert_eq!(shell("echo x; echo y >&2", "", PATIENCE), Ok(b"x\n".to_vec()));
        let text = "äöü \u{1b}]52;c;x\u{7}\n".repeat(20_000);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copied");
        let copy = format!("cat > '{}'", file.display());
        assert_eq!(shell(&copy, &text, PATIENCE), Ok(Vec::new()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
        assert_eq!(shell("cat > /dev/null; exit 1", "x", PATIENCE), Err(ProgramProblem::Failed(sh())));
        assert_eq!(shell("exec 0<&-; exit 0", &text, PATIENCE), Err(ProgramProblem::Failed(sh())));
        let missing = ProgramProblem::Missing("/nowhere/paste".to_owned());
        assert_eq!(run("/nowhere/paste", &[], "", PATIENCE), Err(missing));
    }

    #[test]
    fn program_that_hangs_or_prints_without_end_is_killed() {
        let limit = Duration::from_millis(50);
        let late = ProgramProblem::Late { program: "sh".to_owned(), limit };
        assert_eq!(shell("exec sleep 1000", "", limit), Err(late.clone()));
        assert_eq!(late.to_string(), "sh did not answer within 0.05 s");
        let endless = shell("yes", "", PATIENCE);
        assert_eq!(endless, Err(ProgramProblem::TooLong("sh".to_owned())));
    }
}
