//! The images each service accepts: limits for embedded images, which `vendors` assigns
//! to servers, and one rule for images by URL.
//!
//! The facts come from the vendors' pages on vision input; where a page limits
//! decoded bytes, the base64 length is given. Any other service gets the formats every
//! server with vision reads. `image_fit` enforces the limits per request; stored images
//! obey `ImageLimits::default`, which is stricter than nearly all of them.

use super::model::Model;
use super::vendors::Server;
use crate::ai::messages::{Api, ImageUrl};
use crate::util::image::ImageLimits;

/// The limits of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) struct ImageRules {
    /// Limits for each image.
    pub(in crate::ai) each: ImageLimits,
    /// With more images than the first number, no side may be longer than the second.
    pub(in crate::ai) crowded: Option<(usize, u32)>,
    /// Maximum number of images per request.
    pub(in crate::ai) max_images: usize,
    /// Maximum number of images per message.
    pub(in crate::ai) max_per_message: usize,
    /// Maximum base64 length per request; leaves room for its text.
    pub(in crate::ai) max_request_bytes: usize,
}

impl ImageRules {
    pub(in crate::ai) fn of(model: &Model) -> Self {
        let of_server = Server::of(model, |server| server.images.is_some()).and_then(|server| server.images);
        let mut rules = of_server.unwrap_or_else(|| of_api(&model.api));
        // Models with a larger window accept more.
        if rules.max_images == 100 && model.context_window > 200_000 {
            rules.max_images = 600;
        }
        // Limits in models.json take precedence.
        let limit = |path: &str| input_limit(model, path).and_then(|limit| usize::try_from(limit).ok());
        let max_images = limit("/images/maxPerRequest").or_else(|| limit("/imagesPerRequest"));
        rules.max_images = max_images.unwrap_or(rules.max_images);
        rules.max_per_message = limit("/images/maxPerMessage").unwrap_or(rules.max_per_message);
        rules.max_request_bytes = limit("/maxRequestBytes").unwrap_or(rules.max_request_bytes);
        rules
    }
}

/// The limits for images stored while `model` is in use: those of `models.json`,
/// otherwise the strictest among the large providers. `auto_resize` is the user's
/// setting; without it only formats change.
pub(in crate::ai) fn for_storing(model: &Model, auto_resize: bool) -> ImageLimits {
    let usual = ImageLimits { auto_resize, ..ImageLimits::default() };
    let limit = |name: &str| input_limit(model, &format!("/images/resize/{name}"));
    let side = |name: &str| limit(name).map(|side| u32::try_from(side).unwrap_or(u32::MAX).max(1));
    ImageLimits {
        max_width: side("maxWidth").unwrap_or(usual.max_width),
        max_height: side("maxHeight").unwrap_or(usual.max_height),
        max_base64_bytes: limit("maxBytes")
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(usual.max_base64_bytes),
        jpeg_quality: limit("jpegQuality")
            .map_or(usual.jpeg_quality, |quality| u8::try_from(quality.clamp(1, 100)).unwrap_or(100)),
        ..usual
    }
}

/// A number in the `inputLimits` of `model`.
fn input_limit(model: &Model, path: &str) -> Option<u64> {
    model.extra.get("inputLimits")?.pointer(path)?.as_u64()
}

const MIB: usize = 1 << 20;
const PNG_JPEG: &[&str] = &["image/png", "image/jpeg"];
const WITH_WEBP: &[&str] = &["image/png", "image/jpeg", "image/webp"];
const WITH_GIF: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

const fn rules(
    formats: &'static [&'static str],
    max_side: u32,
    max_base64_bytes: usize,
    max_images: usize,
    max_request_bytes: usize,
) -> ImageRules {
    let (max_width, max_height) = (max_side, max_side);
    ImageRules {
        each: ImageLimits {
            auto_resize: true,
            max_width,
            max_height,
            max_base64_bytes,
            jpeg_quality: 80,
            formats,
        },
        crowded: None,
        max_images,
        max_per_message: usize::MAX,
        max_request_bytes,
    }
}

/// Self-hosted servers often decode only PNG and JPEG.
const ANY: ImageRules = rules(PNG_JPEG, u32::MAX, 20 * MIB, usize::MAX, 64 * MIB);

pub(super) const GROQ: ImageRules = rules(PNG_JPEG, u32::MAX, 4_000_000, 5, 20 * MIB);

