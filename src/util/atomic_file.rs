//! Replaces files atomically, so that no file is ever half written.
//!
//! Everything here blocks on the disk; async callers run it on a blocking thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::disk::{self, Disk, DiskWriter, SystemDisk};
use super::file_identity;
use super::os;

/// Maximum number of consecutive symbolic links; this is Linux's limit.
const MAX_LINKS: usize = 40;

/// Replaces the content of `path`, or creates it.
///
/// The bytes are written to a file beside the target, flushed to the disk, and renamed
/// over the target. A symbolic link stays and its target is
/// replaced; an existing file keeps its owner, permissions, access control list
/// and extended attributes; a new one gets the permissions of the umask.
///
/// If a rename would lose something or is impossible (a file with hard links,
/// a single file mounted into a container, a read-only folder, another
/// user's file), the file is overwritten in place, after a copy of the old content
/// was written. If that write fails, the old content is restored.
///
/// # Errors
/// Also if the existing file is read-only, although a rename could replace it.
/// After an error, `path` has the old content; if even restoring failed, the error
/// contains the path of the copy.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_on(&SystemDisk, path, bytes)
}

/// Like [`write()`], on a given disk.
///
/// # Errors
/// Like [`write()`].
pub fn write_on(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(disk, path, bytes, Readers::Umask)
}

/// Like [`write`], but only the owner can read a newly created file.
///
/// # Errors
/// Like [`write`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_private_on(&SystemDisk, path, bytes)
}

/// Like [`write_private`], but an existing file also loses the access of others, before anything is written: for
/// files that pi creates and whose content is always private.
///
/// # Errors
/// Like [`write`], and if the system does not let pi restrict the file, such as that of another user.
pub fn write_owner_only(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_open = |metadata: &Metadata| metadata.is_file() && os::is_open_to_others(metadata);
    if fs::metadata(path).is_ok_and(|metadata| is_open(&metadata)) {
        os::restrict_to_owner(path)?;
    }
    write_private(path, bytes)
}

/// Takes the access of others from a regular file of this user, whose content is private although it may be older
/// than that rule. Another user's file, which a link may lead to, stays as it is, and so does one whose file
/// system knows no such permissions. The file is open, so no other can take its place.
pub fn restrict_own(file: &File) {
    let Ok(metadata) = file.metadata() else { return };
    let is_own = os::owner(&metadata).is_some_and(os::is_this_user);
    if is_own && metadata.is_file() && os::is_open_to_others(&metadata) {
        // Without that the content is no more open than before.
        drop(os::restrict_open_file(file));
    }
}

/// Like [`write_private`], after [`restrict_own`]: for a cache or history that must be written in any case.
///
/// # Errors
/// Like [`write`].
pub fn write_restricted(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Ok(existing) = os::open_regular(path) {
        restrict_own(&existing);
    }
    write_private(path, bytes)
}

/// Like [`write_private`], on a given disk.
///
/// # Errors
/// Like [`write()`].
pub fn write_private_on(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(disk, path, bytes, Readers::Owner)
}

