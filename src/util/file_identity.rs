//! Copies owner, permissions, access control lists and other extended attributes
//! to a replacement file.
//!
//! On Linux an access control list is an extended attribute
//! (`system.posix_acl_access`), so copying the attributes copies it too.

use std::fs::{File, Metadata};
use std::io;

use super::os;

/// Copies the attributes of `old`, whose metadata is `metadata`, to `new`. `false` if
/// the system does not allow it; then `new` must not replace `old`.
///
/// # Errors
/// When a file cannot be examined.
pub(super) fn copy(new: &File, old: &File, metadata: &Metadata) -> io::Result<bool> {
    if !os::copy_owner(new, metadata)? || !attributes::copy(new, old) {
        return Ok(false);
    }
    // Last, because changing the owner clears the set-user-id bits.
    new.set_permissions(metadata.permissions())?;
    Ok(true)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod attributes {
    use std::ffi::CString;
    use std::fs::File;

    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    /// Maximum size of a list or value that the kernel may return.
    const LIMIT_BYTES: usize = 64 * 1024;

    /// Sets the attributes of `new` to those of `old`; `false` if one cannot be set or
    /// removed. A folder's default list can add attributes to new files.
    pub(super) fn copy(new: &File, old: &File) -> bool {
        let (Some(wanted), Some(present)) = (names(old), names(new)) else { return false };
        let removed = present
            .iter()
            .filter(|name| !wanted.contains(name))
            .all(|name| fremovexattr(new, name.as_c_str()).is_ok());
        removed && wanted.iter().all(|name| copy_one(new, old, name))
    }

    fn copy_one(new: &File, old: &File, name: &CString) -> bool {
        let Some(value) = value(old, name) else { return false };
        self::value(new, name).as_ref() == Some(&value)
            || fsetxattr(new, name.as_c_str(), &value, XattrFlags::empty()).is_ok()
    }

    /// `None` if they cannot be read; empty if the file system has no attributes.
    fn names(file: &File) -> Option<Vec<CString>> {
        let mut list = Vec::with_capacity(LIMIT_BYTES);
        match flistxattr(file, rustix::buffer::spare_capacity(&mut list)) {
            Ok(_) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return Some(Vec::new()),
            Err(_) => return None,
        }
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| CString::new(name).ok()).collect()
    }

    fn value(file: &File, name: &CString) -> Option<Vec<u8>> {
        let mut value = Vec::with_capacity(LIMIT_BYTES);
        fgetxattr(file, name.as_c_str(), rustix::buffer::spare_capacity(&mut value)).ok()?;
        Some(value)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod attributes {
    use std::fs::File;

    pub(super) fn copy(_new: &File, _old: &File) -> bool {
        true
    }
}
