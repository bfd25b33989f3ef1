//! Authorities that the user trusts in addition to those of the system.

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Certificates of additional authorities, all of which can be used. Cheap to create if
/// there are none.
#[derive(Debug, Clone, Default)]
pub struct ExtraRoots(Vec<Certificate>);

impl ExtraRoots {
    /// The certificates in the text of a PEM file; and the problems of the others, one
    /// phrase each, counted from 1.
    pub fn from_pem(pem: &[u8]) -> (Self, Vec<String>) {
        let pem = pem.strip_prefix("\u{feff}".as_bytes()).unwrap_or(pem);
        let mut parsed = RootCertStore::empty();
        let (mut roots, mut problems) = (Vec::new(), Vec::new());
        for (at, item) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let root = item.map_err(|error| error.to_string()).and_then(|der| {
                parsed.add(der.clone()).map_err(|error| error.to_string())?;
                Certificate::from_der(&der).map_err(|error| error.to_string())
            });
            match root {
                Ok(root) => roots.push(root),
                Err(error) => problems.push(format!("certificate {} is damaged ({error})", at + 1)),
            }
        }
        if roots.is_empty() && problems.is_empty() {
            problems.push("there is no certificate in it (pi reads the PEM format)".to_owned());
        }
        (Self(roots), problems)
    }

    /// Number of certificates.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn certificates(&self) -> impl Iterator<Item = Certificate> {
        self.0.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = include_str!("../../../tests/fixtures/tls/authority.pem");

    #[track_caller]
    fn check(pem: &str, n_roots: usize, problems: &[&str]) {
        let (roots, found) = ExtraRoots::from_pem(pem.as_bytes());
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
        let (roots, problems) = ExtraRoots::from_pem(&AUTHORITY.as_bytes()[..AUTHORITY.len() / 2]);
        assert_eq!((roots.len(), problems.len()), (0, 1));
        assert!(problems[0].starts_with("certificate 1 is damaged ("), "{problems:?}");
    }
}