/// Lets `fill` write a file that then appears as a whole, durable and for its owner alone, at
/// the first of `paths` at which no file is. Returns that path.
///
/// # Errors
/// If `fill` fails, the disk does, or all of `paths` are taken
/// ([`io::ErrorKind::AlreadyExists`]); nothing is left then.
pub fn create_new<T>(
    disk: &dyn Disk,
    paths: impl IntoIterator<Item = PathBuf>,
    fill: impl FnOnce(&mut dyn io::Write) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut paths = paths.into_iter().peekable();
    let Some(first) = paths.peek() else { return Err(io::ErrorKind::AlreadyExists.into()) };
    let beside = beside(first);
    let file = disk.open(private_options().write(true).create_new(true), &beside)?;
    let mut out = BufWriter::with_capacity(1 << 16, DiskWriter { disk, file: &file });
    let filled = fill(&mut out).and_then(|filled| out.flush().map(|()| filled));
    // Whatever a failed writer still holds is not worth another attempt.
    drop(out.into_parts());
    let created = filled.and_then(|filled| {
        disk.sync(&file)?;
        for path in paths {
            match disk.rename_new(&beside, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => return renamed.map(|()| (path, filled)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    });
    match &created {
        Ok((path, _)) => sync_folder(folder_of(path)),
        Err(_) => remove_leftover(disk, &beside),
    }
    created
}

/// Creates a folder and its parents; only the owner can access new folders, and
/// existing ones stay unchanged.
///
/// # Errors
/// Like [`fs::create_dir_all`].
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    os::make_folder_private(&mut builder);
    builder.create(path)
}

/// Options that create files only their owner can access.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    os::make_file_private(&mut options);
    options
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Permissions according to the umask.
    Umask,
    Owner,
}

fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let target = follow_links(path)?;
    if fs::metadata(&target).is_ok_and(|metadata| os::is_pipe(&metadata)) {
        // Opening it would wait for somebody who reads.
        return Err(io::Error::other("it is a pipe"));
    }
    let existing = match disk.open(OpenOptions::new().write(true), &target) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(existing) = existing else { return write_new(disk, &target, bytes, readers) };
    let metadata = existing.metadata()?;
    if !metadata.is_file() {
        // A device or a pipe has no content to lose.
        return disk::write_all(disk, &existing, bytes);
    }
    if os::has_other_names(&metadata) {
        return overwrite(disk, &target, &existing, bytes);
    }
    let beside = beside(&target);
    match write_beside(disk, &beside, bytes, &existing, &metadata) {
        Ok(true) => {}
        Ok(false) => {
            remove_leftover(disk, &beside);
            return overwrite(disk, &target, &existing, bytes);
        }
        Err(error) => {
            remove_leftover(disk, &beside);
            return match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    overwrite(disk, &target, &existing, bytes)
                }
                _ => Err(error),
            };
        }
    }
    match disk.rename(&beside, &target) {
        Ok(()) => {
            sync_folder(folder_of(&target));
            Ok(())
        }
        Err(error) => {
            remove_leftover(disk, &beside);
            if is_refused_rename(&error) { overwrite(disk, &target, &existing, bytes) } else { Err(error) }
        }
    }
}

fn write_new(disk: &dyn Disk, target: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let beside = beside(target);
    let mut options = match readers {
        Readers::Owner => private_options(),
        Readers::Umask => OpenOptions::new(),
    };
    let written = disk.open(options.write(true).create_new(true), &beside).and_then(|file| {
        disk::write_all(disk, &file, bytes)?;
        disk.sync(&file)
    });
    written.and_then(|()| disk.rename(&beside, target)).inspect_err(|_| remove_leftover(disk, &beside))?;
    sync_folder(folder_of(target));
    Ok(())
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn beside(target: &Path) -> PathBuf {
    folder_of(target).join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()))
}

