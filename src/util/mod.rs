//! Leaf helpers that know nothing of pi.

pub mod atomic_file;
pub mod clock;
pub mod composed;
mod counted;
pub mod disk;
pub(crate) mod embedded;
pub mod escapes;
mod file_identity;
pub mod flanks;
pub mod foreground;
pub mod git;
pub mod grammars;
pub mod hash;
pub mod image;
pub mod json_length;
mod json_problem;
mod last_break;
pub mod manual;
pub mod nearest;
pub mod os;
pub mod panics;
pub mod parts;
pub mod paths;
pub mod process;
pub mod runtime;
pub mod spelling;
pub mod start_times;
pub mod terminal_line;
pub mod text_decoder;
pub mod visible;
mod watchdog;
pub mod worker;

pub use counted::{counted, grouped};
pub use json_problem::{RepeatedKey, json_problem, line_of_key, repeated_keys};
pub use last_break::with_last_breaks;
