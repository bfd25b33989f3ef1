//! Recognises errors by which a server permanently rejects part of the conversation.
//!
//! A repeated request fails again, and so does every later one that contains the
//! same part. The table maps the wording of services to the rejected part; the
//! session decides which entries are affected and hides them. Patterns work as in
//! `patterns`. For a new wording, add a row.

use serde_json::Value;

use super::patterns::contains;
use super::{FailureClass, classify};

/// The kind of content a server rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// An image: damaged, too large, of an unsupported type, or any image at all.
    Image,
    /// An image by URL: the service could not fetch it, or does not fetch images.
    ImageUrl,
    /// The number of images.
    ImageCount,
    /// The size of the whole request in bytes.
    RequestSize,
    /// A signature or a thinking block.
    Thinking,
    /// An answer in a tool loop that has no thinking while thinking is on.
    MissingThinking,
    /// A tool call or a result: without its counterpart, or with a bad id.
    ToolExchange,
    /// A blank text or a message without content.
    Blank,
    /// The start of an answer that the model is asked to continue (prefill).
    Prefill,
}

/// A rejection, with the location the server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What the service does not accept.
    pub refused: Refused,
    /// The location in the request.
    pub place: Option<RequestPath>,
}

/// A path in a request body, as errors write it: `messages.3.content.1.image`,
/// `input[2].content[0]`, `contents[1].parts[0]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath(Vec<String>);

impl RequestPath {
    /// The first path in `text`; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        place(text)
    }

    /// Returns the values of `body` along the path, outermost first: the message, then
    /// its parts. Names that `body` does not contain are skipped, because errors put
    /// the type of a block between its index and its fields.
    pub fn resolve<'a>(&self, body: &'a Value) -> Vec<&'a Value> {
        let mut at = body;
        let mut items = Vec::new();
        for segment in &self.0 {
            match at {
                Value::Array(list) => {
                    let item = segment.parse::<usize>().ok().and_then(|index| list.get(index));
                    let Some(item) = item else { break };
                    items.push(item);
                    at = item;
                }
                Value::Object(members) => {
                    if let Some(member) = members.get(segment.as_str()) {
                        at = member;
                    }
                }
                _ => break,
            }
        }
        items
    }
}

/// Whether `text`, the error of a failed request, rejects part of the conversation.
pub fn rejection(text: &str) -> Option<Rejection> {
    rejection_in(text, classify(text, None))
}

/// As [`rejection`], for a failure of a known class: a passing failure rejects nothing,
/// whatever its text quotes.
pub(super) fn rejection_in(text: &str, class: FailureClass) -> Option<Rejection> {
    let lower = text.to_lowercase();
    let refused = TABLE
        .iter()
        .find(|(_, patterns)| patterns.iter().any(|pattern| contains(&lower, pattern)))
        .map(|(refused, _)| *refused)?;
    let may_be = match class {
        FailureClass::InvalidRequest
        | FailureClass::NotFound
        | FailureClass::Config
        | FailureClass::Unknown => true,
        // Self-hosted servers answer 500 to an image they cannot decode.
        FailureClass::Server => matches!(refused, Refused::Image | Refused::ImageUrl),
        FailureClass::Overflow => refused == Refused::RequestSize,
        // The service could not fetch the image: the other server was too slow or
        // denied access.
        FailureClass::Auth | FailureClass::Network => refused == Refused::ImageUrl,
        FailureClass::RateLimit
        | FailureClass::Overloaded
        | FailureClass::Quota
        | FailureClass::ToolUseFailed
        | FailureClass::Refused => false,
    };
    may_be.then(|| Rejection { refused, place: place(text) })
}

