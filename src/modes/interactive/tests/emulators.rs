//! The terminals in memory of the integration tests.

#[allow(dead_code, reason = "the integration tests use all of it")]
#[path = "../../../../tests/it/support/reflowing_terminal.rs"]
pub(super) mod reflowing_terminal;
#[allow(dead_code, reason = "the integration tests use all of it")]
#[path = "../../../../tests/it/support/virtual_terminal.rs"]
pub(super) mod virtual_terminal;
