//! Replaces files atomically, so that no file is ever half written.
//!
//! Everything here blocks on the disk; async callers run it on a blocking thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::file_identity;

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
    replace(path, bytes, Readers::Umask, &SYSTEM)
}

/// Like [`write`], but only the owner can read a newly created file.
///
/// # Errors
/// Like [`write`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, Readers::Owner, &SYSTEM)
}

/// Creates a folder and its parents; only the owner can access new folders, and
/// existing ones stay unchanged.
///
/// # Errors
/// Like [`fs::create_dir_all`].
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options that create files only their owner can access.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Permissions according to the umask.
    Umask,
    Owner,
}

/// The steps that fail on some systems; tests make them fail.
struct Steps {
    rename: fn(&Path, &Path) -> io::Result<()>,
    /// Overwrites the file from its start.
    fill: fn(&File, &[u8]) -> io::Result<()>,
    /// Writes the old content to a file beside the target, or elsewhere; returns its path.
    keep_copy: fn(&Path, &[u8]) -> io::Result<PathBuf>,
}

const SYSTEM: Steps = Steps { rename: |from, to| fs::rename(from, to), fill, keep_copy };

fn replace(path: &Path, bytes: &[u8], readers: Readers, steps: &Steps) -> io::Result<()> {
    let target = follow_links(path)?;
    let existing = match OpenOptions::new().write(true).open(&target) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(existing) = existing else { return write_new(&target, bytes, readers, steps) };
    let metadata = existing.metadata()?;
    if !metadata.is_file() {
        // A device or a pipe has no content to lose.
        return (&existing).write_all(bytes);
    }
    if has_other_names(&metadata) {
        return overwrite(&target, &existing, bytes, steps);
    }
    let beside = beside(&target);
    match write_beside(&beside, bytes, &existing, &metadata) {
        Ok(true) => {}
        Ok(false) => {
            remove_leftover(&beside);
            return overwrite(&target, &existing, bytes, steps);
        }
        Err(error) => {
            remove_leftover(&beside);
            return match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    overwrite(&target, &existing, bytes, steps)
                }
                _ => Err(error),
            };
        }
    }
    match (steps.rename)(&beside, &target) {
        Ok(()) => {
            sync_folder(folder_of(&target));
            Ok(())
        }
        Err(error) => {
            remove_leftover(&beside);
            if is_refused_rename(&error) { overwrite(&target, &existing, bytes, steps) } else { Err(error) }
        }
    }
}

