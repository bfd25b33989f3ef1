//! Estimates the tokens of messages that no provider has counted yet.

use std::sync::Arc;

use crate::ai::{AssistantBlock, ContentBlock, Message, SystemMessage, UserContent};

use super::super::projection;
use super::super::store::{ContextReader, Entry, EntryBody, SessionMessage};

/// Average number of characters per token.
const CHARS_PER_TOKEN: u64 = 4;
/// The size of an image, in characters.
pub(in super::super) const IMAGE_CHARS: u64 = 4_800;

/// Tokens of one message, from its length.
pub(in super::super) fn message_tokens(message: &Message) -> u64 {
    let chars = match message {
        Message::System(system) => system_chars(system),
        Message::User(user) => match &user.content {
            UserContent::Text(text) => chars(text),
            UserContent::Blocks(blocks) => blocks_chars(blocks),
        },
        Message::Assistant(answer) => answer.content.iter().map(answer_chars).sum(),
        Message::ToolResult(result) => blocks_chars(&result.content),
    };
    tokens_of_chars(chars)
}

/// Tokens of a message as a request contains it: a result of a tool has at most `most_of_result`.
pub(super) fn sent_tokens(message: &Message, most_of_result: u64) -> u64 {
    let tokens = message_tokens(message);
    match message {
        Message::ToolResult(_) => tokens.min(most_of_result),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => tokens,
    }
}

/// Tokens of a text with that many characters.
pub(in super::super) fn tokens_of_chars(n_chars: u64) -> u64 {
    n_chars.div_ceil(CHARS_PER_TOKEN)
}

/// The number of characters that are estimated as that many tokens.
pub(super) fn chars_of_tokens(n_tokens: u64) -> u64 {
    n_tokens.saturating_mul(CHARS_PER_TOKEN)
}

/// Tokens of a conversation: the count of the latest answer on `branch`, if it is still
/// valid, plus an estimate of later messages; otherwise an estimate of `messages`,
/// which are those of the branch.
pub(in super::super) fn context_tokens(branch: &[Arc<Entry>], messages: &[Arc<Message>]) -> u64 {
    let tokens = |message: &Arc<Message>| message_tokens(message);
    counted(branch, messages, &tokens).unwrap_or_else(|| messages.iter().map(tokens).sum())
}

/// Like [`context_tokens`], without reading more of the conversation than is needed to know
/// the number or that there are more than `limit`. What was not read counts by its length, and a result
/// of a tool as at most `most_of_result`, because a request has no more of it.
pub(in super::super) fn context_tokens_up_to(
    context: &mut ContextReader<'_>,
    limit: u64,
    most_of_result: u64,
) -> u64 {
    read_tokens(context, limit, most_of_result).0
}

/// Like [`context_tokens_up_to`]; `None` if the conversation was compacted and no answer has
/// counted what is left of it.
pub(in super::super) fn context_tokens_unless_compacted(
    context: &mut ContextReader<'_>,
    limit: u64,
) -> Option<u64> {
    let (tokens, is_compacted) = read_tokens(context, limit, u64::MAX);
    (!is_compacted).then_some(tokens)
}

/// The tokens, and whether they are those of a summary that no answer has counted.
fn read_tokens(context: &mut ContextReader<'_>, limit: u64, most_of_result: u64) -> (u64, bool) {
    let mut tokens = 0;
    let (mut is_counted, mut is_compacted) = (false, false);
    let n_unread_bytes = context.read_end(|entries| {
        let messages = projection::messages(entries);
        let sent = |message: &Arc<Message>| sent_tokens(message, most_of_result);
        let known = counted(entries, &messages, &sent);
        is_counted = known.is_some();
        is_compacted = !is_counted && entries.iter().any(|entry| is_compaction(entry));
        tokens = known.unwrap_or_else(|| messages.iter().map(sent).sum());
        is_counted || tokens > limit
    });
    if is_counted {
        return (tokens, false);
    }
    (tokens.saturating_add(tokens_of_chars(n_unread_bytes)), is_compacted)
}

