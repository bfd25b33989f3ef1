//! Names of the files kept beside a session file.

use std::path::{Path, PathBuf};

/// The hidden file beside the session at `session` whose name ends in `ending`; `None`
/// for a session that is not saved.
pub(super) fn path(session: Option<&Path>, ending: &str) -> Option<PathBuf> {
    let session = session?;
    let name = session.file_name()?.to_string_lossy();
    Some(session.with_file_name(format!(".{name}{ending}")))
}
