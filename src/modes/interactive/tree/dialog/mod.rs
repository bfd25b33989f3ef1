//! The list of the session tree: moving, filters, search, folds, labels, and the question
//! what becomes of the branch that is left. `refresh` lets it follow the session, `search` knows what was
//! found.

mod refresh;
mod search;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Style;

use crate::config::{Settings, TreeFilter};
use crate::session::{
    EntryId, EntryKind, EntryLabel, IfBusy, LeftBranch, Phase, SessionCommand, SessionState, SessionTree,
};
use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{Ellipsis, Row, Run, sanitize_line, truncate, visible_line, width};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::{DialogCx, Field, Hints, ListFrame, ListItems, ListState, ListStep};

use super::super::msg::WorldEffect;
use super::super::overlays::{Dialog, DialogOutcome, Drawn, Overlay, OverlayStep};
use super::numbering::Numbering;
use super::outline::{Connector, Fold, Outline, Shape, View, is_unseen};
use super::texts::EntryText;
use super::{TreeEffect, TreeView};
use refresh::Refreshing;
use search::Search;

const ALREADY_HERE: &str = "The session is already at this point.";
const READ_ONLY: &str = "The session is open elsewhere; here it is read-only.";

/// The settings of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct TreeOptions {
    pub(in super::super) filter: TreeFilter,
    /// A branch is left without asking about a summary.
    pub(in super::super) skip_prompt: bool,
}

impl TreeOptions {
    pub(in super::super) fn of(settings: &Settings) -> Self {
        Self { filter: settings.tree_filter, skip_prompt: settings.branch_summary.skip_prompt }
    }

    pub(super) fn filter(&self) -> TreeFilter {
        self.filter
    }
}

/// The tree, and the question it asks before it moves.
pub(in super::super) struct TreeDialog {
    tree: SessionTree,
    shape: Shape,
    labels: HashMap<usize, EntryLabel>,
    /// Entries whose label was typed here since the tree was last asked for.
    labelled_since: HashSet<usize>,
    /// Messages that a compaction keeps word for word, and the ids they were found by.
    pinned: HashSet<usize>,
    pinned_ids: Option<Arc<[EntryId]>>,
    texts: HashMap<usize, EntryText>,
    /// Lines that were asked for and have not come.
    awaited: HashSet<usize>,
    outline: Outline,
    filter: TreeFilter,
    folded: HashSet<usize>,
    search: Search,
    /// Positions among the rows.
    list: ListState,
    shows_label_times: bool,
    skip_prompt: bool,
    is_busy: bool,
    /// The session is open elsewhere.
    is_read_only: bool,
    stage: Stage,
    /// A word about the last key.
    note: Option<String>,
    refreshing: Refreshing,
}

enum Stage {
    Browse,
    /// Typing a label for an entry.
    Label {
        entry: usize,
        field: Field,
    },
    /// Choosing what becomes of the branch that is left.
    Leave {
        entry: usize,
        list: ListState,
    },
    /// Typing what a summary should dwell on.
    Focus {
        entry: usize,
        field: Field,
    },
}

const CHOICES: [&str; 3] = ["No summary", "Summarise", "Summarise with a focus of your own"];

impl TreeDialog {
    pub(in super::super) fn new(view: TreeView, phase: Phase) -> Self {
        let TreeView { tree, shape, labels, texts, options, outline, selected } = view;
        Self {
            filter: options.filter(),
            skip_prompt: options.skip_prompt,
            is_busy: phase != Phase::Idle,
            is_read_only: false,
            tree,
            shape,
            labels,
            labelled_since: HashSet::new(),
            pinned: HashSet::new(),
            pinned_ids: None,
            texts,
            awaited: HashSet::new(),
            outline,
            folded: HashSet::new(),
            search: Search::default(),
            list: ListState::at(selected),
            shows_label_times: false,
            stage: Stage::Browse,
            note: None,
            refreshing: Refreshing::No,
        }
    }

    /// Shows a word about the last key.
    pub(in super::super) fn set_note(&mut self, note: &str) {
        self.note = Some(note.to_owned());
    }

