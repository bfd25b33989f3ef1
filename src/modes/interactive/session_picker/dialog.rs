//! The list of sessions: keys, searches, renaming, deleting.

use std::path::{Path, PathBuf};

use crate::session::{Deleted, EntryId, SearchHit, SessionSummary};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Field, Hints, ListFrame, ListItems, ListState, ListStep};
use crossterm::event::KeyEvent;

use super::super::overlays::{DialogOutcome, Drawn, Overlay, OverlayStep};
use super::order::{Place, SortBy, order};
use super::rows::RowStyle;
use super::{ChosenSession, SessionsDone, SessionsEffect};

/// The sessions, or what a search in them found.
pub(in super::super) struct SessionsDialog {
    sessions: Vec<SessionSummary>,
    /// The hits of the last search that had any; shown while the query is not blank.
    hits: Vec<SearchHit>,
    /// What is shown, in order: places of hits or of sessions.
    places: Vec<Place>,
    shows_hits: bool,
    /// Positions among the places.
    list: ListState,
    /// The session to select once it is among those that are being read.
    awaited: Option<PathBuf>,
    query: Field,
    mode: Mode,
    /// Number of the last request, whose answers count.
    request: u64,
    is_reading: bool,
    is_searching: bool,
    is_all: bool,
    sort: SortBy,
    only_named: bool,
    /// Whether directories are shown, if that was chosen here.
    with_cwd: Option<bool>,
    /// What happened last.
    note: Option<String>,
    current: Option<PathBuf>,
    now_ms: u64,
    home: Option<PathBuf>,
}

/// What the keyboard is for.
enum Mode {
    Browse,
    Rename { path: PathBuf, name: Field },
    ConfirmDelete { path: PathBuf },
}

impl Mode {
    fn rename(path: PathBuf, old: &str) -> Self {
        Self::Rename { path, name: Field::with_text(old) }
    }
}

impl SessionsDialog {
    /// `now_ms` is the wall clock, for ages; `current` cannot be renamed or deleted here.
    pub(in super::super) fn new(current: Option<&Path>, now_ms: u64, home: Option<&Path>) -> Self {
        Self {
            sessions: Vec::new(),
            hits: Vec::new(),
            places: Vec::new(),
            shows_hits: false,
            list: ListState::default(),
            awaited: None,
            query: Field::plain(),
            mode: Mode::Browse,
            request: 0,
            is_reading: true,
            is_searching: false,
            is_all: false,
            sort: SortBy::default(),
            only_named: false,
            with_cwd: None,
            note: None,
            current: current.map(Path::to_owned),
            now_ms,
            home: home.map(Path::to_owned),
        }
    }

    /// Adds what was read or found.
    pub(in super::super) fn on_done(&mut self, done: SessionsDone) {
        let selected = self.awaited.clone().or_else(|| {
            // The first one stays first.
            self.selected_path().filter(|_| self.list.selected() > 0)
        });
        match done {
            SessionsDone::Opened => {}
            SessionsDone::Listed { request, is_first, sessions, is_done } => {
                if request != self.request {
                    return;
                }
                if is_first {
                    self.sessions.clear();
                }
                self.sessions.extend(sessions);
                self.is_reading &= !is_done;
            }
            SessionsDone::Found { request, is_first, hits, is_done } => {
                if request != self.request {
                    return;
                }
                if is_first {
                    self.hits.clear();
                    self.list.start_over();
                }
                self.hits.extend(hits);
                self.is_searching = !is_done;
            }
            SessionsDone::Renamed { path, name } => {
                let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
                let hits = self.hits.iter_mut().map(|hit| &mut hit.session);
                for session in self.sessions.iter_mut().chain(hits).filter(|session| session.path == path) {
                    session.name.clone_from(&name);
                }
            }
            SessionsDone::NotRenamed { path, name, problem } => {
                self.note = Some(problem);
                if let Mode::Browse = self.mode {
                    self.mode = Mode::rename(path, &name);
                }
            }
            SessionsDone::Deleted { path, how } => {
                self.sessions.retain(|session| session.path != path);
                self.hits.retain(|hit| hit.session.path != path);
                let how = match how {
                    Deleted::ToTrash => "moved to the trash",
                    Deleted::Permanently => "deleted",
                };
                self.note = Some(format!("The session was {how}."));
            }
            SessionsDone::BadQuery { request, problem } => {
                if request != self.request {
                    return;
                }
                self.is_searching = false;
                self.note = Some(problem);
            }
            SessionsDone::Failed(problem) => {
                self.is_searching = false;
                self.note = Some(problem);
            }
        }
        self.arrange(selected.as_deref());
        let is_reading = if self.is_search() { self.is_searching } else { self.is_reading };
        if !is_reading {
            self.awaited = None;
        }
    }

