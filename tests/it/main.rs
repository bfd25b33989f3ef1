//! The one integration test binary: behaviour at the boundaries between layers,
//! and of the program as a whole. `docs/architecture.md` describes the five kinds.

mod agent_loop;
mod ai_bedrock;
mod ai_caching;
mod ai_constrained;
mod ai_contract;
mod ai_decode;
mod ai_encode;
mod ai_errors;
mod ai_google;
mod ai_handover;
mod ai_http;
mod ai_updates;
mod auth;
mod auth_process;
mod aws;
mod docs;
mod foreign;
mod fuzz_corpus;
mod google_adc;
mod layers;
mod local_servers;
mod process_print;
mod process_tui;
mod recovery;
mod session_store;
mod session_task;
mod skills;
mod support;
mod tools_bash;
mod tools_files;
mod tools_search;
mod tools_support;
mod tui_composer;
mod tui_markdown;
mod tui_painter;
