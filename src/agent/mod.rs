//! The agent loop: it calls the model, runs tools, and repeats until the model stops.
//!
//! Knows no files, screens or sessions: a run receives its dependencies
//! through [`Run`] and [`Hooks`]. A failed tool is a result that the model reads; a
//! failed request is an answer with an error; neither is an `Err` here.

mod crash;
mod event;
mod hooks;
mod queue;
mod run;
mod schema;
mod tool;
mod tool_calls;
mod tool_names;
mod touches;
mod turn;

pub use event::AgentEvent;
pub use hooks::{CheckedCall, Gate, Hooks, NextRequest};
pub use queue::{
    DUPLICATE_WINDOW_MS, Pushed, QueueKind, QueueMode, QueueSlot, Queued, Queues, SteeringDelivery,
};
pub use run::{Run, RunOutcome, run};
pub use schema::{Problem, describe, validate};
pub use tool::{
    Concurrency, Environment, MAX_NAME_CHARS, Progress, Tool, ToolCx, ToolError, ToolOutput, ToolRegistry,
    ToolSpec,
};
pub use tool_calls::SKIPPED_CALL;
pub use touches::Touches;
