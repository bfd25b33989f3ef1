//! The trait between callers that want an answer and providers that produce it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::ai::messages::EventStream;
use crate::ai::models::Model;
use crate::ai::requests::Request;

/// Answers requests. `HttpProvider` for real services, `DemoProvider` without
/// one, `FakeProvider` in tests; `Router` selects by the model's API.
pub trait Provider: Send + Sync {
    /// Starts an answer. The stream ends soon after `cancel` fires, with
    /// `StopReason::Aborted` and the content that had arrived. Dropping the
    /// stream ends the work behind it.
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream;

    /// Does slow preparations for the first request to `model` in advance.
    /// Blocks; optional.
    fn warm_up(&self, _model: &Model) {}

    /// Closes what was kept open for the next request of the session with this
    /// [`session_id`](crate::ai::StreamOptions::session_id); optional.
    fn end_session(&self, _session_id: &str) {}
}