    /// Lines of `tree` that were asked for.
    pub(in super::super) fn on_texts(&mut self, tree: &SessionTree, texts: Vec<(usize, EntryText)>) {
        let numbering = Numbering::between(tree, &self.tree);
        for (entry, text) in texts {
            if let Some(entry) = numbering.of(entry) {
                self.awaited.remove(&entry);
                self.texts.insert(entry, text);
            }
        }
    }

    /// What a search of the entries of `tree` from the number `from` on found; says what has to be read
    /// then.
    pub(in super::super) fn on_found(
        &mut self,
        tree: &SessionTree,
        (query, from): (String, usize),
        entries: Vec<usize>,
    ) -> Vec<TreeEffect> {
        if self.search.on_found((tree, &self.tree), (query, from), entries) {
            let entry = self.entry();
            self.lay_out();
            self.list.moved_to(self.row_of(entry));
        }
        [self.search.resume(&self.tree), self.missing_texts()].into_iter().flatten().collect()
    }

    /// The selected entry.
    fn entry(&self) -> Option<usize> {
        self.outline.row(self.list.selected()).map(|row| row.entry)
    }

    /// Decides anew what is visible, and selects `entry` or what is nearest to it.
    fn rebuild(&mut self, entry: Option<usize>) {
        self.lay_out();
        self.list.select(self.row_of(entry));
    }

    /// The row of `entry` or of what is nearest to it; without one that of the end of the active branch.
    fn row_of(&self, entry: Option<usize>) -> usize {
        self.outline.place(&self.tree, entry.or(self.shape.current()))
    }

    /// Decides anew what is visible.
    fn lay_out(&mut self) {
        let view = View {
            filter: self.filter,
            is_labelled: &|idx| self.labels.contains_key(&idx),
            found: self.search.entries(),
            folded: &self.folded,
        };
        self.outline = Outline::new(&self.tree, &self.shape, &view);
    }

    /// Asks for the lines near the selection that are not known.
    fn missing_texts(&mut self) -> Option<TreeEffect> {
        let (margin, selected) = (self.list.page().max(30), self.list.selected());
        let near = selected.saturating_sub(margin)..(selected + margin).min(self.outline.len());
        let rows = near.filter_map(|at| self.outline.row(at)).map(|row| row.entry);
        let is_missing = |entry: &usize| !self.texts.contains_key(entry) && !self.awaited.contains(entry);
        let wanted: Vec<usize> = rows.filter(is_missing).collect();
        if wanted.is_empty() {
            return None;
        }
        self.awaited.extend(&wanted);
        Some(TreeEffect::ReadTexts { tree: self.tree.clone(), wanted })
    }

    fn stay(&mut self) -> OverlayStep {
        match self.missing_texts() {
            Some(effect) => OverlayStep::StayWith(WorldEffect::Tree(effect).into()),
            None => OverlayStep::Stay,
        }
    }

    // Keys.

    fn browse(&mut self, key: &KeyEvent, keymap: &Keymap) -> OverlayStep {
        self.note = None;
        let len = self.outline.len();
        // A letter belongs to the search that has begun.
        let is_typed = !self.search.query().is_empty() && Chord::typed(key).is_some();
        if let Some(id) = keymap.lookup(Context::Tree, key).filter(|_| !is_typed) {
            return self.act(id);
        }
        if keymap.is("app.message.copy", key) {
            let tree = self.tree.clone();
            let copy = self.entry().map(|entry| WorldEffect::Tree(TreeEffect::ReadWhole { tree, entry }));
            return copy.map_or(OverlayStep::Stay, |copy| OverlayStep::StayWith(copy.into()));
        }
        match (self.list.on_key(key, keymap, len), key.code) {
            (ListStep::Moved, _) => {}
            (ListStep::Confirmed, _) => return self.choose(),
            (ListStep::Cancelled, _) if self.search.query().is_empty() => return OverlayStep::Close,
            (ListStep::Cancelled, _) => return self.set_query(String::new()),
            (ListStep::Ignored, KeyCode::Left) => self.list.turn_page(false, len),
            (ListStep::Ignored, KeyCode::Right) => self.list.turn_page(true, len),
            (ListStep::Ignored, KeyCode::Home) => self.list.select(0),
            (ListStep::Ignored, KeyCode::End) => self.list.select(len.saturating_sub(1)),
            (ListStep::Ignored, KeyCode::Backspace) => {
                let mut query = self.search.query().to_owned();
                query.pop();
                return self.set_query(query);
            }
            (ListStep::Ignored, _) => match Chord::typed(key) {
                Some(c) => {
                    let query = format!("{}{c}", self.search.query());
                    return self.set_query(query);
                }
                None => return OverlayStep::Stay,
            },
        }
        self.stay()
    }

