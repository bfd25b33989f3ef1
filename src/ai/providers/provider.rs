//! The seam between callers who want an answer and those who produce it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::ai::messages::EventStream;
use crate::ai::models::Model;
use crate::ai::requests::Request;

/// Answers requests. `HttpProvider` for real services, `DemoProvider` without
/// one, `FakeProvider` in tests; `Router` picks by the model's API.
pub trait Provider: Send + Sync {
    /// Starts answering. The stream ends soon after `cancel` fires, with
    /// `StopReason::Aborted` and what had arrived until then. Dropping the
    /// stream ends the work behind it.
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream;

    /// Gets ready for the first request to `model`, which then need not wait for
    /// what takes long. Blocks; optional.
    fn warm_up(&self, _model: &Model) {}
}
