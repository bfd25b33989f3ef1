//! Prompts of earlier sessions: for the arrow keys, and to search in.
//!
//! `file` keeps them for all processes, `search` is the list. Secrets that are recognised are
//! masked before anything is written, and what is typed into dialogs never gets here.

mod file;
mod search;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::session::mask_secrets;

use super::app::App;
use super::effects::Effects;
use super::msg::{Effect, EffectDone, WorldEffect};

use file::PastPrompt;
use search::{HistoryQuery, HistorySearch};

/// Prompts of the directory that the arrow keys reach.
const MAX_RECALLED: usize = 200;
/// Prompts that can be searched.
const MAX_SEARCHED: usize = 5_000;

/// Something about the prompts of earlier sessions.
#[derive(Debug, PartialEq)]
pub(super) enum HistoryEffect {
    /// Reads the prompts of the directory; answers with [`HistoryDone::Recalled`].
    Recall,
    /// Reads all prompts; answers with [`HistoryDone::Searched`].
    Search,
    /// Keeps a prompt for later sessions.
    Keep(String),
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum HistoryDone {
    /// Oldest first.
    Recalled(Vec<String>),
    /// Newest first.
    Searched(Vec<PastPrompt>),
}

/// Offers the prompts that were read.
pub(super) fn on_done(app: &mut App, done: HistoryDone) {
    match done {
        HistoryDone::Recalled(texts) => app.input.prompt.recall(texts),
        HistoryDone::Searched(prompts) if prompts.is_empty() => {
            app.status.hint = Some("there are no earlier prompts yet".into());
        }
        HistoryDone::Searched(prompts) => {
            let text = app.input.prompt.composer.text();
            let query = HistoryQuery {
                cwd: &app.session.cwd,
                home: app.home.as_deref(),
                now_ms: app.now_ms,
                // What was typed is what is looked for, as in a shell.
                text: if text.contains('\n') { "" } else { &text },
            };
            app.dialogs.show(HistorySearch::new(prompts, &query));
        }
    }
}

impl From<HistoryEffect> for Effect {
    fn from(effect: HistoryEffect) -> Self {
        Self::World(WorldEffect::History(effect))
    }
}

/// Writes prompts in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct HistoryWriter {
    /// The last write. Each waits for the one before it, and for nothing else.
    last: Option<JoinHandle<()>>,
}

impl HistoryWriter {
    /// Writes a prompt without what looks like a secret.
    fn write(&mut self, path: PathBuf, mut prompt: PastPrompt) {
        let before = self.last.take();
        self.last = Some(tokio::spawn(async move {
            if let Some(before) = before {
                before.await.ok();
            }
            let append = move || {
                // Here, because the patterns take milliseconds to compile the first time.
                prompt.text = mask_secrets(&prompt.text).into_owned();
                // A disk without room must not stop anyone from working: the session, which
                // reports that, has the prompt.
                file::append(&path, &prompt).ok()
            };
            tokio::task::spawn_blocking(append).await.ok();
        }));
    }

    /// Waits until everything is written, or for `limit`.
    pub(super) async fn finish(&mut self, limit: Duration) {
        if let Some(last) = self.last.take() {
            tokio::time::timeout(limit, last).await.ok();
        }
    }
}

impl Effects {
    pub(super) fn start_history(&mut self, effect: HistoryEffect) {
        let state = self.link.handle().state();
        let is_kept = state.settings.values.prompt_history;
        let (path, cwd) = (self.services.dirs.prompt_history_file(), state.cwd.clone());
        match effect {
            HistoryEffect::Recall if is_kept => self.read_history(path, Some(cwd)),
            HistoryEffect::Search if is_kept => self.read_history(path, None),
            HistoryEffect::Search => {
                let text = "no prompts are kept, because the setting promptHistory is off";
                drop(self.done.send(EffectDone::Hint(text.to_owned())));
            }
            HistoryEffect::Keep(text) if is_kept => {
                let at_ms = self.services.clock.now_ms();
                self.history.write(path, PastPrompt { at_ms, cwd, text });
            }
            HistoryEffect::Recall | HistoryEffect::Keep(_) => {}
        }
    }

    /// Reads the prompts of one directory for the arrow keys, or all for a search.
    fn read_history(&self, path: PathBuf, cwd: Option<PathBuf>) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            let limit = if cwd.is_some() { MAX_RECALLED } else { MAX_SEARCHED };
            drop(done.send(match (file::read(&path, cwd.as_deref(), limit), cwd) {
                (Ok(prompts), Some(_)) => {
                    let texts = prompts.into_iter().rev().map(|prompt| prompt.text);
                    EffectDone::History(HistoryDone::Recalled(texts.collect()))
                }
                (Ok(prompts), None) => EffectDone::History(HistoryDone::Searched(prompts)),
                (Err(error), _) => {
                    EffectDone::Failed(format!("cannot read earlier prompts from {}: {error}", shown(&path)))
                }
            }));
        });
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
