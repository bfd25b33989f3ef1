//! Addresses of models on Vertex AI.
//!
//! An API key needs neither project nor location: express mode has one address for
//! all, and an unfilled template is replaced by it.

use super::EncodeError;
use crate::ai::models::versioned;
use crate::ai::requests::Request;
use crate::ai::transport::{Credential, escape_segment};

/// The URL of `method` of the request's model, published by `publisher`.
///
/// # Errors
/// If project and location are required but were not filled in.
pub(super) fn model_url(request: &Request, publisher: &str, method: &str) -> Result<String, EncodeError> {
    let base = request.base_url().trim_end_matches('/');
    let base = match &request.credential {
        Credential::ApiKey(_) => express(base),
        _ if base.contains("{project}") || base.contains("{location}") => return Err(EncodeError::NoPlace),
        _ if base.contains("/projects/") => base.to_owned(),
        _ => versioned(base),
    };
    let id = request.model.id.as_str();
    let id = id.strip_prefix(publisher).and_then(|rest| rest.strip_prefix('/')).unwrap_or(id);
    Ok(format!("{base}/publishers/{publisher}/models/{}:{method}", escape_segment(id)))
}

/// The address for API keys, which imply their project.
fn express(base: &str) -> String {
    let host = base.replace("{location}-aiplatform", "aiplatform");
    if host.contains("/projects/") && !host.contains('{') {
        return host;
    }
    let host = host.split("/projects/").next().unwrap_or_default();
    versioned(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::models::VERTEX_TEMPLATE;

    #[test]
    fn keys_need_no_place() {
        let check = |base: &str, expected: &str| assert_eq!(express(base), expected);
        check(VERTEX_TEMPLATE, "https://aiplatform.googleapis.com/v1");
        check(
            "https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}",
            "https://aiplatform.googleapis.com/v1",
        );
        check("http://x/v1/projects/p/locations/l", "http://x/v1/projects/p/locations/l");
        check("http://x", "http://x/v1");
    }
}
