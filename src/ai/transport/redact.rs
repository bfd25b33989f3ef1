//! Removes secrets from the texts of failures.
//!
//! A server's error is shown, logged and stored in the session, and some servers
//! repeat the key they received.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::credential::Credential;

/// Replaces a secret.
const HIDDEN: &str = "…";
/// Shorter values are not secrets, and are likely to be part of ordinary words.
const MIN_SECRET_BYTES: usize = 8;

/// `text` without `credential` and the values of headers that may contain secrets.
pub(in crate::ai) fn without_secrets(
    text: &str,
    credential: &Credential,
    headers: &BTreeMap<String, String>,
) -> String {
    let mut secrets: Vec<&str> = match credential {
        Credential::None => Vec::new(),
        Credential::ApiKey(key) | Credential::Bearer(key) => vec![key],
        Credential::SignedIn(account) => vec![&account.token],
        Credential::Aws(keys) => {
            let token = keys.session_token.as_deref();
            [keys.secret_access_key.as_str(), keys.access_key_id.as_str()].into_iter().chain(token).collect()
        }
    };
    let headers = headers.iter().filter(|(name, _)| is_secret_name(name));
    for (_, value) in headers {
        secrets.push(value);
        secrets.extend(value.split_whitespace().skip(1));
    }
    let mut text = Cow::Borrowed(text);
    for secret in secrets.into_iter().map(str::trim).filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
        if text.contains(secret) {
            text = Cow::Owned(text.replace(secret, HIDDEN));
        }
    }
    text.into_owned()
}

/// Whether a header with this name contains a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password"].iter().any(|word| name.contains(word))
}

/// `url` for display: without user, password, query and fragment.
pub(in crate::ai) fn shown_url(url: &str) -> Cow<'_, str> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let Some((scheme, rest)) = url.split_once("://") else { return Cow::Borrowed(url) };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => Cow::Owned(format!("{scheme}://{}", &rest[at + 1..])),
        None => Cow::Borrowed(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_server_repeats_is_not_in_the_failure() {
        let headers = [
            ("X-Gateway-Key", "gate-0123456789"),
            ("Authorization", "Bearer bear-0123456789"),
            ("X-Title", "my project"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let key = Credential::ApiKey("sk-0123456789".to_owned());
        assert_eq!(
            without_secrets(
                "401: no sk-0123456789, gate-0123456789, bear-0123456789 in my project",
                &key,
                &headers
            ),
            "401: no …, …, … in my project"
        );
        let short = Credential::ApiKey("ollama".to_owned());
        assert_eq!(without_secrets("ollama is busy", &short, &headers), "ollama is busy");
    }

    #[test]
    fn addresses_are_shown_without_what_may_be_secret() {
        let check = |url: &str, expected: &str| assert_eq!(shown_url(url), expected);
        check("https://a.b/c", "https://a.b/c");
        check("https://u:p@a.b/c?key=k#f", "https://a.b/c");
        check("https://a.b?x=@y", "https://a.b");
        check("ftp://u@a.b", "ftp://a.b");
        check("no url at all", "no url at all");
    }
}
