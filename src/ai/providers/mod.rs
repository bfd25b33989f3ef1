//! The providers that answer requests.
//!
//! `provider` is the trait between callers and providers. `http_provider` does
//! everything between encoding a request and decoding its answer, `answer` turns
//! bytes of a response into events, `reading` waits for those bytes, `router` selects the provider by the model,
//! `sockets` sends requests over WebSockets where services have them,
//! `text_answer` makes events of a text for providers elsewhere, and `fake` is the
//! scripted provider for tests. The invariant: a stream ends in
//! exactly one `Done`, which contains the failure if there was one.

mod answer;
mod fake;
mod http_provider;
mod provider;
mod reading;
mod router;
mod sockets;
mod text_answer;

pub use answer::decode_recorded;
pub use fake::{FakeAnswer, FakeProvider, TestBarrier};
pub use http_provider::{HttpOptions, HttpProvider, RequestPreview, preview_request, request_body};
pub use provider::Provider;
pub use router::Router;
pub use sockets::WebSocketUse;
pub use text_answer::text_answer;