/// The first row that matches wins, so special rows come before general ones.
const TABLE: &[(Refused, &[&str])] = &[
    (
        Refused::Prefill,
        // Anthropic, models since 4.6.
        &[
            "does not support assistant message prefill",
            "conversation must end with a user message",
            "prefilling assistant messages is not supported",
        ],
    ),
    (
        Refused::ImageCount,
        &[
            "too many images",
            "too many image",
            "image count exceeds",
            "number of images exceeds",
            "maximum number of images",
            "at most # image",
            "maximum of # image",
            "up to # image",
            "more than # image",
            "limit of # image",
        ],
    ),
    (
        Refused::ImageUrl,
        &[
            // Anthropic, and Claude on Vertex AI.
            "unable to download the file",
            "url sources are not supported",
            "only https urls are supported",
            "robots.txt",
            // OpenAI: <https://github.com/vercel/ai/issues/8857>.
            "error while downloading",
            "timeout while downloading",
            "failed to download image",
            "failed_to_download_image",
            "invalid_image_url",
            // Google.
            "cannot fetch content from the provided url",
            "unable to fetch the file",
            "unsupported file uri",
            // GitHub Copilot, Moonshot.
            "external image urls are not supported",
            "unsupported image url",
            // Groq, Mistral, DashScope, proxies.
            "failed to retrieve media",
            "failed to fetch image",
            "could not fetch image",
            "failed to download multimodal content",
            "failed to download file from",
            // LM Studio, llama.cpp.
            "'url' field must be a base64 encoded image",
            "failed to download the image",
            // Bedrock.
            "s3location",
            "s3 uri",
        ],
    ),
    (
        Refused::MissingThinking,
        // Anthropic, in a tool loop that began without thinking.
        &[
            "expected `thinking` or `redacted_thinking`, but found",
            "must start with a thinking block",
            // DeepSeek, Moonshot.
            "reasoning_content is missing in assistant tool call",
            "missing `reasoning_content` field in the assistant message",
        ],
    ),
    (
        Refused::ToolExchange,
        &[
            // Gemini, which puts the signature on calls.
            "missing a `thought_signature`",
            "missing a thought_signature",
        ],
    ),
    (
        Refused::Thinking,
        &[
            // Anthropic.
            "invalid `signature` in `thinking`",
            "thinking.signature",
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
            "thinking blocks * cannot be modified",
            "redacted_thinking.data",
            "invalid `data` in `redacted_thinking`",
            "each thinking block must contain",
            "expected `thinking` block",
            // Gemini.
            "thought signature is not valid",
            "thought_signature",
            "thoughtsignature",
            "corrupted thought signature",
            // Responses.
            "of type 'reasoning' was provided without its required",
            "without its required 'reasoning' item",
            "invalid_encrypted_content",
            "encrypted content * could not be",
            "item with id 'rs_",
            "item 'rs_",
            "item with id 'msg_",
            "item with id 'fc_",
            // OpenRouter, DeepSeek.
            "reasoning_details",
            "invalid signature",
        ],
    ),
    (
        Refused::Image,
        &[
            // Anthropic, Bedrock.
            "image exceeds",
            "image dimensions exceed",
            "could not process image",
            "image does not match the provided media type",
            "media type, but the image appears to be",
            "image.source",
            "image was specified using the",
            "image cannot be empty",
            "image's format",
            "image format",
            "invalid image",
            // OpenAI.
            "unsupported image",
            "unsupported_image",
            "image_parse_error",
            "image data you provided does not represent a valid image",
            "invalid_image",
            "image_too_",
            "image_file_too_large",
            "empty_image_file",
            "invalid_base64_image",
            "base64 image",
            "only image types are supported",
            "image_url",
            "input_image",
            // Gemini.
            "unable to process input image",
            "provided image is not valid",
            "unsupported mime type: image/",
            "mime type image/",
            "inline_data",
            "inlinedata",
            // Self-hosted servers, aggregators.
            "failed to load image",
            "failed to decode image",
            "failed to process image",
            "cannot identify image",
            "image input is not supported",
            "support image input",
            "does not support image",
            "not support images",
            "image size",
            "image too large",
            "image is too large",
        ],
    ),
    (
        Refused::ToolExchange,
        &[
            // Anthropic.
            "unexpected `tool_use_id`",
            "`tool_use` ids were found without `tool_result`",
            "`tool_use` ids must be unique",
            "`tool_result` block must have a corresponding",
            "`tool_use` must have a single result",
            "tool_use.id",
            "tool_use.input",
            "tool_use.name",
            "tool_result.tool_use_id",
            "tool_use_id",
            // Bedrock.
            "expected toolresult blocks",
            "number of toolresult blocks",
            "toolresult blocks at",
            // Chat Completions.
            "must be followed by tool messages",
            "must be a response to a prece",
            "tool_call_id",
            "tool_calls[",
            // Responses, DeepSeek.
            "no tool output found for",
            "no tool call found for",
            "no function call found for",
            "with call_id",
            // Gemini.
            "function response parts is equal to",
            "function call turn comes immediately after",
            "function response turn comes immediately after",
            // Mistral.
            "not the same number of function calls and responses",
            "tool call id was * but must be",
            "unexpected tool call id",
        ],
    ),
    (
        Refused::Blank,
        &[
            "text content blocks must be non-empty",
            "text content blocks must contain non-whitespace",
            "must have non-empty content",
            "content cannot be empty",
            "content must not be empty",
            "content field is required",
            "cannot be set for empty text blocks",
            "cannot end with trailing whitespace",
            "text field * is blank",
            "contents.parts must not be empty",
            "must include at least one parts field",
            "message must not be empty",
            "empty text",
        ],
    ),
    (
        Refused::RequestSize,
        &[
            "request_too_large",
            "request too large",
            "payload too large",
            "payload size exceeds",
            "entity too large",
            "body too large",
            "request size exceeds",
            "exceeds the maximum size",
            "maximum request size",
            "413: ",
        ],
    ),
];

