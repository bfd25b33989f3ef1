//! The activity indicator.

use std::time::Duration;

/// Duration of one frame.
pub const SPINNER_FRAME: Duration = Duration::from_millis(80);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The frame to show after `elapsed`; one cell wide.
pub fn spinner(elapsed: Duration) -> &'static str {
    let frame = elapsed.as_millis() / SPINNER_FRAME.as_millis();
    FRAMES[usize::try_from(frame % FRAMES.len() as u128).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_once_every_ten_frames() {
        assert_eq!(spinner(Duration::ZERO), "⠋");
        assert_eq!(spinner(SPINNER_FRAME * 9), "⠏");
        assert_eq!(spinner(SPINNER_FRAME * 10), "⠋");
        assert_eq!(spinner(Duration::MAX), spinner(Duration::MAX));
    }
}
