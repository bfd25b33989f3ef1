//! Crashes of pi: the record of every panic, the line about it, and the notice at the next start.
//!
//! The panic hook is the process's, so what it needs of the front end that runs is static.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc::UnboundedSender;

use crate::config::{Crash, CrashContext, CrashLog, Dirs};
use crate::session::{Services, SessionHandle};
use crate::util::clock::Clock;
use crate::util::runtime;

use super::exit;
use super::output::write_err;

/// Maximum wait for the state of the session, which the thread that panicked may have locked.
const STATE_LIMIT: Duration = Duration::from_millis(200);

/// What the hook needs of the front end. Never locked during other work.
static FRONT: Mutex<Front> = Mutex::new(Front { context: None, interface: None });

struct Front {
    context: Option<Arc<dyn Fn() -> CrashContext + Send + Sync>>,
    interface: Option<Interface>,
}

/// Where panics of other threads than the interface's are shown.
struct Interface {
    thread: ThreadId,
    panics: UnboundedSender<String>,
}

fn front() -> MutexGuard<'static, Front> {
    FRONT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records every panic of this process from now on, of any thread and task, and prints one line about it on
/// standard error instead of Rust's report, or shows it in the interface if there is one.
pub fn watch_crashes(dirs: &Dirs, clock: Clock) {
    let log = CrashLog::new(dirs.crash_log_file());
    let file = dirs.display(log.path());
    panic::set_hook(Box::new(move |panic| on_panic(&log, &file, &clock, panic)));
}

/// Names the session in records of crashes.
pub(super) fn watch_session(handle: &SessionHandle) {
    let state = handle.reader();
    let context = move || {
        let state = state();
        let session_file = state.path.clone().filter(|_| state.on_disk);
        CrashContext { session_file, cwd: state.cwd.clone() }
    };
    front().context = Some(Arc::new(context));
}

/// Runs in the panic hook, where another panic would abort the process.
fn on_panic(log: &CrashLog, file: &str, clock: &Clock, panic: &PanicHookInfo<'_>) {
    if runtime::is_starting() {
        return;
    }
    let crash = Crash::of(panic);
    let context = context();
    let interface = interface_elsewhere();
    let is_shown = interface.is_some();
    let recorded = log.record(env!("CARGO_PKG_VERSION"), &crash, &context, is_shown, clock.now_ms());
    let message = on_one_line(&crash.message);
    let with = match &recorded {
        Ok(()) => format!("please report it with {file}"),
        Err(error) => format!("please report it; it cannot be recorded in {file}: {error}"),
    };
    if let Some(panics) = interface
        && panics.send(format!("{message}; {with}")).is_ok()
    {
        return;
    }
    write_err(&format!("pi: internal error: {message}; {with}"));
    if recorded.is_err() {
        write_err(&crash.stack);
    }
}

/// The interface, if it shows panics of this thread.
fn interface_elsewhere() -> Option<UnboundedSender<String>> {
    let front = front();
    let interface = front.interface.as_ref()?;
    let is_shown = interface.thread != thread::current().id() && !interface.panics.is_closed();
    is_shown.then(|| interface.panics.clone())
}

/// The session and its directory. Read on another thread: the one that panicked may be changing the state.
fn context() -> CrashContext {
    let without_session =
        || CrashContext { session_file: None, cwd: std::env::current_dir().unwrap_or_default() };
    let Some(context) = front().context.clone() else { return without_session() };
    let (done, read) = mpsc::channel();
    let work = move || drop(done.send(context()));
    drop(thread::Builder::new().name("crash".to_owned()).spawn(work));
    read.recv_timeout(STATE_LIMIT).unwrap_or_else(|_| without_session())
}

fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The exit code of `work`, that of a failure if it panics: what follows still saves and writes what is left.
pub(super) async fn caught(work: impl Future<Output = ExitCode>) -> ExitCode {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| ExitCode::from(exit::FAILED))
}

/// An interface, which shows panics of other threads while it lives. If one of its own thread ends it, the
/// user reads how to go on; it is dropped after the terminal is restored.
pub(super) struct InterfaceWatch(());

impl InterfaceWatch {
    /// Panics of other threads than this one go to `panics`.
    pub(super) fn start(panics: UnboundedSender<String>) -> Self {
        front().interface = Some(Interface { thread: thread::current().id(), panics });
        Self(())
    }
}

impl Drop for InterfaceWatch {
    fn drop(&mut self) {
        front().interface = None;
        if thread::panicking() {
            write_err("pi: to resume the session with your draft: pi --continue");
        }
    }
}

/// A notice about the latest crash that was not shown before; marks it as shown. Blocks.
pub(super) fn take_crash_notice(services: &Services) -> Option<String> {
    let log = CrashLog::new(services.dirs.crash_log_file());
    let crash = log.take_unreported(services.clock.now_ms())?;
    let when = services.clock.zone().weekday_time(crash.at_ms);
    let file = services.dirs.display(log.path());
    let message = on_one_line(&crash.message);
    Some(format!("pi crashed on {when}: {message}. Please report it with {file}."))
}
