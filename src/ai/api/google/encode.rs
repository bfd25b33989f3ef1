//! Encodes a `generateContent` request.
//!
//! The structural rules of the API that concern this module: roles alternate;
//! the responses to all calls of an answer are in the next content;
//! a model that checks signatures expects one on the first call of each step.

use std::borrow::Cow;

use super::super::{BodyTo, EncodeError, Headers, write_body};
use super::family::Family;
use super::schema;
use super::wire::{
    Blob, Body, Call, Content, Declaration, File, FunctionCallingConfig, GenerationConfig, Outcome, Part,
    PartData, Response, Role, Schema, SystemInstruction, Tool, ToolConfig,
};
use crate::ai::messages::{Api, ToolDeclaration};
use crate::ai::models::{GoogleCompat, Updates};
use crate::ai::requests::{
    AssistantTurn, Block, IdRule, Picture, Prompt, Request, ToolChoice, ToolResult, Turn, transform,
};
use crate::ai::transport::Credential;
use reqwest::header::HeaderMap;

/// Replaces the signature of a call that another model made, or that lost
/// its own: <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn write(request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
    let prompt = transform::prompt(request, IdRule::Word { max: 64 }, Updates::None);
    let body = body(request, &prompt);
    write_body(&body, &request.options.extra_body, prompt.json_bytes(), to)?;
    Ok(headers(request)?.0)
}

fn headers(request: &Request) -> Result<Headers, EncodeError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json")?;
    headers.set("accept", "text/event-stream")?;
    match &request.credential {
        Credential::ApiKey(key) => headers.set_secret("x-goog-api-key", key)?,
        other => other.bearer().map_or(Ok(()), |token| headers.set_bearer(token))?,
    }
    headers.extend(&request.model.headers)?;
    Ok(headers)
}

fn body<'a>(request: &'a Request, prompt: &'a Prompt<'a>) -> Body<'a> {
    let Request { model, options, .. } = request;
    let compat = GoogleCompat::of(model);
    let family = Family::of(&model.id);
    let samples = compat.supports_temperature;
    let system = (!prompt.system.is_empty()).then(|| Part::plain(PartData::Text(&prompt.system)));
    Body {
        contents: contents(prompt, family, model.api == Api::GOOGLE_VERTEX),
        system_instruction: system.map(|text| SystemInstruction { parts: [text] }),
        tools: tools(prompt, &compat),
        tool_config: tool_config(options.tool_choice.as_ref(), prompt, &compat),
        generation_config: GenerationConfig {
            temperature: options.temperature.filter(|_| samples),
            top_p: options.top_p.filter(|_| samples),
            max_output_tokens: request.answer_limit(prompt.max_tokens),
            stop_sequences: &options.stop_sequences,
            thinking_config: family.thinking(model, options, prompt.max_tokens),
        },
    }
}

fn contents<'a>(prompt: &'a Prompt<'a>, family: Family, on_vertex: bool) -> Vec<Content<'a>> {
    let mut contents = Vec::with_capacity(prompt.turns.len() * 2);
    for turn in &prompt.turns {
        match turn {
            Turn::User(content) => add(&mut contents, Role::User, content.iter().map(part).collect()),
            Turn::Assistant(turn) => {
                add(&mut contents, Role::Model, answer(turn, family));
                add(&mut contents, Role::User, responses(turn, family, on_vertex));
            }
            // Never requested.
            Turn::System(_) => {}
        }
    }
    if family.checks_signatures() {
        sign_first_calls(&mut contents);
    }
    contents
}

/// Appends `parts` to the last content if it has the same role, otherwise as a new content.
fn add<'a>(contents: &mut Vec<Content<'a>>, role: Role, mut parts: Vec<Part<'a>>) {
    if parts.is_empty() {
        return;
    }
    match contents.last_mut() {
        Some(last) if last.role == role => last.parts.append(&mut parts),
        _ => contents.push(Content { role, parts }),
    }
}

fn part<'a>(content: &'a transform::Content<'a>) -> Part<'a> {
    match content {
        transform::Content::Text(text) => Part::plain(PartData::Text(text)),
        transform::Content::Image(picture) => image(*picture),
    }
}

