//! The limits that providers reported, in a file that other processes read: `quota.json`
//! beside the settings.
//!
//! The file is a cache: it may be deleted at any time, and a damaged one is replaced.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::ai::{Quota, Quotas};
use crate::config::Dirs;
use crate::util::{atomic_file, os};

const LIMIT_BYTES: u64 = 4 << 20;

/// The latest quota of every provider, by id: of this process and of others. Blocks, briefly.
pub fn read_quotas(dirs: &Dirs, quotas: &Quotas) -> BTreeMap<String, Quota> {
    let mut read = read(&dirs.quota_file());
    for (provider, quota) in quotas.all() {
        if read.get(&provider).is_none_or(|stored| stored.seen_ms <= quota.seen_ms) {
            read.insert(provider, (*quota).clone());
        }
    }
    read
}

/// Adds what this process knows to the file. Blocks, briefly.
///
/// # Errors
/// If the file cannot be written; it is unchanged then.
pub(super) fn save(dirs: &Dirs, quotas: &Quotas) -> io::Result<()> {
    let path = dirs.quota_file();
    let known = read_quotas(dirs, quotas);
    if known == read(&path) {
        return Ok(());
    }
    atomic_file::create_private_folder(&dirs.agent)?;
    atomic_file::write_private(&path, &serde_json::to_vec(&known)?)
}

fn read(path: &Path) -> BTreeMap<String, Quota> {
    os::read_regular(path, LIMIT_BYTES)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(seen_ms: u64) -> Quota {
        serde_json::from_value(serde_json::json!({"seenMs": seen_ms,
            "windows": [{"name": "5 h", "isPlan": true, "used": 0.5}]}))
        .unwrap()
    }

    #[test]
    fn the_latest_quota_of_each_provider_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let dirs = Dirs { home: None, agent: folder.path().join("agent"), sessions: folder.path().into() };
        let of = |entries: &[(&str, u64)]| {
            let quotas = Quotas::default();
            for (provider, seen_ms) in entries {
                quotas.set(provider, quota(*seen_ms));
            }
            quotas
        };
        save(&dirs, &of(&[("a", 10), ("b", 10)])).unwrap();
        save(&dirs, &of(&[("a", 5), ("b", 20), ("c", 1)])).unwrap();
        let seen = |quotas: &Quotas| -> Vec<(String, u64)> {
            read_quotas(&dirs, quotas).into_iter().map(|(id, quota)| (id, quota.seen_ms)).collect()
        };
        let entry = |id: &str, seen_ms| (id.to_owned(), seen_ms);
        assert_eq!(seen(&Quotas::default()), [entry("a", 10), entry("b", 20), entry("c", 1)]);
        assert_eq!(seen(&of(&[("c", 2)]))[2], entry("c", 2));
        std::fs::write(dirs.quota_file(), "{\"a\": 3").unwrap();
        assert_eq!(seen(&Quotas::default()), []);
        save(&dirs, &of(&[("d", 1)])).unwrap();
        assert_eq!(seen(&Quotas::default()), [entry("d", 1)]);
    }
}
