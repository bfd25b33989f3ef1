//! The notice about a crash of an earlier process.

use crate::config::CrashLog;
use crate::session::Services;

/// The latest crash that nobody was told of, in words; it counts as told then. Blocks.
pub(super) fn take_crash_notice(services: &Services) -> Option<String> {
    let log = CrashLog::new(services.dirs.crash_log_file());
    let crash = log.take_untold(services.clock.now_ms())?;
    let when = services.clock.zone().weekday_time(crash.at_ms);
    let file = services.dirs.display(log.path());
    Some(format!("pi crashed on {when}: {}. Please report it with {file}.", crash.message))
}