fn image(picture: Picture<'_>) -> Part<'_> {
    Part::plain(match picture {
        Picture::Data(image) => PartData::InlineData(Blob { mime_type: &image.mime_type, data: &image.data }),
        Picture::At(image) => {
            PartData::FileData(File { mime_type: image.media_type(), file_uri: image.url() })
        }
    })
}

fn answer<'a>(turn: &'a AssistantTurn<'a>, family: Family) -> Vec<Part<'a>> {
    let parts = turn.blocks.iter().filter_map(|block| match block {
        Block::Text { text, signature } => {
            let thought_signature = signature.filter(|signature| is_base64(signature));
            // A blank text matters only for its signature.
            let is_empty = text.trim().is_empty() && thought_signature.is_none();
            (!is_empty).then_some(Part { data: PartData::Text(text), thought: false, thought_signature })
        }
        Block::Thinking(thinking) => {
            let text = thinking.thinking.as_str();
            let signature = thinking.thinking_signature.as_deref();
            let thought_signature = signature.filter(|signature| is_base64(signature));
            let is_worth_sending = thought_signature.is_some()
                || !(family.wants_signed_thinking() || thinking.redacted || text.trim().is_empty());
            is_worth_sending.then_some(Part { data: PartData::Text(text), thought: true, thought_signature })
        }
        Block::ToolCall { id, name, arguments, signature } => {
            let id = family.has_call_ids().then_some(id.as_str());
            Some(Part {
                data: PartData::FunctionCall(Call { id, name, args: arguments }),
                thought: false,
                thought_signature: signature.filter(|signature| is_base64(signature)),
            })
        }
    });
    parts.collect()
}

/// Whether the signature is valid base64; the server rejects the request otherwise.
fn is_base64(signature: &str) -> bool {
    let digits = signature.trim_end_matches('=');
    let padding = signature.len() - digits.len();
    !digits.is_empty()
        && padding <= 2
        && signature.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// The responses in the order of their calls, then two kinds of images: those that
/// older models do not see inside responses, and images by URL, which only Vertex AI
/// accepts there.
fn responses<'a>(turn: &'a AssistantTurn<'a>, family: Family, on_vertex: bool) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(turn.results.len());
    let mut moved = Vec::new();
    for result in &turn.results {
        let mut images = Vec::new();
        for content in &result.content {
            let transform::Content::Image(picture) = content else { continue };
            let has_place = on_vertex || matches!(picture, Picture::Data(_));
            let stays = family.sees_images_in_responses() && has_place;
            if stays { &mut images } else { &mut moved }.push(image(*picture));
        }
        parts.push(Part::plain(PartData::FunctionResponse(Response {
            id: family.has_call_ids().then_some(result.id.as_str()),
            name: result.name,
            response: outcome(result),
            parts: images,
        })));
    }
    if !moved.is_empty() {
        parts.push(Part::plain(PartData::Text("Images of the tool results:")));
        parts.append(&mut moved);
    }
    parts
}

fn outcome<'a>(result: &'a ToolResult<'a>) -> Outcome<'a> {
    let text = match result.content.as_slice() {
        [transform::Content::Text(text)] => Cow::Borrowed(&**text),
        content => {
            let texts = content.iter().filter_map(|content| match content {
                transform::Content::Text(text) => Some(&**text),
                transform::Content::Image(_) => None,
            });
            Cow::Owned(texts.collect::<Vec<&str>>().join("\n"))
        }
    };
    let text = if text.is_empty() { Cow::Borrowed("(see attached image)") } else { text };
    if result.is_error { Outcome::Error(text) } else { Outcome::Output(text) }
}

/// Adds the substitute to the first call of each step if it has no signature; of
/// parallel calls only the first is signed. The API checks only the current turn,
/// but the substitute stays in later turns too, because removing it would invalidate
/// the server's cache.
fn sign_first_calls(contents: &mut [Content<'_>]) {
    for content in contents {
        let first = content.parts.iter_mut().find(|part| matches!(part.data, PartData::FunctionCall(_)));
        if let Some(call) = first {
            call.thought_signature.get_or_insert(NO_SIGNATURE);
        }
    }
}

fn tools<'a>(prompt: &'a Prompt<'a>, compat: &GoogleCompat) -> Vec<Tool<'a>> {
    if prompt.tools.is_empty() {
        return Vec::new();
    }
    let declaration = |tool: &'a ToolDeclaration| Declaration {
        name: &tool.name,
        description: &tool.description,
        schema: if compat.json_schema {
            Schema::ParametersJsonSchema(schema::json_schema(&tool.parameters))
        } else {
            Schema::Parameters(schema::open_api(&tool.parameters))
        },
    };
    vec![Tool { function_declarations: prompt.tools.iter().map(|tool| declaration(tool)).collect() }]
}

fn tool_config<'a>(
    choice: Option<&'a ToolChoice>,
    prompt: &Prompt<'_>,
    compat: &GoogleCompat,
) -> Option<ToolConfig<'a>> {
    if prompt.tools.is_empty() {
        return None;
    }
    let choice = if prompt.tools_are_history { Some(&ToolChoice::None) } else { choice };
    let (mode, only) = match choice {
        None if compat.stream_arguments => ("AUTO", None),
        None => return None,
        Some(ToolChoice::Auto) => ("AUTO", None),
        Some(ToolChoice::None) => ("NONE", None),
        Some(ToolChoice::Any) => ("ANY", None),
        Some(ToolChoice::Tool(name)) => ("ANY", Some([name.as_str()])),
    };
    let config = FunctionCallingConfig {
        mode,
        allowed_function_names: only,
        stream_function_call_arguments: compat.stream_arguments && mode != "NONE",
    };
    Some(ToolConfig { function_calling_config: config })
}
