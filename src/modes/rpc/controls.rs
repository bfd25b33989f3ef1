//! Commands that only pi has: summaries that wait for a decision, handoff, session files,
//! settings.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{Layer, ROWS};
use crate::session::{
    IfBusy, Refusal, Reply, Scope, Secrets, SessionCommand, SessionError, SummaryDecision, SummaryDraft,
};

use super::Outcome;
use super::commands::{Answered, Client, answered, fails, not_cancelled, ready};

/// What becomes of a summary that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Decision {
    Accept,
    Save,
    Drop,
}

impl Client {
    /// Compacts; with `review`, the summary waits for a decision.
    pub(super) fn compact(&self, focus: Option<String>, review: bool) -> Answered {
        let focus = focus.filter(|focus| !focus.trim().is_empty());
        let reply = self.handle().post(SessionCommand::Compact { focus, with_review: review });
        let handle = self.handle().clone();
        answered(async move {
            match reply.await {
                // A draft was there already.
                Ok(Reply::Done) => Ok(Outcome::data(&draft(handle.state().summary_draft.as_deref()))),
                Ok(_) => Ok(Outcome::WhenCompacted),
                Err(SessionError::Refused(Refusal::Compaction(nothing))) => {
                    Ok(Outcome::NotCompacted(nothing.to_string()))
                }
                Err(error) => Err(error.to_string()),
            }
        })
    }

    pub(super) fn summary_draft(&self) -> Answered {
        ready(Outcome::data(&draft(self.state().summary_draft.as_deref())))
    }

    /// Decides about the summary that waits, as it is or with another text.
    pub(super) fn decide_summary(&self, decision: Decision, text: Option<String>) -> Answered {
        let state = self.state();
        let text = text.or_else(|| state.summary_draft.as_ref().map(|draft| draft.text.clone()));
        let text = text.unwrap_or_default();
        let decision = match decision {
            Decision::Accept => SummaryDecision::Accept { text },
            Decision::Save => SummaryDecision::Save { text },
            Decision::Drop => SummaryDecision::Drop,
        };
        self.done(SessionCommand::DecideSummary { decision })
    }

    /// Opens a new session with a drafted prompt, which the response contains.
    pub(super) fn handoff(&self, goal: String) -> Answered {
        if goal.trim().is_empty() {
            return fails("set goal to what the new session is for");
        }
        self.then(SessionCommand::Handoff { goal }, |_| Outcome::WhenHandedOff)
    }

    pub(super) fn import_session(&self, path: &str) -> Answered {
        let path = self.state().cwd.join(path);
        self.then(SessionCommand::Import { path, if_busy: IfBusy::Cancel }, not_cancelled)
    }

    /// Writes the active branch to a new session file.
    pub(super) fn export_session(&self, output: &str, masks_secrets: bool) -> Answered {
        let path = self.state().cwd.join(output);
        let secrets = if masks_secrets { Secrets::Mask } else { Secrets::Keep };
        let data = json!({ "path": path.to_string_lossy() });
        self.then(SessionCommand::Export { path, secrets }, move |_| Outcome::data(&data))
    }

    /// All settings, with where their values come from.
    pub(super) fn settings(&self) -> Answered {
        let state = self.state();
        let settings: Vec<Value> = (ROWS.iter())
            .map(|row| {
                let origin = state.settings.origin(row.key).map(origin);
                json!({
                    "key": row.key,
                    "value": state.settings.shown_value(row.key),
                    "origin": origin,
                    "help": row.help,
                })
            })
            .collect();
        ready(Outcome::data(&json!({ "settings": settings })))
    }

    /// Changes a setting of the user; without a value, its own one is removed.
    pub(super) fn set_setting(&self, key: String, value: Option<Value>) -> Answered {
        self.done(SessionCommand::ChangeSetting { key, value })
    }

    pub(super) fn set_scope(&self, patterns: Vec<String>) -> Answered {
        self.done(SessionCommand::SetScope { patterns, scope: Scope::Session })
    }
}

/// The name of a layer for programs.
fn origin(layer: Layer) -> &'static str {
    match layer {
        Layer::BuiltIn => "builtIn",
        Layer::User => "user",
        Layer::Project => "project",
        Layer::CommandLine => "commandLine",
        Layer::Session => "session",
    }
}

/// The data about a summary that waits; `null` without one.
pub(super) fn draft(draft: Option<&SummaryDraft>) -> Value {
    let draft = draft.map(|draft| {
        json!({
            "text": draft.text,
            "firstKeptEntryId": draft.first_kept_entry_id,
            "tokensBefore": draft.tokens_before,
            "messagesReplaced": draft.n_replaced,
            "model": draft.model,
            "usage": draft.usage,
        })
    });
    json!({ "draft": draft })
}
