//! What the benches of the program share with its tests.
#![expect(dead_code, reason = "the tests use all of it")]

#[path = "../../tests/it/support/chat.rs"]
pub(crate) mod chat;
#[path = "../../tests/it/support/files.rs"]
pub(crate) mod files;
#[path = "../../tests/it/support/pty.rs"]
pub(crate) mod pty;
#[path = "../../tests/it/support/sse_server.rs"]
pub(crate) mod sse_server;
#[path = "../../tests/it/support/virtual_terminal.rs"]
pub(crate) mod virtual_terminal;
