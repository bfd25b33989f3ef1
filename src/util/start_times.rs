//! How long the phases of a start took, for `PI_TIMING`.

use std::time::Duration;

/// The phases so far; records nothing unless it is wanted.
#[derive(Debug, Clone, Default)]
pub struct StartTimes {
    is_wanted: bool,
    /// Each phase with the time since the start at which it ended.
    ends: Vec<(&'static str, Duration)>,
}

impl StartTimes {
    pub fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ends: Vec::new() }
    }

    /// A phase has ended, `at` after the start. Phases end in order; each counts once.
    pub fn mark(&mut self, phase: &'static str, at: Duration) {
        if self.is_wanted && self.ends.iter().all(|(known, _)| *known != phase) {
            self.ends.push((phase, at));
        }
    }

    /// A line for people; `None` unless times are wanted.
    pub fn report(&self) -> Option<String> {
        let (_, total) = self.ends.last()?;
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1_000.0);
        let begins = [Duration::ZERO].into_iter().chain(self.ends.iter().map(|(_, end)| *end));
        let phases = self.ends.iter().zip(begins);
        let phases: Vec<String> = phases
            .map(|((phase, end), begin)| format!("{phase} {}", ms(end.saturating_sub(begin))))
            .collect();
        Some(format!("start: {} ({})", ms(*total), phases.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_the_length_of_each_phase_if_it_is_wanted() {
        let report = |is_wanted: bool| {
            let mut times = StartTimes::new(is_wanted);
            for (phase, at_us) in
                [("settings", 1_500), ("session", 4_000), ("first frame", 9_100), ("session", 20_000)]
            {
                times.mark(phase, Duration::from_micros(at_us));
            }
            times.report()
        };
        let expected = "start: 9.1 ms (settings 1.5 ms, session 2.5 ms, first frame 5.1 ms)";
        assert_eq!(report(true).as_deref(), Some(expected));
        assert_eq!(report(false), None);
        assert_eq!(StartTimes::new(true).report(), None, "nothing was reached");
    }
}
