//! Does what [`FullscreenEffect`]s say, on threads that may wait for the disk.

use crate::session::{Reply, SessionCommand};

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::super::pager;
use super::{FullscreenDone, FullscreenEffect};

impl Effects {
    pub(in super::super) fn start_fullscreen(&mut self, effect: FullscreenEffect) {
        let done = self.done.clone();
        let work: Box<dyn FnOnce() -> FullscreenDone + Send> = match effect {
            FullscreenEffect::ReadTree => {
                let answer = self.link.handle().post(SessionCommand::ReadTree);
                tokio::spawn(async move {
                    if let Ok(Reply::Tree(tree)) = answer.await {
                        drop(done.send(EffectDone::Fullscreen(FullscreenDone::Opened { tree })));
                    }
                });
                return;
            }
            FullscreenEffect::Read { tree, sections } => Box::new(move || {
                let read = |(section, entries): (usize, Vec<usize>)| (section, tree.read_all(&entries));
                FullscreenDone::Read { sections: sections.into_iter().map(read).collect(), tree }
            }),
            FullscreenEffect::Search { tree, path, query } => Box::new(move || {
                let positions = pager::search(&tree, &path, &query);
                FullscreenDone::Found { tree, query, positions }
            }),
        };
        tokio::task::spawn_blocking(move || drop(done.send(EffectDone::Fullscreen(work()))));
    }
}