    fn act(&mut self, id: &str) -> OverlayStep {
        let entry = self.entry();
        let fold = self.outline.row(self.list.selected()).map(|row| row.fold);
        match (id, entry) {
            ("app.tree.foldOrUp", Some(entry)) if fold == Some(Fold::Open) && self.search.is_empty() => {
                self.folded.insert(entry);
                self.rebuild(Some(entry));
            }
            ("app.tree.foldOrUp", _) => self.list.select(self.outline.branch_start(self.list.selected())),
            ("app.tree.unfoldOrDown", Some(entry)) if fold == Some(Fold::Closed) => {
                self.folded.remove(&entry);
                self.rebuild(Some(entry));
            }
            ("app.tree.unfoldOrDown", _) => self.list.select(self.outline.branch_end(self.list.selected())),
            ("app.tree.editLabel" | "app.tree.togglePin", Some(_)) if self.is_read_only => {
                self.note = Some(READ_ONLY.to_owned());
            }
            ("app.tree.editLabel", Some(entry)) => {
                let label = self.labels.get(&entry).map_or("", |label| &label.text);
                self.stage = Stage::Label { entry, field: Field::with_text(label) };
            }
            ("app.tree.togglePin", Some(entry)) => {
                let (target, pinned) = (self.tree.entry(entry).id.clone(), !self.pinned.contains(&entry));
                let pin = SessionCommand::Pin { target: Some(target), pinned };
                return OverlayStep::StayWith(DialogOutcome::session(pin));
            }
            ("app.tree.toggleLabelTimestamp", _) => self.shows_label_times = !self.shows_label_times,
            ("app.tree.filter.default", _) => self.set_filter(TreeFilter::Default),
            ("app.tree.filter.noTools", _) => self.set_filter(TreeFilter::NoTools),
            ("app.tree.filter.userOnly", _) => self.set_filter(TreeFilter::UserOnly),
            ("app.tree.filter.labeledOnly", _) => self.set_filter(TreeFilter::LabeledOnly),
            ("app.tree.filter.all", _) => self.set_filter(TreeFilter::All),
            ("app.tree.filter.cycleForward", _) => self.set_filter(self.filter.cycled(true)),
            ("app.tree.filter.cycleBackward", _) => self.set_filter(self.filter.cycled(false)),
            _ => {}
        }
        self.stay()
    }

    fn set_filter(&mut self, filter: TreeFilter) {
        let entry = self.entry();
        self.filter = filter;
        self.folded.clear();
        self.rebuild(entry);
    }

    /// Searches for something else; what was found before is shown until then.
    fn set_query(&mut self, query: String) -> OverlayStep {
        match self.search.start(&self.tree, query) {
            Some(search) => OverlayStep::StayWith(WorldEffect::Tree(search).into()),
            None => {
                self.rebuild(self.entry());
                self.stay()
            }
        }
    }

    /// Takes over what the session says of itself.
    pub(in super::super) fn on_session(&mut self, session: &SessionState) {
        self.is_busy = session.phase != Phase::Idle;
        self.is_read_only = session.is_read_only;
        // Each of them is looked for among all entries.
        if self.pinned_ids.as_deref() != Some(&*session.pinned) {
            self.pinned = session.pinned.iter().filter_map(|id| self.tree.index_of(id)).collect();
            self.pinned_ids = Some(Arc::clone(&session.pinned));
        }
    }

    /// Whether it is the tree of this session.
    pub(in super::super) fn is_of(&self, session: &SessionState) -> bool {
        self.tree.session_id() == session.id
    }

    // Moving.

