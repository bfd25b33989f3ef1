//! Selects the provider by the model.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::http_provider::HttpProvider;
use crate::ai::messages::{Api, EventStream};
use crate::ai::models::Model;
use crate::ai::providers::Provider;
use crate::ai::requests::Request;

/// The provider of the whole program: those of the embedding program for their models,
/// the demo model for [`Api::DEMO`], HTTP for all others. An unsupported API results in
/// an answer with the error.
pub struct Router {
    http: HttpProvider,
    demo: Option<Arc<dyn Provider>>,
    /// With the provider ids of their models.
    hosted: Vec<(String, Arc<dyn Provider>)>,
}

impl Router {
    /// Without `demo`, requests to the demo model fail.
    pub fn new(http: HttpProvider, demo: Option<Arc<dyn Provider>>) -> Self {
        Self { http, demo, hosted: Vec::new() }
    }

    /// Sends requests to models of the provider `id` to `provider`.
    #[must_use]
    pub fn with_provider(mut self, id: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.hosted.push((id.into(), provider));
        self
    }

    fn of(&self, model: &Model) -> &dyn Provider {
        let hosted = self.hosted.iter().find(|(id, _)| *id == model.provider);
        match (hosted, &self.demo) {
            (Some((_, provider)), _) => provider.as_ref(),
            (None, Some(demo)) if model.api == Api::DEMO => demo.as_ref(),
            (None, _) => &self.http,
        }
    }
}

impl Provider for Router {
    fn warm_up(&self, model: &Model) {
        self.of(model).warm_up(model);
    }

    fn end_session(&self, session_id: &str) {
        self.http.end_session(session_id);
        let others = self.hosted.iter().map(|(_, provider)| provider).chain(&self.demo);
        others.for_each(|provider| provider.end_session(session_id));
    }

    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        self.of(&request.model).stream(request, cancel)
    }
}
