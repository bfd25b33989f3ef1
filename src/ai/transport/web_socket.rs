//! WebSocket connections (RFC 6455) to services, opened by the HTTP client.
//!
//! The client sends the upgrade, so proxies, certificates and the rule for addresses of this
//! machine are those of every other request. `tungstenite` reads and writes the frames; the
//! upgrade is checked here. Pings are answered while somebody reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded, Url};
use ring::digest;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use uuid::Uuid;

use super::http::{Route, Transport, root_cause};
use super::sse::FRAME_LIMIT_BYTES;
use crate::ai::failure::{FailureClass, RequestError};

/// Memory that a connection has for what arrives.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// Appended to the key, RFC 6455, section 1.3.
const ACCEPT_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The code of a connection that ended without one, RFC 6455, section 7.1.5.
const ABNORMAL: u16 = 1006;

/// A connection. Dropping it closes it at once.
#[derive(Debug)]
pub(in crate::ai) struct WebSocket(WebSocketStream<Upgraded>);

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ai) struct NoSocket {
    pub(in crate::ai) text: String,
    /// The next attempt would end in the same way.
    pub(in crate::ai) is_lasting: bool,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ai) enum SocketEnd {
    /// Closed, by the service with a code (RFC 6455, section 7.4) or by the network.
    Closed { code: u16, reason: String },
    /// The service sent what pi does not read.
    Unreadable(String),
}

impl From<SocketEnd> for RequestError {
    fn from(end: SocketEnd) -> Self {
        let class = match &end {
            // The same request would be refused again: protocol, data, policy, extension.
            SocketEnd::Closed { code: 1002 | 1003 | 1007 | 1008 | 1010, .. } => FailureClass::InvalidRequest,
            // The message was too big.
            SocketEnd::Closed { code: 1009, .. } => FailureClass::Overflow,
            SocketEnd::Closed { code: 1011, .. } => FailureClass::Server,
            SocketEnd::Closed { code: 1013, .. } => FailureClass::Overloaded,
            SocketEnd::Closed { .. } => FailureClass::Network,
            SocketEnd::Unreadable(_) => FailureClass::Unknown,
        };
        Self::of_class(end.to_string(), class)
    }
}

impl std::fmt::Display for SocketEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed { code, reason } if reason.is_empty() => write!(f, "websocket closed {code}"),
            Self::Closed { code, reason } => write!(f, "websocket closed {code} ({reason})"),
            Self::Unreadable(what) => write!(f, "websocket error: {what}"),
        }
    }
}

impl Transport {
    /// Opens a connection to `url`, whose scheme is that of HTTP. There is no deadline; dropping
    /// the future gives it up.
    ///
    /// # Errors
    /// If the service cannot be reached or does not speak the protocol there.
    pub(in crate::ai) async fn web_socket(
        &self,
        url: &str,
        mut headers: HeaderMap,
        provider: &str,
        now_ms: u64,
    ) -> Result<WebSocket, NoSocket> {
        let lasting = |text: String| NoSocket { text, is_lasting: true };
        let url: Url = url.parse().map_err(|error| lasting(format!("invalid URL: {error}")))?;
        let key = STANDARD.encode(Uuid::new_v4().as_bytes());
        let key_value = HeaderValue::from_str(&key).map_err(|error| lasting(error.to_string()))?;
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, key_value);
        let client = self.socket_client(Route::to(&url)).map_err(lasting)?;
        let origin = url.origin().ascii_serialization();
        let response = client.get(url).headers(headers).send().await.map_err(|error| NoSocket {
            text: format!("cannot reach {origin} ({})", root_cause(&error)),
            is_lasting: false,
        })?;
        self.quotas().note(provider, response.headers(), now_ms);
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            // Keys expire and limits pass; a service or proxy that does not know the protocol stays so.
            let is_lasting = !matches!(status.as_u16(), 401 | 403 | 408 | 429) && !status.is_server_error();
            return Err(NoSocket {
                text: format!("{origin} answered the upgrade with {status}"),
                is_lasting,
            });
        }
        check_upgrade(response.headers(), &key).map_err(lasting)?;
        let upgraded = response.upgrade().await.map_err(|error| NoSocket {
            text: format!("the upgrade failed ({})", root_cause(&error)),
            is_lasting: false,
        })?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(FRAME_LIMIT_BYTES))
            .max_frame_size(Some(FRAME_LIMIT_BYTES));
        Ok(WebSocket(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await))
    }
}

