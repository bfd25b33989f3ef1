//! Shortens texts that are larger than their share of a window. Pure.
//!
//! Only requests and summaries get the short form; the session keeps every text whole.

use std::sync::Arc;

use crate::ai::{ContentBlock, Message, Text, ToolResultMessage};

/// A text is not shortened below this.
pub(super) const MIN_CHARS: usize = 1_000;
/// Results are shortened below that if nothing else helps.
const MIN_RESULT_CHARS: usize = 200;

/// The beginning and the end of `text`, `n_chars` together, with a line between them that names the
/// number of characters left out.
pub(super) fn head_and_tail(text: &str, n_chars: usize) -> String {
    joined(text, n_chars, |n_omitted| format!("[{n_omitted} characters omitted]"))
}

/// `text`, shortened if it has more than `n_chars` characters.
pub(in super::super) fn within(text: String, n_chars: usize) -> String {
    // No text has more characters than bytes, and bytes need not be counted.
    if text.len() <= n_chars || text.chars().count() <= n_chars {
        text
    } else {
        head_and_tail(&text, n_chars)
    }
}

/// Shortens the largest results of each answer until all of them have at most `n_chars` together.
pub(in super::super) fn fit_results(messages: &mut [Arc<Message>], n_chars: usize) {
    let is_result = |message: &Arc<Message>| matches!(**message, Message::ToolResult(_));
    let mut rest = messages;
    while let Some(at) = rest.iter().position(is_result) {
        let n_results = rest[at..].iter().take_while(|message| is_result(message)).count();
        let (batch, after) = rest[at..].split_at_mut(n_results);
        fit_batch(batch, n_chars);
        rest = after;
    }
}

/// Whether a conversation has results of one answer with more than `n_chars` characters.
pub(in super::super) fn has_large_results(messages: &[Arc<Message>], n_chars: usize) -> bool {
    let mut sum = 0_usize;
    messages.iter().any(|message| {
        sum = match &**message {
            Message::ToolResult(result) => sum.saturating_add(result_chars(result)),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => 0,
        };
        sum > n_chars
    })
}

/// The characters of a result's texts.
pub(in super::super) fn result_chars(result: &ToolResultMessage) -> usize {
    result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.chars().count()).sum()
}

fn fit_batch(batch: &mut [Arc<Message>], n_chars: usize) {
    let sizes: Vec<usize> = batch.iter().map(|message| message_chars(message)).collect();
    if sizes.iter().fold(0_usize, |sum, size| sum.saturating_add(*size)) <= n_chars {
        return;
    }
    let cap = largest_share(&sizes, n_chars).max(MIN_RESULT_CHARS);
    for (message, size) in batch.iter_mut().zip(sizes) {
        if size > cap
            && let Message::ToolResult(result) = &**message
        {
            *message = Arc::new(Message::ToolResult(Arc::new(shortened_result(result, cap))));
        }
    }
}

fn message_chars(message: &Message) -> usize {
    match message {
        Message::ToolResult(result) => result_chars(result),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => 0,
    }
}

/// The size to which the largest of `sizes` have to be reduced so that all are at most `total` together;
/// `usize::MAX` if they are.
pub(in super::super) fn largest_share(sizes: &[usize], total: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    for (at, size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

/// The result with the beginning and the end of its text; images and other blocks stay.
fn shortened_result(result: &ToolResultMessage, n_chars: usize) -> ToolResultMessage {
    let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).collect();
    let text = joined(&texts.join("\n"), n_chars, |n_omitted| {
        format!(
            "[{n_omitted} characters omitted here, because the context window is too small for them. \
             Ask for a smaller part if you need them.]"
        )
    });
    let others = result.content.iter().filter(|block| block.as_text().is_none()).cloned();
    let content = [ContentBlock::Text(Text::new(text))].into_iter().chain(others).collect();
    ToolResultMessage { content, ..result.clone() }
}

fn joined(text: &str, n_chars: usize, note: impl Fn(usize) -> String) -> String {
    let n_all = text.chars().count();
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let head = place(n_chars / 2);
    let tail = place(n_all.saturating_sub(n_chars / 2));
    let n_omitted = n_all.saturating_sub(n_chars / 2 * 2);
    format!("{}\n{}\n{}", &text[..head], note(n_omitted), &text[tail.max(head)..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::ai::{Millis, UserMessage, join_text};

    /// Messages by words: `u` a prompt, numbers are results of that many characters.
    fn messages(words: &str) -> Vec<Arc<Message>> {
        let message = |word: &str| match word.parse::<usize>() {
            Ok(n_chars) => {
                let text = format!("{}{}", "ä".repeat(n_chars / 2), "z".repeat(n_chars - n_chars / 2));
                Message::ToolResult(Arc::new(
                    serde_json::from_value(json!({"toolCallId": "c", "toolName": "read", "isError": false,
                        "content": [{"type": "text", "text": text}]}))
                    .unwrap(),
                ))
            }
            Err(_) => Message::User(UserMessage::new(word, Vec::new(), Millis(0))),
        };
        words.split_whitespace().map(|word| Arc::new(message(word))).collect()
    }

    /// The sizes after shortening, without the note.
    fn sizes(messages: &[Arc<Message>]) -> String {
        let size = |message: &Arc<Message>| match &**message {
            Message::ToolResult(result) => {
                join_text(&result.content).chars().filter(|c| "äz".contains(*c)).count().to_string()
            }
            _ => "u".to_owned(),
        };
        messages.iter().map(size).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(words: &str, n_chars: usize, expected: &str) {
        let mut messages = messages(words);
        assert_eq!(has_large_results(&messages, n_chars), words != expected);
        fit_results(&mut messages, n_chars);
        // The note itself has no letter of the texts but "z" in "size"; it has none.
        assert_eq!(sizes(&messages), expected);
    }

    #[test]
    fn only_the_largest_results_of_a_batch_are_shortened() {
        check("u 900 100", 1_000, "u 900 100");
        check("u 5000", 1_000, "u 1000");
        check("u 5000 100 3000", 2_100, "u 1000 100 1000");
        check("5000 u 5000", 5_000, "5000 u 5000");
        check("5000 u 5002", 5_000, "5000 u 5000");
        check("u 9000 9000", 10, "u 200 200");
        check("u", 0, "u");
    }

    #[test]
    fn shortened_result_keeps_head_tail_and_pictures() {
        let result: ToolResultMessage = serde_json::from_value(json!({"toolCallId": "c", "toolName": "read",
            "isError": true, "content": [{"type": "text", "text": "a".repeat(300) + &"b".repeat(300)},
            {"type": "image", "data": "AA==", "mimeType": "image/png"}]}))
        .unwrap();
        let short = shortened_result(&result, 400);
        let text = join_text(&short.content);
        assert!(text.starts_with(&("a".repeat(200) + "\n[200 characters omitted here")), "{text}");
        assert!(text.ends_with(&"b".repeat(200)), "{text}");
        assert_eq!((short.content.len(), short.is_error), (2, true));
    }

    proptest! {
        #[test]
        fn shares_use_the_total_and_exceed_it_never(sizes in prop::collection::vec(0_usize..5_000, 1..8), total in 0_usize..20_000) {
            let share = largest_share(&sizes, total);
            let sum: usize = sizes.iter().map(|size| (*size).min(share)).sum();
            prop_assert!(sum <= total || share == usize::MAX);
            if share == usize::MAX {
                prop_assert!(sizes.iter().sum::<usize>() <= total);
            } else {
                prop_assert!(total - sum < sizes.len());
            }
        }
    }
}