fn is_compaction(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::Compaction(_))
}

/// The tokens of a conversation if an answer on `branch`, or on its end, counted them.
fn counted(
    branch: &[Arc<Entry>],
    messages: &[Arc<Message>],
    tokens: &dyn Fn(&Arc<Message>) -> u64,
) -> Option<u64> {
    // An edit or a compaction invalidates the count of an earlier answer.
    let at = branch.iter().rposition(|entry| match &entry.body {
        EntryBody::Compaction(_) | EntryBody::ContextEdit(_) => true,
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::Assistant(answer) => !answer.is_failed() && answer.usage.total_tokens > 0,
            Message::System(_) | Message::User(_) | Message::ToolResult(_) => false,
        },
        _ => false,
    })?;
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = &branch[at].body else {
        return None;
    };
    let Message::Assistant(answer) = &**message else { return None };
    let known = answer.usage.prompt_tokens().saturating_add(answer.usage.output);
    let after = messages.iter().rposition(|other| Arc::ptr_eq(other, message)).map_or(0, |place| place + 1);
    let later: u64 = messages[after..].iter().map(tokens).sum();
    Some(known.saturating_add(later))
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

fn blocks_chars(blocks: &[ContentBlock]) -> u64 {
    let block_chars = |block: &ContentBlock| match block.as_text() {
        Some(text) => chars(text),
        None => IMAGE_CHARS,
    };
    blocks.iter().map(block_chars).sum()
}

fn answer_chars(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(text) => chars(&text.text),
        AssistantBlock::Thinking(thinking) => chars(&thinking.thinking),
        AssistantBlock::ToolCall(call) => chars(&call.name) + chars(&call.sent_arguments().to_string()),
        AssistantBlock::Unknown(_) => 0,
    }
}

fn system_chars(system: &SystemMessage) -> u64 {
    serde_json::to_string(system).map_or(0, |json| chars(&json))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ai::{AssistantMessage, Millis, ToolResultMessage, Usage, UserMessage};

    use super::*;

    fn entry(id: &str, message: Message) -> Arc<Entry> {
        let body = EntryBody::message(Arc::new(message));
        Arc::new(Entry {
            id: super::super::super::store::EntryId::new(id),
            parent_id: None,
            timestamp: String::new(),
            body,
        })
    }

    fn user(text: &str) -> Message {
        Message::User(UserMessage::new(text, Vec::new(), Millis(0)))
    }

    fn answer(tokens: u64) -> Message {
        let usage = Usage { input: tokens, total_tokens: tokens, ..Usage::default() };
        let answer: AssistantMessage =
            serde_json::from_value(json!({"content": [{"type": "text", "text": "12345678"}]})).unwrap();
        Message::from(AssistantMessage { usage, ..answer })
    }

    #[track_caller]
    fn check(messages: Vec<Message>, expected: u64) {
        let branch: Vec<_> =
            messages.into_iter().enumerate().map(|(at, message)| entry(&at.to_string(), message)).collect();
        let messages = super::super::super::projection::messages(&branch);
        assert_eq!(context_tokens(&branch, &messages), expected);
    }

    #[test]
    fn lengths_are_counted_where_no_provider_has() {
        check(vec![user("12345"), answer(0)], 2 + 2);
        let call =
            json!({"content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": {"p": "x"}}]});
        let result: ToolResultMessage = serde_json::from_value(json!({"toolCallId": "c", "toolName": "read",
            "content": [{"type": "image", "data": "", "mimeType": "image/png"}], "isError": false}))
        .unwrap();
        let call = Message::Assistant(serde_json::from_value(call).unwrap());
        // `read` and `{"p":"x"}` are 13 characters.
        check(vec![call, Message::from(result)], 4 + 1_200);
    }

    #[test]
    fn the_latest_count_of_a_provider_holds_for_what_came_before_it() {
        check(vec![user("hello"), answer(1_000), user("12345678")], 1_002);
        check(vec![answer(5), answer(1_000)], 1_000);
    }
}
