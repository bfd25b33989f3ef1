//! Remembers which optional features an endpoint rejected.
//!
//! pi cannot always know whether a service enforces tool schemas, reads system
//! messages between the turns, supports fallback models, or wants every answer back
//! with a reasoning field, and a
//! gateway may pass on less than the service supports. A request rejected for one
//! of these is repeated once without it, or with the field. If the repeated request succeeds,
//! that holds for the model until the process ends, so that its prompts
//! keep the same beginning. `failure` decides which errors count as such a
//! rejection; `http_provider` sends the requests.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::request::Request;
use crate::ai::failure::{RequestError, demands_reasoning_content, refuses_strict_schemas, refuses_updates};

/// The rejected features. Clones share the memory.
#[derive(Debug, Clone, Default)]
pub(in crate::ai) struct Refusals {
    known: Arc<Mutex<HashSet<(Refused, String, String)>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Refused {
    StrictSchemas,
    Updates,
    /// Answers without `reasoning_content`.
    MissingReasoning,
}

const ALL: [Refused; 3] = [Refused::StrictSchemas, Refused::Updates, Refused::MissingReasoning];

/// A request to send instead of a rejected one, and what to remember if it succeeds.
#[derive(Debug)]
pub(in crate::ai) struct Repeat {
    pub(in crate::ai) request: Arc<Request>,
    refused: Refused,
}

impl Refusals {
    /// `request` without the features its model is known to reject.
    pub(in crate::ai) fn apply(&self, mut request: Arc<Request>) -> Arc<Request> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always empty, so that requests cost nothing.
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

    /// The request to send instead of `request`, which failed with `error`. `None` unless
    /// the error rejects one of these features and the request, as `encode` writes it,
    /// differs without the feature.
    pub(in crate::ai) fn repeat<E: PartialEq>(
        request: &Request,
        error: &RequestError,
        encode: impl Fn(&Request) -> Option<E>,
    ) -> Option<Repeat> {
        let options = &request.options;
        let refused = match error {
            _ if demands_reasoning_content(error) && !options.with_reasoning_content => {
                Refused::MissingReasoning
            }
            _ if refuses_updates(error) && !request.options.without_updates => Refused::Updates,
            _ if refuses_strict_schemas(error) && !request.options.without_strict_schemas => {
                Refused::StrictSchemas
            }
            _ => return None,
        };
        let changed = without(refused, request);
        // The error may have another cause; then the repeated request would be identical.
        let is_other = encode(request)? != encode(&changed)?;
        is_other.then_some(Repeat { request: changed, refused })
    }

    /// Records that the repeated request succeeded.
    pub(in crate::ai) fn learn(&self, repeat: &Repeat) {
        let key = key(repeat.refused, &repeat.request);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }
}

/// The model and its address, because another address may be another service.
fn key(refused: Refused, request: &Request) -> (Refused, String, String) {
    (refused, request.model.reference(), request.base_url().to_owned())
}

fn without(refused: Refused, request: &Request) -> Arc<Request> {
    let mut request = request.clone();
    match refused {
        Refused::StrictSchemas => request.options.without_strict_schemas = true,
        Refused::Updates => request.options.without_updates = true,
        Refused::MissingReasoning => request.options.with_reasoning_content = true,
    }
    Arc::new(request)
}
