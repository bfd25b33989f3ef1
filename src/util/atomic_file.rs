//! Files that are either the old or the new one, never half of each.
//!
//! Everything here blocks on the disk; async callers run it on a blocking thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// How many symbolic links in a row are followed; as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Replaces the content of `path`, or creates it.
///
/// The bytes go to a file beside the target, are flushed to the disk, and take
/// the target's place in one rename. A symbolic link stays and its target is
/// replaced; an existing file keeps its permissions and owner; a new one gets
/// what the umask allows. Where a rename cannot do that (a device, a folder one
/// may not write to, somebody else's file) the file is overwritten in place.
///
/// # Errors
/// Also when the existing file is read-only, although a rename could replace it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow_links(path)?;
    let existing = match OpenOptions::new().write(true).open(&target) {
        Ok(file) => Some(file.metadata()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return overwrite(&target, bytes);
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = folder.join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    let replaced = write_beside(&beside, bytes, existing.as_ref()).and_then(|keeps_identity| {
        if keeps_identity {
            fs::rename(&beside, &target).map(|()| true)
        } else {
            fs::remove_file(&beside).map(|()| false)
        }
    });
    match replaced {
        Ok(true) => {
            sync_folder(folder);
            Ok(())
        }
        Ok(false) => overwrite(&target, bytes),
        Err(error) if existing.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            remove_leftover(&beside);
            overwrite(&target, bytes)
        }
        Err(error) => {
            remove_leftover(&beside);
            Err(error)
        }
    }
}

/// The file that `path` means once symbolic links are followed, whether it
/// exists or not.
///
/// # Errors
/// When a link cannot be read or links form a loop.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.file_type().is_symlink() => {
                let link = fs::read_link(&target)?;
                // `join` keeps an absolute link as it is.
                target = target.parent().unwrap_or(Path::new("")).join(link);
            }
            Ok(_) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Whether the new file could be made to look like the one it replaces.
fn write_beside(beside: &Path, bytes: &[u8], existing: Option<&Metadata>) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if existing.is_some() {
        // Nobody else may read the content before the permissions are the old ones.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(beside)?;
    file.write_all(bytes)?;
    let keeps_identity = match existing {
        Some(existing) => copy_identity(&file, existing)?,
        None => true,
    };
    file.sync_all()?;
    Ok(keeps_identity)
}

fn copy_identity(file: &File, existing: &Metadata) -> io::Result<bool> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let new = file.metadata()?;
    let same_owner = new.uid() == existing.uid() && new.gid() == existing.gid();
    if !same_owner && fchown(file, Some(existing.uid()), Some(existing.gid())).is_err() {
        return Ok(false);
    }
    // After the owner: a change of owner clears the set-user-id bits.
    file.set_permissions(existing.permissions())?;
    Ok(true)
}

fn overwrite(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(target)?;
    file.write_all(bytes)?;
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
}

/// Makes the rename itself durable. Some file systems cannot sync a folder, and
/// the content is safe either way, so a failure does not count.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().unwrap_or_default();
    }
}

/// The error that led here says more than a failure to clean up would.
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
