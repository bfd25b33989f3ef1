//! When the next frame is due.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest time between two frames that show a change of what goes on.
pub(super) const FRAME: Duration = Duration::from_millis(4);
/// Shortest time between two frames that only show more of an answer.
pub(super) const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Time between two frames that only an animation asks for.
const ANIMATION: Duration = Duration::from_millis(100);
/// How long the size must be at rest before the screen follows it.
const RESIZE_REST: Duration = Duration::from_millis(75);

/// The times of the last and the next frame.
#[derive(Default)]
pub(super) struct FrameClock {
    drawn_at: Option<Instant>,
    draw_at: Option<Instant>,
    resize_at: Option<Instant>,
}

impl FrameClock {
    /// When to draw; `None` while nothing changes.
    pub(super) fn draw_at(&self) -> Option<Instant> {
        self.draw_at
    }

    /// When the size counts as at rest; `None` while it does not change.
    pub(super) fn resize_at(&self) -> Option<Instant> {
        self.resize_at
    }

    pub(super) fn has_drawn(&self) -> bool {
        self.drawn_at.is_some()
    }

    /// Whether a frame is due without waiting for a timer: those are coarse.
    pub(super) fn is_due(&self) -> bool {
        self.draw_at.is_some_and(|at| at <= Instant::now())
    }

    /// Asks for a frame, no sooner than `gap` after the last one.
    pub(super) fn request(&mut self, gap: Duration) {
        let earliest = self.drawn_at.map_or_else(Instant::now, |drawn| drawn + gap);
        self.draw_at = Some(self.draw_at.map_or(earliest, |at| at.min(earliest)));
    }

    /// Asks for the next frame of an animation.
    pub(super) fn animate(&mut self) {
        self.request_in(ANIMATION);
    }

    /// Asks for a frame after `wait`, unless one is due anyway.
    pub(super) fn request_in(&mut self, wait: Duration) {
        if self.draw_at.is_none() {
            self.draw_at = Some(Instant::now() + wait);
        }
    }

    /// The size has changed; it may do so again soon.
    pub(super) fn on_resize(&mut self) {
        self.resize_at = Some(Instant::now() + RESIZE_REST);
    }

    /// The screen has followed the size.
    pub(super) fn on_resized(&mut self) {
        self.resize_at = None;
    }

    /// Begins a frame. `false` if it has to wait for the size to come to rest.
    #[must_use]
    pub(super) fn begin(&mut self) -> bool {
        self.draw_at = None;
        self.resize_at.is_none()
    }

    pub(super) fn on_drawn(&mut self) {
        self.drawn_at = Some(Instant::now());
    }
}
