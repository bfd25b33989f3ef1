//! Messages to the app, and effects it requests.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::QueueSlot;
use crate::ai::{Model, ThinkingLevel};
use crate::session::{PromptDraft, Scope, SessionCommand, SessionSummary, TakenQueue, TrustChoice};

use super::login::{LoginDone, LoginEffect, LoginMsg};

/// Something for the app to take in.
#[derive(Debug)]
pub(super) enum AppMsg {
    ModelChosen {
        reference: String,
        scope: Scope,
    },
    ThinkingChosen {
        level: ThinkingLevel,
        scope: Scope,
    },
    SessionChosen(PathBuf),
    TrustChosen(TrustChoice),
    ScopeChosen {
        patterns: Vec<String>,
        scope: Scope,
    },
    /// Something for the session to do.
    Session(SessionCommand),
    /// A queued message to edit.
    TakeQueued(QueueSlot),
    Login(LoginMsg),
    Done(EffectDone),
}

/// What happens outside of the app. `effects.rs` is the only place that does it.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    Session(SessionCommand),
    /// Takes the queue back; answers with [`EffectDone::QueueTaken`].
    TakeQueue,
    /// Takes one message out of the queue; answers with [`EffectDone::QueueTaken`].
    TakeQueued(QueueSlot),
    /// Takes back what an earlier process left queued; answers with
    /// [`EffectDone::LeftOver`].
    TakeLeftOver,
    /// Reads the sessions of this directory; answers with [`EffectDone::Sessions`].
    ListSessions,
    /// Reads `models.json` again and asks the servers on this machine; answers with
    /// [`EffectDone::Models`].
    RefreshModels {
        /// Also those of services that tell what they have, which takes a key and the net.
        with_services: bool,
    },
    /// Looks at the repository; answers with [`EffectDone::Branch`].
    ReadBranch,
    Copy(String),
    SetTitle(String),
    /// Saves one top-level setting.
    SaveSetting {
        key: &'static str,
        value: serde_json::Value,
    },
    /// Opens the text in the user's editor; answers with [`EffectDone::Edited`].
    OpenEditor(String),
    /// Something about keys and accounts; answers with [`EffectDone::Login`].
    Login(LoginEffect),
    Suspend,
    /// Loads the grammars for highlighting, on a thread of its own.
    LoadGrammars,
    /// Shows everything anew: rows that had settled changed.
    Replay,
    Quit,
}

/// What an effect came to.
#[derive(Debug)]
pub(super) enum EffectDone {
    QueueTaken(TakenQueue),
    LeftOver(TakenQueue),
    Sessions(Vec<SessionSummary>),
    Models {
        /// Those there is a key for.
        models: Vec<Arc<Model>>,
        /// Names of the servers that were found on this machine, and how many models
        /// each has.
        found: Vec<(&'static str, usize)>,
        /// What is wrong in `models.json`.
        problems: Vec<String>,
    },
    /// The branch, or the short hash of a detached head; `None` outside of a repository.
    Branch(Option<String>),
    /// The text as the editor left it; `Err` says why there is none.
    Edited(Result<String, String>),
    /// A prompt the session did not take, and why.
    Refused {
        prompt: PromptDraft,
        /// `None` where the session itself is gone.
        error: Option<String>,
    },
    Login(LoginDone),
    Failed(String),
    Told(String),
}
