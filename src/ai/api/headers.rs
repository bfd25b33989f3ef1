//! The headers of a request.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::EncodeError;
use crate::ai::requests::{Prompt, Turn};

/// Headers by name; a later header replaces an earlier one.
#[derive(Debug, Default)]
pub(super) struct Headers(pub(super) HeaderMap);

impl Headers {
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        let refused = || EncodeError::Header(name.to_owned());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        self.0.insert(key, HeaderValue::from_str(value.trim()).map_err(|_| refused())?);
        Ok(())
    }

    /// Sets a header whose value must not be printed.
    pub(super) fn set_secret(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        self.set(name, value)?;
        if let Some(value) = self.0.get_mut(name) {
            value.set_sensitive(true);
        }
        Ok(())
    }

    pub(super) fn set_bearer(&mut self, token: &str) -> Result<(), EncodeError> {
        self.set_secret("authorization", &format!("Bearer {token}"))
    }

    /// Sets the headers Copilot requires on every API: who initiated the request, which
    /// determines the charge, and its purpose.
    pub(super) fn set_copilot(&mut self, prompt: &Prompt<'_>) -> Result<(), EncodeError> {
        let last = prompt.turns.iter().rev().find(|turn| !matches!(turn, Turn::System(_)));
        let by_user = matches!(last, Some(Turn::User(_)) | None);
        self.set("x-initiator", if by_user { "user" } else { "agent" })?;
        self.set("openai-intent", "conversation-edits")?;
        if prompt.has_images() {
            self.set("copilot-vision-request", "true")?;
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, headers: &BTreeMap<String, String>) -> Result<(), EncodeError> {
        headers.iter().try_for_each(|(name, value)| self.set(name, value))
    }
}
