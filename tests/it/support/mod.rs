//! Shared parts of the tests at the boundaries.

pub(crate) mod acp_client;
pub(crate) mod agent_bench;
pub(crate) mod agent_order;
pub(crate) mod bedrock;
pub(crate) mod chat;
pub(crate) mod dialects;
pub(crate) mod faults;
pub(crate) mod faulty_disk;
pub(crate) mod files;
pub(crate) mod google;
pub(crate) mod lifeline;
pub(crate) mod long_session;
pub(crate) mod program;
pub(crate) mod pty;
pub(crate) mod reflowing_terminal;
pub(crate) mod rpc_client;
pub(crate) mod session_bench;
pub(crate) mod sse_server;
pub(crate) mod svg;
pub(crate) mod tls_server;
pub(crate) mod validators;
pub(crate) mod virtual_terminal;
pub(crate) mod web_socket_server;
