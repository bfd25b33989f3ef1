//! Parses replies of services: tokens, errors, and the account claims of a token.
//! Pure, except [`send`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::ai::{CallReply, HttpCall, Transport};

use super::SignInError;

/// Maximum length of a service's message that is shown.
const REASON_LIMIT_CHARS: usize = 200;

/// The reply of a token endpoint.
pub(super) struct Tokens {
    pub(super) access: String,
    /// Absent from services that do not rotate it.
    pub(super) refresh: Option<String>,
    /// Seconds.
    pub(super) expires_in: u64,
    pub(super) scope: Option<String>,
    pub(super) id_token: Option<String>,
}

/// Sends a call; a service that is down or overloaded counts as unreachable.
pub(super) async fn send(transport: &Transport, call: HttpCall) -> Result<CallReply, SignInError> {
    let reply = transport.call(call).await;
    let reply = reply.map_err(|error| SignInError::Unreachable { reason: error.to_string() })?;
    match reply.status {
        408 | 429 | 500.. => {
            let reason = format!("{}: the sign-in service is not available at the moment", reply.status);
            Err(SignInError::Unreachable { reason })
        }
        _ => Ok(reply),
    }
}

/// Error codes for a token, or its client, that is no longer
/// valid: RFC 6749 (5.2), RFC 6750 (3.1), and OpenAI's own. All others are transient.
const FINAL_CODES: [&str; 7] = [
    "invalid_grant",
    "invalid_client",
    "unauthorized_client",
    "invalid_token",
    "refresh_token_expired",
    "refresh_token_reused",
    "refresh_token_invalidated",
];

/// The JSON of a successful reply.
pub(super) fn json(reply: &CallReply) -> Result<Value, SignInError> {
    let value = serde_json::from_str(&reply.body);
    if (200..300).contains(&reply.status) {
        return value.map_err(|_| SignInError::Protocol { what: "no JSON" });
    }
    let value = value.unwrap_or_default();
    let reason = reason(reply.status, &value);
    Err(match error_code(&value) {
        Some(code) if FINAL_CODES.contains(&code) => SignInError::Ended { reason },
        Some(_) | None => SignInError::Refused { reason },
    })
}

/// The tokens of a reply.
pub(super) fn tokens(reply: &CallReply) -> Result<Tokens, SignInError> {
    let value = json(reply)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let access = text("access_token").ok_or(SignInError::Protocol { what: "no token" })?;
    Ok(Tokens {
        access: access.to_owned(),
        refresh: text("refresh_token").map(str::to_owned),
        // Services that omit it use an hour.
        expires_in: value.get("expires_in").and_then(number).unwrap_or(3_600),
        scope: text("scope").map(str::to_owned),
        id_token: text("id_token").map(str::to_owned),
    })
}

/// The error code of a reply, in the fields of OAuth and its variants.
pub(super) fn error_code(value: &Value) -> Option<&str> {
    let error = value.get("error")?;
    error.as_str().or_else(|| error.get("code").and_then(Value::as_str))
}

/// A number, or a text that contains one.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The reason for a rejection, in the service's words where those are safe to show.
fn reason(status: u16, value: &Value) -> String {
    let error = value.get("error");
    let described = value
        .get("error_description")
        .or_else(|| error.and_then(|error| error.get("message")))
        .or_else(|| value.get("message"))
        .and_then(Value::as_str);
    let reason = match (described, error_code(value)) {
        (Some(text), Some(code)) => format!("{text} ({code})"),
        (Some(text), None) => text.to_owned(),
        (None, Some(code)) => code.to_owned(),
        (None, None) => format!("status {status}"),
    };
    plain(&reason)
}

/// One short line without control characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(REASON_LIMIT_CHARS).collect()
}

/// The claims of a token, unverified: it came from the service itself, over TLS.
pub(super) fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()
}

/// An address that is safe to show and open.
pub(super) fn web_address(text: &str) -> Option<String> {
    let url: reqwest::Url = text.parse().ok()?;
    // Parsing has removed control characters.
    matches!(url.scheme(), "http" | "https").then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(status: u16, body: &Value) -> CallReply {
        CallReply { status, body: body.to_string() }
    }

    #[test]
    fn refusals_say_why_without_escape_sequences() {
        let check = |status: u16, body: Value, expected: &str, is_final: bool| {
            let error = tokens(&reply(status, &body)).map(drop).unwrap_err();
            assert_eq!(error.to_string(), format!("the provider rejected it: {expected}"));
            assert_eq!(matches!(error, SignInError::Ended { .. }), is_final, "{expected}");
        };
        check(400, json!({"error": "invalid_grant"}), "invalid_grant", true);
        check(
            400,
            json!({"error": "invalid_grant", "error_description": "spent\u{1b}[31m"}),
            "spent[31m (invalid_grant)",
            true,
        );
        check(
            401,
            json!({"error": {"message": "reused", "code": "refresh_token_reused"}}),
            "reused (refresh_token_reused)",
            true,
        );
        check(400, json!({"error": "invalid_request"}), "invalid_request", false);
        check(
            403,
            json!({"error": {"message": "blocked", "code": "unsupported_country"}}),
            "blocked (unsupported_country)",
            false,
        );
        check(403, json!("<html>"), "status 403", false);
    }

    #[test]
    fn tokens_are_read_and_their_absence_noticed() {
        let read = tokens(&reply(200, &json!({"access_token": "a", "expires_in": "60"}))).unwrap();
        assert_eq!((read.access.as_str(), read.expires_in, read.refresh), ("a", 60, None));
        assert!(tokens(&reply(200, &json!({"access_token": ""}))).is_err());
        assert!(tokens(&reply(200, &json!([]))).is_err());
    }

    #[test]
    fn claims_are_read_from_the_middle_of_a_token() {
        let payload = URL_SAFE_NO_PAD.encode(r#"{"nonce":"n"}"#);
        assert_eq!(claims(&format!("h.{payload}.s")), Some(json!({"nonce": "n"})));
        for token in ["", "a", "a.b", "a.!.c", "a.e30"] {
            assert!(claims(token).is_none_or(|claims| claims == json!({})), "{token}");
        }
    }

    #[test]
    fn only_web_addresses_are_opened() {
        assert_eq!(web_address("https://a.b/c\n d").as_deref(), Some("https://a.b/c%20d"));
        for refused in ["file:///etc/passwd", "javascript:alert(1)", "ssh://x", "github.com/login"] {
            assert_eq!(web_address(refused), None, "{refused}");
        }
    }
}
