//! Pictures that terminals have been sent or will be sent.
//!
//! A thread puts them in as it unpacks images; each screen takes what its rows show, again
//! whenever the terminal has forgotten it. Pictures are in a temporary file without a name and
//! not in memory, because most of them are needed once.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::text::{PictureId, PictureKey};

/// Most bytes of the file; then it is begun anew, and rows with earlier pictures show their label
/// where they are drawn again.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What is known about a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureState {
    /// Nobody asked for it; with whether there is an image to make it from.
    Unknown {
        has_image: bool,
    },
    /// It was asked for.
    Awaited,
    Ready,
    /// The image cannot be read or the picture cannot be kept.
    Failed,
}

/// A handle; copies share their pictures.
#[derive(Debug, Clone, Default)]
pub struct PictureStore(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    file: Option<File>,
    /// Where the next piece begins.
    end: u64,
    /// PNG files.
    images: HashMap<PictureId, Piece>,
    /// The strips of pictures, by row.
    strips: HashMap<PictureKey, Vec<Piece>>,
    awaited: HashSet<PictureKey>,
    failed: HashSet<PictureKey>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    len: usize,
}

impl PartialEq for PictureStore {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PictureStore {}

impl PictureStore {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self, key: &PictureKey) -> PictureState {
        let inner = self.lock();
        let has_image = inner.images.contains_key(&key.id);
        let is_ready = if key.format.has_placeholders() { has_image } else { inner.strips.contains_key(key) };
        match () {
            () if is_ready => PictureState::Ready,
            () if inner.failed.contains(key) => PictureState::Failed,
            () if inner.awaited.contains(key) => PictureState::Awaited,
            () => PictureState::Unknown { has_image },
        }
    }

    /// Notes that the picture will be put in, or [`Self::fail`]ed.
    pub fn expect(&self, key: PictureKey) {
        self.lock().awaited.insert(key);
    }

    /// The picture will not come.
    pub fn fail(&self, key: PictureKey) {
        let mut inner = self.lock();
        inner.awaited.remove(&key);
        inner.failed.insert(key);
    }

    /// Fails everything that has not come yet.
    pub fn fail_awaited(&self) {
        let mut inner = self.lock();
        let awaited = std::mem::take(&mut inner.awaited);
        inner.failed.extend(awaited);
    }

    /// Keeps an image as a PNG file, to make pictures of it in any size.
    ///
    /// # Errors
    /// If there is no temporary file, or it cannot be written.
    pub fn put_image(&self, id: PictureId, png: &[u8]) -> io::Result<()> {
        let mut inner = self.lock();
        inner.make_room();
        let piece = inner.write(png)?;
        inner.images.insert(id, piece);
        Ok(())
    }

    /// The PNG file of an image; `None` if it is not there.
    pub fn image(&self, id: PictureId) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        let piece = *inner.images.get(&id)?;
        inner.read(piece)
    }

    /// Keeps the strips of a picture, which is ready from then on.
    ///
    /// # Errors
    /// Like [`Self::put_image`].
    pub fn put_strips(&self, key: PictureKey, strips: &[Vec<u8>]) -> io::Result<()> {
        let mut inner = self.lock();
        inner.make_room();
        let pieces = strips.iter().map(|strip| inner.write(strip)).collect::<io::Result<_>>()?;
        inner.awaited.remove(&key);
        inner.strips.insert(key, pieces);
        Ok(())
    }

    /// The sequence that draws a row of a picture; `None` if it is not there.
    pub(super) fn strip(&self, key: &PictureKey, row: u16) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        let piece = *inner.strips.get(key)?.get(usize::from(row))?;
        inner.read(piece)
    }
}

impl Inner {
    fn make_room(&mut self) {
        if self.end > MOST_BYTES {
            (self.images, self.strips) = Default::default();
            (self.file, self.end) = (None, 0);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Piece> {
        let start = self.end;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.seek(SeekFrom::Start(start))?;
        file.write_all(bytes)?;
        self.end = start + bytes.len() as u64;
        Ok(Piece { start, len: bytes.len() })
    }

    fn read(&mut self, piece: Piece) -> Option<Vec<u8>> {
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(piece.start)).ok()?;
        let mut bytes = vec![0; piece.len];
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::text::{PictureFormat, PictureSize};
    use super::*;

    fn key(id: u64, format: PictureFormat) -> PictureKey {
        let size = PictureSize { columns: 2, rows: 2 };
        PictureKey { id: PictureId::of_hash(id), size, cell: (10, 20), format }
    }

    #[test]
    fn a_picture_is_ready_once_it_was_put_in() {
        let store = PictureStore::default();
        let (kitty, sixel) = (key(1, PictureFormat::Kitty), key(1, PictureFormat::Sixel));
        assert_eq!(store.state(&sixel), PictureState::Unknown { has_image: false });
        store.expect(sixel);
        assert_eq!(store.state(&sixel), PictureState::Awaited);
        store.put_image(sixel.id, b"png").unwrap();
        assert_eq!((store.state(&kitty), store.state(&sixel)), (PictureState::Ready, PictureState::Awaited));
        store.put_strips(sixel, &[b"one".to_vec(), b"two!".to_vec()]).unwrap();
        assert_eq!(store.state(&sixel), PictureState::Ready);
        assert_eq!(store.strip(&sixel, 1).unwrap(), b"two!");
        assert_eq!((store.strip(&sixel, 0).unwrap(), store.strip(&sixel, 2)), (b"one".to_vec(), None));
        assert_eq!(store.image(kitty.id).unwrap(), b"png");
        let other = PictureKey { cell: (8, 16), ..sixel };
        assert_eq!(store.state(&other), PictureState::Unknown { has_image: true });
    }

    #[test]
    fn what_does_not_come_is_failed() {
        let store = PictureStore::default();
        let (first, second) = (key(1, PictureFormat::Iterm), key(2, PictureFormat::Iterm));
        store.expect(first);
        store.expect(second);
        store.fail(first);
        assert_eq!(
            (store.state(&first), store.state(&second)),
            (PictureState::Failed, PictureState::Awaited)
        );
        store.fail_awaited();
        assert_eq!(store.state(&second), PictureState::Failed);
    }

    #[test]
    fn a_full_file_is_begun_anew() {
        let store = PictureStore::default();
        store.put_image(PictureId::of_hash(1), b"first").unwrap();
        store.lock().end = MOST_BYTES + 1;
        store.put_image(PictureId::of_hash(2), b"second").unwrap();
        assert_eq!(store.image(PictureId::of_hash(1)), None);
        assert_eq!(store.image(PictureId::of_hash(2)).unwrap(), b"second");
    }
}
