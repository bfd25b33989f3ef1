//! What the tests at the boundaries share.

pub(crate) mod virtual_terminal;
