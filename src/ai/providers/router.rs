//! Selects the provider by the model's API.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::http_provider::HttpProvider;
use crate::ai::messages::{Api, EventStream};
use crate::ai::models::Model;
use crate::ai::providers::Provider;
use crate::ai::requests::Request;

/// The provider of the whole program: the demo model for [`Api::DEMO`], HTTP
/// for all others. An unsupported API results in an answer with the error.
pub struct Router {
    http: HttpProvider,
    demo: Option<Arc<dyn Provider>>,
}

impl Router {
    pub fn new(http: HttpProvider, demo: Option<Arc<dyn Provider>>) -> Self {
        Self { http, demo }
    }
}

impl Provider for Router {
    fn warm_up(&self, model: &Model) {
        self.http.warm_up(model);
    }

    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        match &self.demo {
            Some(demo) if request.model.api == Api::DEMO => demo.stream(request, cancel),
            _ => self.http.stream(request, cancel),
        }
    }
}
