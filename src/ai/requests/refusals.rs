//! Remembers what a model's service refuses of what it was believed to take.
//!
//! Whether a service enforces the schemas of tools, reads instructions and tools
//! between the turns, or lets another model stand in is not always known, and a
//! gateway may pass on less than the service takes. A request refused for one of
//! these is repeated once without it, and where that was taken the model gets none
//! of it for the rest of the process, so that its prompts begin alike from then
//! on. What `failure` takes for such a refusal is decided there; sending is left
//! to `http_provider`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::request::Request;
use crate::ai::failure::{refuses_strict_schemas, refuses_updates};

/// What was refused. Clones share the memory.
#[derive(Debug, Clone, Default)]
pub(in crate::ai) struct Refusals {
    known: Arc<Mutex<HashSet<(Refused, String, String)>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Refused {
    StrictSchemas,
    Updates,
}

const ALL: [Refused; 2] = [Refused::StrictSchemas, Refused::Updates];

/// A request to send in place of a refused one; what to remember if it is taken.
#[derive(Debug)]
pub(in crate::ai) struct Repeat {
    pub(in crate::ai) request: Arc<Request>,
    refused: Refused,
}

impl Refusals {
    /// `request` in the form its model takes as far as is known.
    pub(in crate::ai) fn apply(&self, mut request: Arc<Request>) -> Arc<Request> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always empty, and then a request costs nothing.
        if known.is_empty() {
            return request;
        }
        for refused in ALL {
            if known.contains(&key(refused, &request)) {
                request = without(refused, &request);
            }
        }
        request
    }

    /// What to send instead of `request`, which failed with `error`, if one of these
    /// was the reason and the request, as `encode` writes it, would be another
    /// without it.
    pub(in crate::ai) fn repeat<E: PartialEq>(
        request: &Request,
        error: &str,
        encode: impl Fn(&Request) -> Option<E>,
    ) -> Option<Repeat> {
        let refused = match error {
            _ if refuses_updates(error) && !request.options.without_updates => Refused::Updates,
            _ if refuses_strict_schemas(error) && !request.options.without_strict_schemas => {
                Refused::StrictSchemas
            }
            _ => return None,
        };
        let changed = without(refused, request);
        // The error may be about something else; then nothing would be different.
        let is_other = encode(request)? != encode(&changed)?;
        is_other.then_some(Repeat { request: changed, refused })
    }

    /// Notes that the repeated request was taken.
    pub(in crate::ai) fn learn(&self, repeat: &Repeat) {
        let key = key(repeat.refused, &repeat.request);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }
}

/// The model at its address: behind another one may be another service.
fn key(refused: Refused, request: &Request) -> (Refused, String, String) {
    (refused, request.model.reference(), request.base_url().to_owned())
}

fn without(refused: Refused, request: &Request) -> Arc<Request> {
    let mut request = request.clone();
    match refused {
        Refused::StrictSchemas => request.options.without_strict_schemas = true,
        Refused::Updates => request.options.without_updates = true,
    }
    Arc::new(request)
}
