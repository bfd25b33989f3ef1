//! Random choices that depend on nothing but their seed.

/// A generator of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n as u64).unwrap_or_default()
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// At most `n` of `items`, in order.
    pub(crate) fn some<'a, T>(&mut self, items: &'a [T], n: usize) -> Vec<&'a T> {
        let mut n_wanted = n.min(items.len());
        let mut chosen = Vec::with_capacity(n_wanted);
        for (at, item) in items.iter().enumerate() {
            if self.below(items.len() - at) < n_wanted {
                n_wanted -= 1;
                chosen.push(item);
            }
        }
        chosen
    }
}
