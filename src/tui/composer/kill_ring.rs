//! Killed text, for yanking back.

/// Maximum number of kills.
const MAX_KILLS: usize = 60;

/// Kills, oldest first. Consecutive kills grow one entry.
#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    kills: Vec<String>,
    /// The entry of the last yank, counted from the newest.
    back: usize,
}

/// The side of the cursor on which text was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl KillRing {
    /// Adds killed text; extends the newest entry if the kill `continues` the previous one.
    pub(super) fn kill(&mut self, text: &str, side: Side, continues: bool) {
        self.back = 0;
        match self.kills.last_mut().filter(|_| continues) {
            Some(newest) => match side {
                Side::Before => newest.insert_str(0, text),
                Side::After => newest.push_str(text),
            },
            None => {
                if self.kills.len() == MAX_KILLS {
                    self.kills.remove(0);
                }
                self.kills.push(text.to_owned());
            }
        }
    }

    /// The newest kill.
    pub(super) fn yank(&mut self) -> Option<&str> {
        self.back = 0;
        self.kills.last().map(String::as_str)
    }

    /// The kill before the last yanked one; the newest follows the oldest.
    pub(super) fn yank_earlier(&mut self) -> Option<&str> {
        self.back = (self.back + 1) % self.kills.len().max(1);
        self.kills.iter().rev().nth(self.back).map(String::as_str)
    }
}