    fn choose(&mut self) -> OverlayStep {
        let Some(entry) = self.entry() else { return OverlayStep::Stay };
        let left = self.tree.path_left(self.tree.leaf(), entry);
        let is_left_unseen = left.iter().all(|idx| is_unseen(self.tree.entry(*idx).kind));
        if self.shape.is_active(entry) && is_left_unseen {
            self.note = Some(ALREADY_HERE.to_owned());
            return OverlayStep::Stay;
        }
        let is_worth_it = |idx: usize| {
            let kind = self.tree.entry(idx).kind;
            matches!(
                kind,
                EntryKind::User
                    | EntryKind::Assistant
                    | EntryKind::Bash
                    | EntryKind::BranchSummary
                    | EntryKind::Compaction
                    | EntryKind::CustomMessage
            )
        };
        // A summary could not be stored.
        if self.skip_prompt || self.is_read_only || !left.into_iter().any(is_worth_it) {
            return self.go(entry, LeftBranch::Leave);
        }
        self.stage = Stage::Leave { entry, list: ListState::default() };
        OverlayStep::Stay
    }

    fn go(&self, entry: usize, summary: LeftBranch) -> OverlayStep {
        let target = self.tree.entry(entry).id.clone();
        OverlayStep::close_with(SessionCommand::Navigate { target, summary, if_busy: IfBusy::Cancel })
    }

    fn leave(&mut self, entry: usize, key: &KeyEvent, keymap: &Keymap) -> OverlayStep {
        let Stage::Leave { list, .. } = &mut self.stage else { return OverlayStep::Stay };
        match (list.on_key(key, keymap, CHOICES.len()), list.selected()) {
            (ListStep::Moved | ListStep::Ignored, _) => {}
            (ListStep::Cancelled, _) => self.stage = Stage::Browse,
            (ListStep::Confirmed, 0) => return self.go(entry, LeftBranch::Leave),
            (ListStep::Confirmed, 1) => return self.go(entry, LeftBranch::Summarize { focus: None }),
            (ListStep::Confirmed, _) => self.stage = Stage::Focus { entry, field: Field::plain() },
        }
        OverlayStep::Stay
    }

    /// Keys of a line that is typed into; `Some` when it is done, with its text.
    fn type_into(&mut self, input: &InputEvent, keymap: &Keymap) -> Option<(usize, String)> {
        let (entry, field) = match &mut self.stage {
            Stage::Label { entry, field } | Stage::Focus { entry, field } => (*entry, field),
            Stage::Browse | Stage::Leave { .. } => return None,
        };
        if let InputEvent::Key(key) = input {
            match keymap.lookup(Context::Select, key) {
                Some("tui.select.confirm") => return Some((entry, field.text().trim().to_owned())),
                Some("tui.select.cancel") => {
                    self.stage = match self.stage {
                        Stage::Focus { entry, .. } => {
                            Stage::Leave { entry, list: ListState::at(CHOICES.len() - 1) }
                        }
                        _ => Stage::Browse,
                    };
                    return None;
                }
                _ => {}
            }
        }
        field.handle(input, keymap);
        None
    }

    fn set_label(&mut self, entry: usize, text: String) -> OverlayStep {
        self.stage = Stage::Browse;
        let before = self.labels.get(&entry).map(|label| label.text.clone()).unwrap_or_default();
        if text == before {
            return OverlayStep::Stay;
        }
        let target = self.tree.entry(entry).id.clone();
        let label = (!text.is_empty()).then(|| text.clone());
        if text.is_empty() {
            self.labels.remove(&entry);
        } else {
            self.labels.insert(entry, EntryLabel { text, at_ms: 0 });
        }
        self.labelled_since.insert(entry);
        self.rebuild(Some(entry));
        OverlayStep::StayWith(DialogOutcome::session(SessionCommand::SetLabel { target, label }))
    }

    // Drawing.