pub(super) const XAI: ImageRules = rules(PNG_JPEG, u32::MAX, 10 * MIB, usize::MAX, 64 * MIB);

/// 3.75 MB decoded.
pub(super) const BEDROCK: ImageRules =
    ImageRules { max_per_message: 20, ..rules(WITH_GIF, 8_000, 5_000_000, usize::MAX, 20 * MIB) };

/// 32 MB a request, 30 MB on Vertex AI.
pub(super) const ANTHROPIC: ImageRules =
    ImageRules { crowded: Some((20, 2_000)), ..rules(WITH_GIF, 8_000, 5 * MIB, 100, 24 * MIB) };

/// 20 MB a request.
pub(super) const GOOGLE: ImageRules = rules(WITH_WEBP, u32::MAX, 7 * MIB, 3_600, 15 * MIB);

/// GIF only without animation, which its header does not tell.
pub(super) const OPENAI: ImageRules = rules(WITH_WEBP, u32::MAX, 20 * MIB, 1_500, 100 * MIB);

/// The limits of the services that use an API which others rarely offer.
fn of_api(api: &Api) -> ImageRules {
    match api.as_str() {
        "bedrock-converse-stream" => BEDROCK,
        "anthropic-messages" | "anthropic-vertex" => ANTHROPIC,
        "google-generative-ai" | "google-vertex" => GOOGLE,
        "openai-responses" | "openai-codex-responses" | "azure-openai-responses" => OPENAI,
        _ => ANY,
    }
}

/// The types of images that a request to `model` may contain.
///
/// <https://docs.anthropic.com/en/docs/build-with-claude/vision>,
/// <https://platform.openai.com/docs/guides/images-vision>,
/// <https://ai.google.dev/gemini-api/docs/image-understanding>.
pub(in crate::ai) fn image_types(model: &Model) -> &'static [&'static str] {
    let is_google = model.api == Api::GOOGLE_GENERATIVE_AI || model.api == Api::GOOGLE_VERTEX;
    match model.reads_images() {
        false => &[],
        true if is_google => &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
        true => &["image/png", "image/jpeg", "image/gif", "image/webp"],
    }
}

