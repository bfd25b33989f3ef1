//! Detects prompts that missed the provider's cache. Pure policy.
//!
//! Providers keep the prompt of a request for a while and charge a fraction for
//! the part that the next one repeats. Every request repeats the previous one, so
//! a much smaller cache read than the last prompt means that something has
//! changed. Only answers of providers that report cache use count.

use std::sync::Arc;

use crate::ai::{AssistantMessage, Message, Model, ThinkingLevel};

use crate::util::grouped;

use super::cache_prefix::{Difference, Prefix};
use super::cache_warming::known_lifetime_ms;
use super::usage::CACHE_GRAIN_TOKENS;

/// Cache lifetimes of providers, by default and on request.
const SHORT_MS: u64 = 5 * 60_000;
const LONG_MS: u64 = 60 * 60_000;

/// The cache lifetime of `model` in milliseconds: the model's `promptCache`
/// or the default. `long` means that the request asked for a long
/// lifetime.
pub(super) fn kept_ms(model: &Model, long: bool) -> u64 {
    known_lifetime_ms(model, long).unwrap_or(if long { LONG_MS } else { SHORT_MS })
}

/// The contents of the provider's cache, as its answers report them.
#[derive(Debug, Default)]
pub(super) struct CacheWatch {
    last: Option<Seen>,
    /// What the session did to the conversation since the last answer.
    rewritten: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Seen {
    model: String,
    thinking: Option<ThinkingLevel>,
    /// Tokens of the prompt, if the provider reported cache use.
    cached: u64,
    /// Start of the request, milliseconds since the Unix epoch.
    at_ms: u64,
    prefix: Prefix,
}

/// A prompt that was paid for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) tokens: u64,
    pub(super) cause: MissCause,
}

/// Why a prompt was not in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MissCause {
    /// From the first to the second, as `provider/id`.
    Model(String, String),
    /// A part of the request changed, and what the session did that changed it, if known.
    Request(Difference, Option<&'static str>),
    Thinking,
    Idle {
        pause_ms: u64,
        kept_ms: u64,
    },
    /// Nothing changed, and the time was not over.
    Eviction,
}

/// Smaller misses are not worth a notice, unless they cost [`WORTH_USD`]: the limits of the original.
const WORTH_TOKENS: u64 = 20_000;
const WORTH_USD: f64 = 0.10;

impl Miss {
    /// A notice about it, if it is worth one; `usd` is what it cost.
    pub(super) fn describe(&self, usd: f64) -> Option<String> {
        let costs = if usd < 5e-5 { String::new() } else { format!(" for about ${usd:.2}") };
        let is_worth = self.tokens >= WORTH_TOKENS || usd >= WORTH_USD;
        is_worth.then(|| {
            let (tokens, cause) = (grouped(self.tokens), self.cause.describe());
            format!("Cache miss: {tokens} prompt tokens were billed again{costs}; {cause}.")
        })
    }
}

impl MissCause {
    /// The cause for the user, after "because" or a semicolon.
    pub(super) fn describe(&self) -> String {
        let request = |difference: &Difference| match difference {
            Difference::Tool { name, change } => format!("the tool {name} {}", change.text()),
            Difference::ToolOrder => "the tools are in another order".to_owned(),
            Difference::Section { name, .. } if name.is_empty() => "the system prompt changed".to_owned(),
            Difference::Section { name, change } => {
                format!("the section {name} of the system prompt {}", change.text())
            }
            Difference::Message { number, preview, .. } if preview.is_empty() => {
                format!("the first difference is message {number}")
            }
            Difference::Message { number, role, preview } => {
                format!("the first difference is message {number}, {role} “{preview}”")
            }
        };
        match self {
            Self::Model(from, to) => format!("the model changed from {from} to {to}"),
            Self::Request(difference @ Difference::Message { .. }, action) => {
                format!("{}; {}", action.unwrap_or("an earlier message changed"), request(difference))
            }
            Self::Request(difference, _) => request(difference),
            Self::Thinking => "the thinking level changed".to_owned(),
            Self::Idle { pause_ms, kept_ms } => format!(
                "the pause was {} minutes, and the provider caches prompts for {}",
                pause_ms / 60_000,
                kept_ms / 60_000
            ),
            Self::Eviction => "the provider no longer had it, although nothing changed".to_owned(),
        }
    }
}

