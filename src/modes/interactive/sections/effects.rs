//! Does what [`ReadEffect`]s say, on threads that may wait for the disk.

use crate::session::{Reply, SessionCommand, SessionTree};

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::{ReadDone, ReadEffect, Reader};

impl Effects {
    pub(in super::super) fn start_reading(&mut self, reader: Reader, effect: ReadEffect) {
        let done = self.done.clone();
        let work: Box<dyn FnOnce() -> ReadDone + Send> = match effect {
            ReadEffect::Tree => {
                let answer = self.link.handle().post(SessionCommand::ReadTree);
                tokio::spawn(async move {
                    if let Ok(Reply::Tree(tree)) = answer.await {
                        drop(done.send(EffectDone::Read(reader, ReadDone::Tree(tree))));
                    }
                });
                return;
            }
            ReadEffect::Sections { tree, sections } => Box::new(move || {
                let read = |(section, entries): (usize, Vec<usize>)| (section, tree.read_all(&entries));
                ReadDone::Sections { sections: sections.into_iter().map(read).collect(), tree }
            }),
            ReadEffect::Search { tree, path, query } => Box::new(move || {
                let positions = search(&tree, &path, &query);
                ReadDone::Found { tree, query, positions }
            }),
        };
        tokio::task::spawn_blocking(move || drop(done.send(EffectDone::Read(reader, work()))));
    }
}

/// The positions of entries whose line contains `query`, regardless of case. They include some
/// whose text does not: what is not shown is found too.
pub(in super::super) fn search(tree: &SessionTree, path: &[usize], query: &str) -> Vec<usize> {
    // As it is in a line of JSON.
    let quoted = serde_json::Value::from(query.to_lowercase()).to_string();
    let wanted = quoted.trim_matches('"');
    let contains = |idx: usize| tree.line(idx).is_some_and(|line| line.to_lowercase().contains(wanted));
    path.iter().enumerate().filter(|(_, idx)| contains(**idx)).map(|(position, _)| position).collect()
}
