//! One conversation: owned by a task, persisted, recovered.
//!
//! Only the task changes a session. Modes send [`SessionCommand`]s through a
//! [`SessionHandle`] and read [`SessionEvent`]s and [`SessionState`] snapshots.
//! Knows no screen. Other programs open one with a [`SessionBuilder`].

mod agent_session;
mod budget;
mod builder;
mod cache_prefix;
mod cache_warming;
mod cache_watch;
mod client;
mod command;
mod compaction;
mod context_report;
mod copies;
mod deferred;
mod draft_file;
mod dropped_reasoning;
mod endings;
mod event;
mod from_settings;
mod handle;
mod index;
mod open;
mod outbox;
mod pins;
mod project_context;
mod projection;
mod question;
mod queue_file;
mod quota_file;
mod recovery;
mod refusal;
mod repair;
mod resources;
mod run;
mod secrets;
mod selection;
mod services;
mod sidecar;
mod state;
mod store;
mod summary_draft;
mod trace;
mod transfer;
mod urgent;
mod usage;
mod user_bash;

pub use crate::util::clock::Clock;
pub use agent_session::{RETRY_CANCELLED, start};
pub use budget::BudgetPeriod;
pub use builder::{BuildError, SessionBuilder};
pub use cache_warming::{CacheWarmth, NotWarmed, WarmingCosts, WarmingStatus};
pub use client::{PromptError, Session};
pub use command::{
    IfBusy, LeftBranch, OtherCommands, PromptDraft, Reply, Scope, SessionCommand, SummaryDecision,
    TakenQueue, TrustChoice, WhenBusy,
};
pub use compaction::{CompactionPreview, NothingToCompact, preview_compaction};
pub use context_report::{ContextPart, ContextReport};
pub use copies::{Secrets, check_import, fork_session, fork_session_on, prompt_of, write_branch};
pub use endings::{has_cut_call, no_answer_text};
pub use event::{
    CompactionReason, Navigated, NoticeLevel, Opened, SessionEvent, SessionUpdate, SummarySource,
};
pub use from_settings::{
    ChangeError, Configured, bash_config, default_tools, http_options, image_limits, setting_change,
    tools_config, transport,
};
pub use handle::{SessionError, SessionHandle};
pub use index::{
    Author, HitRank, MessageHit, QueryError, Refreshed, SearchHit, SearchQuery, SessionIndex, SessionScope,
    SessionSummary, Snippet, list,
};
pub use open::{OpenSession, damage as damage_notice};
pub use outbox::{Deltas, SessionEvents};
pub use project_context::{ProjectFacts, project_facts};
pub use projection::messages;
pub use question::{
    AllowAll, PendingCall, Question, QuestionId, QuestionKind, TRUST_OPTIONS, ToolGate, Verdict,
};
pub use quota_file::read_quotas;
pub use refusal::Refusal;
pub use resources::{
    ContextFile, ContextFiles, InstructionFile, OutsideLink, PromptTemplate, ResourceFilter, ResourceOrigin,
    Skill, SkillBlock, context_files,
};
pub use secrets::{
    FoundSecret, SecretReport, find_secrets, mask_secrets, mask_secrets_in, read_masked, secrets_in,
};
pub use selection::{assumed, unmatched};
pub use services::{ModelOptions, PromptOptions, ResourceOptions, Services, TrustOptions};
pub use state::{ContextUsage, Phase, ProjectState, QueueView, SessionState, Totals, UserCommand};
pub use store::{
    BashExecution, BranchSummary, Compaction, ContextEdit, CustomMessage, CustomState, DamagedLine, Deleted,
    Entry, EntryBody, EntryId, EntryKind, EntryLabel, FoundSessions, Header, JournalError, Label,
    ManageError, ModelChange, OpenError, ReadCounts, Replacement, SessionInfo, SessionMessage, SessionStore,
    SessionTree, StoredEntry, StoredTree, ThinkingLevelChange, TreeEntry, TreeLines, UsageEntry,
    delete_session, file_name, find, latest, project_folder, read_header, read_tree, rename_session,
    unrecognised_latest,
};
pub use summary_draft::SummaryDraft;
pub use trace::{
    CallOf, CallResult, DeleteError, ToolStats, Trace, TracePage, TraceStep, TraceTime, TracedCall,
    TracedMessage, delete_message, purge_message, read_trace,
};
pub use transfer::{Conversation, SaveError, SavedSession, read_conversation, save_conversation};
pub use urgent::is_urgent;
pub use usage::{UsageRecord, UsageReport, UsageSum, read_usage, read_usage_since, usage_since};
pub use user_bash::BashId;

pub use crate::util::disk::{Disk, SystemDisk};
