//! The session file: entries, their tree, and the journal they are appended to.

mod entry;

pub use entry::{
    BashExecution, BranchSummary, Compaction, ContextEdit, CustomMessage, CustomState, Entry, EntryBody,
    EntryId, Header, Label, MessageBody, ModelChange, Replacement, SessionInfo, SessionMessage,
    ThinkingLevelChange, UsageEntry,
};