impl CacheWatch {
    /// Continues after the answers of a conversation, unless some were already seen.
    pub(super) fn catch_up(&mut self, messages: &[Arc<Message>]) {
        if self.last.is_some() {
            return;
        }
        let answers = messages.iter().enumerate().rev().filter_map(|(at, message)| match &**message {
            Message::Assistant(answer) if answer.usage.prompt_tokens() > 0 => Some((at, answer)),
            _ => None,
        });
        if let Some((at, answer)) = answers.take(1).next() {
            self.last = Some(Seen::of(answer, &messages[..at]));
        }
    }

    /// Records that the session changed an earlier part of the conversation.
    pub(super) fn rewritten(&mut self, what: &'static str) {
        self.rewritten = Some(what);
    }

    /// Records that the conversation begins with a summary now: the next prompt is another one, and nothing
    /// of it can be missed.
    pub(super) fn summarized(&mut self) {
        self.last.get_or_insert_default().cached = 0;
    }

    /// Records that a request at `at_ms` kept the prompt in the cache.
    pub(super) fn used(&mut self, at_ms: u64) {
        if let Some(last) = &mut self.last {
            last.at_ms = at_ms;
        }
    }

    /// Records an answer to the request with `messages`; `kept_ms` is the provider's cache
    /// lifetime.
    pub(super) fn answered(
        &mut self,
        answer: &AssistantMessage,
        messages: &[Arc<Message>],
        kept_ms: u64,
    ) -> Option<Miss> {
        let usage = &answer.usage;
        let sent = usage.prompt_tokens();
        if sent == 0 {
            return None;
        }
        let rewritten = self.rewritten.take();
        // Without a cache there is nothing to compare.
        let had_cache = self.last.as_ref().is_some_and(|last| last.cached > 0);
        let compared = if had_cache || reports_cache(answer) { messages } else { &[] };
        let before = self.last.replace(Seen::of(answer, compared))?;
        let now = self.last.as_ref()?;
        let tokens = before.cached.min(sent).saturating_sub(usage.cache_read);
        if tokens <= CACHE_GRAIN_TOKENS {
            return None;
        }
        let pause_ms = now.at_ms.saturating_sub(before.at_ms);
        let cause = if before.model != now.model {
            MissCause::Model(before.model, now.model.clone())
        } else if let Some(difference) = before.prefix.difference(&now.prefix, messages) {
            MissCause::Request(difference, rewritten)
        } else if before.thinking != now.thinking {
            MissCause::Thinking
        } else if pause_ms > kept_ms {
            MissCause::Idle { pause_ms, kept_ms }
        } else {
            MissCause::Eviction
        };
        Some(Miss { tokens, cause })
    }
}

impl Seen {
    fn of(answer: &AssistantMessage, messages: &[Arc<Message>]) -> Self {
        let usage = &answer.usage;
        Self {
            model: format!("{}/{}", answer.provider, answer.model),
            thinking: answer.thinking_level,
            cached: if reports_cache(answer) { usage.prompt_tokens() } else { 0 },
            at_ms: answer.timestamp.0,
            prefix: Prefix::of(messages),
        }
    }
}

