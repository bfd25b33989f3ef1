//! Continues an interrupted answer, so that the user does not pay for it twice.
//!
//! Only in the unproblematic case: a single text block without thinking or calls,
//! from a model that supports prefill (Anthropic's models up to 4.5, without
//! thinking). In all other cases a failed turn is repeated as a whole; two answers
//! are never spliced. The joined stream looks like one uninterrupted answer.

use super::request::Request;
use crate::ai::messages::{
    Api, AssistantBlock, AssistantMessage, BlockKind, StopReason, StreamEvent, Text, ThinkingLevel,
};
use crate::ai::models::{AnthropicCompat, Model};

/// The text that a retry of the request behind the failed `answer` may start with;
/// `None` if the answer must be repeated as a whole.
pub fn continuable(model: &Model, answer: &AssistantMessage) -> Option<String> {
    let is_own = answer.api == model.api && answer.provider == model.provider && answer.model == model.id;
    let level = answer.thinking_level.unwrap_or_default();
    if answer.stop_reason != StopReason::Error || !is_own || !takes_beginning(model, level) {
        return None;
    }
    let [AssistantBlock::Text(text)] = answer.content.as_slice() else { return None };
    // The API rejects a prefill that ends in white space.
    let beginning = text.text.trim_end();
    (!beginning.is_empty() && text.text_signature.is_none()).then(|| beginning.to_owned())
}

/// The prefill of the answer to `request`, if it has one and its model supports it.
pub(in crate::ai) fn beginning(request: &Request) -> Option<&str> {
    let beginning = request.options.continue_from.as_deref().map(str::trim_end)?;
    let takes = takes_beginning(&request.model, request.options.thinking);
    (takes && !beginning.is_empty()).then_some(beginning)
}

fn takes_beginning(model: &Model, level: ThinkingLevel) -> bool {
    model.api == Api::ANTHROPIC_MESSAGES
        && model.clamp_thinking(level) == ThinkingLevel::Off
        && AnthropicCompat::of(model).assistant_prefill
}

/// Joins the beginning of an answer with the text the model adds.
#[derive(Debug)]
pub(in crate::ai) struct Joiner {
    beginning: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first block is the beginning, without additions so far.
    Open,
    /// The first block of the stream continues it.
    Joined,
    /// The beginning is a separate block, before those of the stream.
    Apart,
}

impl Joiner {
    pub(in crate::ai) fn new(beginning: &str) -> Self {
        Self { beginning: beginning.to_owned(), state: State::Open }
    }

