//! Sessions as files: an HTML page, Markdown, a session file, or a trajectory.
//!
//! Pure except for reading entries and writing to what it is given. Secrets are looked for
//! before anything is written; see `session::find_secrets`.

mod atif;
mod facts;
mod gist;
mod html;
mod markdown;
mod request;

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::session::{
    Entry, Header, SecretReport, Secrets, SessionTree, mask_secrets, read_masked, write_branch,
};

pub(super) use gist::{ABOUT_SHARING, Gist, GistShare, SHARING_CANCELLED, ShareStep, SharedPage};
pub(super) use request::{Exported, FileExport};

/// TABLE: the formats that are not those of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// All branches.
    Html,
    /// The active branch.
    Markdown,
    /// The active branch, as a session file.
    Session,
    /// The active branch, as a trajectory for harnesses.
    Atif,
}

impl ExportFormat {
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Session, Self::Atif];

    /// Name on the command line, and extension of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Session => "jsonl",
            Self::Atif => "atif",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file with this name; `None` if its extension is none of ours.
    pub fn of_file(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "htm" => Some(Self::Html),
            "markdown" => Some(Self::Markdown),
            name => Self::parse(name),
        }
    }
}

/// A session to be exported.
#[derive(Debug, Clone)]
pub struct ExportSource {
    pub tree: SessionTree,
    pub header: Header,
    pub name: Option<String>,
}

impl ExportSource {
    fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("Session {}", self.header.id))
    }

    /// The directory the session works in.
    fn place(&self) -> Option<String> {
        (!self.header.cwd.is_empty()).then(|| self.header.cwd.clone())
    }

    /// The entries that an export in `format` contains.
    fn entries(&self, format: ExportFormat) -> Vec<usize> {
        match format {
            ExportFormat::Html => (0..self.tree.len()).collect(),
            ExportFormat::Markdown | ExportFormat::Session | ExportFormat::Atif => {
                self.tree.path(self.tree.leaf())
            }
        }
    }

    /// The secrets in an export, as far as they can be recognised. Reads all its entries;
    /// blocks.
    pub fn secrets(&self, format: ExportFormat) -> SecretReport {
        SecretReport::of(&self.tree, self.entries(format))
    }

    /// Writes the session. `now_ms` is the time in the header of a session file. Returns how
    /// many entries are missing because they could not be read. Blocks.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(
        &self,
        format: ExportFormat,
        secrets: Secrets,
        now_ms: u64,
        out: &mut dyn Write,
    ) -> io::Result<usize> {
        match format {
            ExportFormat::Html => html::write(self, Read(secrets), out),
            ExportFormat::Markdown => markdown::write(self, Read(secrets), out),
            ExportFormat::Atif => atif::write(self, Read(secrets), out),
            ExportFormat::Session => write_branch(&self.tree, &self.header, now_ms, secrets, out),
        }
    }

    /// Writes the session to a file that appears as a whole, for its owner alone.
    ///
    /// # Errors
    /// If it cannot be written; [`io::ErrorKind::AlreadyExists`] if the file exists and is
    /// not to be replaced.
    pub fn write_file(
        &self,
        format: ExportFormat,
        secrets: Secrets,
        now_ms: u64,
        path: &Path,
        existing: ExistingFile,
    ) -> io::Result<usize> {
        if existing == ExistingFile::Keep && path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::metadata(folder)?;
        let beside = tempfile::Builder::new().prefix(".pi-").suffix(".tmp").tempfile_in(folder);
        // The error names the file beside, which nobody asked for.
        let beside = beside.map_err(|error| error.kind())?;
        let mut out = BufWriter::with_capacity(1 << 16, beside.as_file());
        let n_lost = self.write(format, secrets, now_ms, &mut out)?;
        out.flush()?;
        drop(out);
        beside.as_file().sync_all()?;
        match existing {
            ExistingFile::Keep => beside.persist_noclobber(path).map_err(|error| error.error)?,
            ExistingFile::Replace => beside.persist(path).map_err(|error| error.error)?,
        };
        Ok(n_lost)
    }
}

/// What becomes of a file that is where the export goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    Keep,
    Replace,
}

/// The name of a page when none is given, as the original chooses it: by the session's file.
/// If the file exists in `folder`, a number follows.
pub fn default_file(folder: &Path, session_file: Option<&Path>, id: &str) -> PathBuf {
    let base = session_file.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let base = base.unwrap_or_else(|| id.to_owned());
    let name = |n: usize| match n {
        1 => format!("pi-session-{base}.html"),
        n => format!("pi-session-{base}-{n}.html"),
    };
    let mut n = 1;
    while folder.join(name(n)).symlink_metadata().is_ok() {
        n += 1;
    }
    folder.join(name(n))
}

/// Reads entries and texts, with their secrets or without.
#[derive(Debug, Clone, Copy)]
struct Read(Secrets);

impl Read {
    fn entry(self, tree: &SessionTree, idx: usize) -> Option<Arc<Entry>> {
        match self.0 {
            Secrets::Keep => tree.read(idx),
            Secrets::Mask => read_masked(tree, idx),
        }
    }

    fn text(self, text: &str) -> String {
        match self.0 {
            Secrets::Keep => text.to_owned(),
            Secrets::Mask => match mask_secrets(text) {
                Cow::Borrowed(text) => text.to_owned(),
                Cow::Owned(text) => text,
            },
        }
    }
}
