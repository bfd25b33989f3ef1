//! Proof that the client redeeming a code is the one that requested it (RFC 7636), and other
//! random values of a sign-in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::SignInError;

/// A verifier and its challenge, method S256.
pub(super) struct Pkce {
    pub(super) verifier: String,
    pub(super) challenge: String,
}

impl Pkce {
    /// # Errors
    /// If the system provides no random numbers.
    pub(super) fn new() -> Result<Self, SignInError> {
        Ok(Self::of(random()?))
    }

    fn of(verifier: String) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        Self { verifier, challenge }
    }
}

/// 32 random bytes as URL-safe text.
///
/// # Errors
/// If the system provides no random numbers.
pub(super) fn random() -> Result<String, SignInError> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| SignInError::Protocol { what: "the system cannot generate random numbers" })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn random_texts_are_long_and_differ() {
        let (one, two) = (random().unwrap(), random().unwrap());
        assert_eq!((one.len(), two.len()), (43, 43));
        assert_ne!(one, two);
    }
}
