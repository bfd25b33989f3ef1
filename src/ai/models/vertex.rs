//! The endpoint of a model on Vertex AI, which depends on project and location.
//!
//! Base URLs of Vertex models are templates. The code that finds a request's
//! credential also knows the account's [`VertexPlace`]; it fills the template and
//! passes the result as [`SignIn::base_url`](crate::ai::requests::SignIn). Nothing
//! here reads settings or the environment.
//!
//! Addresses: <https://cloud.google.com/vertex-ai/docs/reference/rest>,
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/overview>.

use crate::ai::transport::escape_segment;

/// The base URL of a Vertex model before project and location are known.
pub const VERTEX_TEMPLATE: &str = "https://{location}-aiplatform.googleapis.com";

/// The project that pays for requests to Vertex AI, and the location that serves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexPlace {
    /// Id or number of the project.
    pub project: String,
    /// A region such as `europe-west4`, or `global`.
    pub location: String,
}

impl VertexPlace {
    /// `template` with `{project}` and `{location}` filled in; project and
    /// location are appended as a path if the template does not contain them. Up to the
    /// version, a template is [`VERTEX_TEMPLATE`] or the address of a proxy.
    pub fn base_url(&self, template: &str) -> String {
        let project = escape_segment(&self.project);
        let location = escape_segment(&self.location);
        // The global endpoint has no location in its host.
        let template = match self.location.as_str() {
            "global" => template.replace("{location}-aiplatform", "aiplatform"),
            _ => template.to_owned(),
        };
        let filled = template.replace("{project}", &project).replace("{location}", &location);
        let filled = filled.trim_end_matches('/');
        if filled.contains("/projects/") {
            return filled.to_owned();
        }
        format!("{}/projects/{project}/locations/{location}", versioned(filled))
    }
}

/// `base` with the API version appended, unless it contains one.
pub(in crate::ai) fn versioned(base: &str) -> String {
    let last = base.rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    if is_version { base.to_owned() } else { format!("{base}/v1") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_project_and_location() {
        let check = |template: &str, location: &str, expected: &str| {
            let place = VertexPlace { project: "p/1".to_owned(), location: location.to_owned() };
            assert_eq!(place.base_url(template), expected);
        };
        check(
            VERTEX_TEMPLATE,
            "europe-west4",
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p%2F1/locations/europe-west4",
        );
        check(
            VERTEX_TEMPLATE,
            "global",
            "https://aiplatform.googleapis.com/v1/projects/p%2F1/locations/global",
        );
        check(
            "http://proxy/vertex/v1beta1/",
            "global",
            "http://proxy/vertex/v1beta1/projects/p%2F1/locations/global",
        );
        check(
            "http://x/v1/projects/{project}/locations/{location}",
            "us-east5",
            "http://x/v1/projects/p%2F1/locations/us-east5",
        );
    }
}
