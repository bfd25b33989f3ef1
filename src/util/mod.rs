//! Leaf helpers that know nothing of pi.

pub mod clock;
