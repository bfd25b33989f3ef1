//! What a session has loaded, as it is listed below the header and after it was loaded again.

use crate::config::StartDisplay;
use crate::session::{Opened, ResourceOrigin, SessionEvent, SessionState};

use super::app::App;
use super::commands;
use super::msg::{Effect, WorldEffect};
use super::theme_files::OwnTheme;
use super::transcript::{Resource, ResourceSection, has_entries, set_header_resources, show_resources};
use super::welcome;

/// The lists of the session that is shown.
pub(super) struct ResourceLists {
    /// What the program began with.
    display: StartDisplay,
    /// The session of the header.
    session_id: String,
    /// Whether the header has them.
    in_header: bool,
    /// Where they are shown once the themes are known.
    due: Option<Place>,
    themes: Vec<OwnTheme>,
}

/// A place of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Header,
    /// Below everything else: what is there stays as it is.
    End,
}

impl ResourceLists {
    pub(super) fn new(session: &SessionState) -> Self {
        Self {
            display: session.settings.values.start_display,
            session_id: session.id.clone(),
            in_header: true,
            due: None,
            themes: Vec::new(),
        }
    }
}

/// Shows the lists in the header, as far as they are known.
pub(super) fn show_in_header(app: &mut App) {
    if app.resources.display == StartDisplay::Whole && app.resources.in_header {
        let sections = sections(&app.session, &app.resources.themes);
        let scope = welcome::scope(&app.keymap, &app.session);
        set_header_resources(&mut app.transcript, sections, scope);
    }
}

/// Follows an event, before the transcript does.
pub(super) fn follow(app: &mut App, event: &SessionEvent, out: &mut Vec<Effect>) {
    match event {
        SessionEvent::Opened(opened) => on_opened(app, opened),
        SessionEvent::ProjectChanged => {
            let place = if has_entries(&app.transcript) { Place::End } else { Place::Header };
            app.resources.due = Some(place);
            out.push(WorldEffect::CheckThemes.into());
        }
        _ => {}
    }
}

/// A new session begins like the program; one that is continued begins with its conversation.
fn on_opened(app: &mut App, opened: &Opened) {
    let lists = &mut app.resources;
    if lists.session_id != app.session.id {
        lists.session_id.clone_from(&app.session.id);
        lists.in_header = opened.tail.is_empty();
        lists.due = None;
        if !lists.in_header {
            set_header_resources(&mut app.transcript, Vec::new(), None);
        }
    }
    show_in_header(app);
}

/// Called when the themes were listed.
pub(super) fn on_themes(app: &mut App, themes: Vec<OwnTheme>) {
    app.input.completion.set_themes(themes.iter().map(|theme| theme.name.clone()).collect());
    app.resources.themes = themes;
    match app.resources.due.take() {
        Some(Place::End) if app.resources.display == StartDisplay::Whole => {
            let sections = sections(&app.session, &app.resources.themes);
            show_resources(&mut app.transcript, sections);
        }
        Some(Place::End) => {}
        Some(Place::Header) => {
            app.resources.in_header = true;
            show_in_header(app);
        }
        None => show_in_header(app),
    }
}

/// What `session` has loaded, by kind; kinds with nothing are left out.
fn sections(session: &SessionState, themes: &[OwnTheme]) -> Vec<ResourceSection> {
    let named = |name: String, origin: ResourceOrigin, path: &std::path::Path| Resource {
        name: Some(name),
        origin,
        path: path.to_owned(),
    };
    let instructions = session.instructions.iter().map(|file| Resource {
        name: None,
        origin: file.origin,
        path: file.path.clone(),
    });
    let skills = session.skills.iter().map(|skill| named(skill.name.clone(), skill.origin, &skill.path));
    // Nothing calls those that are named as a command.
    let templates = session.templates.iter().filter(|file| !commands::is_command(&file.name));
    let templates = templates.map(|file| named(format!("/{}", file.name), file.origin, &file.path));
    let themes = themes.iter().map(|theme| named(theme.name.clone(), theme.origin, &theme.path));
    let sections = [
        ResourceSection { title: "Context", resources: instructions.collect() },
        ResourceSection { title: "Skills", resources: skills.collect() },
        ResourceSection { title: "Prompts", resources: templates.collect() },
        ResourceSection { title: "Themes", resources: themes.collect() },
    ];
    sections.into_iter().filter(|section| !section.resources.is_empty()).collect()
}
