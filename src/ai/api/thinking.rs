//! Thinking levels in the terms of the APIs.

use serde_json::Value;

use crate::ai::messages::ThinkingLevel;
use crate::ai::models::Model;
use crate::ai::requests::StreamOptions;

/// The value a model's API uses for `level`, if the level is on and supported.
pub(super) fn mapped_level(model: &Model, level: ThinkingLevel) -> String {
    match model.thinking_level_map.get(&level) {
        Some(Some(Value::String(name))) => name.clone(),
        Some(Some(value)) => value.to_string(),
        Some(None) | None => level.name().to_owned(),
    }
}

/// The thinking budget of `level`, for APIs that count tokens: the user's setting
/// or the default. Levels above `high` use the setting of `high`.
pub(super) fn thinking_budget(options: &StreamOptions, level: ThinkingLevel) -> u64 {
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
    if let Some(budget) = options.thinking_budgets.get(&level.min(High)) {
        return *budget;
    }
    match level {
        Off => 0,
        Minimal => 1_024,
        Low => 2_048,
        Medium => 8_192,
        High | Xhigh | Max => 16_384,
    }
}

/// The part of `budget` that leaves `model` room for an answer within `max_tokens`;
/// `None` if the rest is below the model's minimum. Near the end of the window it
/// shrinks in steps: a different budget in every request would invalidate the cached
/// prompt when it is largest.
pub(super) fn fitting_budget(budget: u64, model: &Model, max_tokens: u64) -> Option<u64> {
    /// Claude's minimum budget, and the minimum left for the answer.
    const MIN: u64 = 1_024;
    let room = max_tokens.saturating_sub(MIN);
    let budget = budget.min(model.max_tokens.saturating_sub(MIN));
    if budget <= room {
        return (budget >= MIN).then_some(budget);
    }
    [65_536, 32_768, 16_384, 8_192, 4_096, 2_048, MIN].into_iter().find(|step| *step <= room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_shrinks_by_steps_as_the_window_fills() {
        let model = Model { max_tokens: 16_384, ..Model::default() };
        let check = |max_tokens: u64, expected| {
            assert_eq!(fitting_budget(16_384, &model, max_tokens), expected, "{max_tokens}");
        };
        check(16_384, Some(15_360));
        check(16_000, Some(8_192));
        check(10_000, Some(8_192));
        check(3_000, Some(1_024));
        check(2_000, None);
        assert_eq!(fitting_budget(500, &model, 16_384), None);
    }
}
