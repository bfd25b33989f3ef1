//! How requests and answers travel: connections, framing, signatures, silence.
//!
//! `http` sends a request and returns the response or the text of the failure,
//! `http_call` is for small requests such as signing in, `credential` authenticates
//! requests, `http_body` is what is sent, `framing` splits answers into frames with `sse`
//! (server-sent events) or `event_stream` (Amazon's binary form), `pace` lets a trickle collect,
//! `answer_thread` sleeps meanwhile, `quota` reads the limits that services report, `roots` has
//! certificates that the user trusts, `sigv4` signs, `silence` detects dead connections,
//! `web_socket` opens connections of messages, and `redact` removes secrets from error texts.
//! Nothing here knows messages or models.

mod address;
mod answer_thread;
mod credential;
mod event_stream;
pub(super) mod framing;
mod http;
mod http_body;
mod http_call;
mod pace;
mod quota;
pub(super) mod redact;
mod roots;
pub(super) mod sigv4;
mod silence;
mod sse;
mod web_socket;

pub(super) use address::escape_segment;
pub(super) use answer_thread::{AnswerThread, Rest};
pub use credential::{AwsKeys, Credential, SignIn};
pub(super) use framing::{Frames, Framing};
pub use http::Transport;
pub(super) use http::{HttpRequest, Route, connection_error, html_text, read_whole, root_cause};
pub(super) use http_body::HttpBody;
pub use http_call::{CallBody, CallError, CallReply, HttpCall};
pub(super) use pace::Pace;
pub use quota::{Quota, QuotaWindow, Quotas};
pub use roots::ExtraRoots;
pub(super) use sigv4::Scope;
pub(super) use silence::{AFTER_A_STOP, silence};
pub(super) use sse::{FRAME_LIMIT_BYTES, SseFrame, SseItem};
pub use sse::{RecordedFrame, recorded_frames};
pub(super) use web_socket::{SocketEnd, WebSocket};
