//! Detects prompts that missed the provider's cache. Pure policy.
//!
//! Providers keep the prompt of a request for a while and charge a fraction for
//! the part that the next one repeats. Every request repeats the previous one, so
//! a much smaller cache read than the last prompt means that something has
//! changed. Only answers of providers that report cache use count.

use std::sync::Arc;

use crate::ai::{AssistantMessage, Message, Model, ThinkingLevel};

/// Smaller misses are not reported.
const WORTH_TOKENS: u64 = 4_096;
/// Cache lifetimes of providers, by default and on request.
const SHORT_MS: u64 = 5 * 60_000;
const LONG_MS: u64 = 60 * 60_000;

/// The cache lifetime of `model` in milliseconds: the model's `promptCache`
/// or the default. `long` means that the request asked for a long
/// lifetime.
pub(super) fn kept_ms(model: &Model, long: bool) -> u64 {
    let (name, usual_ms) = if long { ("long", LONG_MS) } else { ("short", SHORT_MS) };
    let seconds = model.extra.get("promptCache").and_then(|cache| cache.get(name)?.as_u64());
    seconds.map_or(usual_ms, |seconds| seconds.saturating_mul(1_000))
}

/// The contents of the provider's cache, as its answers report them.
#[derive(Debug, Default)]
pub(super) struct CacheWatch {
    last: Option<Seen>,
    changed: Option<&'static str>,
}

#[derive(Debug)]
struct Seen {
    model: String,
    thinking: Option<ThinkingLevel>,
    /// Tokens of the prompt, if the provider reported cache use.
    cached: u64,
    /// Start of the request, milliseconds since the Unix epoch.
    at_ms: u64,
}

/// A prompt that was paid for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) tokens: u64,
    pub(super) reason: String,
}

impl CacheWatch {
    /// Continues after the answers of a conversation, unless some were already seen.
    pub(super) fn catch_up(&mut self, messages: &[Arc<Message>]) {
        if self.last.is_some() {
            return;
        }
        for message in messages {
            match &**message {
                Message::Assistant(answer) => drop(self.answered(answer, 0)),
                Message::System(_) => self.changed("system prompt or tools changed"),
                Message::User(_) | Message::ToolResult(_) => {}
            }
        }
    }

    /// Records that an earlier part of the conversation has changed.
    pub(super) fn changed(&mut self, what: &'static str) {
        self.changed = Some(what);
    }

    /// Records an answer; `kept_ms` is the provider's cache lifetime.
    pub(super) fn answered(&mut self, answer: &AssistantMessage, kept_ms: u64) -> Option<Miss> {
        let usage = &answer.usage;
        let sent = usage.prompt_tokens();
        if sent == 0 {
            return None;
        }
        let reports = usage.cache_read > 0 || usage.cache_write > 0;
        let seen = Seen {
            model: format!("{}/{}", answer.provider, answer.model),
            thinking: answer.thinking_level,
            cached: if reports { sent } else { 0 },
            at_ms: answer.timestamp.0,
        };
        let changed = self.changed.take();
        let before = self.last.replace(seen)?;
        let now = self.last.as_ref()?;
        let tokens = before.cached.min(sent).saturating_sub(usage.cache_read);
        if tokens < WORTH_TOKENS || usage.cache_read >= before.cached / 2 {
            return None;
        }
        let pause_ms = now.at_ms.saturating_sub(before.at_ms);
        let reason = if before.model != now.model {
            "the model changed".to_owned()
        } else if let Some(changed) = changed {
            changed.to_owned()
        } else if before.thinking != now.thinking {
            "the thinking level changed".to_owned()
        } else if pause_ms > kept_ms {
            format!(
                "the pause was {} minutes, and the provider caches prompts for {}",
                pause_ms / 60_000,
                kept_ms / 60_000
            )
        } else {
            "the provider no longer had it, although nothing changed".to_owned()
        };
        Some(Miss { tokens, reason })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(input: u64, read: u64, write: u64, minute: u64) -> AssistantMessage {
        serde_json::from_value(json!({
            "role": "assistant", "content": [], "api": "a", "provider": "p", "model": "m",
            "usage": {"input": input, "output": 1, "cacheRead": read, "cacheWrite": write, "totalTokens": 0,
                "cost": {}},
            "stopReason": "stop", "timestamp": minute * 60_000, "thinkingLevel": "low",
        }))
        .unwrap()
    }

    /// The miss of the second of two answers.
    #[track_caller]
    fn check(
        first: &AssistantMessage,
        second: &AssistantMessage,
        changed: Option<&'static str>,
        expected: Option<(u64, &str)>,
    ) {
        let mut watch = CacheWatch::default();
        assert_eq!(watch.answered(first, SHORT_MS), None);
        if let Some(changed) = changed {
            watch.changed(changed);
        }
        let expected = expected.map(|(tokens, reason)| Miss { tokens, reason: reason.to_owned() });
        assert_eq!(watch.answered(second, SHORT_MS), expected);
    }

    #[test]
    fn a_miss_is_named_with_its_reason() {
        let first = answer(10, 0, 20_000, 0);
        check(&first, &answer(50, 20_010, 100, 1), None, None);
        check(
            &first,
            &answer(20_060, 0, 0, 1),
            None,
            Some((20_010, "the provider no longer had it, although nothing changed")),
        );
        check(
            &first,
            &answer(20_060, 0, 0, 12),
            None,
            Some((20_010, "the pause was 12 minutes, and the provider caches prompts for 5")),
        );
        check(&first, &answer(20_060, 0, 0, 12), Some("tools changed"), Some((20_010, "tools changed")));
        let mut other = answer(20_060, 0, 0, 1);
        other.thinking_level = Some(ThinkingLevel::High);
        check(&first, &other, None, Some((20_010, "the thinking level changed")));
        other.model = "n".to_owned();
        check(&first, &other, None, Some((20_010, "the model changed")));
    }

    #[test]
    fn a_models_entry_says_how_long_its_prompts_are_kept() {
        let model = |fields| serde_json::from_value::<Model>(fields).unwrap();
        let own = model(json!({"id": "m", "promptCache": {"short": 60}}));
        let usual = model(json!({"id": "m"}));
        let kept = [(&own, false), (&own, true), (&usual, false), (&usual, true)].map(|(m, l)| kept_ms(m, l));
        assert_eq!(kept, [60_000, LONG_MS, SHORT_MS, LONG_MS]);
    }

    #[test]
    fn what_was_never_cached_cannot_be_missed() {
        // No report about a cache, a small prompt, a prompt that shrank, a failed request.
        check(&answer(50_000, 0, 0, 0), &answer(50_100, 0, 0, 1), None, None);
        check(&answer(10, 0, 2_000, 0), &answer(2_100, 0, 0, 1), None, None);
        check(&answer(10, 0, 50_000, 0), &answer(1_000, 0, 0, 1), None, None);
        check(&answer(10, 0, 50_000, 0), &answer(0, 0, 0, 1), None, None);
    }

    #[test]
    fn a_conversation_that_is_continued_is_caught_up_with() {
        let messages = [Arc::new(Message::Assistant(answer(10, 0, 20_000, 0)))];
        let mut watch = CacheWatch::default();
        watch.catch_up(&messages);
        assert_eq!(watch.answered(&answer(20_060, 0, 0, 600), SHORT_MS).unwrap().tokens, 20_010);
    }
}
