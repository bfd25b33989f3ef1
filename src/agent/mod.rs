//! The loop: model, tools, model again, until nothing is left to do.
//!
//! Knows no files, no screen, no session: what a run depends on comes in
//! through [`Hooks`] and the run's own fields.

mod event;
mod schema;
mod tool;

pub use event::AgentEvent;
pub use schema::{Problem, describe, validate};
pub use tool::{Concurrency, Progress, Tool, ToolCx, ToolError, ToolOutput, ToolRegistry, ToolSpec};