    fn is_search(&self) -> bool {
        !self.query.text().trim().is_empty()
    }

    /// Orders what is shown, and selects `path` if it is still there.
    fn arrange(&mut self, path: Option<&Path>) {
        let only_named = self.only_named;
        self.shows_hits = self.is_search();
        self.places = if self.is_search() {
            let shown = |hit: &SearchHit| !only_named || hit.session.name.is_some();
            let mut places: Vec<usize> = (0..self.hits.len()).filter(|at| shown(&self.hits[*at])).collect();
            // Stable: the latest stays first.
            places.sort_by_key(|at| self.hits[*at].rank.place());
            places.into_iter().map(|at| Place { at, depth: 0 }).collect()
        } else {
            let current = self.current.as_ref();
            order(&self.sessions, self.sort, |session| {
                Some(&session.path) != current && (!only_named || session.name.is_some())
            })
        };
        let found = path.and_then(|path| (0..self.places.len()).find(|at| self.session(*at).path == path));
        self.list.select(found.unwrap_or(self.list.selected()));
        self.list.limit(self.places.len());
    }

    fn hit(&self, position: usize) -> Option<&SearchHit> {
        self.shows_hits.then(|| &self.hits[self.places[position].at])
    }

    fn session(&self, position: usize) -> &SessionSummary {
        match self.hit(position) {
            Some(hit) => &hit.session,
            None => &self.sessions[self.places[position].at],
        }
    }

    fn selected_path(&self) -> Option<PathBuf> {
        (!self.places.is_empty()).then(|| self.session(self.list.selected()).path.clone())
    }

    /// The effect that reads or searches anew.
    fn ask(&mut self) -> OverlayStep {
        self.request += 1;
        let (request, is_all) = (self.request, self.is_all);
        let text = self.query.text().trim().to_owned();
        if text.is_empty() {
            self.is_reading = true;
            return step(SessionsEffect::List { request, is_all });
        }
        self.is_searching = true;
        step(SessionsEffect::Search { request, is_all, text })
    }

    fn on_query(&mut self) -> OverlayStep {
        (self.note, self.awaited) = (None, None);
        // The best match comes first.
        self.list.start_over();
        if self.is_search() {
            return self.ask();
        }
        self.is_searching = false;
        self.hits.clear();
        self.arrange(None);
        // A search may have cancelled reading the list.
        if self.is_reading { self.ask() } else { OverlayStep::Stay }
    }

    fn on_key(&mut self, key: &KeyEvent, keymap: &Keymap) -> Option<OverlayStep> {
        let action = keymap.lookup(Context::Sessions, key)?;
        let selected = self.selected_path();
        self.note = None;
        match action {
            "app.session.toggleScope" => {
                self.is_all = !self.is_all;
                self.awaited = selected.or(self.awaited.take());
                self.list.start_over();
                (self.sessions, self.hits, self.places) = (Vec::new(), Vec::new(), Vec::new());
                self.is_reading = true;
                return Some(self.ask());
            }
            "app.session.toggleSort" => {
                self.sort = if self.sort == SortBy::Recent { SortBy::Threaded } else { SortBy::Recent };
                self.arrange(selected.as_deref());
            }
            "app.session.toggleNamedFilter" => {
                self.only_named = !self.only_named;
                self.arrange(selected.as_deref());
            }
            "app.session.togglePath" => self.with_cwd = Some(!self.shows_cwd()),
            "app.session.rename" | "app.session.delete" => self.begin_change(selected?, action),
            "app.session.deleteNoninvasive" if self.query.is_empty() => {
                self.begin_change(selected?, "app.session.delete");
            }
            _ => return None,
        }
        Some(OverlayStep::Stay)
    }