/// RFC 6455, section 4.1.
fn check_upgrade(headers: &HeaderMap, key: &str) -> Result<(), String> {
    let header = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    if !header(UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket")) {
        return Err("the service switched to another protocol".to_owned());
    }
    if header(SEC_WEBSOCKET_ACCEPT) != Some(accept_key(key).as_str()) {
        return Err("the service did not accept the key of the upgrade".to_owned());
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) || headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return Err("the service chose an extension that pi did not offer".to_owned());
    }
    Ok(())
}

fn accept_key(key: &str) -> String {
    let text = format!("{key}{ACCEPT_GUID}");
    STANDARD.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

impl WebSocket {
    /// # Errors
    /// If the connection is closed.
    pub(in crate::ai) async fn send(&mut self, text: String) -> Result<(), SocketEnd> {
        self.0.send(Message::text(text)).await.map_err(|error| end_of(&error))
    }

    /// The next message of the service; answers pings meanwhile. Nothing is lost if the
    /// future is dropped.
    ///
    /// # Errors
    /// If the connection is closed.
    pub(in crate::ai) async fn next(&mut self) -> Result<Utf8Bytes, SocketEnd> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Binary(bytes))) => {
                    return Err(SocketEnd::Unreadable(format!("{} bytes that are no text", bytes.len())));
                }
                Some(Ok(Message::Close(frame))) => return Err(closed(frame)),
                Some(Err(error)) => return Err(end_of(&error)),
                None => return Err(closed(None)),
            }
        }
    }

    /// A message that has already arrived.
    pub(in crate::ai) fn next_now(&mut self) -> Option<Result<Utf8Bytes, SocketEnd>> {
        self.next().now_or_never()
    }
}

fn closed(frame: Option<CloseFrame>) -> SocketEnd {
    match frame {
        Some(frame) => SocketEnd::Closed { code: frame.code.into(), reason: frame.reason.to_string() },
        None => SocketEnd::Closed { code: ABNORMAL, reason: String::new() },
    }
}

fn end_of(error: &Error) -> SocketEnd {
    match error {
        Error::Capacity(error) => SocketEnd::Unreadable(error.to_string()),
        Error::Utf8(_) => SocketEnd::Unreadable("a message that is no UTF-8".to_owned()),
        Error::Io(error) => SocketEnd::Closed { code: ABNORMAL, reason: error.to_string() },
        // A connection that breaks off is reported as one of these.
        _ => SocketEnd::Closed { code: ABNORMAL, reason: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_answered_as_the_standard_says() {
        // RFC 6455, section 1.3.
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn upgrade_is_refused_unless_it_is_the_one_asked_for() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let check = |changes: &[(&'static str, &'static str)], is_right: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
            headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
            for (name, value) in changes {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(check_upgrade(&headers, key).is_ok(), is_right, "{changes:?}");
        };
        check(&[], true);
        check(&[("upgrade", "h2c")], false);
        check(&[("sec-websocket-accept", "AAAA")], false);
        check(&[("sec-websocket-extensions", "permessage-deflate")], false);
        check(&[("sec-websocket-protocol", "chat")], false);
    }

    #[test]
    fn close_codes_decide_whether_the_request_may_succeed_later() {
        let check = |code: u16, reason: &str, expected: (&str, FailureClass)| {
            let error: RequestError = SocketEnd::Closed { code, reason: reason.to_owned() }.into();
            assert_eq!((error.text.as_str(), error.failure.class), expected);
        };
        check(1006, "", ("websocket closed 1006", FailureClass::Network));
        check(1001, "going away", ("websocket closed 1001 (going away)", FailureClass::Network));
        check(1008, "policy", ("websocket closed 1008 (policy)", FailureClass::InvalidRequest));
        check(1009, "", ("websocket closed 1009", FailureClass::Overflow));
        check(1011, "", ("websocket closed 1011", FailureClass::Server));
        check(1013, "", ("websocket closed 1013", FailureClass::Overloaded));
        check(4001, "own", ("websocket closed 4001 (own)", FailureClass::Network));
    }
}
