//! What `/trust` shows: the folder, what in it needs trust, and the choices.

use std::path::Path;

use crate::config::Trust;
use crate::session::{ProjectState, TrustChoice};
use crate::util::paths;
use crate::util::visible::spell_out;

/// Maximum number of protected files that are listed.
const MAX_NAMED: usize = 6;

/// The question whether to trust a folder.
#[derive(Debug)]
pub(super) struct TrustQuestion {
    pub(super) title: String,
    /// A paragraph each.
    pub(super) about: Vec<String>,
    pub(super) options: Vec<(TrustChoice, String)>,
    /// Whether it is still undecided.
    pub(super) is_open: bool,
}

impl TrustQuestion {
    /// Asks about `cwd`; paths are shown with `~` for `home`.
    pub(super) fn new(project: &ProjectState, cwd: &Path, home: Option<&Path>) -> Self {
        let visible = |name: &str| spell_out(name, None).0;
        let show = |path: &Path| visible(&paths::display(path, home));
        let name = |path: &Path| match path.strip_prefix(cwd) {
            Ok(relative) => visible(&relative.display().to_string()),
            Err(_) => show(path),
        };
        // First, because links may lead anywhere.
        let links = project.links.iter().map(|link| {
            format!("{} (a link to {}, outside the project)", name(&link.path), show(&link.target))
        });
        let all: Vec<String> = links.chain(project.protected.iter().map(|path| name(path))).collect();
        let is_open = project.trust == Trust::Undecided;
        let mut about = match all.as_slice() {
            [] => vec!["Nothing here needs trust.".to_owned()],
            all => vec![
                format!("It contains {}.", named(all)),
                "A project's skills, templates, settings and system prompts tell the model what to do on your machine. Trust \
                 them only if you know who wrote them."
                    .to_owned(),
            ],
        };
        if is_open && !project.changed.is_empty() {
            let changed: Vec<String> = project.changed.iter().map(|path| visible(path)).collect();
            about.push(format!("Changed since you trusted it: {}.", named(&changed)));
        }
        let mut options = Vec::new();
        if is_open {
            // First, because keys that the user typed ahead must not decide.
            options.push((TrustChoice::NotNow, "Not now".to_owned()));
        } else {
            let now = if project.trust.is_trusted() { "trusted" } else { "not trusted" };
            about.push(format!("It is currently {now}."));
        }
        options.push((TrustChoice::Folder, "Trust this folder".to_owned()));
        if let Some(parent) = cwd.parent() {
            options.push((TrustChoice::Parent, format!("Trust parent folder ({})", show(parent))));
        }
        options.push((TrustChoice::Session, "Trust it until pi exits".to_owned()));
        options.push((TrustChoice::No, "Don't trust".to_owned()));
        Self { title: format!("Do you trust {}?", show(cwd)), about, options, is_open }
    }
}

/// The first names of a list, and how many follow.
fn named(names: &[String]) -> String {
    let (named, others) = names.split_at(names.len().min(MAX_NAMED));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    format!("{}{more}", named.join(", "))
}
