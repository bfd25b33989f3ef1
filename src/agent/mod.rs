//! The loop: model, tools, model again, until nothing is left to do.
//!
//! Knows no files, no screen, no session: what a run depends on comes in
//! through [`Run`] and [`Hooks`]. A failing tool is a result the model reads; a
//! failing request is an answer with an error in it; neither is an `Err` here.

mod crash;
mod event;
mod hooks;
mod queue;
mod run;
mod schema;
mod tool;
mod tool_calls;
mod turn;

pub use event::AgentEvent;
pub use hooks::{Gate, Hooks, NextRequest};
pub use queue::{
    DUPLICATE_WINDOW_MS, Pushed, QueueKind, QueueMode, QueueSlot, Queued, Queues, SteeringDelivery,
};
pub use run::{Run, RunOutcome, run};
pub use schema::{Problem, describe, validate};
pub use tool::{
    Concurrency, Environment, Progress, Tool, ToolCx, ToolError, ToolOutput, ToolRegistry, ToolSpec,
};
