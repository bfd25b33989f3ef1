//! Azure's addresses for the OpenAI APIs it hosts:
//! <https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle>.
//!
//! The user configures a resource as a bare host, with part of the path, or as a
//! complete address copied from a portal; all are equivalent. A dated `api-version`
//! in the address selects the API before `/openai/v1`.

use std::borrow::Cow;

use reqwest::Url;

use super::EncodeError;
use crate::ai::requests::Request;

const HOSTS: &[&str] = &[".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"];
const CURRENT_VERSIONS: &[&str] = &["v1", "preview", "latest"];

/// The URL of `path`, such as `/responses`, at the request's resource.
///
/// # Errors
/// If no address is configured: every resource has its own, so there is no default.
pub(super) fn url(request: &Request, path: &str) -> Result<String, EncodeError> {
    let base = request.base_url();
    if base.trim().is_empty() {
        return Err(EncodeError::NoAddress(request.model.provider.clone()));
    }
    // The transport reports addresses that are invalid.
    let Ok(mut url) = Url::parse(base) else { return Ok(super::join_url(base, path)) };
    let version =
        url.query_pairs().find(|(name, _)| name == "api-version").map(|(_, value)| value.into_owned());
    let is_dated = version.as_deref().is_some_and(|version| !CURRENT_VERSIONS.contains(&version));
    let given = url.path().trim_end_matches('/').to_owned();
    let given = given.strip_suffix(path).unwrap_or(&given);
    let is_azure = url.host_str().is_some_and(|host| HOSTS.iter().any(|end| host.ends_with(end)));
    let is_root = matches!(given, "" | "/openai" | "/openai/v1") || given.starts_with("/openai/deployments/");
    let root = match (is_azure && is_root, is_dated) {
        (true, false) => Cow::Borrowed("/openai/v1"),
        // Only the chat API has an address per deployment.
        (true, true) if path == "/chat/completions" => {
            Cow::Owned(format!("/openai/deployments/{}", deployment(request)))
        }
        (true, true) => Cow::Borrowed("/openai"),
        // A gateway in front of the resource, or another endpoint of it.
        (false, _) => Cow::Borrowed(given),
    };
    url.set_path(&format!("{root}{path}"));
    if version.is_none() {
        url.query_pairs_mut().append_pair("api-version", "v1");
    }
    Ok(url.into())
}

/// The name of the deployment: the flag `deployment`, otherwise the name in the
/// address, otherwise the model's id.
pub(super) fn deployment(request: &Request) -> Cow<'_, str> {
    let model = &request.model;
    if let Some(name) = model.compat.get("deployment").and_then(serde_json::Value::as_str) {
        return Cow::Borrowed(name);
    }
    let in_address = request.base_url().split_once("/deployments/").map(|(_, rest)| rest);
    let name = in_address.and_then(|rest| rest.split(['/', '?']).next()).filter(|name| !name.is_empty());
    Cow::Borrowed(name.unwrap_or(&model.id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::ai::requests::StreamOptions;
    use crate::ai::transport::Credential;

    fn request(base: &str, deployment: Option<&str>) -> Request {
        let mut model = json!({"id": "gpt", "provider": "azure", "baseUrl": base});
        if let Some(name) = deployment {
            model["compat"] = json!({"deployment": name});
        }
        Request {
            model: Arc::new(serde_json::from_value(model).unwrap()),
            credential: Credential::None,
            messages: Vec::new(),
            options: StreamOptions::default(),
        }
    }

    #[test]
    fn every_form_of_an_address_means_the_same_place() {
        let check = |base: &str, path: &str, expected: &str| {
            assert_eq!(url(&request(base, None), path).unwrap(), expected, "{base}");
        };
        for base in [
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/",
            "https://r.openai.azure.com/openai",
            "https://r.openai.azure.com/openai/v1/",
            "https://r.openai.azure.com/openai/v1/responses",
            "https://r.openai.azure.com/openai/v1/responses?api-version=v1",
            "https://r.openai.azure.com/openai/deployments/d",
        ] {
            check(base, "/responses", "https://r.openai.azure.com/openai/v1/responses?api-version=v1");
        }
        check(
            "https://r.cognitiveservices.azure.com",
            "/chat/completions",
            "https://r.cognitiveservices.azure.com/openai/v1/chat/completions?api-version=v1",
        );
        check(
            "https://r.services.ai.azure.com/models?api-version=2024-05-01-preview",
            "/chat/completions",
            "https://r.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
        );
        check(
            "https://r.openai.azure.com/openai/v1?api-version=preview",
            "/responses",
            "https://r.openai.azure.com/openai/v1/responses?api-version=preview",
        );
        check(
            "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
            "/chat/completions",
            "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
        );
        check(
            "https://r.openai.azure.com?api-version=2025-04-01-preview",
            "/responses",
            "https://r.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
        );
        check("https://gate.way/azure", "/responses", "https://gate.way/azure/responses?api-version=v1");
        check("nowhere", "/responses", "nowhere/responses");
    }

    #[test]
    fn a_resource_without_an_address_is_refused() {
        let error = url(&request("", None), "/responses").unwrap_err().to_string();
        assert!(error.contains("azure") && error.contains("baseUrl"), "{error}");
    }

    #[test]
    fn a_deployment_is_named_by_flag_address_or_model() {
        let check = |base: &str, flag: Option<&str>, expected: &str| {
            assert_eq!(deployment(&request(base, flag)), expected);
        };
        check("https://r.openai.azure.com", None, "gpt");
        check("https://r.openai.azure.com/openai/deployments/d?x=1", None, "d");
        check("https://r.openai.azure.com/openai/deployments/d/chat/completions", None, "d");
        check("https://r.openai.azure.com/openai/deployments/d", Some("flag"), "flag");
        check("https://r.openai.azure.com/openai/deployments/", None, "gpt");
    }
}
