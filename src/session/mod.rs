//! One conversation: owned by a task, persisted, recovered.
//!
//! Only the task changes a session. Modes send [`SessionCommand`]s through a
//! [`SessionHandle`] and read [`SessionEvent`]s and [`SessionState`] snapshots.
//! Knows no screen.

mod command;
mod event;
mod handle;
mod state;
mod store;

pub use command::{Reply, Scope, SessionCommand, TakenQueue, WhenBusy};
pub use event::{NoticeLevel, Opened, SessionEvent};
pub use handle::{SessionError, SessionEvents, SessionHandle};
pub use state::{ContextUsage, Phase, QueueView, SessionState, SteeringDelivery, Totals};
pub use store::{
    BashExecution, BranchSummary, Compaction, ContextEdit, CustomMessage, CustomState, Entry, EntryBody,
    EntryId, Header, Label, MessageBody, ModelChange, Replacement, SessionInfo, SessionMessage,
    ThinkingLevelChange, UsageEntry,
};