    /// Directories differ only among the sessions of all of them.
    fn shows_cwd(&self) -> bool {
        self.with_cwd.unwrap_or(self.is_all)
    }

    fn begin_change(&mut self, path: PathBuf, action: &str) {
        if self.current.as_ref() == Some(&path) {
            let note = match action {
                "app.session.rename" => "This session is open; /name renames it.",
                _ => "This session is open; open another one to delete it.",
            };
            self.note = Some(note.to_owned());
            return;
        }
        self.mode = match action {
            "app.session.rename" => {
                Mode::rename(path, self.session(self.list.selected()).name.as_deref().unwrap_or_default())
            }
            _ => Mode::ConfirmDelete { path },
        };
    }

    fn browse(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input {
            if let Some(step) = self.on_key(key, keymap) {
                return step;
            }
            match self.list.on_key(key, keymap, self.places.len()) {
                ListStep::Moved => (self.note, self.awaited) = (None, None),
                ListStep::Confirmed => return self.choose(),
                ListStep::Cancelled => {
                    return OverlayStep::CloseWith(DialogOutcome::Effect(SessionsEffect::Close.into()));
                }
                ListStep::Ignored => {
                    let before = self.query.text().trim().to_owned();
                    self.query.handle(input, keymap);
                    if self.query.text().trim() != before {
                        return self.on_query();
                    }
                }
            }
        } else if self.query.handle(input, keymap) {
            return self.on_query();
        }
        OverlayStep::Stay
    }

    fn choose(&self) -> OverlayStep {
        let Some(path) = self.selected_path() else { return OverlayStep::Stay };
        let entry = self.chosen_entry().map(EntryId::new);
        OverlayStep::CloseWith(DialogOutcome::SessionChosen(ChosenSession { path, entry }))
    }

    /// The message that was found in the selected session; the session opens with it in its tree.
    fn chosen_entry(&self) -> Option<&str> {
        if self.places.is_empty() {
            return None;
        }
        let hit = self.hit(self.list.selected())?;
        hit.message.as_ref().map(|message| message.entry_id.as_str()).filter(|id| !id.is_empty())
    }

    /// A key while a name is typed, or a deletion is to be confirmed.
    fn change(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let action = match input {
            InputEvent::Key(key) => keymap.lookup(Context::Select, key),
            _ => None,
        };
        match (action, &mut self.mode) {
            (Some("tui.select.cancel"), _) => self.mode = Mode::Browse,
            (Some("tui.select.confirm"), Mode::Rename { path, name }) => {
                let effect = SessionsEffect::Rename { path: path.clone(), name: name.text().to_owned() };
                self.note = None;
                self.mode = Mode::Browse;
                return step(effect);
            }
            (Some("tui.select.confirm"), Mode::ConfirmDelete { path }) => {
                let effect = SessionsEffect::Delete { path: path.clone() };
                self.mode = Mode::Browse;
                return step(effect);
            }
            (_, Mode::Rename { name, .. }) => drop(name.handle(input, keymap)),
            (_, Mode::ConfirmDelete { .. } | Mode::Browse) => {}
        }
        OverlayStep::Stay
    }

    // Drawing.

    fn title(&self) -> String {
        let scope = if self.is_all { "Sessions of all directories" } else { "Sessions of this directory" };
        let mut parts = vec![scope.to_owned()];
        if self.only_named {
            parts.push("named".to_owned());
        }
        if !self.is_search() && self.sort == SortBy::Recent {
            parts.push("by time".to_owned());
        }
        match (self.is_search(), self.is_searching, self.is_reading) {
            (true, true, _) => parts.push("searching…".to_owned()),
            (false, _, true) => parts.push(format!("reading… {}", self.sessions.len())),
            _ => {}
        }
        parts.join(" · ")
    }

    fn hints(&self) -> Hints {
        match &self.mode {
            Mode::Rename { .. } => return Hints::confirm("rename").cancel("keep the name"),
            Mode::ConfirmDelete { .. } => return Hints::confirm("delete this session").cancel("keep it"),
            Mode::Browse => {}
        }
        let hints =
            Hints::confirm(if self.chosen_entry().is_some() { "show it in its tree" } else { "continue" })
                .key(
                    "app.session.toggleScope",
                    if self.is_all { "this directory" } else { "all directories" },
                )
                .key("app.session.rename", "rename")
                .of_item()
                .key("app.session.delete", "delete")
                .of_item()
                .key(
                    "app.session.toggleSort",
                    if self.sort == SortBy::Recent { "threads" } else { "by time" },
                )
                .key("app.session.toggleNamedFilter", if self.only_named { "unnamed too" } else { "named" })
                .key("app.session.togglePath", "directories")
                .cancel("close");
        if self.places.is_empty() { hints.without_item() } else { hints }
    }

