//! A harness that looks for words a session loses.
//!
//! A [`Trial`] is a session that does random things, by seed, on a [`TrialDisk`]. The disk
//! takes a picture of all files before each step that changes one, and notes what
//! subscribers had been shown by then: a [`Moment`], which is what a kill at this step would
//! leave. [`reopen`] continues from a moment, and reports everything that was shown and is
//! gone. The same disk fails at a chosen step or byte, panics, or kills its process.
//! `tests/it/faults.rs` runs a bounded number of trials, `examples/faults.rs` as many as
//! there is time for.

pub(crate) mod campaign;
pub(crate) mod child;
mod damage;
mod dice;
pub(crate) mod disk;
pub(crate) mod original;
mod reopen;
pub(crate) mod trial;
mod witness;
