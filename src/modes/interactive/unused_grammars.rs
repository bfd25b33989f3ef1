//! Forgets grammars when no code was highlighted for a while.

use std::time::Duration;

use tokio::time::Instant;

use crate::tui::markdown::Highlighter;

/// How long after the last use. Answers and steps of a run follow each other sooner.
const WAIT: Duration = Duration::from_secs(3);

/// The grammars of the screen, and when they are forgotten.
pub(super) struct UnusedGrammars {
    highlighter: Highlighter,
    n_uses: u64,
    forget_at: Option<Instant>,
}

impl UnusedGrammars {
    pub(super) fn new(highlighter: Highlighter) -> Self {
        Self { highlighter, n_uses: 0, forget_at: None }
    }

    /// When [`Self::forget`] is due; `None` if there is nothing to forget.
    pub(super) fn forget_at(&self) -> Option<Instant> {
        self.forget_at
    }

    /// Waits anew if the last frame highlighted code.
    pub(super) fn on_drawn(&mut self) {
        let n_uses = self.highlighter.n_uses();
        if n_uses != self.n_uses {
            self.n_uses = n_uses;
            self.forget_at = Some(Instant::now() + WAIT);
        }
    }

    pub(super) fn forget(&mut self) {
        self.forget_at = None;
        self.highlighter.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn grammars_are_forgotten_once_after_their_last_use() {
        let highlighter = Highlighter::new();
        let mut grammars = UnusedGrammars::new(highlighter.clone());
        grammars.on_drawn();
        assert_eq!(grammars.forget_at(), None, "nothing wakes an idle program");
        highlighter.lines("rust");
        grammars.on_drawn();
        tokio::time::advance(WAIT / 2).await;
        grammars.on_drawn();
        assert_eq!(grammars.forget_at(), Some(Instant::now() + WAIT / 2));
        highlighter.lines("rust");
        grammars.on_drawn();
        assert_eq!(grammars.forget_at(), Some(Instant::now() + WAIT));
        grammars.forget();
        grammars.on_drawn();
        assert_eq!(grammars.forget_at(), None);
    }
}
