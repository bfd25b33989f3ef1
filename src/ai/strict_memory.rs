//! Remembers who refuses strict schemas.
//!
//! Whether a service enforces the schemas of tools is not always known, nor are
//! its limits. A request refused for them is repeated once without those that
//! tools merely prefer, and the model gets none for the rest of the process, so
//! that its prompts begin alike from then on. What `failure` takes for such a
//! refusal is decided there; sending is left to `http_provider`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::api::WireApi;
use super::failure::refuses_strict_schemas;
use super::provider::Request;

/// The models that refused. Clones share the memory.
#[derive(Debug, Clone, Default)]
pub(super) struct StrictMemory {
    refused: Arc<Mutex<HashSet<(String, String)>>>,
}

impl StrictMemory {
    /// `request` in the form its model takes as far as is known.
    pub(super) fn apply(&self, request: Arc<Request>) -> Arc<Request> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always empty, and then a request costs nothing.
        if refused.is_empty() || !refused.contains(&key(&request)) { request } else { without(&request) }
    }

    /// What to send instead of `request`, which failed with `error`, if strict
    /// schemas were the reason; that is then remembered.
    pub(super) fn learn(&self, codec: &dyn WireApi, request: &Request, error: &str) -> Option<Arc<Request>> {
        if request.options.without_strict_schemas || !refuses_strict_schemas(error) {
            return None;
        }
        let changed = without(request);
        // The error may be about something else; then nothing would be different.
        if codec.encode(request).ok()?.body == codec.encode(&changed).ok()?.body {
            return None;
        }
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(key(request));
        Some(changed)
    }
}

/// The model at its address: behind another one may be another service.
fn key(request: &Request) -> (String, String) {
    (request.model.reference(), request.base_url().to_owned())
}

fn without(request: &Request) -> Arc<Request> {
    let mut request = request.clone();
    request.options.without_strict_schemas = true;
    Arc::new(request)
}
