//! The sizes that a compaction works with, in tokens. Pure.

use crate::ai::{self, Model};
use crate::config::CompactionBudget;

use super::branch::DEFAULT_WINDOW;
use super::estimate::{chars_of_tokens, tokens_of_chars};
use super::portions::MAX_PORTIONS;

/// The sizes a plan is made for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct PlanLimits {
    /// What is kept word for word, at least.
    pub(in super::super) keep_recent: u64,
    /// The window of the model that writes the summary; 0 if it is not known.
    pub(in super::super) window: u64,
    /// What of the window stays free.
    pub(in super::super) reserve: u64,
    /// System prompt and tools, which every request has.
    pub(in super::super) fixed: u64,
}

impl PlanLimits {
    /// The sizes for a conversation with `model`. Small windows reduce what the user's `budget` names;
    /// `fixed` tokens of the window are taken by system prompt and tools.
    pub(in super::super) fn of(budget: CompactionBudget, model: &Model, fixed: u64) -> Self {
        let window = model.context_window;
        let reserve = reserve(budget, model);
        let limits = Self { keep_recent: budget.keep_recent_tokens, window, reserve, fixed };
        if window == 0 {
            return limits;
        }
        let share = (limits.room() / 2).min(window / 3).max(window / 16);
        Self { keep_recent: limits.keep_recent.min(share), ..limits }
    }

    /// The conversation is compacted when it has more tokens.
    pub(in super::super) fn threshold(self) -> u64 {
        self.window.saturating_sub(self.reserve)
    }

    /// What the conversation itself may take of the window.
    fn room(self) -> u64 {
        self.threshold().saturating_sub(self.fixed).max(self.window / 8)
    }

    /// A compaction that frees fewer tokens is not worth its request.
    pub(in super::super) fn least_freed(self) -> u64 {
        self.window / 16
    }

    /// Characters of a summary; a longer one is cut.
    pub(super) fn summary_chars(self) -> usize {
        chars((self.room() / 3).min(self.window / 5), self.window)
    }

    /// Characters of all quotes of pinned messages.
    pub(in super::super) fn quotes_chars(self) -> usize {
        chars((self.room() / 4).min(self.window / 8), self.window)
    }

    /// Characters of all results of one answer in a request. After each overflow that a
    /// compaction did not cure it is half as many.
    pub(in super::super) fn results_chars(self, n_overflows: u32) -> usize {
        let tokens = (self.room() / 2).min(self.window / 3) >> n_overflows.min(8);
        chars(tokens, self.window)
    }

    /// What a result takes of a request at most.
    pub(in super::super) fn result_tokens(self) -> u64 {
        tokens_of_chars(self.results_chars(0) as u64)
    }

    /// Characters of a conversation that one request can summarise.
    pub(super) fn portion_chars(self) -> usize {
        let window = if self.window == 0 { DEFAULT_WINDOW } else { self.window };
        // The summary so far and the new one take part of it.
        let tokens = window.saturating_sub(self.reserve.saturating_mul(2)).max(window / 2);
        usize::try_from(chars_of_tokens(tokens)).unwrap_or(usize::MAX)
    }

    /// Characters of the part of a conversation that matters: all portions and what is kept.
    pub(super) fn all_chars(self) -> usize {
        let portions = self.portion_chars().saturating_mul(MAX_PORTIONS as usize);
        portions.saturating_add(usize::try_from(chars_of_tokens(self.keep_recent)).unwrap_or(usize::MAX))
    }
}

/// What stays free of the window of `model`: at most a quarter, and enough for a useful answer.
pub(in super::super) fn reserve(budget: CompactionBudget, model: &Model) -> u64 {
    match model.context_window {
        0 => budget.reserve_tokens,
        window => budget.reserve_tokens.min(window / 4).max(ai::least_answer(model)),
    }
}

/// Without a known window there is no limit.
fn chars(tokens: u64, window: u64) -> usize {
    if window == 0 {
        return usize::MAX;
    }
    usize::try_from(chars_of_tokens(tokens)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(window: u64, fixed: u64) -> PlanLimits {
        let budget = CompactionBudget { reserve_tokens: 16_384, keep_recent_tokens: 20_000 };
        let model = Model { context_window: window, max_tokens: 16_384, ..Model::default() };
        PlanLimits::of(budget, &model, fixed)
    }

    /// What is kept, what stays free, and the tokens of the longest summary.
    #[track_caller]
    fn check(window: u64, fixed: u64, expected: (u64, u64, usize)) {
        let limits = limits(window, fixed);
        assert_eq!((limits.keep_recent, limits.reserve, limits.summary_chars() / 4), expected);
    }

    #[test]
    fn small_windows_reduce_what_is_kept_and_reserved() {
        check(1_000_000, 4_000, (20_000, 16_384, 200_000));
        check(200_000, 4_000, (20_000, 16_384, 40_000));
        check(32_000, 2_000, (10_666, 8_000, 6_400));
        check(16_000, 2_000, (5_000, 4_000, 3_200));
        check(8_000, 2_000, (2_000, 2_000, 1_333));
        check(4_096, 2_000, (536, 1_024, 357));
        // System prompt and tools fill the window nearly.
        check(4_096, 4_000, (256, 1_024, 170));
    }

    #[test]
    fn parts_of_a_compacted_conversation_fit_below_the_threshold() {
        for window in [4_096, 6_000, 8_192, 16_000, 20_000, 32_768, 65_536, 128_000, 200_000] {
            for share in [4, 8, 16] {
                let fixed = window / share;
                let limits = limits(window, fixed);
                let text = limits.summary_chars() + limits.quotes_chars();
                let sum = fixed + limits.keep_recent + text as u64 / 4;
                let most = limits.threshold() + limits.room() / 8;
                assert!(sum <= most, "{sum} of {most} in {window}");
            }
        }
    }

    #[test]
    fn results_shrink_with_every_overflow() {
        let chars = [0, 1, 2, 90].map(|n_overflows| limits(16_000, 2_000).results_chars(n_overflows));
        assert_eq!(chars, [20_000, 10_000, 5_000, 76]);
    }

    #[test]
    fn unknown_window_limits_nothing() {
        let limits = limits(0, 5);
        assert_eq!((limits.keep_recent, limits.reserve, limits.threshold()), (20_000, 16_384, 0));
        assert_eq!([limits.summary_chars(), limits.quotes_chars(), limits.results_chars(3)], [usize::MAX; 3]);
    }

    #[test]
    fn answer_has_room_though_nothing_is_reserved() {
        let budget = CompactionBudget { reserve_tokens: 0, keep_recent_tokens: 2 };
        let model = Model { context_window: 16_000, max_tokens: 8_000, ..Model::default() };
        assert_eq!(PlanLimits::of(budget, &model, 0).threshold(), 14_000);
    }
}