/// The first path in `text`.
fn place(text: &str) -> Option<RequestPath> {
    const ROOTS: [&str; 3] = ["messages", "contents", "input"];
    let found = ROOTS.iter().flat_map(|root| text.match_indices(root)).filter_map(|(at, root)| {
        let before = text[..at].chars().next_back();
        let rest = &text[at + root.len()..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        // A path continues with an index.
        let digits = rest.trim_start_matches(['.', '[']);
        if before.is_some_and(is_word)
            || digits.len() == rest.len()
            || !digits.starts_with(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')))
            .unwrap_or(rest.len());
        let segments = rest[..end].split(['.', '[', ']']).filter(|segment| !segment.is_empty());
        let path = std::iter::once(root).chain(segments).map(str::to_owned).collect();
        Some((at, RequestPath(path)))
    });
    found.min_by_key(|(at, _)| *at).map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Refused, Option<&str>)>) {
        let found = rejection(text);
        let found = found.as_ref().map(|found| {
            let place = found.place.as_ref().map(|place| place.0.join("/"));
            (found.refused, place)
        });
        assert_eq!(found, expected.map(|(refused, place)| (refused, place.map(str::to_owned))), "{text}");
    }

    #[test]
    fn refusals_are_told_by_what_servers_say() {
        use Refused::*;
        let rows: &[(&str, Refused, Option<&str>)] = &[
            (
                "400: messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6912060 bytes > 5242880 bytes (invalid_request_error)",
                Image,
                Some("messages/3/content/1/image/source/base64"),
            ),
            (
                "400: messages.0.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
                Image,
                Some("messages/0/content/2/image/source/base64/data"),
            ),
            ("400: Could not process image (invalid_request_error)", Image, None),
            (
                "400: messages.1.content.0.image.source.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
                Image,
                Some("messages/1/content/0/image/source/media_type"),
            ),
            (
                "400: The image was specified using the image/jpeg media type, but the image appears to be a image/png image",
                Image,
                None,
            ),
            (
                "400: You uploaded an unsupported image. Please make sure your image is valid. (image_parse_error)",
                Image,
                None,
            ),
            (
                "400: Invalid 'input[4].content[1].image_url'. Expected a base64-encoded data URL",
                Image,
                Some("input/4/content/1/image_url"),
            ),
            (
                "400: messages.2.content.1.image.source.url: Unable to download the file. Please verify the URL and try again. (invalid_request_error)",
                ImageUrl,
                Some("messages/2/content/1/image/source/url"),
            ),
            (
                "400: messages.0.content.0.image.source.base64.data: URL sources are not supported (invalid_request_error)",
                ImageUrl,
                Some("messages/0/content/0/image/source/base64/data"),
            ),
            (
                "400: Error while downloading https://x.y/z.png. Upstream status code: 404. (invalid_request_error, invalid_value)",
                ImageUrl,
                None,
            ),
            (
                "400: Timeout while downloading https://x.y/z.png. (invalid_request_error, invalid_image_url)",
                ImageUrl,
                None,
            ),
            // In a stream there is no status.
            ("Timeout while downloading https://x.y/z.png.", ImageUrl, None),
            (
                "400: Failed to download image from https://x.y/z.gif. Image size exceeds the limit. (invalid_image)",
                ImageUrl,
                None,
            ),
            (
                "400: Cannot fetch content from the provided URL. Please ensure the URL is valid and accessible by Vertex AI. (INVALID_ARGUMENT)",
                ImageUrl,
                None,
            ),
            ("400: external image URLs are not supported (invalid_request_body)", ImageUrl, None),
            (
                "400: failed to retrieve media: received status code: 403 Forbidden (invalid_request_error)",
                ImageUrl,
                None,
            ),
            (
                "500: error getting file type: failed to download file from https://x.y/z.png: connection timed out",
                ImageUrl,
                None,
            ),
            ("400: Unable to process input image. (INVALID_ARGUMENT)", Image, None),
            ("400: Unsupported MIME type: image/gif (INVALID_ARGUMENT)", Image, None),
            ("500: Failed to load image or audio file (server_error)", Image, None),
            (
                "500: image input is not supported - hint: if this is unexpected, you may need to provide the mmproj (server_error)",
                Image,
                None,
            ),
            ("404: No endpoints found that support image input", Image, None),
            (
                "400: Too many images provided. This model supports up to 5 images (invalid_request_error)",
                ImageCount,
                None,
            ),
            ("400: At most 1 image(s) may be provided in one prompt. (BadRequestError)", ImageCount, None),
            (
                "400: messages.5.content.0: Invalid `signature` in `thinking` block",
                Thinking,
                Some("messages/5/content/0"),
            ),
            (
                "400: messages.1.content.0.thinking.signature: Field required",
                Thinking,
                Some("messages/1/content/0/thinking/signature"),
            ),
            (
                "400: messages.7.content.3: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                Thinking,
                Some("messages/7/content/3"),
            ),
            (
                "400: messages.9.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
                MissingThinking,
                Some("messages/9/content/0/type"),
            ),
            (
                "400: Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                Thinking,
                None,
            ),
            (
                "400: The encrypted content for item rs_1 could not be verified. (invalid_encrypted_content)",
                Thinking,
                None,
            ),
            (
                "404: Item with id 'rs_68' not found. Items are not persisted when `store` is set to false.",
                Thinking,
                None,
            ),
            ("400: Thought signature is not valid (INVALID_ARGUMENT)", Thinking, None),
            (
                "400: Function call is missing a thought_signature in functionCall parts. (INVALID_ARGUMENT)",
                ToolExchange,
                None,
            ),
            (
                "400: messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: T1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message. (invalid_request_error)",
                ToolExchange,
                Some("messages/0/content/1"),
            ),
            (
                "400: messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
                ToolExchange,
                Some("messages/2"),
            ),
            (
                "400: messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                ToolExchange,
                Some("messages/1/content/1/tool_use/id"),
            ),
            ("400: No tool output found for tool call call-a. (invalid_request_error)", ToolExchange, None),
            ("400: No tool call found for function call output with call_id call_1.", ToolExchange, None),
            (
                "400: Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
                ToolExchange,
                Some("messages/2/tool_calls/0/id"),
            ),
            (
                "400: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
                ToolExchange,
                None,
            ),
            (
                "400: Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. (INVALID_ARGUMENT)",
                ToolExchange,
                None,
            ),
            (
                "400: Expected toolResult blocks at messages.2.content for the following Ids: x",
                ToolExchange,
                Some("messages/2/content"),
            ),
            ("400: Not the same number of function calls and responses (3230)", ToolExchange, None),
            ("400: messages: text content blocks must be non-empty", Blank, None),
            (
                "400: messages.4: all messages must have non-empty content except for the optional final assistant message",
                Blank,
                Some("messages/4"),
            ),
            ("413: Request exceeds the maximum size (request_too_large)", RequestSize, None),
            ("413: Payload Too Large", RequestSize, None),
            (
                "400: This model does not support assistant message prefill. The conversation must end with a user message.",
                Prefill,
                None,
            ),
        ];
        for (text, refused, place) in rows {
            check(text, Some((*refused, *place)));
        }
    }

    #[test]
    fn other_failures_refuse_nothing_of_the_conversation() {
        for text in [
            "400: prompt is too long: 3333404 tokens > 200000 maximum (invalid_request_error)",
            "429: rate limit reached for image_url inputs",
            "401: invalid x-api-key",
            "402: This request requires more credits",
            "529: Overloaded (overloaded_error)",
            "500: internal error",
            "400: This model does not support effort level 'xhigh'.",
            "400: Thinking mode does not support this tool_choice (invalid_request_error)",
            "timed out: no data from acme for 300 s",
            "",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_place_is_found_in_the_body_it_names() {
        let body = json!({"messages": [
            {"role": "user", "content": [{"type": "text"}, {"type": "image", "source": {"data": "x"}}]},
            {"role": "tool", "content": "t"},
        ]});
        let resolved = |text: &str| -> Vec<Value> {
            let place = place(text).unwrap();
            place.resolve(&body).into_iter().cloned().collect()
        };
        let message = body["messages"][0].clone();
        let image = message["content"][1].clone();
        assert_eq!(resolved("messages.0.content.1.image.source.data: bad"), [message.clone(), image]);
        assert_eq!(resolved("at messages[1].content[7]"), [body["messages"][1].clone()]);
        assert_eq!(resolved("messages.0"), [message]);
        assert_eq!(resolved("messages.99999999999999999999.content.1"), Vec::<Value>::new());
        assert_eq!(place("the messages array, input tokens 5"), None);
    }
}