fn reports_cache(answer: &AssistantMessage) -> bool {
    answer.usage.cache_read > 0 || answer.usage.cache_write > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::cache_prefix::Change;
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

    /// The miss of the second of two answers to the same request.
    #[track_caller]
    fn check(first: &AssistantMessage, second: &AssistantMessage, expected: Option<(u64, &str)>) {
        let mut watch = CacheWatch::default();
        assert_eq!(watch.answered(first, &[], SHORT_MS), None);
        let miss = watch.answered(second, &[], SHORT_MS);
        let shown = miss.map(|miss| (miss.tokens, miss.cause.describe()));
        assert_eq!(shown, expected.map(|(tokens, reason)| (tokens, reason.to_owned())));
    }

    #[test]
    fn a_miss_is_named_with_its_reason() {
        let first = answer(10, 0, 20_000, 0);
        check(&first, &answer(50, 20_010, 100, 1), None);
        check(
            &first,
            &answer(20_060, 0, 0, 1),
            Some((20_010, "the provider no longer had it, although nothing changed")),
        );
        check(
            &first,
            &answer(20_060, 0, 0, 12),
            Some((20_010, "the pause was 12 minutes, and the provider caches prompts for 5")),
        );
        let mut other = answer(20_060, 0, 0, 1);
        other.thinking_level = Some(ThinkingLevel::High);
        check(&first, &other, Some((20_010, "the thinking level changed")));
        other.model = "n".to_owned();
        check(&first, &other, Some((20_010, "the model changed from p/m to p/n")));
    }

    #[test]
    fn a_miss_of_many_tokens_or_much_money_is_worth_a_notice() {
        let check = |tokens: u64, usd: f64, expected: Option<&str>| {
            let described = Miss { tokens, cause: MissCause::Thinking }.describe(usd);
            assert_eq!(described.as_deref(), expected);
        };
        check(19_999, 0.09, None);
        let many = "Cache miss: 20,000 prompt tokens were billed again; the thinking level changed.";
        check(20_000, 0.0, Some(many));
        let dear =
            "Cache miss: 9,000 prompt tokens were billed again for about $0.10; the thinking level changed.";
        check(9_000, 0.1, Some(dear));
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
        check(&answer(50_000, 0, 0, 0), &answer(50_100, 0, 0, 1), None);
        check(&answer(10, 0, 1_000, 0), &answer(1_100, 0, 0, 1), None);
        check(&answer(10, 0, 50_000, 0), &answer(1_000, 0, 0, 1), None);
        check(&answer(10, 0, 50_000, 0), &answer(0, 0, 0, 1), None);
    }

    #[test]
    fn nothing_is_missed_after_a_summary_and_the_whole_part_that_is_missed_counts() {
        let messages = [Arc::new(Message::from(answer(10, 0, 50_000, 0)))];
        let mut watch = CacheWatch::default();
        watch.summarized();
        watch.catch_up(&messages);
        assert_eq!(watch.answered(&answer(30_000, 0, 0, 1), &[], SHORT_MS), None);
        assert_eq!(watch.answered(&answer(10, 0, 50_000, 2), &[], SHORT_MS), None);
        let partly = watch.answered(&answer(10_010, 40_000, 0, 3), &[], SHORT_MS);
        assert_eq!(partly.map(|miss| miss.tokens), Some(10_010));
    }

    #[test]
    fn a_conversation_that_is_continued_is_caught_up_with() {
        let messages = [Arc::new(Message::from(answer(10, 0, 20_000, 0)))];
        let mut watch = CacheWatch::default();
        watch.catch_up(&messages);
        assert_eq!(watch.answered(&answer(20_060, 0, 0, 600), &messages, SHORT_MS).unwrap().tokens, 20_010);
    }

    // The corpus: conversations with one change each, which must be named.

    /// Two requests of a session, the second after the first was answered.
    #[derive(Debug, Clone)]
    struct Requests {
        tools: Vec<String>,
        sections: Vec<String>,
        texts: Vec<String>,
        /// How many of the texts belong to the first request.
        n_first: usize,
    }

    fn requests() -> impl Strategy<Value = Requests> {
        let names = |prefix: &'static str| {
            (1_usize..5).prop_map(move |n| (0..n).map(|at| format!("{prefix}{at}")).collect())
        };
        let texts = proptest::collection::vec("[a-z ]{1,12}|.{600,700}", 3..12);
        (names("tool"), names("section"), texts, any::<prop::sample::Index>()).prop_map(
            |(tools, sections, texts, at): (Vec<String>, Vec<String>, Vec<String>, _)| {
                let n_first = 1 + at.index(texts.len() - 1);
                Requests { tools, sections, texts, n_first }
            },
        )
    }

    /// The messages of a request: the system state, then users and answers in turns.
    fn messages(
        tools: &[(String, String)],
        sections: &[(String, String)],
        texts: &[String],
    ) -> Vec<Arc<Message>> {
        let declared: Vec<Value> = (tools.iter())
            .map(|(name, text)| json!({"name": name, "description": text, "parameters": {"type": "object"}}))
            .collect();
        let sections: Vec<Value> =
            sections.iter().map(|(name, text)| json!({"name": name, "text": text})).collect();
        let system = system_of(&declared, &sections);
        let others = texts.iter().enumerate().map(|(at, text)| {
            let value = match at % 2 {
                0 => json!({"role": "user", "content": text}),
                _ => json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "a",
                    "provider": "p", "model": "m", "usage": {}, "stopReason": "stop", "timestamp": 0}),
            };
            Arc::new(serde_json::from_value::<Message>(value).unwrap())
        });
        std::iter::once(system).chain(others).collect()
    }

    fn system_of(tools: &[Value], sections: &[Value]) -> Arc<Message> {
        let mut map = serde_json::Map::new();
        for section in sections {
            map.insert(section["name"].as_str().unwrap().to_owned(), section["text"].clone());
        }
        let value =
            json!({"role": "system", "content": "", "sections": map, "toolsAdded": tools, "timestamp": 0});
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn named(names: &[String]) -> Vec<(String, String)> {
        names.iter().map(|name| (name.clone(), format!("what {name} does"))).collect()
    }

    /// The cause of the miss of the second request.
    fn cause(first: &[Arc<Message>], second: &[Arc<Message>], now: &AssistantMessage) -> MissCause {
        let mut watch = CacheWatch::default();
        watch.answered(&answer(10, 0, 50_000, 0), first, SHORT_MS);
        watch.answered(now, second, SHORT_MS).unwrap().cause
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn causes_of_made_misses_are_named_without_error(
            made in requests(), at in any::<prop::sample::Index>(), pause in 6_u64..600, kind in 0..9
        ) {
            let Requests { tools, sections, texts, n_first } = made;
            let (plain_tools, plain_sections) = (named(&tools), named(&sections));
            let first = messages(&plain_tools, &plain_sections, &texts[..n_first]);
            let whole = || messages(&plain_tools, &plain_sections, &texts);
            let missed = |minute| answer(60_000, 0, 0, minute);
            let tool = at.index(tools.len());
            let section = at.index(sections.len());
            let message = at.index(n_first);
            match kind {
                0 => {
                    let found = cause(&first, &whole(), &missed(pause));
                    prop_assert_eq!(found, MissCause::Idle { pause_ms: pause * 60_000, kept_ms: SHORT_MS });
                }
                1 => prop_assert_eq!(cause(&first, &whole(), &missed(pause % 5)), MissCause::Eviction),
                2 => {
                    let mut now = missed(pause);
                    now.model = "other".to_owned();
                    let expected = MissCause::Model("p/m".to_owned(), "p/other".to_owned());
                    prop_assert_eq!(cause(&first, &whole(), &now), expected);
                }
                3 => {
                    let mut changed = plain_tools.clone();
                    changed[tool].1.push('!');
                    let found = cause(&first, &messages(&changed, &plain_sections, &texts), &missed(pause));
                    let difference = Difference::Tool { name: tools[tool].clone(), change: Change::Changed };
                    prop_assert_eq!(found, MissCause::Request(difference, None));
                }
                4 => {
                    let mut changed = plain_tools.clone();
                    changed.remove(tool);
                    let found = cause(&first, &messages(&changed, &plain_sections, &texts), &missed(1));
                    let difference = Difference::Tool { name: tools[tool].clone(), change: Change::Removed };
                    prop_assert_eq!(found, MissCause::Request(difference, None));
                }
                5 => {
                    let mut changed = plain_sections.clone();
                    changed[section].1.push('!');
                    let found = cause(&first, &messages(&plain_tools, &changed, &texts), &missed(1));
                    let (name, change) = (sections[section].clone(), Change::Changed);
                    prop_assert_eq!(found, MissCause::Request(Difference::Section { name, change }, None));
                }
                6 => {
                    // An earlier message was edited.
                    let mut changed = texts.clone();
                    changed[message].push('!');
                    let found = cause(&first, &messages(&plain_tools, &plain_sections, &changed), &missed(pause));
                    let MissCause::Request(Difference::Message { number, .. }, None) = found else {
                        return Err(TestCaseError::fail(format!("{found:?}")));
                    };
                    prop_assert_eq!(number, message + 1);
                }
                7 => {
                    // The conversation was cut off before that message.
                    let second = messages(&plain_tools, &plain_sections, &texts[..message]);
                    let found = cause(&first, &second, &missed(1));
                    let MissCause::Request(Difference::Message { number, preview, .. }, None) = found else {
                        return Err(TestCaseError::fail(format!("{found:?}")));
                    };
                    prop_assert_eq!((number, preview.as_str()), (message + 1, ""));
                }
                _ => {
                    let mut now = missed(1);
                    now.thinking_level = Some(ThinkingLevel::High);
                    prop_assert_eq!(cause(&first, &whole(), &now), MissCause::Thinking);
                }
            }
        }
    }
}
