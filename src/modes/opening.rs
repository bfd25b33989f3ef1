//! Opens the session of a front end.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::session::{self, Deltas, OpenError, OpenSession, Services, SessionEvents, SessionHandle};

use super::crash_notice::watch_session;
use super::output::write_err;

/// How long opening may take without an explanation.
const SLOW_OPENING: Duration = Duration::from_secs(5);

/// Opens a session that `runtime` runs, and prints a message if that takes long: its directory or those of pi
/// may be on a disk that does not respond.
///
/// # Errors
/// As for [`session::start`].
pub async fn open_session(
    services: &Arc<Services>,
    cwd: PathBuf,
    open: OpenSession,
    deltas: Deltas,
    runtime: &Handle,
) -> Result<(SessionHandle, SessionEvents), OpenError> {
    let mut starting = pin!(session::start(Arc::clone(services), cwd, open, deltas));
    let mut opening = poll_fn(|cx| {
        let _context = runtime.enter();
        starting.as_mut().poll(cx)
    });
    let opened = match tokio::time::timeout(SLOW_OPENING, &mut opening).await {
        Ok(opened) => opened,
        Err(_) => {
            write_err(
                "pi: opening the session takes long; if a disk with this directory, ~/.pi or the sessions does not respond, \
                 press ctrl+c and check it",
            );
            opening.await
        }
    };
    opened.inspect(|(handle, _)| watch_session(handle))
}
