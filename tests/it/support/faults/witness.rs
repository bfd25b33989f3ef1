//! What a subscriber of a session has been shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi::agent::AgentEvent;
use pi::ai::Message;
use pi::session::{
    Entry, EntryBody, SessionEvent, SessionEvents, SessionMessage, SessionState, SessionUpdate,
};

/// Everything shown so far that must survive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    /// The file of the session that was open last.
    pub(crate) path: Option<PathBuf>,
    /// Entries shown as finished, in order, by session file.
    pub(crate) entries: BTreeMap<PathBuf, Vec<Arc<Entry>>>,
    /// Entries shown while the session had no file, or along with the warning that they are
    /// not saved.
    pub(crate) unsaved: Vec<(PathBuf, Arc<Entry>)>,
    /// Words of drafts, queued messages and `!` commands.
    pub(crate) words: BTreeSet<String>,
    pub(crate) notices: Vec<String>,
    /// Messages shown as finished before they were entries.
    pub(crate) too_early: Vec<String>,
    /// Why the session's task ended, if by itself.
    pub(crate) ended: Option<String>,
    /// Words of entries that were not saved when their process ended, which it reported.
    pub(crate) given_up: BTreeSet<String>,
}

impl Shown {
    /// Adds the words of a text the user was promised to get back.
    pub(crate) fn promise(&mut self, text: &str) {
        self.words.extend(words(text));
    }

    /// What was not saved is lost with its process.
    pub(crate) fn give_up(&mut self) {
        for (_, entry) in std::mem::take(&mut self.unsaved) {
            self.given_up.extend(words(&entry.to_line()));
        }
    }

    fn note(&mut self, update: &SessionUpdate) {
        let SessionUpdate { event, state } = update;
        if state.path.is_some() {
            self.path.clone_from(&state.path);
        }
        match event {
            SessionEvent::EntryAppended(entry) => {
                if let Some(path) = &state.path {
                    self.unsaved.push((path.clone(), Arc::clone(entry)));
                }
            }
            SessionEvent::Agent(AgentEvent::MessageEnd(message)) => self.check(message),
            SessionEvent::Agent(AgentEvent::ToolEnd { result, .. }) => {
                self.check(&Arc::new(Message::ToolResult(Arc::clone(result))));
            }
            SessionEvent::BashStarted { command, .. } => self.promise(command),
            SessionEvent::BashEnded { execution, .. } => self.promise(&execution.output),
            SessionEvent::Notice { text, .. } => self.notices.push(text.clone()),
            SessionEvent::Ended { reason } => self.ended = Some(reason.clone()),
            _ => {}
        }
        let queue = &state.queue;
        for text in queue.steering.iter().chain(&queue.follow_up) {
            self.words.extend(words(text));
        }
        self.settle(state);
    }

    /// Entries are promised once their session says that everything is saved.
    fn settle(&mut self, state: &SessionState) {
        let Some(path) = state.path.as_ref().filter(|_| state.on_disk && state.unsaved.is_none()) else {
            return;
        };
        for (place, entry) in std::mem::take(&mut self.unsaved) {
            if place == *path {
                self.entries.entry(place).or_default().push(entry);
            } else {
                self.unsaved.push((place, entry));
            }
        }
    }

    /// A message is shown as finished only after its entry.
    fn check(&mut self, message: &Arc<Message>) {
        let is_it = |entry: &Arc<Entry>| {
            matches!(&entry.body, EntryBody::Message { message: SessionMessage::Model(stored), .. }
                if serde_json::json!(stored) == serde_json::json!(message))
        };
        let recent = self.unsaved.iter().map(|(_, entry)| entry).rev();
        let saved = self.entries.values().flat_map(|entries| entries.iter().rev());
        if !recent.chain(saved).any(is_it) {
            self.too_early.push(format!("{message:?}"));
        }
    }

    /// The entries of a session file.
    pub(crate) fn of(&self, path: &Path) -> &[Arc<Entry>] {
        self.entries.get(path).map_or(&[], Vec::as_slice)
    }
}

/// The words of a text that mark what a trial wrote: `w` and five digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_word = |part: &&str| {
        part.len() == 6 && part.starts_with('w') && part[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_word).map(str::to_owned)
}

/// A subscriber that reads whenever something is about to change on the disk.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    events: Option<SessionEvents>,
    shown: Shown,
}

impl Witness {
    pub(crate) fn follow(&mut self, events: SessionEvents) {
        self.look();
        self.shown.give_up();
        self.events = Some(events);
    }

    pub(crate) fn promise(&mut self, text: &str) {
        self.look();
        self.shown.promise(text);
    }

    /// Reads everything that was sent until now.
    pub(crate) fn look(&mut self) -> &Shown {
        while let Some(update) = self.events.as_mut().and_then(SessionEvents::try_recv) {
            self.shown.note(&update);
        }
        &self.shown
    }
}
