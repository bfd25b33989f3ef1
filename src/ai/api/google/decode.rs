//! Decodes a stream of `GenerateContentResponse`s.
//!
//! The stream has no end marker: some models include a stop reason in
//! every chunk, others in the middle of an answer. The decoder therefore reads the
//! stream to its end and uses the last reason.

use std::borrow::Cow;

use serde_json::Value;

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, UsageCount, error_of, filled, outcome_of, with_json,
    without_signs,
};
use super::partial_args::PartialArgs;
use super::wire::{AnswerPart, Candidate, Chunk, FunctionCall, UsageMetadata};
use crate::ai::failure::RequestError;
use crate::ai::messages::{StopReason, StreamEvent, Usage};
use crate::ai::transport::SseFrame;

pub(super) struct Decoder {
    asked_for: String,
    /// Makes the generated ids of calls unique beyond this answer.
    call_seed: u64,
    n_calls: usize,
    blocks: Blocks,
    /// The text or thinking block that the next part may continue.
    open: Option<OpenBlock>,
    /// The call whose arguments are still arriving.
    call: Option<OpenCall>,
    /// Calls without their end, in front of which another one started.
    unended: Vec<OpenCall>,
    ids: Vec<String>,
    usage: UsageCount,
    response_id: Option<String>,
    response_model: Option<String>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    finish: FinishPlace,
    /// Number of chunks with a part of the answer.
    n_candidates: u64,
    /// Why the service blocked the prompt.
    blocked: Option<String>,
}

struct OpenBlock {
    slot: usize,
    is_thought: bool,
    signature: Option<String>,
}

struct OpenCall {
    slot: usize,
    id: String,
    arguments: PartialArgs,
}

/// The position of the stop reason in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FinishPlace {
    NotYet,
    /// In the last chunk and in none before: it marks the end.
    AtTheEnd,
    /// In the first chunk, as with servers that repeat it in every chunk, or before
    /// the last one: it does not mark the end.
    Anywhere,
}

