//! How long an answer may be: what the model allows and the window has room for.

use std::sync::Arc;

use serde_json::Value;

use crate::ai::messages::ToolDeclaration;
use crate::ai::models::{Model, Updates};
use crate::ai::requests::request::Request;

use super::{Block, Content, IdRule, Prompt, Turn, prompt};

/// An answer is given this room, unless the model or an eighth of its window allows less.
const LEAST_ANSWER: u64 = 2_048;

/// The shortest limit that pi sends for an answer of `model`. A conversation that leaves less room
/// has to shrink first, because an answer of a few tokens helps nobody.
pub fn least_answer(model: &Model) -> u64 {
    let of_window = match model.context_window {
        0 => LEAST_ANSWER,
        window => LEAST_ANSWER.min(window / 8),
    };
    of_window.min(model.max_tokens).max(1)
}

/// The limit of the answer to `request`, in tokens.
pub fn answer_limit(request: &Request) -> u64 {
    // Neither ids nor updates matter for the length.
    prompt(request, IdRule::Word { max: 64 }, Updates::None).max_tokens
}

/// Whether the window left less room for the answer to `request` than model and options allow.
pub fn is_answer_limit_lowered(request: &Request) -> bool {
    answer_limit(request) < wanted(request)
}

/// Whether the window of `model`, which may be smaller than the one that `request` was made for,
/// has room for it if the answer is shorter than it asked for.
pub fn fits_with_shorter_answer(request: &Request, model: &Arc<Model>) -> bool {
    let asked = answer_limit(request);
    let request = Request { model: Arc::clone(model), ..request.clone() };
    let prompt = prompt(&request, IdRule::Word { max: 64 }, Updates::None);
    let limit = fitting(wanted(&request), model.context_window, &prompt);
    limit < asked && limit >= least_answer(model)
}

/// The limit of an answer to `request` in a window without end.
pub(super) fn wanted(request: &Request) -> u64 {
    request.options.max_tokens.unwrap_or(u64::MAX).min(request.model.max_tokens).max(1)
}

/// As much of an answer of `wanted` tokens as the window has room for, but never an uselessly short one.
pub(super) fn answer_tokens(wanted: u64, model: &Model, prompt: &Prompt<'_>) -> u64 {
    wanted.min(fitting(wanted, model.context_window, prompt).max(least_answer(model)))
}

/// As much of an answer of `wanted` tokens as the window has room for.
fn fitting(wanted: u64, window: u64, prompt: &Prompt<'_>) -> u64 {
    if window == 0 {
        return wanted;
    }
    // No text has more characters than bytes, and bytes need not be counted.
    if wanted <= room(window, estimate_tokens(prompt, &|text| text.len() as u64)) {
        return wanted;
    }
    wanted.min(room(window, estimate_tokens(prompt, &|text| text.chars().count() as u64)))
}

/// Tokens left for the answer to a prompt of about `input` tokens.
///
/// The estimate is rough, so a margin of 15 % stays free, at least 4096 or an eighth of a small
/// window. If little is left, the margin shrinks rather than the answer.
fn room(window: u64, input: u64) -> u64 {
    const LITTLE: u64 = 32_768;
    const MARGIN: u64 = 4_096;
    let margin = MARGIN.min(window / 8);
    let generous = window.saturating_sub(input).saturating_sub(margin.max(input / 100 * 15));
    if generous >= LITTLE {
        generous
    } else {
        window.saturating_sub(input).saturating_sub(margin).min(LITTLE)
    }
}

/// A quarter of the characters as `chars` counts them, and a flat count per image.
fn estimate_tokens(prompt: &Prompt<'_>, chars: &dyn Fn(&str) -> u64) -> u64 {
    const IMAGE_CHARS: u64 = 4 * 1_200;
    let content = |content: &[Content<'_>]| -> u64 {
        let sizes = content.iter().map(|content| match content {
            Content::Text(text) => chars(text),
            Content::Image(_) => IMAGE_CHARS,
        });
        sizes.sum()
    };
    let mut total = chars(&prompt.system);
    let declaration = |tool: &ToolDeclaration| {
        chars(&tool.name) + chars(&tool.description) + json_chars(&tool.parameters, chars)
    };
    total += prompt.tools.iter().map(|tool| declaration(tool)).sum::<u64>();
    for turn in &prompt.turns {
        match turn {
            Turn::User(user) => total += content(user),
            Turn::System(update) => {
                total += chars(&update.text);
                total += update.tools_added.iter().map(|tool| declaration(tool)).sum::<u64>();
            }
            Turn::Assistant(turn) => {
                for block in &turn.blocks {
                    total += match block {
                        Block::Text { text, signature } => chars(text) + signature.map_or(0, chars),
                        Block::Thinking(thinking) => {
                            chars(&thinking.thinking)
                                + thinking.thinking_signature.as_deref().map_or(0, chars)
                        }
                        Block::ToolCall { name, arguments, signature, .. } => {
                            chars(name) + json_chars(arguments, chars) + signature.map_or(0, chars)
                        }
                    };
                }
                total += turn.results.iter().map(|result| content(&result.content)).sum::<u64>();
            }
        }
    }
    total / 4
}

/// The approximate number of characters of `value` as JSON.
fn json_chars(value: &Value, chars: &dyn Fn(&str) -> u64) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => chars(text) + 2,
        Value::Array(items) => items.iter().map(|item| json_chars(item, chars) + 1).sum::<u64>() + 2,
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() as u64 + 4 + json_chars(value, chars)).sum::<u64>()
                + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_room(window: u64, input: u64, expected: u64) {
        assert_eq!(room(window, input), expected);
    }

    #[test]
    fn margin_of_small_window_is_an_eighth() {
        check_room(200_000, 10_000, 185_904);
        check_room(200_000, 160_000, 32_768);
        check_room(32_768, 20_000, 32_768 - 20_000 - 4_096);
        check_room(16_000, 8_000, 6_000);
        check_room(8_192, 4_096, 3_072);
        check_room(8_192, 8_000, 0);
        check_room(4_096, 3_000, 584);
    }

    #[track_caller]
    fn check_least(context_window: u64, max_tokens: u64, expected: u64) {
        let model = Model { context_window, max_tokens, ..Model::default() };
        assert_eq!(least_answer(&model), expected);
    }

    #[test]
    fn least_answer_depends_on_window_and_model() {
        check_least(200_000, 64_000, 2_048);
        check_least(200_000, 1_000, 1_000);
        check_least(16_000, 16_000, 2_000);
        check_least(4_096, 4_096, 512);
        check_least(0, 4_096, 2_048);
        check_least(0, 0, 1);
    }
}
