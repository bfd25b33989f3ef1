//! Queued messages on disk, beside their session: a crash loses none of them.
//!
//! The file is replaced at every change and removed when nothing waits. What it
//! still holds when the session is opened was never delivered; it waits there
//! until somebody takes it back.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::command::TakenQueue;
use super::state::QueueView;

/// The queue file of one session.
#[derive(Debug, Default)]
pub(super) struct QueueFile {
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
    /// Left over from the process before.
    left_over: QueueView,
    /// What the file holds.
    written: QueueView,
}

impl QueueFile {
    /// The file beside the session at `session`, with what was left over in it.
    pub(super) fn open(session: Option<&Path>) -> Self {
        let path = session.and_then(|session| {
            let name = session.file_name()?.to_string_lossy();
            Some(session.with_file_name(format!(".{name}.queue")))
        });
        let left_over = path.as_deref().map(read).unwrap_or_default();
        Self { path, written: left_over.clone(), left_over }
    }

    /// Makes the file hold what is left over and what waits now. Blocks, briefly.
    ///
    /// # Errors
    /// When it cannot be written; the queue in memory is not affected.
    pub(super) fn save(&mut self, queue: &QueueView) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let wanted = QueueView {
            steering: [self.left_over.steering.as_slice(), &queue.steering].concat(),
            follow_up: [self.left_over.follow_up.as_slice(), &queue.follow_up].concat(),
        };
        if wanted == self.written {
            return Ok(());
        }
        if wanted.is_empty() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        } else {
            write(path, &wanted)?;
        }
        self.written = wanted;
        Ok(())
    }

    /// Hands over what was left, which the next [`Self::save`] forgets.
    pub(super) fn take_left_over(&mut self) -> TakenQueue {
        let QueueView { steering, follow_up } = std::mem::take(&mut self.left_over);
        TakenQueue { steering, follow_up }
    }
}

fn write(path: &Path, queue: &QueueView) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new().prefix(".queue-").tempfile_in(folder)?;
    let value = json!({ "steering": queue.steering, "followUp": queue.follow_up });
    beside.write_all(value.to_string().as_bytes())?;
    beside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// What a file holds; nothing, if it cannot be read.
fn read(path: &Path) -> QueueView {
    let value: Value =
        fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let texts = |key: &str| {
        let items = value[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    QueueView { steering: texts("steering"), follow_up: texts("followUp") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(steering: &[&str]) -> QueueView {
        QueueView {
            steering: steering.iter().map(|text| (*text).to_owned()).collect(),
            follow_up: Vec::new(),
        }
    }

    #[test]
    fn what_waited_is_there_for_the_next_process_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        QueueFile::open(Some(&session)).save(&queue(&["a", "b"])).unwrap();

        let mut next = QueueFile::open(Some(&session));
        next.save(&queue(&["c"])).unwrap();
        assert_eq!(QueueFile::open(Some(&session)).left_over, queue(&["a", "b", "c"]));
        assert_eq!(next.take_left_over().steering, ["a", "b"]);
        next.save(&queue(&[])).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_broken_file_is_an_empty_queue() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        for text in ["", "[1]", "{\"steering\":7,\"followUp\":[1,\"x\"]}"] {
            fs::write(folder.path().join(".s.jsonl.queue"), text).unwrap();
            let left_over = QueueFile::open(Some(&session)).left_over;
            assert!(left_over.steering.is_empty() && left_over.follow_up.len() < 2, "{text}");
        }
    }
}
