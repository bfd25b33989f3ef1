//! What a search could not read, and why: without matches, the reason may be there.

use std::path::Path;

use super::walk::relative_name;

/// Maximum number of files and directories that are listed.
const MAX_NAMED: usize = 3;

/// Files and directories that were not searched completely.
#[derive(Debug, Default)]
pub(super) struct Unsearched {
    named: Vec<String>,
    n_all: usize,
}

impl Unsearched {
    pub(super) fn push(&mut self, name: &str, reason: &str) {
        self.n_all += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push([name, ": ", reason].concat());
        }
    }

    /// Adds what a walk of `root` could not read. Problems of ignore files do not count.
    pub(super) fn push_walked(&mut self, error: &ignore::Error, root: &Path) {
        let Some(reason) = error.io_error() else { return };
        let name = path_of(error).map(|path| relative_name(path, root)).filter(|name| !name.is_empty());
        self.push(name.as_deref().unwrap_or("."), &reason.to_string());
    }

    /// Names them; `None` if there are none.
    pub(super) fn notice(&self) -> Option<String> {
        let n_more = self.n_all - self.named.len();
        let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
        (n_more < self.n_all).then(|| format!("Not fully searched: {}{more}", self.named.join("; ")))
    }
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn unreadable_directories_are_named_and_counted() {
        let mut unsearched = Unsearched::default();
        assert_eq!(unsearched.notice(), None);
        for name in ["a", "b/c", "d", "e"] {
            let denied = ignore::Error::Io(io::ErrorKind::PermissionDenied.into());
            let at_path =
                ignore::Error::WithPath { path: PathBuf::from("/w").join(name), err: Box::new(denied) };
            let error = ignore::Error::WithDepth { depth: 1, err: Box::new(at_path) };
            unsearched.push_walked(&error, Path::new("/w"));
        }
        unsearched.push_walked(&ignore::Error::InvalidDefinition, Path::new("/w"));
        let denied = "permission denied";
        assert_eq!(
            unsearched.notice().unwrap(),
            format!("Not fully searched: a: {denied}; b/c: {denied}; d: {denied}; and 1 more")
        );
    }
}