/// Whether the service of `model` fetches `image` from its URL. If it does not, a
/// text with the URL replaces the image.
///
/// - Anthropic fetches public https URLs. Claude on Vertex AI rejects every URL
///   (<https://github.com/anthropics/anthropic-sdk-typescript/issues/1038>).
/// - Chat Completions, Mistral's variant and Responses accept web URLs, except
///   servers that read only embedded images.
/// - Gemini on Vertex AI accepts Cloud Storage and https, with the media type.
/// - The Gemini API accepts files uploaded to it. Since 2026 it fetches
///   public URLs too
///   (<https://ai.google.dev/gemini-api/docs/file-input-methods>), but not for
///   all available models, and the list of models is unknown; so no
///   other URL is sent.
/// - Bedrock accepts S3 URLs, and only for Amazon's models
///   (<https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html>).
pub(in crate::ai) fn fetches(model: &Model, image: &ImageUrl) -> bool {
    let media_type = image.media_type();
    if media_type.is_some_and(|media_type| !image_types(model).contains(&media_type)) {
        return false;
    }
    let reads_bytes_only = Server::is_any(model, |server| server.reads_bytes_only);
    if !model.reads_images() || reads_bytes_only {
        return false;
    }
    let is = |scheme: &str| image.has_scheme(scheme);
    match model.api.as_str() {
        "anthropic-messages" => is("https"),
        "openai-completions"
        | "mistral-conversations"
        | "openai-responses"
        | "openai-codex-responses"
        | "azure-openai-responses" => is("https") || is("http"),
        "google-generative-ai" => {
            let path = image.url().strip_prefix("https://generativelanguage.googleapis.com/");
            path.is_some_and(|path| path.contains("files/"))
        }
        "google-vertex" => (is("gs") || is("https")) && media_type.is_some() && !model.id.contains("claude"),
        "bedrock-converse-stream" => is("s3") && media_type.is_some() && model.id.contains("amazon.nova"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_are_given_the_rules_of_their_service() {
        let check = |provider: &str, base_url: &str, api: Api, expected: (usize, usize)| {
            let model = Model {
                provider: provider.to_owned(),
                base_url: base_url.to_owned(),
                api,
                context_window: 200_000,
                ..Model::default()
            };
            let rules = ImageRules::of(&model);
            assert_eq!((rules.max_images, rules.each.max_base64_bytes), expected, "{provider} {base_url}");
        };
        check("groq", "", Api::OPENAI_COMPLETIONS, (5, 4_000_000));
        check("mine", "https://api.groq.com/openai/v1", Api::OPENAI_COMPLETIONS, (5, 4_000_000));
        check("anthropic", "", Api::ANTHROPIC_MESSAGES, (100, 5 * MIB));
        check("google", "", Api::GOOGLE_GENERATIVE_AI, (3_600, 7 * MIB));
        check("openai", "", Api::OPENAI_RESPONSES, (1_500, 20 * MIB));
        check("mine", "http://localhost:1", Api::OPENAI_COMPLETIONS, (usize::MAX, 20 * MIB));
        let model = Model { api: Api::ANTHROPIC_MESSAGES, context_window: 1_000_000, ..Model::default() };
        assert_eq!(ImageRules::of(&model).max_images, 600);
        let own = json!({"id": "m", "provider": "groq", "inputLimits": {"imagesPerRequest": 9}});
        let rules = ImageRules::of(&serde_json::from_value(own).unwrap());
        assert_eq!((rules.max_images, rules.max_request_bytes), (9, 20 * MIB));
    }

    #[test]
    fn what_pi_stores_needs_no_work_for_any_service() {
        let stored = ImageLimits::default();
        for rules in [GROQ, XAI, BEDROCK, ANTHROPIC, GOOGLE, OPENAI, ANY] {
            assert!(rules.each.max_width >= stored.max_width);
            // Groq's limit is the lower one.
            assert!(rules.each.max_base64_bytes >= stored.max_base64_bytes || rules.max_images == 5);
        }
    }
    #[test]
    fn addresses_go_to_services_that_fetch_them() {
        let check = |model: serde_json::Value, expected: &[&str]| {
            let mut all =
                json!({"id": "m", "provider": "p", "baseUrl": "https://host", "input": ["text", "image"]});
            all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
            let model: Model = serde_json::from_value(all).unwrap();
            let fetched = [
                "https://x/y.png",
                "http://x/y.png",
                "https://x/y",
                "https://x/y.heic",
                "https://x/y.svg",
                "gs://b/y.png",
                "s3://b/y.png",
                "https://generativelanguage.googleapis.com/v1beta/files/y",
            ]
            .into_iter()
            .filter(|url| fetches(&model, &ImageUrl::new(*url).unwrap()));
            assert_eq!(fetched.collect::<Vec<_>>(), expected, "{model:?}");
        };
        let uploaded = "https://generativelanguage.googleapis.com/v1beta/files/y";
        let web = ["https://x/y.png", "http://x/y.png", "https://x/y", uploaded];
        check(json!({"api": "anthropic-messages"}), &["https://x/y.png", "https://x/y", uploaded]);
        check(json!({"api": "anthropic-vertex"}), &[]);
        for api in
            ["openai-completions", "mistral-conversations", "openai-responses", "azure-openai-responses"]
        {
            check(json!({"api": api}), &web);
        }
        check(json!({"api": "openai-codex-responses"}), &web);
        check(json!({"api": "google-generative-ai"}), &[uploaded]);
        check(json!({"api": "google-vertex"}), &["https://x/y.png", "https://x/y.heic", "gs://b/y.png"]);
        check(json!({"api": "google-vertex", "id": "claude-4"}), &[]);
        let nova = json!({"api": "bedrock-converse-stream", "id": "us.amazon.nova-pro-v1:0"});
        check(nova, &["s3://b/y.png"]);
        check(json!({"api": "bedrock-converse-stream", "id": "anthropic.claude-sonnet-4-6"}), &[]);
        for provider in ["github-copilot", "moonshotai", "ollama", "lmstudio"] {
            check(json!({"api": "openai-completions", "provider": provider}), &[]);
        }
        check(json!({"api": "openai-completions", "baseUrl": "https://api.kimi.com/coding/v1"}), &[]);
        check(json!({"api": "openai-completions", "input": ["text"]}), &[]);
        check(json!({"api": "demo"}), &[]);
    }
}
