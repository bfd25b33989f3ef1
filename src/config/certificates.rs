//! The files of certificates that the environment names.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the system's certificates and are read where
//! connections are made; here they are only checked. `NODE_EXTRA_CA_CERTS` adds to them: users
//! of Node have it set for the proxy of their company.

use std::io;
use std::path::Path;

use crate::ai::ExtraRoots;
use crate::util::os;

use super::env::Env;

const EXTRA: &str = "NODE_EXTRA_CA_CERTS";
const FILE: &str = "SSL_CERT_FILE";
const FOLDERS: &str = "SSL_CERT_DIR";
/// Maximum size of a file; that of a system has a few hundred KiB.
const MAX_BYTES: u64 = 16 << 20;
const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The certificates in the file that `NODE_EXTRA_CA_CERTS` names; and what is wrong with it and with
/// `SSL_CERT_FILE` and `SSL_CERT_DIR`, one line each. Blocks: reads the files. Damaged certificates
/// are found when the first are needed ([`ExtraRoots::problem`]).
pub fn extra_roots(env: &Env) -> (ExtraRoots, Vec<String>) {
    let mut problems = Vec::new();
    let extra = env.path(EXTRA).and_then(|path| {
        let origin = format!("{EXTRA}: {}", path.display());
        match read(&path) {
            Ok(pem) => Some(ExtraRoots::from_pem(pem, origin, mend(EXTRA))),
            Err(error) => {
                problems.push(format!("{origin}: {error}; {}", mend(EXTRA)));
                None
            }
        }
    });
    problems.extend(env.path(FILE).and_then(|path| {
        let error = read(&path).err()?;
        Some(format!("{FILE} is ignored: {}: {error}; {}", path.display(), mend(FILE)))
    }));
    for folder in env.path(FOLDERS).iter().flat_map(std::env::split_paths) {
        if let Err(error) = folder.read_dir() {
            problems.push(format!("{FOLDERS} is ignored: {}: {error}; {}", folder.display(), mend(FOLDERS)));
        }
    }
    (extra.unwrap_or_default(), problems)
}

fn mend(variable: &str) -> String {
    format!("correct the path, or unset {variable}")
}

/// A file that may have certificates.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let bytes = os::read_regular(path, MAX_BYTES)?;
    if memchr::memmem::find(&bytes, BEGIN).is_none() {
        return Err(io::Error::other("there is no certificate in it (pi reads the PEM format)"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls/authority.pem");

    #[test]
    fn files_that_cannot_be_used_are_named_with_variable_and_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let authority = fs::read_to_string(AUTHORITY).unwrap();
        fs::write(path("text"), "no certificate").unwrap();
        fs::write(path("half"), format!("{authority}{}", &authority[..authority.len() / 2])).unwrap();
        let check = |variable: &str, value: &str, n_files: usize, problem: &str| {
            let (roots, problems) = extra_roots(&Env::of(&[(variable, value)]));
            assert_eq!(usize::from(!roots.is_empty()), n_files, "{variable}={value}");
            assert_eq!(roots.problem(), None, "{variable}={value}");
            let expected = if problem.is_empty() { vec![] } else { vec![problem.replace('%', value)] };
            assert_eq!(problems, expected);
        };
        check(EXTRA, AUTHORITY, 1, "");
        check(FILE, AUTHORITY, 0, "");
        check(FOLDERS, folder.path().to_str().unwrap(), 0, "");
        check(
            EXTRA,
            &path("missing"),
            0,
            "NODE_EXTRA_CA_CERTS: %: No such file or directory (os error 2); correct the path, or unset NODE_EXTRA_CA_CERTS",
        );
        check(
            EXTRA,
            &path("text"),
            0,
            "NODE_EXTRA_CA_CERTS: %: there is no certificate in it (pi reads the PEM format); correct the path, or unset NODE_EXTRA_CA_CERTS",
        );
        check(
            FILE,
            &path("text"),
            0,
            "SSL_CERT_FILE is ignored: %: there is no certificate in it (pi reads the PEM format); correct the path, or unset SSL_CERT_FILE",
        );
        check(
            FILE,
            "/",
            0,
            "SSL_CERT_FILE is ignored: %: it is not a regular file; correct the path, or unset SSL_CERT_FILE",
        );
        check(
            FOLDERS,
            &path("missing"),
            0,
            "SSL_CERT_DIR is ignored: %: No such file or directory (os error 2); correct the path, or unset SSL_CERT_DIR",
        );
        let (roots, problems) = extra_roots(&Env::of(&[(EXTRA, &path("half"))]));
        assert_eq!(problems, [""; 0]);
        let problem = roots.problem().unwrap().replace(&path("half"), "%");
        let begin = "NODE_EXTRA_CA_CERTS: %: certificate 2 is damaged (";
        let end = "; the others are used; correct the path, or unset NODE_EXTRA_CA_CERTS";
        assert!(problem.starts_with(begin) && problem.ends_with(end), "{problem}");
    }
}