    fn render_list(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let (width, theme) = (cx.width.max(1), cx.theme);
        let query = Row::from_runs([
            Run::new("> ", theme.style(Token::Muted)),
            Run::new(self.search.query().to_owned(), theme.style(Token::Text)),
        ]);
        let column = query.width().min(usize::from(width.saturating_sub(1)));
        // Where a letter would be typed, no hint tells of what it does.
        let is_searching = !self.search.query().is_empty();
        let is_typed = |id| cx.keymap.hint(id).parse::<Chord>().is_ok_and(|chord| chord.is_text());
        let unless_typed = |hints: Hints, id, text| {
            if is_searching && is_typed(id) { hints } else { hints.key(id, text).of_item() }
        };
        let hints = Hints::new()
            .fixed("type", "search")
            .key("tui.select.confirm", "continue here")
            .of_item()
            .key("app.tree.foldOrUp", "fold")
            .of_item();
        let hints =
            unless_typed(hints, "app.tree.editLabel", "label").key("app.tree.filter.cycleForward", "filter");
        let hints = unless_typed(hints, "app.tree.togglePin", "pin")
            .key("app.message.copy", "copy")
            .of_item()
            .key("tui.select.cancel", if is_searching { "end the search" } else { "close" });
        let frame = ListFrame {
            title: "Session tree",
            field: Some((query, u16::try_from(column).unwrap_or(0))),
            empty: Some("  No entries"),
            status: Some(self.status_row(theme)),
            below: if self.outline.len() == 0 { hints.without_item() } else { hints }.rows(cx),
        };
        let mut list = self.list.clone();
        let skip = self.skipped_levels(width);
        let drawn = list.draw(&Entries { dialog: self, skip, width, theme }, frame, cx);
        self.list = list;
        (drawn.rows, drawn.cursor)
    }

    /// Levels that are left out on the left, so that the selected entry has most of the
    /// width for its text.
    fn skipped_levels(&self, width: u16) -> u32 {
        let shown = u32::from(width / 12).max(1);
        self.outline.row(self.list.selected()).map_or(0, |row| row.level.saturating_sub(shown))
    }

    fn status_row(&self, theme: &Theme) -> Row {
        let at = if self.outline.len() == 0 { 0 } else { self.list.selected() + 1 };
        let mut text = format!("  ({at}/{})", self.outline.len());
        if self.filter != TreeFilter::Default {
            text.push_str(&[" [", self.filter.name(), "]"].concat());
        }
        if self.shows_label_times {
            text.push_str(" [label times]");
        }
        if self.search.goes_on() {
            text.push_str(" searching…");
        }
        let mut row = Row::styled(text, theme.style(Token::Dim));
        if let Some(note) = &self.note {
            row.push(Run::new(format!("  {note}"), theme.style(Token::Warning)));
        }
        row
    }

    fn entry_row(&self, at: usize, skip: u32, width: u16, theme: &Theme) -> Option<Row> {
        let row = self.outline.row(at)?;
        let is_selected = at == self.list.selected();
        let dim = theme.style(Token::Dim);
        let mut runs = vec![Run::new(if is_selected { "› " } else { "  " }, theme.style(Token::Accent))];
        let mut gutter = self.outline.gutter(at, skip);
        let own = if row.connector == Connector::None { None } else { gutter.pop() };
        for connector in gutter {
            runs.push(Run::new(if connector == Connector::Last { "   " } else { "│  " }, dim));
        }
        let fold = match row.fold {
            Fold::Closed => "⊞ ",
            Fold::Open if own.is_some() => "⊟ ",
            Fold::Open | Fold::None => "─ ",
        };
        match own {
            Some(Connector::Last) => runs.push(Run::new(format!("└{fold}"), dim)),
            Some(_) => runs.push(Run::new(format!("├{fold}"), dim)),
            None if row.fold == Fold::Closed => runs.push(Run::new(fold, dim)),
            None => {}
        }
        if self.shape.is_active(row.entry) {
            runs.push(Run::new("• ", theme.style(Token::Accent)));
        }
        runs.extend(self.marks(row.entry, width, theme));
        match self.texts.get(&row.entry) {
            Some(EntryText { speaker, text, tone }) => {
                if let Some((speaker, token)) = speaker {
                    runs.push(Run::new(format!("{speaker}: "), theme.style(*token)));
                }
                runs.push(Run::new(visible_line(text), theme.style(*tone)));
            }
            None => runs.push(Run::new("…", dim)),
        }
        Some(Row::from_runs(runs))
    }

