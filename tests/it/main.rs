//! The one integration test binary: behaviour at the boundaries between layers,
//! and of the program as a whole. `docs/architecture.md` describes the five kinds.

mod layers;
mod support;
mod tools_bash;
mod tools_files;
mod tools_search;
mod tools_support;
mod tui_composer;
mod tui_markdown;
mod tui_painter;