    fn empty_text(&self, keymap: &Keymap) -> Option<String> {
        let scope = match keymap.hint("app.session.toggleScope") {
            key if key.is_empty() => key,
            key => format!("; {key}: all directories"),
        };
        match (self.is_search(), self.is_all) {
            _ if !self.places.is_empty() => None,
            (true, _) if self.is_searching => None,
            (false, _) if self.is_reading => None,
            (true, false) => Some(format!("  No session of this directory contains this{scope}")),
            (true, true) => Some("  No session contains this".to_owned()),
            (false, _) if self.only_named => Some("  No session here has a name".to_owned()),
            (false, false) => Some(format!("  This directory has no other sessions{scope}")),
            (false, true) => Some("  There are no other sessions".to_owned()),
        }
    }

    /// Rows below the list.
    fn rows_below(&self, cx: &DialogCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        let mut rows = Vec::new();
        if let Mode::ConfirmDelete { .. } = &self.mode {
            rows.push(Row::styled("  Delete this session?", theme.style(Token::Warning)));
        } else if let Some(note) = &self.note {
            rows.push(Row::styled(
                format!("  {}", crate::tui::text::sanitize_line(note)),
                theme.style(Token::Warning),
            ));
        } else if !self.places.is_empty() {
            let session = self.session(self.list.selected());
            let detail = format!("  {} · {}", session.id, session.cwd);
            rows.push(Row::styled(crate::tui::text::sanitize_line(&detail), theme.style(Token::Muted)));
        }
        rows.extend(self.hints().rows(cx));
        rows
    }
}

/// The places as items of a list.
struct Places<'a> {
    dialog: &'a SessionsDialog,
    style: RowStyle<'a>,
}

impl ListItems for Places<'_> {
    fn len(&self) -> usize {
        self.dialog.places.len()
    }

    /// A hit has its text below it.
    fn height(&self, at: usize) -> usize {
        1 + usize::from(self.dialog.hit(at).is_some_and(|hit| hit.message.is_some()))
    }

    fn rows(&self, at: usize, is_selected: bool) -> Vec<Row> {
        let (dialog, session) = (self.dialog, self.dialog.session(at));
        let is_current = dialog.current.as_ref() == Some(&session.path);
        let mut rows = vec![self.style.session(session, dialog.places[at].depth, is_selected, is_current)];
        let found = dialog.hit(at).and_then(|hit| hit.message.as_ref());
        rows.extend(found.map(|message| self.style.found(message)));
        rows
    }
}

fn step(effect: SessionsEffect) -> OverlayStep {
    OverlayStep::StayWith(DialogOutcome::Effect(effect.into()))
}

impl Overlay for SessionsDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.mode {
            Mode::Browse => self.browse(input, keymap),
            Mode::Rename { .. } | Mode::ConfirmDelete { .. } => self.change(input, keymap),
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let (width_cells, theme) = (cx.width.max(1), cx.theme);
        let field = match &self.mode {
            Mode::Rename { name, .. } => name.render_after("Name: ", width_cells, theme),
            Mode::Browse | Mode::ConfirmDelete { .. } => self.query.render(width_cells, theme),
        };
        let style = RowStyle {
            width_cells,
            theme,
            now_ms: self.now_ms,
            home: self.home.as_deref(),
            with_cwd: self.shows_cwd(),
        };
        let (title, empty) = (self.title(), self.empty_text(cx.keymap));
        let frame = ListFrame {
            title: &title,
            field: Some(field),
            empty: empty.as_deref(),
            status: None,
            below: self.rows_below(cx),
        };
        let mut list = self.list.clone();
        let drawn = list.draw(&Places { dialog: self, style }, frame, cx);
        self.list = list;
        (drawn.rows, drawn.cursor)
    }
}