    /// What the user did with an entry. It takes a third of the width at most, or half of it with
    /// times, so that the text of the entry is never pushed off the row.
    fn marks(&self, entry: usize, width_cells: u16, theme: &Theme) -> Vec<Run> {
        let mut room = usize::from(width_cells / if self.shows_label_times { 2 } else { 3 });
        let mut runs = Vec::new();
        let mut push = |text: &str, token: Token| {
            let text = truncate(text, room, Ellipsis::One);
            room -= width(&text).min(room);
            if !text.is_empty() {
                runs.push(Run::new(text.as_ref(), theme.style(token)));
                runs.push(Run::new(" ", Style::new()));
            }
        };
        let pin = if self.pinned.contains(&entry) { "[pinned]" } else { "" };
        push(pin, Token::Accent);
        if let Some(label) = self.labels.get(&entry) {
            // Until the tree is read again, a new label has no time.
            let time = match label.at_ms {
                _ if !self.shows_label_times => String::new(),
                at if at > 0 => time(at),
                _ => "just now".to_owned(),
            };
            // A long label leaves room for its time.
            let room = usize::from(width_cells / 2).saturating_sub(width(pin) + width(&time));
            let text = format!("[{}]", visible_line(&label.text));
            push(&truncate(&text, room, Ellipsis::One), Token::Warning);
            push(&time, Token::Dim);
        }
        runs
    }

    fn render_choices(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let Stage::Leave { list, .. } = &mut self.stage else { return Drawn::default() };
        let busy = "The agent is still working; moving cancels that. Finished work is kept.";
        let note = self.is_busy.then_some((busy, Token::Warning));
        let title = "Summarise the branch you leave?";
        let hints = Hints::confirm("choose").cancel("back to the tree");
        let dialog = Dialog { title, body: Vec::new(), field: None, note, hints };
        dialog.render_choices((list, &CHOICES), cx)
    }
}

/// The entries as items of a list.
struct Entries<'a> {
    dialog: &'a TreeDialog,
    /// Levels that are left out on the left.
    skip: u32,
    width: u16,
    theme: &'a Theme,
}

impl ListItems for Entries<'_> {
    fn len(&self) -> usize {
        self.dialog.outline.len()
    }

    fn rows(&self, at: usize, _: bool) -> Vec<Row> {
        self.dialog.entry_row(at, self.skip, self.width, self.theme).into_iter().collect()
    }
}

/// `2026-11-21 09:23`, in UTC.
fn time(at_ms: u64) -> String {
    let text = crate::util::clock::iso8601(at_ms);
    text.get(..16).unwrap_or_default().replace('T', " ")
}

impl Overlay for TreeDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match (&self.stage, input) {
            (Stage::Browse, InputEvent::Key(key)) => self.browse(key, keymap),
            (Stage::Browse, InputEvent::Paste(text)) => {
                let query = format!("{}{}", self.search.query(), sanitize_line(text));
                self.set_query(query)
            }
            (Stage::Leave { entry, .. }, InputEvent::Key(key)) => {
                let entry = *entry;
                self.leave(entry, key, keymap)
            }
            (Stage::Label { .. }, _) => match self.type_into(input, keymap) {
                Some((entry, text)) => self.set_label(entry, text),
                None => OverlayStep::Stay,
            },
            (Stage::Focus { .. }, _) => match self.type_into(input, keymap) {
                Some((entry, text)) => {
                    let focus = (!text.is_empty()).then_some(text);
                    self.go(entry, LeftBranch::Summarize { focus })
                }
                None => OverlayStep::Stay,
            },
            (Stage::Browse | Stage::Leave { .. }, _) => OverlayStep::Stay,
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let (title, field, hints) = match &self.stage {
            Stage::Browse => return self.render_list(cx),
            Stage::Leave { .. } => return self.render_choices(cx),
            Stage::Label { field, .. } => {
                ("Label of this entry", field, Hints::confirm("save (empty removes it)").cancel("cancel"))
            }
            Stage::Focus { field, .. } => {
                ("What should the summary focus on?", field, Hints::confirm("summarise").cancel("back"))
            }
        };
        Dialog { title, body: Vec::new(), field: Some(field), note: None, hints }.render(cx)
    }
}

#[cfg(test)]
mod tests;
