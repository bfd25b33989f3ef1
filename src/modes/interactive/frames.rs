//! Schedules frames.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two frames that show a change of activity.
const FRAME: Duration = Duration::from_millis(4);
/// Minimum time between two frames that only show more of an answer. Shorter than the time between two batches
/// of a trickle, so that a batch is drawn when it arrives and needs no timer.
const STREAM_FRAME: Duration = Duration::from_millis(25);
/// Time between two frames of an animation.
const ANIMATION: Duration = Duration::from_millis(100);
/// Time between two frames that only count seconds.
const SECOND: Duration = Duration::from_secs(1);
/// How long the size must stay unchanged before the screen follows it again.
const RESIZE_REST: Duration = Duration::from_millis(75);
/// The same when the screen has followed twice already. Each frame at a narrower width costs rows of the screen, which
/// become blank rows of the scrollback, and tmux tells programs of a drag every 250 ms.
const DRAG_REST: Duration = Duration::from_millis(300);
/// A change of the size after this time is followed at once.
const RESIZE_PAUSE: Duration = Duration::from_millis(300);
/// How long after a change of the size the system may not know of the next one. tmux tells programs every
/// 250 ms.
const UNKNOWN_SIZE: Duration = Duration::from_millis(400);

/// The times of the last and the next frame.
#[derive(Default)]
pub(super) struct FrameClock {
    drawn_at: Option<Instant>,
    /// Whether the last frame was drawn for a key.
    follows_key: bool,
    draw_at: Option<Instant>,
    resize_at: Option<Instant>,
    resized_at: Option<Instant>,
    /// How often the screen has followed the changes since the last pause.
    n_followed: u32,
}

impl FrameClock {
    /// When to draw; `None` if nothing has changed.
    pub(super) fn draw_at(&self) -> Option<Instant> {
        self.draw_at
    }

    /// When the size counts as stable; `None` if it is not changing.
    pub(super) fn resize_at(&self) -> Option<Instant> {
        self.resize_at
    }

    pub(super) fn has_drawn(&self) -> bool {
        self.drawn_at.is_some()
    }

    /// Whether to draw now instead of waiting for a timer, because timers are coarse.
    pub(super) fn is_due(&self) -> bool {
        self.draw_at.is_some_and(|at| at <= Instant::now())
    }

    /// Requests a frame for a change of activity. After the frame of a key it does not wait, because the
    /// change is often the effect of the key.
    pub(super) fn request(&mut self) {
        self.request_after(if self.follows_key { Duration::ZERO } else { FRAME });
    }

    /// Requests a frame that only shows more of an answer.
    pub(super) fn request_stream(&mut self) {
        self.request_after(STREAM_FRAME);
    }

    fn request_after(&mut self, gap: Duration) {
        let earliest = self.drawn_at.map_or_else(Instant::now, |drawn| drawn + gap);
        self.draw_at = Some(self.draw_at.map_or(earliest, |at| at.min(earliest)));
    }

    /// Requests the next frame of an animation; with `reduced` motion only times change.
    pub(super) fn animate(&mut self, reduced: bool) {
        self.request_in(if reduced { SECOND } else { ANIMATION });
    }

    /// Requests a frame after `wait`, unless one is already due.
    pub(super) fn request_in(&mut self, wait: Duration) {
        if self.draw_at.is_none() {
            self.draw_at = Some(Instant::now() + wait);
        }
    }

    /// Records a change of the size, which may continue.
    pub(super) fn on_resize(&mut self) {
        let now = Instant::now();
        let is_first = self.resize_at.is_none() && self.resized_at.is_none_or(|at| now > at + RESIZE_PAUSE);
        if is_first {
            self.n_followed = 0;
        }
        let rest = match self.n_followed {
            0 if is_first => Duration::ZERO,
            0 | 1 => RESIZE_REST,
            _ => DRAG_REST,
        };
        self.resize_at = Some(now + rest);
    }

    /// Records that the screen has followed the size.
    pub(super) fn on_resized(&mut self) {
        self.resize_at = None;
        self.n_followed = self.n_followed.saturating_add(1);
        self.resized_at = Some(Instant::now());
    }

    /// Whether the size may have changed again without the system knowing it.
    pub(super) fn may_change_size(&self) -> bool {
        self.resized_at.is_some_and(|at| Instant::now() < at + UNKNOWN_SIZE)
    }

    /// Begins a frame. `false` if it must wait until the size is stable.
    #[must_use]
    pub(super) fn begin(&mut self) -> bool {
        self.draw_at = None;
        self.resize_at.is_none()
    }

    pub(super) fn on_drawn(&mut self) {
        self.drawn_at = Some(Instant::now());
        self.follows_key = false;
    }

    /// Records that the last frame was drawn for a key.
    pub(super) fn on_key_drawn(&mut self) {
        self.follows_key = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn batches_of_a_trickle_are_drawn_when_they_arrive() {
        /// From a batch to its frame on a slow machine.
        const DRAWING: Duration = Duration::from_millis(5);
        /// See `ai::transport::pace`.
        const BATCH: Duration = Duration::from_millis(60);
        let mut frames = FrameClock::default();
        frames.on_drawn();
        tokio::time::advance(BATCH - DRAWING).await;
        frames.request_stream();
        assert!(frames.is_due());
    }

    /// How long after each of these changes, in milliseconds from one to the next, the screen follows.
    async fn followed(gaps: &[u64]) -> Vec<u128> {
        let mut frames = FrameClock::default();
        let mut waited = Vec::new();
        for gap in gaps {
            frames.on_resize();
            let (now, next) = (Instant::now(), Instant::now() + Duration::from_millis(*gap));
            if let Some(at) = frames.resize_at().filter(|at| *at <= next) {
                tokio::time::advance(at - now).await;
                frames.on_resized();
                waited.push((at - now).as_millis());
            }
            tokio::time::advance(next - Instant::now()).await;
        }
        waited
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_drag_is_followed_twice_and_when_it_ends() {
        assert_eq!(followed(&[80, 80, 80, 80, 80, 80, 80, 400]).await, [0, 75, 300]);
        assert_eq!(followed(&[250, 250, 250, 250, 400]).await, [0, 75, 300]);
        assert_eq!(followed(&[20, 20, 20, 400]).await, [0, 75]);
        assert_eq!(followed(&[400, 400, 80, 400]).await, [0, 0, 0, 75]);
    }

    #[tokio::test(start_paused = true)]
    async fn effect_of_a_key_is_drawn_without_delay() {
        let mut frames = FrameClock::default();
        frames.on_drawn();
        frames.on_key_drawn();
        frames.request_stream();
        assert!(!frames.is_due());
        frames.request();
        assert!(frames.is_due());
        assert!(frames.begin());
        frames.on_drawn();
        frames.request();
        assert!(!frames.is_due());
    }
}