/// Whether the kernel refuses to replace this file by a rename, although it
/// is writable: a mount point (`EBUSY`), a separate mount (`EXDEV`), a folder
/// or a sticky bit (`EACCES`, `EPERM`).
fn is_refused_rename(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ResourceBusy
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Overwrites `file`, which is at `target`, after its content was copied; puts it
/// back if that fails.
fn overwrite(disk: &dyn Disk, target: &Path, file: &File, bytes: &[u8]) -> io::Result<()> {
    let old = fs::read(target)?;
    let copy = if old.is_empty() { None } else { Some(keep_copy(disk, target, &old)?) };
    let Err(error) = fill(disk, file, bytes) else {
        if let Some(copy) = &copy {
            remove_leftover(disk, copy);
        }
        return Ok(());
    };
    match (fill(disk, file, &old), &copy) {
        (Ok(()), copy) => {
            if let Some(copy) = copy {
                remove_leftover(disk, copy);
            }
            Err(error)
        }
        (Err(_), None) => Err(error),
        (Err(_), Some(copy)) => {
            let text = format!("{error}; cannot restore the old content, which is in {}", copy.display());
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// Writes `old` to a file beside `target` or, if that folder is not writable, in the
/// system's temporary folder.
fn keep_copy(disk: &dyn Disk, target: &Path, old: &[u8]) -> io::Result<PathBuf> {
    let name = format!(".{}.old", uuid::Uuid::new_v4().simple());
    let copy_into = |folder: &Path| {
        let copy = folder.join(&name);
        let file = disk.open(private_options().write(true).create_new(true), &copy)?;
        let written = disk::write_all(disk, &file, old).and_then(|()| disk.sync(&file));
        written.inspect_err(|_| remove_leftover(disk, &copy)).map(|()| copy)
    };
    copy_into(folder_of(target)).or_else(|error| copy_into(&std::env::temp_dir()).map_err(|_| error))
}

/// Overwrites the file from its start.
fn fill(disk: &dyn Disk, mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Seek as _;

    file.rewind()?;
    disk::write_all(disk, file, bytes)?;
    // Truncate last: otherwise a failed write would lose data.
    file.set_len(bytes.len() as u64)?;
    disk.sync(file)
}

/// The target of `path` with symbolic links resolved, which need not
/// exist.
///
/// # Errors
/// If a link cannot be read or links form a loop.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.file_type().is_symlink() => {
                let link = fs::read_link(&target)?;
                // `join` leaves an absolute link unchanged.
                target = target.parent().unwrap_or(Path::new("")).join(link);
            }
            Ok(_) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Whether the new file could get the attributes of the one it replaces.
fn write_beside(
    disk: &dyn Disk,
    beside: &Path,
    bytes: &[u8],
    existing: &File,
    metadata: &Metadata,
) -> io::Result<bool> {
    // Before the permissions are set, only the owner may read the content.
    let file = disk.open(private_options().write(true).create_new(true), beside)?;
    disk::write_all(disk, &file, bytes)?;
    let keeps_identity = file_identity::copy(&file, existing, metadata)?;
    disk.sync(&file)?;
    Ok(keeps_identity)
}

/// Makes the rename durable. Some file systems cannot sync a folder, and
/// the content is safe in any case, so failures are ignored.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().unwrap_or_default();
    }
}

/// Ignores errors, because the original error is more informative.
fn remove_leftover(disk: &dyn Disk, beside: &Path) {
    disk.remove(beside).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn replaces_the_content_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn keeps_permissions_and_links() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o751)).unwrap();
        std::os::unix::fs::symlink("target", &link).unwrap();
        let inode = fs::metadata(&target).unwrap().ino();

        write(&link, b"new").unwrap();

        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o751);
        assert_ne!(fs::metadata(&target).unwrap().ino(), inode, "the file was replaced, not rewritten");
    }

    /// A folder with a file `a` that contains `old`.
    fn old_file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        (folder, path)
    }

    fn n_files(folder: &tempfile::TempDir) -> usize {
        fs::read_dir(folder.path()).unwrap().count()
    }

    /// A disk on which things go wrong.
    #[derive(Debug, Default)]
    struct FaultyDisk {
        /// Files cannot be renamed, such as a single file mounted into a container.
        refuses_renames: Option<io::ErrorKind>,
        /// All writes from this one on write half and fail.
        fails_from_write: Option<usize>,
        /// Writes of other bytes write half and fail.
        takes_only: Option<&'static [u8]>,
        /// What goes wrong at which step.
        fault: Option<(usize, Fault)>,
        /// Steps and writes so far.
        counts: Mutex<(usize, usize)>,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        /// The step fails, and later ones work.
        Once,
        /// Nothing works from here on, as if the process were killed.
        Dead,
        /// As [`Self::Dead`], after this many bytes of a write.
        Torn(usize),
    }

    impl FaultyDisk {
        fn no_renames() -> Self {
            Self { refuses_renames: Some(io::ErrorKind::ResourceBusy), ..Self::default() }
        }

        /// Counts a step; returns what goes wrong at it.
        fn step(&self) -> Option<Fault> {
            let mut counts = self.counts.lock().unwrap();
            let step = counts.0;
            counts.0 += 1;
            self.fault.and_then(|(at, fault)| match fault {
                Fault::Once => (step == at).then_some(fault),
                Fault::Dead => (step >= at).then_some(fault),
                Fault::Torn(_) if step == at => Some(fault),
                Fault::Torn(_) => (step > at).then_some(Fault::Dead),
            })
        }

        fn simple_step(&self) -> io::Result<()> {
            self.step().map_or(Ok(()), |_| Err(io::Error::other("the disk fails")))
        }

        fn n_steps(&self) -> usize {
            self.counts.lock().unwrap().0
        }
    }

    impl Disk for FaultyDisk {
        fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File> {
            self.simple_step()?;
            SystemDisk.open(options, path)
        }

        fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
            let fault = self.step();
            let mut counts = self.counts.lock().unwrap();
            let is_refused = self.fails_from_write.is_some_and(|first| counts.1 >= first)
                || self.takes_only.is_some_and(|taken| taken != bytes);
            counts.1 += 1;
            let n_torn = match fault {
                None if is_refused => bytes.len() / 2,
                None => return SystemDisk.write(file, bytes),
                Some(Fault::Torn(n)) => n.min(bytes.len()),
                Some(Fault::Once | Fault::Dead) => 0,
            };
            SystemDisk.write(file, &bytes[..n_torn])?;
            Err(io::ErrorKind::StorageFull.into())
        }

        fn sync(&self, file: &File) -> io::Result<()> {
            self.simple_step()?;
            SystemDisk.sync(file)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.simple_step()?;
            self.refuses_renames.map_or_else(|| SystemDisk.rename(from, to), |kind| Err(kind.into()))
        }

        fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.simple_step()?;
            SystemDisk.rename_new(from, to)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.simple_step()?;
            SystemDisk.remove(path)
        }
    }

    /// Lets `act` go wrong at each step, in each way, and passes the folder and the outcome
    /// to `check`.
    fn at_each_step(
        disk: impl Fn() -> FaultyDisk,
        act: impl Fn(&FaultyDisk, &Path) -> io::Result<()>,
        check: impl Fn(&tempfile::TempDir, &Path, bool, &str),
    ) {
        let (_folder, path) = old_file();
        let whole = disk();
        act(&whole, &path).unwrap();
        for step in 0..whole.n_steps() {
            for fault in [Fault::Once, Fault::Dead, Fault::Torn(1), Fault::Torn(4)] {
                let (folder, path) = old_file();
                let disk = FaultyDisk { fault: Some((step, fault)), ..disk() };
                let is_done = act(&disk, &path).is_ok();
                check(&folder, &path, is_done, &format!("step {step}, {fault:?}"));
            }
        }
    }

    #[test]
    fn a_fault_at_any_step_of_a_replacement_leaves_the_old_content_or_the_new() {
        let act = |disk: &FaultyDisk, path: &Path| write_on(disk, path, b"the new");
        at_each_step(FaultyDisk::default, act, |_, path, is_done, case| {
            let now = fs::read(path).unwrap();
            assert!(now == b"the new" || (!is_done && now == b"old"), "{case}: {now:?}");
        });
    }

    #[test]
    fn a_fault_at_any_step_of_a_write_in_place_leaves_old_or_new_content_in_the_file_or_a_copy() {
        let act = |disk: &FaultyDisk, path: &Path| write_on(disk, path, b"the new");
        at_each_step(FaultyDisk::no_renames, act, |folder, path, is_done, case| {
            let is_there = |wanted: &[u8]| {
                let mut files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
                files.any(|file| fs::read(file).unwrap() == wanted)
            };
            let now = fs::read(path).unwrap();
            assert!(now == b"the new" || (!is_done && is_there(b"old")), "{case}: {now:?}");
        });
    }

    #[test]
    fn a_fault_at_any_step_leaves_a_new_file_whole_or_absent() {
        let act = |disk: &FaultyDisk, path: &Path| {
            let paths = [path.to_owned(), path.with_file_name("b")];
            create_new(disk, paths, |out| out.write_all(b"the new")).map(drop)
        };
        at_each_step(FaultyDisk::default, act, |folder, path, is_done, case| {
            assert_eq!(fs::read(path).unwrap(), b"old", "{case}: a file that is there stays");
            let now = fs::read(folder.path().join("b")).ok();
            assert_eq!(now.is_some(), is_done, "{case}");
            assert!(now.is_none_or(|now| now == b"the new"), "{case}");
        });
    }

    #[test]
    fn new_file_that_fails_or_finds_no_free_name_leaves_nothing() {
        let (folder, path) = old_file();
        let failed = create_new(&SystemDisk, [folder.path().join("b")], |out| {
            out.write_all(b"half")?;
            Err::<(), _>(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        let taken = create_new(&SystemDisk, [path.clone()], |out| out.write_all(b"new"));
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), n_files(&folder)), (b"old".to_vec(), 1));
    }

    fn inode(path: &Path) -> u64 {
        std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
    }

    #[test]
    fn a_mounted_file_is_overwritten_in_place() {
        for kind in [io::ErrorKind::ResourceBusy, io::ErrorKind::CrossesDevices] {
            let (folder, path) = old_file();
            let before = inode(&path);
            let disk = FaultyDisk { refuses_renames: Some(kind), ..FaultyDisk::default() };
            write_on(&disk, &path, b"n").unwrap();
            assert_eq!((fs::read(&path).unwrap(), inode(&path)), (b"n".to_vec(), before));
            assert_eq!(n_files(&folder), 1, "no copy is left");
        }
    }

    #[test]
    fn other_errors_of_a_rename_leave_the_old_file() {
        let (folder, path) = old_file();
        let disk = FaultyDisk { refuses_renames: Some(io::ErrorKind::Other), ..FaultyDisk::default() };
        assert!(write_on(&disk, &path, b"new").is_err());
        assert_eq!((fs::read(&path).unwrap(), n_files(&folder)), (b"old".to_vec(), 1));
    }

    #[test]
    fn a_write_in_place_that_fails_restores_the_old_content() {
        let (folder, path) = old_file();
        // A file with two names is overwritten at once.
        let other = folder.path().join("b");
        fs::hard_link(&path, &other).unwrap();
        let disk = FaultyDisk { takes_only: Some(b"old"), ..FaultyDisk::default() };
        let error = write_on(&disk, &path, b"a longer text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&path).unwrap(), n_files(&folder)), (b"old".to_vec(), 2));
    }

    #[test]
    fn old_content_that_cannot_be_restored_stays_in_a_copy_that_is_named() {
        let (folder, path) = old_file();
        // The first two are of the file beside it, and of the copy.
        let disk = FaultyDisk { fails_from_write: Some(2), ..FaultyDisk::no_renames() };
        let error = write_on(&disk, &path, b"new").unwrap_err();
        assert_eq!(n_files(&folder), 2);
        let named = error.to_string();
        let copy = PathBuf::from(named.rsplit(" is in ").next().unwrap());
        assert_eq!(fs::read(copy).unwrap(), b"old", "{named}");
    }

    #[test]
    fn without_a_copy_nothing_is_overwritten() {
        let (_folder, path) = old_file();
        let disk = FaultyDisk { fails_from_write: Some(1), ..FaultyDisk::no_renames() };
        assert!(write_on(&disk, &path, b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_copy_goes_elsewhere_if_the_folder_takes_none() {
        let (folder, _) = old_file();
        let copy = keep_copy(&SystemDisk, &folder.path().join("none/a"), b"old").unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"old");
        fs::remove_file(copy).unwrap();
    }

    #[test]
    fn a_file_with_two_names_keeps_both() {
        let (folder, path) = old_file();
        let other = folder.path().join("b");
        fs::hard_link(&path, &other).unwrap();
        write(&path, b"new and longer").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"new and longer");
        assert_eq!(inode(&path), inode(&other));
        assert_eq!(n_files(&folder), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extended_attributes_survive() {
        use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

        let (_folder, path) = old_file();
        let file = File::open(&path).unwrap();
        match fsetxattr(&file, "user.pi.test", b"kept", XattrFlags::empty()) {
            Ok(()) => {}
            // The test's file system does not support it.
            Err(rustix::io::Errno::NOTSUP) => return,
            Err(error) => panic!("{error}"),
        }
        let before = inode(&path);
        write(&path, b"new").unwrap();
        let mut value = [0; 16];
        let n = fgetxattr(File::open(&path).unwrap(), "user.pi.test", &mut value[..]).unwrap();
        assert_eq!(&value[..n], b"kept");
        assert_ne!(inode(&path), before, "the file was replaced, not rewritten");
    }

    /// `user::rw-,user:12345:r--,group::r--,mask::r--,other::---` as the kernel stores it.
    #[cfg(target_os = "linux")]
    const ACCESS_LIST: &[u8] = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\x39\x30\0\0\x04\0\x04\0\xff\xff\xff\xff\x10\0\x04\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";

    #[cfg(target_os = "linux")]
    #[test]
    fn access_control_lists_survive() {
        use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

        let name = "system.posix_acl_access";
        let (_folder, path) = old_file();
        match fsetxattr(File::open(&path).unwrap(), name, ACCESS_LIST, XattrFlags::empty()) {
            Ok(()) => {}
            // The test's file system does not support it.
            Err(rustix::io::Errno::NOTSUP) => return,
            Err(error) => panic!("{error}"),
        }
        write(&path, b"new").unwrap();
        let mut value = [0; 256];
        let n = fgetxattr(File::open(&path).unwrap(), name, &mut value[..]).unwrap();
        assert_eq!(&value[..n], ACCESS_LIST);
    }

    #[test]
    fn the_owner_survives() {
        use std::os::unix::fs::{MetadataExt as _, chown};

        let (_folder, path) = old_file();
        // Only root can change the owner; for other users it is the same anyway.
        drop(chown(&path, Some(12_345), Some(12_345)));
        let before = fs::metadata(&path).unwrap();
        write(&path, b"new").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn private_files_and_folders_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = root.path().join("a/b");
        create_private_folder(&folder).unwrap();
        write_private(&folder.join("c"), b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let modes = [root.path(), &root.path().join("a"), &folder, &folder.join("c")].map(mode);
        assert_eq!(modes, [0o755, 0o700, 0o700, 0o600]);
    }

    #[test]
    fn file_for_the_owner_only_loses_the_access_that_others_had() {
        use std::os::unix::fs::PermissionsExt as _;

        let (folder, path) = old_file();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        for written in [&path, &link] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            write_owner_only(written, b"x").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        write_owner_only(&folder.path().join("new"), b"x").unwrap();
        assert_eq!(fs::metadata(folder.path().join("new")).unwrap().permissions().mode() & 0o777, 0o600);
        write_owner_only(Path::new(os::NULL_DEVICE), b"x").unwrap();
    }

    #[test]
    fn private_file_that_others_can_read_is_restricted_if_it_is_this_users() {
        use std::os::unix::fs::PermissionsExt as _;

        let (folder, path) = old_file();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        for written in [&path, &link] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            write_restricted(written, b"x").unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"x".to_vec()));
        }
        // A file of root, unless the tests are root's.
        let foreign = Path::new("/etc/hosts");
        let before = mode(foreign);
        if !os::owner(&fs::metadata(foreign).unwrap()).is_some_and(os::is_this_user) {
            restrict_own(&File::open(foreign).unwrap());
        }
        assert_eq!(mode(foreign), before);
        write_restricted(Path::new(os::NULL_DEVICE), b"x").unwrap();
    }

    #[test]
    fn a_link_to_nothing_creates_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("later", &link).unwrap();
        write(&link, b"x").unwrap();
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"x");
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("link", &link).unwrap();
        assert!(write(&link, b"x").is_err());
    }
}