impl Decoder {
    /// `sent_bytes` is the size of the text in the request.
    pub(super) fn new(asked_for: &str, call_seed: u64, sent_bytes: usize) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            call_seed,
            n_calls: 0,
            blocks: Blocks::default(),
            open: None,
            call: None,
            unended: Vec::new(),
            ids: Vec::new(),
            usage: UsageCount::new(sent_bytes),
            response_id: None,
            response_model: None,
            finish_reason: None,
            finish_message: None,
            finish: FinishPlace::NotYet,
            n_candidates: 0,
            blocked: None,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        if let Some(error) = chunk.error {
            return Err(error_of(&format!("{{\"error\":{error}}}")));
        }
        if let Some(id) = filled(chunk.response_id.as_ref()) {
            self.response_id.get_or_insert_with(|| id.to_owned());
        }
        if let Some(model) = filled(chunk.model_version.as_ref()) {
            self.response_model.get_or_insert_with(|| model.to_owned());
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.update_usage(usage);
        }
        if let Some(feedback) = &chunk.prompt_feedback
            && let Some(reason) = filled(feedback.block_reason.as_ref())
        {
            self.blocked = Some(reason.to_owned());
            self.finish_message = filled(feedback.block_reason_message.as_ref()).map(str::to_owned);
        }
        // Further candidates are alternative answers, which pi never requests.
        let is_first = |candidate: &Candidate<'_>| candidate.index.is_none_or(|index| index == Count(0));
        match chunk.candidates.into_iter().flatten().find(is_first) {
            Some(candidate) => self.candidate(candidate, out),
            None => Ok(()),
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, out)?;
        }
        let reason = filled(candidate.finish_reason.as_ref());
        self.finish = match (self.finish, reason) {
            (FinishPlace::NotYet, None) => FinishPlace::NotYet,
            (FinishPlace::NotYet, Some(_)) if self.n_candidates > 0 => FinishPlace::AtTheEnd,
            _ => FinishPlace::Anywhere,
        };
        self.n_candidates += 1;
        if let Some(reason) = reason {
            self.finish_reason = Some(reason.to_owned());
            self.finish_message = filled(candidate.finish_message.as_ref()).map(str::to_owned);
        }
        Ok(())
    }

    fn part(&mut self, part: AnswerPart<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        let is_foreign = part.is_foreign();
        let signature = filled(part.thought_signature.as_ref());
        if let Some(call) = part.function_call {
            return self.function_call(&call, signature, out);
        }
        // A text may be absent, and an empty one is kept for its signature.
        let text = part.text.map_or(Cow::Borrowed(""), |text| text.0);
        if is_foreign || (text.is_empty() && signature.is_none()) {
            return Ok(());
        }
        let slot = self.block_for(part.thought == Some(true), signature, out);
        self.blocks.push(slot, text, out);
        Ok(())
    }

    /// The block for a part of this kind. Consecutive parts share a
    /// block, unless that would join two signatures.
    fn block_for(&mut self, is_thought: bool, signature: Option<&str>, out: &mut Vec<StreamEvent>) -> usize {
        let fits = |open: &&OpenBlock| {
            let joins = open.signature.as_deref().zip(signature).is_some_and(|(one, other)| one != other);
            open.is_thought == is_thought && !joins
        };
        let slot = match self.open.as_ref().filter(fits) {
            Some(open) => open.slot,
            None => {
                self.end_block(out);
                let slot =
                    if is_thought { self.blocks.start_thinking(out) } else { self.blocks.start_text(out) };
                self.open = Some(OpenBlock { slot, is_thought, signature: None });
                slot
            }
        };
        if let Some(signature) = signature {
            if let Some(thinking) = self.blocks.thinking_mut(slot) {
                thinking.thinking_signature = Some(signature.to_owned());
            } else if let Some(text) = self.blocks.text_mut(slot) {
                text.text_signature = Some(signature.to_owned());
            }
            self.open = Some(OpenBlock { slot, is_thought, signature: Some(signature.to_owned()) });
        }
        slot
    }

    fn end_block(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(open) = self.open.take() {
            self.blocks.end(open.slot, out);
        }
    }

    fn function_call(
        &mut self,
        call: &FunctionCall<'_>,
        signature: Option<&str>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), DecodeError> {
        self.end_block(out);
        let id = filled(call.id.as_ref()).unwrap_or_default();
        let goes_on = call.will_continue == Some(true);
        let continued = self.call.take_if(|open| match filled(call.name.as_ref()) {
            None => true,
            // Some servers repeat the name in later pieces.
            Some(_) => !id.is_empty() && open.id == id,
        });
        if let Some(open) = continued {
            self.continue_call(open, call, signature, goes_on, out);
            return Ok(());
        }
        let Some(name) = filled(call.name.as_ref()) else {
            // The end of a call without a start.
            if call.args.is_none() && call.partial_args.is_none() {
                return Ok(());
            }
            return Err(DecodeError::failed("malformed_function_call: a call without a name"));
        };
        self.unended.extend(self.call.take());
        let unique_id = self.unique_id(id);
        let slot = self.blocks.start_call(unique_id, name.to_owned(), out);
        self.n_calls += 1;
        if call.partial_args.is_none() && !goes_on {
            self.sign_call(slot, signature);
            let arguments = call.args.map_or("", |arguments| arguments.get());
            if arguments != "null" {
                self.blocks.push(slot, without_signs(arguments), out);
            }
            self.blocks.end(slot, out);
            return Ok(());
        }
        let open = OpenCall { slot, id: id.to_owned(), arguments: PartialArgs::new() };
        self.continue_call(open, call, signature, goes_on, out);
        Ok(())
    }

    /// Handles the next piece of a call, which is the last unless it announces more.
    fn continue_call(
        &mut self,
        mut open: OpenCall,
        call: &FunctionCall<'_>,
        signature: Option<&str>,
        goes_on: bool,
        out: &mut Vec<StreamEvent>,
    ) {
        self.sign_call(open.slot, signature);
        if let Some(Ok(Value::Object(whole))) =
            call.args.map(|args| serde_json::from_str(&without_signs(args.get())))
            && !whole.is_empty()
        {
            open.arguments.start_with(whole);
        }
        let mut added = String::new();
        for piece in call.partial_args.iter().flatten() {
            open.arguments.push(piece, &mut added);
        }
        if goes_on {
            self.blocks.push(open.slot, Cow::Owned(added), out);
            self.call = Some(open);
            return;
        }
        self.end_call(open, added, out);
    }

    /// Closes a call, after `added`, the last addition to the text of its arguments.
    fn end_call(&mut self, open: OpenCall, mut added: String, out: &mut Vec<StreamEvent>) {
        let arguments = open.arguments.finish(&mut added);
        self.blocks.push(open.slot, Cow::Owned(added), out);
        self.blocks.end_call(open.slot, arguments, out);
    }

    /// Closes a call whose last piece announced more, at the end of the answer.
    fn end_unended(&mut self, open: OpenCall, out: &mut Vec<StreamEvent>) {
        let mut added = String::new();
        let has_arguments = open.arguments.has_any();
        match open.arguments.finish(&mut added) {
            Ok(arguments) if has_arguments => {
                self.blocks.push(open.slot, Cow::Owned(added), out);
                self.blocks.end_call(open.slot, Ok(arguments), out);
            }
            _ => self.blocks.cut(open.slot, out),
        }
    }

    fn sign_call(&mut self, slot: usize, signature: Option<&str>) {
        if let (Some(call), Some(signature)) = (self.blocks.call_mut(slot), signature) {
            call.thought_signature.get_or_insert_with(|| signature.to_owned());
        }
    }

    /// `id`, or a generated one if the server sent none or a duplicate.
    fn unique_id(&mut self, id: &str) -> String {
        let id = if id.is_empty() || self.ids.iter().any(|known| known == id) {
            format!("call_{}_{}", self.call_seed, self.n_calls)
        } else {
            id.to_owned()
        };
        self.ids.push(id.clone());
        id
    }

    /// Updates the counts from a chunk, which are totals. Some chunks contain only how
    /// the request is billed.
    fn update_usage(&mut self, usage: &UsageMetadata) {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        if usage.prompt_token_count.is_none() && usage.total_token_count.is_none() {
            return;
        }
        let cached = count(usage.cached_content_token_count);
        let prompt = count(usage.prompt_token_count).saturating_add(count(usage.tool_use_prompt_token_count));
        let thoughts = count(usage.thoughts_token_count);
        self.usage.update(Usage {
            input: prompt.saturating_sub(cached),
            output: count(usage.candidates_token_count).saturating_add(thoughts),
            cache_read: cached,
            reasoning: usage.thoughts_token_count.map(|_| thoughts),
            total_tokens: count(usage.total_token_count),
            ..Usage::default()
        });
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        let explanation = self.finish_message.as_deref();
        match (self.finish_reason.as_deref(), self.blocked.as_deref()) {
            (Some(reason), _) => outcome_of("finishReason", reason, self.blocks.has_calls(), explanation),
            (None, Some(reason)) => Err(RequestError::of_stop_reason("blockReason", reason, explanation)),
            (None, None) => Err(RequestError::cut_off("stream ended without a finish reason")),
        }
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        // Some gateways end the stream like Chat Completions.
        if frame.data == "[DONE]" {
            return Ok(());
        }
        with_json(&frame.data, &mut String::new(), |chunk: Chunk<'_>| self.chunk(chunk, out))
    }

    fn is_complete(&self) -> bool {
        false
    }

    /// Without `alt=sse`, servers send the chunks as bare JSON.
    fn reads_document(&self, document: &Value) -> bool {
        ["candidates", "promptFeedback", "usageMetadata"].iter().any(|key| document.get(key).is_some())
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        self.end_block(out);
        let outcome = match end {
            End::Closed => self.outcome(),
            End::Lost if self.finish == FinishPlace::AtTheEnd => self.outcome(),
            End::Lost | End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        // The end of the answer ends its calls, unless one was cut in a value.
        if matches!(outcome, Ok(StopReason::Stop | StopReason::ToolUse)) {
            self.unended.extend(self.call.take());
            for open in std::mem::take(&mut self.unended) {
                self.end_unended(open, out);
            }
        }
        self.blocks.end_all(false, out);
        Finish {
            content: self.blocks.content,
            usage: self.usage.finish(),
            outcome,
            response_id: self.response_id,
            response_model: self.response_model.filter(|model| *model != self.asked_for),
            raw_stop_reason: self.finish_reason.or(self.blocked),
            diagnostics: Vec::new(),
        }
    }
}