fn write_new(target: &Path, bytes: &[u8], readers: Readers, steps: &Steps) -> io::Result<()> {
    let beside = beside(target);
    let mut options = match readers {
        Readers::Owner => private_options(),
        Readers::Umask => OpenOptions::new(),
    };
    let written = options.write(true).create_new(true).open(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| (steps.rename)(&beside, target)).inspect_err(|_| remove_leftover(&beside))?;
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

fn has_other_names(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

/// Overwrites `file`, which is at `target`, after its content was copied; puts it
/// back if that fails.
fn overwrite(target: &Path, file: &File, bytes: &[u8], steps: &Steps) -> io::Result<()> {
    let old = fs::read(target)?;
    let copy = if old.is_empty() { None } else { Some((steps.keep_copy)(target, &old)?) };
    let Err(error) = (steps.fill)(file, bytes) else {
        if let Some(copy) = &copy {
            remove_leftover(copy);
        }
        return Ok(());
    };
    match ((steps.fill)(file, &old), &copy) {
        (Ok(()), copy) => {
            if let Some(copy) = copy {
                remove_leftover(copy);
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
fn keep_copy(target: &Path, old: &[u8]) -> io::Result<PathBuf> {
    let name = format!(".{}.old", uuid::Uuid::new_v4().simple());
    let copy_into = |folder: &Path| {
        let copy = folder.join(&name);
        let mut file = private_options().write(true).create_new(true).open(&copy)?;
        let written = file.write_all(old).and_then(|()| file.sync_all());
        written.inspect_err(|_| remove_leftover(&copy)).map(|()| copy)
    };
    copy_into(folder_of(target)).or_else(|error| copy_into(&std::env::temp_dir()).map_err(|_| error))
}

fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Seek as _;

    file.rewind()?;
    file.write_all(bytes)?;
    // Truncate last: otherwise a failed write would lose data.
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
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
fn write_beside(beside: &Path, bytes: &[u8], existing: &File, metadata: &Metadata) -> io::Result<bool> {
    // Before the permissions are set, only the owner may read the content.
    let mut file = private_options().write(true).create_new(true).open(beside)?;
    file.write_all(bytes)?;
    let keeps_identity = file_identity::copy(&file, existing, metadata)?;
    file.sync_all()?;
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
fn remove_leftover(beside: &Path) {
    fs::remove_file(beside).unwrap_or_default();
}

#[cfg(test)]
mod tests {
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

    const NO_RENAME: Steps = Steps {
        // Like a single file mounted into a container.
        rename: |_, _| Err(io::ErrorKind::ResourceBusy.into()),
        ..SYSTEM
    };

    /// Writes half of everything.
    fn half(file: &File, bytes: &[u8]) -> io::Result<()> {
        fill(file, &bytes[..bytes.len() / 2])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn inode(path: &Path) -> u64 {
        std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
    }

    #[test]
    fn a_mounted_file_is_overwritten_in_place() {
        for kind in [io::ErrorKind::ResourceBusy, io::ErrorKind::CrossesDevices] {
            let (folder, path) = old_file();
            let before = inode(&path);
            let rename: fn(&Path, &Path) -> io::Result<()> = match kind {
                io::ErrorKind::ResourceBusy => NO_RENAME.rename,
                _ => |_, _| Err(io::ErrorKind::CrossesDevices.into()),
            };
            replace(&path, b"n", Readers::Umask, &Steps { rename, ..SYSTEM }).unwrap();
            assert_eq!((fs::read(&path).unwrap(), inode(&path)), (b"n".to_vec(), before));
            assert_eq!(n_files(&folder), 1, "no copy is left");
        }
    }

    #[test]
    fn other_errors_of_a_rename_leave_the_old_file() {
        let (folder, path) = old_file();
        let steps = Steps { rename: |_, _| Err(io::Error::other("broken")), ..SYSTEM };
        assert!(replace(&path, b"new", Readers::Umask, &steps).is_err());
        assert_eq!((fs::read(&path).unwrap(), n_files(&folder)), (b"old".to_vec(), 1));
    }

    #[test]
    fn a_write_in_place_that_fails_restores_the_old_content() {
        let (folder, path) = old_file();
        // Fails only for the new content.
        let fill =
            |file: &File, bytes: &[u8]| if bytes == b"old" { fill(file, bytes) } else { half(file, bytes) };
        let steps = Steps { fill, ..NO_RENAME };
        let error = replace(&path, b"a longer text", Readers::Umask, &steps).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&path).unwrap(), n_files(&folder)), (b"old".to_vec(), 1));
    }

    #[test]
    fn old_content_that_cannot_be_restored_stays_in_a_copy_that_is_named() {
        let (folder, path) = old_file();
        let error = replace(&path, b"new", Readers::Umask, &Steps { fill: half, ..NO_RENAME }).unwrap_err();
        assert_eq!(n_files(&folder), 2);
        let named = error.to_string();
        let copy = PathBuf::from(named.rsplit(" is in ").next().unwrap());
        assert_eq!(fs::read(copy).unwrap(), b"old", "{named}");
    }

    #[test]
    fn without_a_copy_nothing_is_overwritten() {
        let (_folder, path) = old_file();
        let steps = Steps { keep_copy: |_, _| Err(io::ErrorKind::StorageFull.into()), ..NO_RENAME };
        assert!(replace(&path, b"new", Readers::Umask, &steps).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_copy_goes_elsewhere_if_the_folder_takes_none() {
        let (folder, _) = old_file();
        let copy = keep_copy(&folder.path().join("none/a"), b"old").unwrap();
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
