//! What pictures each service takes: one table.
//!
//! Facts are those of the vendors' pages on vision input; where a page names
//! decoded bytes, the row has the base64 length. A service that is not listed
//! gets what every server with vision is known to read. `image_fit` makes
//! requests obey; what is stored obeys `ImageLimits::default`, which is stricter
//! than nearly all rows.

use super::model::Model;
use crate::util::image::ImageLimits;

/// What one service takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageRules {
    /// Of each picture.
    pub(super) each: ImageLimits,
    /// With more pictures than the first, none may have a longer side than the second.
    pub(super) crowded: Option<(usize, u32)>,
    /// Most pictures of one request.
    pub(super) max_images: usize,
    /// Most base64 of one request; leaves room for its text.
    pub(super) max_request_bytes: usize,
}

impl ImageRules {
    pub(super) fn of(model: &Model) -> Self {
        let is_it = |row: &&Row| {
            row.hosts.iter().any(|host| model.base_url.contains(host))
                || row.providers.contains(&model.provider.as_str())
                || row.apis.contains(&model.api.as_str())
        };
        let mut rules = ROWS.iter().find(is_it).map_or(ANY, |row| row.rules);
        // Models with a larger window take more.
        if rules.max_images == 100 && model.context_window > 200_000 {
            rules.max_images = 600;
        }
        // What models.json says about the model knows best.
        let limit = |name: &str| {
            let limit = model.extra.get("inputLimits")?.get(name)?.as_u64()?;
            usize::try_from(limit).ok()
        };
        rules.max_images = limit("imagesPerRequest").unwrap_or(rules.max_images);
        rules.max_request_bytes = limit("maxRequestBytes").unwrap_or(rules.max_request_bytes);
        rules
    }
}

struct Row {
    /// Parts of a base URL.
    hosts: &'static [&'static str],
    /// Ids of providers.
    providers: &'static [&'static str],
    /// APIs that only this kind of service speaks.
    apis: &'static [&'static str],
    rules: ImageRules,
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
        each: ImageLimits { auto_resize: true, max_width, max_height, max_base64_bytes, formats },
        crowded: None,
        max_images,
        max_request_bytes,
    }
}

/// Servers of one's own often decode PNG and JPEG only.
const ANY: ImageRules = rules(PNG_JPEG, u32::MAX, 20 * MIB, usize::MAX, 64 * MIB);

/// The first row that fits counts, so hosts of aggregators come before APIs.
const ROWS: &[Row] = &[
    Row {
        hosts: &["api.groq.com"],
        providers: &["groq"],
        apis: &[],
        rules: rules(PNG_JPEG, u32::MAX, 4_000_000, 5, 20 * MIB),
    },
    Row {
        hosts: &["api.x.ai"],
        providers: &["xai"],
        apis: &[],
        rules: rules(PNG_JPEG, u32::MAX, 10 * MIB, usize::MAX, 64 * MIB),
    },
    // 3.75 MB decoded.
    Row {
        hosts: &["bedrock-runtime."],
        providers: &["amazon-bedrock"],
        apis: &["bedrock-converse-stream"],
        rules: rules(WITH_GIF, 8_000, 5_000_000, usize::MAX, 20 * MIB),
    },
    // 32 MB a request, 30 MB on Vertex AI.
    Row {
        hosts: &["api.anthropic.com"],
        providers: &["anthropic"],
        apis: &["anthropic-messages", "anthropic-vertex"],
        rules: ImageRules { crowded: Some((20, 2_000)), ..rules(WITH_GIF, 8_000, 5 * MIB, 100, 24 * MIB) },
    },
    // 20 MB a request.
    Row {
        hosts: &["generativelanguage.googleapis.com"],
        providers: &["google"],
        apis: &["google-generative-ai", "google-vertex"],
        rules: rules(WITH_WEBP, u32::MAX, 7 * MIB, 3_600, 15 * MIB),
    },
    // GIF only without animation, which is not told from its header.
    Row {
        hosts: &["api.openai.com", "openai.azure.com"],
        providers: &["openai", "azure-openai-responses"],
        apis: &["openai-responses", "openai-codex-responses", "azure-openai-responses"],
        rules: rules(WITH_WEBP, u32::MAX, 20 * MIB, 1_500, 100 * MIB),
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::model::Api;
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
        for rules in ROWS.iter().map(|row| row.rules).chain([ANY]) {
            assert!(rules.each.max_width >= stored.max_width);
            // Groq's bound is the one that is lower.
            assert!(rules.each.max_base64_bytes >= stored.max_base64_bytes || rules.max_images == 5);
        }
    }
}
