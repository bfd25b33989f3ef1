//! Crashes of the interfaces: the record, the note when one happens, and the notice at the next start.

use crate::config::{CrashContext, CrashLog};
use crate::session::{Services, SessionHandle};

use super::output::write_err;

/// Prints what to do when a panic ends the interface; it is dropped after the terminal is
/// restored and the panic printed.
pub(super) struct PanicNote {
    log: CrashLog,
    /// The path of the log's file, for the user.
    file: String,
}

impl PanicNote {
    pub(super) fn new(services: &Services) -> Self {
        let log = CrashLog::new(services.dirs.crash_log_file());
        let file = services.dirs.display(log.path());
        Self { log, file }
    }

    /// Records a panic of the calling thread, for the next start and for a report.
    pub(super) fn record_panics(&self, services: &Services, handle: &SessionHandle) {
        let handle = handle.clone();
        self.log.clone().record_panics(env!("CARGO_PKG_VERSION"), services.clock.clone(), move || {
            let state = handle.state();
            let session_file = state.path.clone().filter(|_| state.on_disk);
            CrashContext { session_file, cwd: state.cwd.clone() }
        });
    }
}

impl Drop for PanicNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            write_err(&panic_note(self.log.has_recorded().then_some(self.file.as_str())));
        }
    }
}

/// The note about a panic, which is recorded in `file`, if it is.
fn panic_note(file: Option<&str>) -> String {
    let with = file.map(|file| format!(" with {file}")).unwrap_or_default();
    format!(
        "pi stopped because of an internal error. Please report it{with}.\n\
         To resume the session with your draft: pi --continue"
    )
}

/// A notice about the latest crash that was not shown before; marks it as shown. Blocks.
pub(super) fn take_crash_notice(services: &Services) -> Option<String> {
    let log = CrashLog::new(services.dirs.crash_log_file());
    let crash = log.take_unreported(services.clock.now_ms())?;
    let when = services.clock.zone().weekday_time(crash.at_ms);
    let file = services.dirs.display(log.path());
    Some(format!("pi crashed on {when}: {}. Please report it with {file}.", crash.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_about_a_panic_names_the_file_only_if_it_was_written() {
        let last = "To resume the session with your draft: pi --continue";
        let note = panic_note(Some("~/.pi/agent/crashes.json"));
        let first =
            "pi stopped because of an internal error. Please report it with ~/.pi/agent/crashes.json.";
        assert_eq!(note, format!("{first}\n{last}"));
        let first = "pi stopped because of an internal error. Please report it.";
        assert_eq!(panic_note(None), format!("{first}\n{last}"));
    }
}
