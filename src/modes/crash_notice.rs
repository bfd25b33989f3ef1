//! Crashes of the interfaces: the record, the note when one happens, and the notice at the next start.

use crate::config::{CrashLog, CrashContext};
use crate::session::{Services, SessionHandle};

use super::output::write_err;

/// Prints what to do when a panic ends the interface; it is dropped after the terminal is
/// restored and the panic printed.
pub(super) struct PanicNote;

impl Drop for PanicNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            write_err(
                "pi stopped because of an internal error; please report it. crashes.json in pi's folder has it too.\n\
                 To resume the session with your draft: pi --continue",
            );
        }
    }
}

/// Records a panic of the calling thread, for the next start and for a report.
pub(super) fn record_panics(services: &Services, handle: &SessionHandle) {
    let log = CrashLog::new(services.dirs.crash_log_file());
    let handle = handle.clone();
    log.record_panics(env!("CARGO_PKG_VERSION"), services.clock.clone(), move || {
        let state = handle.state();
        let session_file = state.path.clone().filter(|_| state.on_disk);
        CrashContext { session_file, cwd: state.cwd.clone() }
    });
}

/// A notice about the latest crash that was not shown before; marks it as shown. Blocks.
pub(super) fn take_crash_notice(services: &Services) -> Option<String> {
    let log = CrashLog::new(services.dirs.crash_log_file());
    let crash = log.take_unreported(services.clock.now_ms())?;
    let when = services.clock.zone().weekday_time(crash.at_ms);
    let file = services.dirs.display(log.path());
    Some(format!("pi crashed on {when}: {}. Please report it with {file}.", crash.message))
}
