//! How far the wheel scrolls.

use std::time::Duration;

/// Events that follow each other faster are one turn of the wheel.
const SAME_TURN: Duration = Duration::from_millis(60);
/// Most rows per event of a fast turn.
const MOST: u16 = 6;
/// Events of a turn until the next row is added.
const EVENTS_PER_ROW: u16 = 3;
/// Times as many rows with alt.
const WITH_ALT: u16 = 5;

/// The speed of the wheel.
#[derive(Debug, Default)]
pub(super) struct Wheel {
    last: Option<(Duration, bool)>,
    /// Events of this turn.
    n_events: u16,
}

impl Wheel {
    /// Rows for an event at `now`; `fixed` is the number that the user chose.
    pub(super) fn rows(&mut self, now: Duration, down: bool, with_alt: bool, fixed: Option<u16>) -> usize {
        let goes_on =
            self.last.is_some_and(|(at, was_down)| was_down == down && now.saturating_sub(at) <= SAME_TURN);
        self.last = Some((now, down));
        self.n_events = if goes_on { self.n_events.saturating_add(1) } else { 0 };
        let rows = fixed.unwrap_or((1 + self.n_events / EVENTS_PER_ROW).min(MOST));
        usize::from(rows * if with_alt { WITH_ALT } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_turn_scrolls_farther_up_to_six_rows_and_a_new_one_begins_slowly() {
        let mut wheel = Wheel::default();
        let rows =
            |wheel: &mut Wheel, ms: u64, down: bool| wheel.rows(Duration::from_millis(ms), down, false, None);
        let fast: Vec<usize> = (0..20).map(|n| rows(&mut wheel, n * 10, true)).collect();
        assert_eq!(fast[..7], [1, 1, 1, 2, 2, 2, 3]);
        assert_eq!(fast[19], 6);
        assert_eq!(rows(&mut wheel, 210, false), 1, "the other direction");
        assert_eq!(rows(&mut wheel, 1_000, false), 1);
    }

    #[test]
    fn a_chosen_number_counts_and_alt_multiplies() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.rows(Duration::ZERO, true, false, Some(3)), 3);
        assert_eq!(wheel.rows(Duration::ZERO, true, true, Some(3)), 15);
        assert_eq!(wheel.rows(Duration::from_secs(1), true, true, None), 5);
    }
}
