//! Small requests that are not for a model, such as those of signing in. They use
//! the same connections as all others.

use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use super::http::{Route, Transport, connection_error, read_whole};
use super::redact;

/// Maximum wait for a complete reply.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a reply.
const REPLY_LIMIT_BYTES: usize = 256 << 10;

/// One small request. Never printed, because it contains secrets.
#[derive(Clone)]
pub struct HttpCall {
    /// `http` or `https`.
    pub url: String,
    /// Headers apart from those that follow from the body.
    pub headers: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: CallBody,
}

/// The body of a call, which also determines its method.
#[derive(Clone)]
pub enum CallBody {
    /// GET without a body.
    None,
    /// PUT without a body.
    Put,
    /// POST of `application/x-www-form-urlencoded`.
    Form(Vec<(&'static str, String)>),
    /// POST of JSON.
    Json(Value),
}

/// The reply, with any status. Never printed either.
#[derive(Clone)]
pub struct CallReply {
    /// The status code.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

impl fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCall").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for CallReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallReply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Transport {
    /// Sends `call` and waits at most 30 s for the complete reply. Dropping the
    /// future closes the connection.
    ///
    /// # Errors
    /// If the address is invalid, or the reply does not arrive completely. A reply with
    /// an error status is not an error here.
    pub async fn call(&self, call: HttpCall) -> Result<CallReply, CallError> {
        let url: Url = call.url.parse().map_err(|error| CallError(format!("invalid URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let url = redact::shown_url(url.as_str());
            return Err(CallError(format!("unsupported scheme in {url}; use http or https")));
        }
        let client = self.client(Route::to(&url)).map_err(CallError)?;
        let origin = url.origin().ascii_serialization();
        let (method, content_type, body) = match call.body {
            CallBody::None => (Method::GET, None, String::new()),
            CallBody::Put => (Method::PUT, None, String::new()),
            CallBody::Form(fields) => {
                (Method::POST, Some("application/x-www-form-urlencoded"), form(&url, &fields))
            }
            CallBody::Json(value) => (Method::POST, Some("application/json"), value.to_string()),
        };
        let mut headers = HeaderMap::new();
        let content_type = content_type.map(|kind| ("content-type", kind.to_owned()));
        for (name, value) in call.headers.into_iter().chain(content_type) {
            // The value may be a token edited by hand.
            let value = HeaderValue::from_str(&value)
                .map_err(|_| CallError(format!("the {name} header for {origin} is not valid")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let exchange = async {
            let sent = client.request(method, url).headers(headers).body(body).send().await;
            let response = sent.map_err(|error| CallError(connection_error(&error, &origin).text))?;
            let status = response.status().as_u16();
            let body = read_whole(response, REPLY_LIMIT_BYTES).await;
            let body = body.map_err(|cause| {
                CallError(format!("connection error: no whole answer from {origin} ({cause})"))
            })?;
            Ok(CallReply { status, body })
        };
        let late = |_| CallError(format!("connection error: no answer from {origin} for 30 s"));
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(late)?
    }
}

/// Encodes the fields as a form, with the URL type's own encoder.
fn form(base: &Url, fields: &[(&'static str, String)]) -> String {
    let mut url = base.clone();
    url.query_pairs_mut().clear().extend_pairs(fields.iter().map(|(name, value)| (*name, value)));
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded() {
        let base = "https://a.b/c?d=e".parse().unwrap();
        let fields = [("grant_type", "a b".to_owned()), ("code", "x+/=&ü".to_owned())];
        assert_eq!(form(&base, &fields), "grant_type=a+b&code=x%2B%2F%3D%26%C3%BC");
    }

    #[test]
    fn what_is_printed_holds_no_secret() {
        let call = HttpCall {
            url: "https://a.b".to_owned(),
            headers: vec![("authorization", "Bearer canary".to_owned())],
            body: CallBody::Form(vec![("refresh_token", "canary".to_owned())]),
        };
        let reply = CallReply { status: 200, body: "canary".to_owned() };
        assert!(!format!("{call:?} {reply:?}").contains("canary"));
    }
}