    /// Handles the next event of the stream and appends the resulting events to `out`.
    pub(in crate::ai) fn push(&mut self, event: StreamEvent, out: &mut Vec<StreamEvent>) {
        let shift = usize::from(self.state == State::Apart);
        match event {
            StreamEvent::Start => {
                out.push(StreamEvent::Start);
                out.push(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text });
                out.push(StreamEvent::Delta { index: 0, text: self.beginning.clone() });
            }
            StreamEvent::BlockStart { kind: BlockKind::Text, .. } if self.state == State::Open => {
                self.state = State::Joined;
            }
            StreamEvent::BlockStart { index, kind } => {
                let shift = if self.state == State::Open { self.close(out) } else { shift };
                out.push(StreamEvent::BlockStart { index: index + shift, kind });
            }
            StreamEvent::Delta { index, text } => {
                out.push(StreamEvent::Delta { index: index + shift, text });
            }
            StreamEvent::BlockEnd { index: 0, block } if self.state == State::Joined => {
                out.push(StreamEvent::BlockEnd { index: 0, block: self.joined(block) });
            }
            StreamEvent::BlockEnd { index, block } => {
                out.push(StreamEvent::BlockEnd { index: index + shift, block });
            }
            StreamEvent::Done(mut message) => {
                if self.state == State::Open && !message.is_failed() {
                    self.close(out);
                }
                if self.state == State::Joined && !message.content.is_empty() {
                    let first = message.content.remove(0);
                    message.content.insert(0, self.joined(first));
                } else {
                    message.content.insert(0, self.block());
                }
                out.push(StreamEvent::Done(message));
            }
        }
    }

    /// Closes the beginning as a separate block; returns by how much it shifts the others.
    fn close(&mut self, out: &mut Vec<StreamEvent>) -> usize {
        self.state = State::Apart;
        out.push(StreamEvent::BlockEnd { index: 0, block: self.block() });
        1
    }

    fn block(&self) -> AssistantBlock {
        AssistantBlock::Text(Text::new(self.beginning.as_str()))
    }

    fn joined(&self, block: AssistantBlock) -> AssistantBlock {
        match block {
            AssistantBlock::Text(mut text) => {
                text.text.insert_str(0, &self.beginning);
                AssistantBlock::Text(text)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ai::messages::{MessageBuilder, StreamOrder};

    fn model(id: &str, compat: serde_json::Value) -> Model {
        let model = json!({"id": id, "api": "anthropic-messages", "provider": "anthropic", "reasoning": true, "compat": compat});
        serde_json::from_value(model).unwrap()
    }

    fn answer(content: serde_json::Value, level: &str) -> AssistantMessage {
        let answer = json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
            "model": "m", "stopReason": "error", "errorMessage": "e", "thinkingLevel": level});
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn only_a_lone_text_without_thinking_is_continued() {
        let text = json!([{"type": "text", "text": "half "}]);
        let check = |model: &Model, content: &serde_json::Value, level: &str, expected: Option<&str>| {
            let found = continuable(model, &answer(content.clone(), level));
            assert_eq!(found.as_deref(), expected, "{} {content} {level}", model.compat.len());
        };
        let plain = model("m", json!({}));
        check(&plain, &text, "off", Some("half"));
        check(&plain, &text, "high", None);
        check(&plain, &json!([]), "off", None);
        check(&plain, &json!([{"type": "text", "text": " \n"}]), "off", None);
        let call = json!({"type": "toolCall", "id": "1", "name": "n", "arguments": {}});
        check(&plain, &json!([{"type": "text", "text": "half"}, call]), "off", None);
        check(&plain, &json!([{"type": "thinking", "thinking": "hm"}]), "off", None);
        check(&model("m", json!({"forceAdaptiveThinking": true})), &text, "off", None);
        check(&model("m", json!({"supportsAssistantPrefill": false})), &text, "off", None);
        check(&model("other", json!({})), &text, "off", None);
        let elsewhere = Model { provider: "mine".to_owned(), ..plain };
        check(&elsewhere, &text, "off", None);
    }

    #[test]
    fn the_joined_stream_is_one_answer() {
        let text = |index, text: &str| {
            let kind = BlockKind::Text;
            let block = AssistantBlock::Text(Text::new(text));
            [
                StreamEvent::BlockStart { index, kind },
                StreamEvent::Delta { index, text: text.to_owned() },
                StreamEvent::BlockEnd { index, block },
            ]
        };
        let call = |index| {
            let kind = BlockKind::ToolCall { id: "1".to_owned(), name: "n".to_owned() };
            let block = json!({"type": "toolCall", "id": "1", "name": "n", "arguments": {}});
            let block = serde_json::from_value(block).unwrap();
            [StreamEvent::BlockStart { index, kind }, StreamEvent::BlockEnd { index, block }]
        };
        let check = |events: Vec<StreamEvent>, failed: bool, starts: bool, expected: &[&str]| {
            let mut message = answer(json!([]), "off");
            if !failed {
                (message.stop_reason, message.error_message) = (StopReason::Stop, None);
            }
            let mut builder =
                MessageBuilder::new(AssistantMessage { content: Vec::new(), ..message.clone() });
            events.iter().for_each(|event| builder.push(event));
            message.content = builder.into_message().content;
            let start = starts.then_some(StreamEvent::Start);
            let stream = start.into_iter().chain(events).chain([StreamEvent::Done(Box::new(message))]);
            let (mut joiner, mut out) = (Joiner::new("Once"), Vec::new());
            stream.for_each(|event| joiner.push(event, &mut out));
            let mut order = StreamOrder::default();
            out.iter().for_each(|event| order.accept(event).unwrap());
            let Some(StreamEvent::Done(done)) = out.last() else { panic!("not done") };
            let mut builder = MessageBuilder::new(answer(json!([]), "off"));
            out[..out.len() - 1].iter().for_each(|event| builder.push(event));
            if starts {
                assert_eq!(builder.message().content, done.content, "pieces and whole agree");
            }
            assert_eq!(done.texts().collect::<Vec<_>>(), expected);
        };
        check(text(0, " upon").to_vec(), false, true, &["Once upon"]);
        check([text(0, " upon").to_vec(), call(1).to_vec()].concat(), false, true, &["Once upon"]);
        check([call(0).to_vec(), text(1, "x").to_vec()].concat(), false, true, &["Once", "x"]);
        check(Vec::new(), false, true, &["Once"]);
        check(text(0, " upon")[..2].to_vec(), true, true, &["Once upon"]);
        check(Vec::new(), true, false, &["Once"]);
    }
}
