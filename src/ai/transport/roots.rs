//! Authorities that the user trusts in addition to those of the system.

use std::sync::{Arc, OnceLock};

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Certificates of additional authorities. They are parsed when a client is built: a company's
/// file has more than a hundred, which takes longer than everything else before the first frame.
#[derive(Debug, Clone, Default)]
pub struct ExtraRoots(Option<Arc<PemFile>>);

#[derive(Debug)]
struct PemFile {
    pem: Vec<u8>,
    origin: String,
    remedy: String,
    parsed: OnceLock<Parsed>,
}

#[derive(Debug, Default)]
struct Parsed {
    roots: Vec<Certificate>,
    problems: Vec<String>,
}

impl ExtraRoots {
    /// The certificates in the text of a PEM file. `origin` names the file in [`Self::problem`],
    /// and `remedy` says what the user can do about it.
    pub fn from_pem(pem: Vec<u8>, origin: String, remedy: String) -> Self {
        Self(Some(Arc::new(PemFile { pem, origin, remedy, parsed: OnceLock::new() })))
    }

    /// Whether there is no file. One without certificates is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The certificates that can be used. The first call parses the file.
    pub(super) fn certificates(&self) -> &[Certificate] {
        self.parsed().map_or(&[], |parsed| &parsed.roots)
    }

    /// What is wrong with the file, in one line: its certificates that cannot be used, counted
    /// from 1. The first call parses the file.
    pub fn problem(&self) -> Option<String> {
        let (file, parsed) = (self.0.as_ref()?, self.parsed()?);
        let rest = if parsed.roots.is_empty() { "" } else { "; the others are used" };
        let wrong = parsed.problems.join("; ");
        (!wrong.is_empty()).then(|| format!("{}: {wrong}{rest}; {}", file.origin, file.remedy))
    }

    fn parsed(&self) -> Option<&Parsed> {
        self.0.as_ref().map(|file| file.parsed.get_or_init(|| parse(&file.pem)))
    }
}

fn parse(pem: &[u8]) -> Parsed {
    let pem = pem.strip_prefix("\u{feff}".as_bytes()).unwrap_or(pem);
    let mut store = RootCertStore::empty();
    let mut parsed = Parsed::default();
    for (at, item) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let root = item.map_err(|error| error.to_string()).and_then(|der| {
            store.add(der.clone()).map_err(|error| error.to_string())?;
            Certificate::from_der(&der).map_err(|error| error.to_string())
        });
        match root {
            Ok(root) => parsed.roots.push(root),
            Err(error) => parsed.problems.push(format!("certificate {} is damaged ({error})", at + 1)),
        }
    }
    if parsed.roots.is_empty() && parsed.problems.is_empty() {
        parsed.problems.push("there is no certificate in it (pi reads the PEM format)".to_owned());
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = include_str!("../../../tests/fixtures/tls/authority.pem");

    #[track_caller]
    fn check(pem: &str, n_roots: usize, problems: &[&str]) {
        let Parsed { roots, problems: found } = parse(pem.as_bytes());
        assert_eq!(
            (roots.len(), found.as_slice()),
            (n_roots, &*problems.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>())
        );
    }

    #[test]
    fn certificates_are_read_and_damaged_ones_named_by_number() {
        check(AUTHORITY, 1, &[]);
        check(&format!("\u{feff}{AUTHORITY}"), 1, &[]);
        check(&AUTHORITY.replace('\n', "\r\n"), 1, &[]);
        check(&format!("# two\n{AUTHORITY}\n{AUTHORITY}"), 2, &[]);
        check("", 0, &["there is no certificate in it (pi reads the PEM format)"]);
        check("{\"not\": \"PEM\"}", 0, &["there is no certificate in it (pi reads the PEM format)"]);
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let damaged = "certificate 1 is damaged (invalid peer certificate: BadEncoding)";
        check(&format!("{empty}{AUTHORITY}"), 1, &[damaged]);
    }

    #[test]
    fn certificate_that_is_cut_short_is_damaged() {
        let Parsed { roots, problems } = parse(&AUTHORITY.as_bytes()[..AUTHORITY.len() / 2]);
        assert_eq!((roots.len(), problems.len()), (0, 1));
        assert!(problems[0].starts_with("certificate 1 is damaged ("), "{problems:?}");
    }
}
