//! Completion: of commands and their arguments, files after `@`, and paths.
//!
//! `token` finds what is typed, `commands` and `arguments` know the choices, `finder` finds
//! files on a thread of its own, in what `index` holds. The list never waits: it shows what is
//! known, and answers that are no longer wanted are dropped.

mod arguments;
mod commands;
mod finder;
mod index;
mod shell;
mod token;

use std::path::Path;

use crate::session::{SessionState, Skill};
use crate::tui::composer::Composer;
use crate::tui::text::{Ellipsis, Row, Run, sanitize_line, truncate, truncate_middle, visible_name, width};
use crate::tui::theme::{Theme, Token as Colour};
use crate::tui::widgets::{ListItems, ListState};
use crate::util::composed::composed;

use super::super::export::ExportFormat;
use super::app::App;
use super::msg::{Effect, WorldEffect};
use super::overlays::ModelChoice;
use arguments::{Argument, Known};
use commands::Callable;
use shell::{ShellWord, word_of};
use token::{Token, Typed};

pub(super) use arguments::ProviderChoice;
pub(super) use finder::{FileFinder, FileRequest, FoundFiles, Wanted};

/// Maximum width of the first column, in cells, if there is a second one.
const MAX_LABEL_CELLS: usize = 40;
/// Of a text in the second column that has less room, too few letters would be left to say anything.
const MIN_HELP_CELLS: usize = 10;

/// What the choices depend on.
pub(super) struct CompletionCx<'a> {
    pub(super) session: &'a SessionState,
    /// Models with a key.
    pub(super) models: &'a [ModelChoice],
    pub(super) home: Option<&'a Path>,
}

/// Suggestions for what is being typed; none are shown when it is empty.
#[derive(Default)]
pub(super) struct Completion {
    suggestions: Vec<Suggestion>,
    list: ListState,
    /// Whether the user selected it with the arrow keys.
    is_chosen: bool,
    replaced: Replaced,
    /// The line up to the cursor for which the user closed the list; it stays closed until that
    /// changes.
    dismissed: Option<String>,
    /// Files that are wanted, until the app takes the request.
    request: Option<FileRequest>,
    /// What was asked last, and the number of the request.
    asked: Option<(u64, Wanted)>,
    n_requests: u64,
    /// Whether the suggestions belong to an earlier text, until an answer arrives.
    is_stale: bool,
    /// Whether the user asked for paths, where none are offered otherwise, and the list follows the text.
    is_forced: bool,
    /// Whether a path that is the only one replaces what was typed.
    takes_only_path: bool,
    /// Whether the first one does, because the key for it came before the answer.
    takes_first: bool,
    known: Known,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suggestion {
    label: String,
    /// May be empty.
    help: String,
    insertion: Insertion,
}

/// What takes the place of the typed text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Insertion {
    text: String,
    /// Whether there is more to complete, as in a folder.
    goes_on: bool,
}

/// The typed text that a suggestion replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Replaced {
    kind: Kind,
    text: String,
    /// Before the cursor.
    n_bytes: usize,
    quote: Option<char>,
    /// Whether the shell reads what takes its place.
    in_shell: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Command,
    /// The beginning or some letters of an argument that is one of a few.
    Choice,
    /// The beginning of a name. Its letters within another name mean nothing: a key must not go to a provider
    /// that was not named, and what `/compact` shall keep is no option.
    Name,
    /// One of a few, in a way that the command understands.
    Complete,
    PathArgument,
    /// A path that need not exist.
    NewPathArgument,
    File,
    Path,
}

/// An edit before the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) n_bytes: usize,
    pub(super) with: String,
}

/// What Enter does while the list is open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OnEnter {
    /// The text is submitted as typed.
    Submit,
    /// The suggestion replaces what was typed.
    Insert(Replacement),
    /// Both.
    InsertAndSubmit(Replacement),
}

/// Lets completion follow the editor.
pub(super) fn follow(app: &mut App, out: &mut Vec<Effect>) {
    let cx = CompletionCx { session: &app.session, models: app.dialogs.models(), home: app.home.as_deref() };
    app.input.update_completion(&cx);
    out.extend(app.input.completion.take_request().map(|request| WorldEffect::FindFiles(request).into()));
}

/// Shows files that were found.
pub(super) fn on_found(app: &mut App, found: &FoundFiles, out: &mut Vec<Effect>) {
    let cx = CompletionCx { session: &app.session, models: app.dialogs.models(), home: app.home.as_deref() };
    app.input.on_files(found, &cx);
    out.extend(app.input.completion.take_request().map(|request| WorldEffect::FindFiles(request).into()));
}

impl Completion {
    pub(super) fn set_providers(&mut self, providers: Vec<ProviderChoice>) {
        self.known.providers = providers;
    }

    /// Whether this is a provider that has keys.
    pub(super) fn knows_provider(&self, name: &str) -> bool {
        self.known.providers.iter().any(|provider| provider.is_named(name))
    }

    /// `themes` are the names of those in files.
    pub(super) fn set_themes(&mut self, themes: Vec<String>) {
        self.known.themes = themes;
    }

    /// Follows the editor.
    pub(super) fn update(&mut self, editor: &Composer, cx: &CompletionCx<'_>) {
        let before = editor.before_cursor();
        if self.dismissed.as_deref() == Some(before) {
            return;
        }
        self.dismissed = None;
        match Typed::find(before, editor.is_on_first_line(), editor.begins_with('!')) {
            Some(Typed::Command(name)) if editor.after_cursor().is_empty() => {
                let values = &cx.session.settings.values;
                let skills: &[Skill] = if values.skill_commands { &cx.session.skills } else { &[] };
                let replaced = Replaced { n_bytes: before.len(), ..Replaced::of(Kind::Command, name) };
                let callable = Callable { templates: &cx.session.templates, skills };
                self.show(replaced, commands::suggest(name, callable));
            }
            Some(Typed::Argument { command, text }) if editor.after_cursor().is_empty() => {
                self.update_argument(command, text, cx);
            }
            Some(Typed::File(token)) => {
                let is_new = self.replaced.kind != Kind::File || !self.is_open();
                let wanted = Wanted::Matching { query: token.text.to_owned(), is_new };
                self.ask(Replaced::token(Kind::File, token), wanted, cx);
            }
            Some(Typed::Path(_) | Typed::ShellPath(_)) => self.ask_path(Replaced::path(editor), cx),
            _ if self.is_forced && Replaced::path(editor).n_bytes > 0 => {
                self.ask_path(Replaced::path(editor), cx);
            }
            _ => self.close(),
        }
    }

    fn update_argument(&mut self, command: &str, text: &str, cx: &CompletionCx<'_>) {
        let Some(argument) = arguments::argument_of(command) else { return self.close() };
        let kind = match argument {
            Argument::Path | Argument::NewPath => {
                let is_new = argument == Argument::NewPath;
                let kind = if is_new { Kind::NewPathArgument } else { Kind::PathArgument };
                let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
                let path = quote.and_then(|quote| text.strip_prefix(quote)).unwrap_or(text);
                let replaced = Replaced { n_bytes: text.len(), quote, ..Replaced::of(kind, path) };
                return self.ask(replaced, Wanted::Beginning { path: path.to_owned() }, cx);
            }
            _ if arguments::is_complete(argument, text, cx, &self.known) => Kind::Complete,
            Argument::Provider | Argument::Theme | Argument::Words(_) => Kind::Name,
            Argument::Model | Argument::ThinkingLevel => Kind::Choice,
        };
        let suggestions = arguments::suggest(argument, text, cx, &self.known);
        self.show(Replaced::of(kind, text), suggestions);
    }

    /// The user asks for a completion where none is offered: of the path at the cursor.
    pub(super) fn force(&mut self, editor: &Composer, cx: &CompletionCx<'_>) {
        self.dismissed = None;
        self.update(editor, cx);
        if self.is_stale && self.request.is_none() {
            // They are offered, but were not found yet.
            self.takes_first = true;
            return;
        }
        if !self.is_open() && self.request.is_none() && !editor.before_cursor().trim().is_empty() {
            self.ask_path(Replaced::path(editor), cx);
        }
        self.is_forced = self.request.is_some() || self.is_stale;
        self.takes_only_path = self.is_forced;
    }

    /// Whether what will be found replaces what was typed, because a key asked for it: keys typed after it wait.
    pub(super) fn is_awaited(&self) -> bool {
        self.takes_first || self.takes_only_path && self.is_stale
    }

    fn ask_path(&mut self, replaced: Replaced, cx: &CompletionCx<'_>) {
        let wanted = Wanted::Beginning { path: replaced.text.clone() };
        self.ask(replaced, wanted, cx);
    }

    /// Wants files. Until the answer arrives, the list stays as it is.
    fn ask(&mut self, replaced: Replaced, wanted: Wanted, cx: &CompletionCx<'_>) {
        if self.replaced.kind != replaced.kind {
            self.suggestions.clear();
        }
        let same = |(_, asked): &(u64, Wanted)| match (asked, &wanted) {
            (Wanted::Matching { query, .. }, Wanted::Matching { query: other, .. }) => query == other,
            (asked, wanted) => asked == wanted,
        };
        let is_same = self.replaced.kind == replaced.kind && self.asked.as_ref().is_some_and(same);
        self.replaced = replaced;
        if is_same {
            return;
        }
        self.n_requests += 1;
        self.is_stale = true;
        self.takes_first = false;
        self.asked = Some((self.n_requests, wanted.clone()));
        let (cwd, home) = (cx.session.cwd.clone(), cx.home.map(Path::to_owned));
        self.request = Some(FileRequest { id: self.n_requests, cwd, home, wanted });
    }

    /// What is to be found, once.
    pub(super) fn take_request(&mut self) -> Option<FileRequest> {
        self.request.take()
    }

    /// Shows the files that were found. If the user asked for them and there is one, it is
    /// returned and replaces what was typed.
    pub(super) fn on_found(&mut self, found: &FoundFiles) -> Option<Replacement> {
        if self.asked.as_ref().is_none_or(|(id, _)| *id != found.id) {
            return None;
        }
        let replaced = self.replaced.clone();
        // What is complete needs no list.
        let is_complete = found.paths.len() == 1 && found.paths[0] == replaced.text;
        let paths = found.paths.iter().filter(|_| !is_complete);
        self.show_same(paths.map(|path| Suggestion::path(path, &replaced)).collect());
        self.is_stale = false;
        if self.takes_first {
            if found.is_done {
                self.takes_first = false;
                return self.accept();
            }
            return None;
        }
        let is_single = found.is_done && found.paths.len() == 1;
        if std::mem::take(&mut self.takes_only_path) && is_single { self.accept() } else { None }
    }

    fn show(&mut self, replaced: Replaced, suggestions: Vec<Suggestion>) {
        (self.replaced, self.asked, self.request) = (replaced, None, None);
        (self.is_stale, self.is_forced) = (false, false);
        (self.takes_only_path, self.takes_first) = (false, false);
        self.show_same(suggestions);
    }

    fn show_same(&mut self, suggestions: Vec<Suggestion>) {
        if suggestions != self.suggestions {
            self.list.start_over();
            self.is_chosen = false;
        }
        self.suggestions = suggestions;
    }

    pub(super) fn is_open(&self) -> bool {
        !self.suggestions.is_empty()
    }

    pub(super) fn close(&mut self) {
        self.show(Replaced::default(), Vec::new());
    }

    /// Closes the list until `before`, the line up to the cursor, changes.
    pub(super) fn dismiss(&mut self, before: &str) {
        self.close();
        self.dismissed = Some(before.to_owned());
    }

    pub(super) fn select_next(&mut self) {
        self.list.select_next(self.suggestions.len());
        self.is_chosen = true;
    }

    pub(super) fn select_previous(&mut self) {
        self.list.select_previous(self.suggestions.len());
        self.is_chosen = true;
    }

    pub(super) fn turn_page(&mut self, forward: bool) {
        self.list.turn_page(forward, self.suggestions.len());
        self.is_chosen = true;
    }

    /// What Enter would do, by what is completed and how it was selected.
    pub(super) fn planned(&self) -> OnEnter {
        let Some(selected) = self.selected() else { return OnEnter::Submit };
        let Replaced { kind, n_bytes, text: typed, .. } = &self.replaced;
        let is_chosen = self.is_chosen;
        let is_surprising = !is_chosen && commands::is_surprising(selected, typed);
        let is_complete = self.is_complete_path();
        let replacement = Replacement { n_bytes: *n_bytes, with: selected.insertion.text.clone() };
        // A folder, or an option that takes a value, is not all that the command needs.
        let run = |replacement| match selected.insertion.goes_on {
            true => OnEnter::Insert(replacement),
            false => OnEnter::InsertAndSubmit(replacement),
        };
        let continues = begins(&selected.label, typed);
        // What is no name of a new file can only be the beginning of its folder.
        let is_in_folder = selected.insertion.goes_on && ExportFormat::of_file(Path::new(typed)).is_none();
        // Whoever asked for the list wants what is marked there.
        let is_asked_path = match kind {
            Kind::File | Kind::Path | Kind::PathArgument | Kind::NewPathArgument => self.is_forced,
            Kind::Command | Kind::Choice | Kind::Name | Kind::Complete => false,
        };
        match kind {
            _ if is_asked_path => OnEnter::Insert(replacement),
            // Enter again runs it.
            Kind::Command if is_surprising => OnEnter::Insert(replacement),
            Kind::Command => OnEnter::InsertAndSubmit(replacement),
            Kind::Choice if is_chosen || !typed.is_empty() => run(replacement),
            Kind::Complete if is_chosen => run(replacement),
            Kind::Name if is_chosen || continues => run(replacement),
            Kind::PathArgument if is_chosen || continues && !is_complete => run(replacement),
            Kind::File if is_chosen || !is_complete => OnEnter::Insert(replacement),
            Kind::Path | Kind::NewPathArgument if is_chosen => OnEnter::Insert(replacement),
            Kind::NewPathArgument if is_in_folder && continues && !is_complete => {
                OnEnter::Insert(replacement)
            }
            Kind::Choice
            | Kind::Name
            | Kind::Complete
            | Kind::File
            | Kind::Path
            | Kind::PathArgument
            | Kind::NewPathArgument => OnEnter::Submit,
        }
    }

    /// Whether the typed path is a folder or a whole file name, even if others continue it.
    fn is_complete_path(&self) -> bool {
        let typed = &self.replaced.text;
        typed.ends_with('/') || self.suggestions.iter().any(|one| one.label == *typed)
    }

    /// What Enter does; the list closes.
    pub(super) fn on_enter(&mut self) -> OnEnter {
        let planned = self.planned();
        self.accept();
        planned
    }

    /// The selected suggestion; `None` while the list is being brought up to date.
    fn selected(&self) -> Option<&Suggestion> {
        self.suggestions.get(self.list.selected()).filter(|_| !self.is_stale)
    }

    /// The key that accepts: like [`Self::accept`], at once or when the list is up to date.
    pub(super) fn on_tab(&mut self) -> Option<Replacement> {
        self.takes_first = self.is_stale;
        self.accept()
    }

    /// Puts the selected suggestion in place of what was typed. `None` while the list is being
    /// brought up to date.
    pub(super) fn accept(&mut self) -> Option<Replacement> {
        let suggestion = self.selected()?;
        let Insertion { text, goes_on } = suggestion.insertion.clone();
        let n_bytes = self.replaced.n_bytes;
        self.close();
        if !goes_on && !text.ends_with(' ') {
            self.dismissed = Some(text.clone());
        }
        Some(Replacement { n_bytes, with: text })
    }

    /// At most `max_rows` suggestions, and below them which of how many is selected if there are
    /// more.
    pub(super) fn rows(&mut self, columns: u16, max_rows: usize, theme: &Theme) -> Vec<Row> {
        if !self.is_open() {
            return Vec::new();
        }
        let has_help = self.suggestions.iter().any(|one| !one.help.is_empty());
        let widest = self.suggestions.iter().map(|one| width(&one.label)).max().unwrap_or_default();
        // What a command does matters more than all of its arguments.
        let most = MAX_LABEL_CELLS.min(usize::from(columns) * 2 / 5);
        let label_width = if has_help { widest.min(most) } else { usize::from(columns) };
        let suggestions = &self.suggestions;
        let items = Suggestions { suggestions, label_width, has_help, columns, theme };
        let mut rows = self.list.rows(&items, max_rows, (columns, theme));
        if suggestions.len() > max_rows {
            let count = format!("  ({}/{})", self.list.selected() + 1, suggestions.len());
            rows.push(Row::styled(count, theme.style(Colour::Dim)));
        }
        rows.iter_mut().for_each(|row| row.clip(columns));
        rows
    }
}

/// Whether `name` begins with what was typed of it.
fn begins(name: &str, typed: &str) -> bool {
    let (name, typed) = (composed(name), composed(typed));
    !typed.is_empty() && name.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(&typed))
}

/// The suggestions as items of a list.
struct Suggestions<'a> {
    suggestions: &'a [Suggestion],
    label_width: usize,
    has_help: bool,
    columns: u16,
    theme: &'a Theme,
}

impl ListItems for Suggestions<'_> {
    fn len(&self) -> usize {
        self.suggestions.len()
    }

    fn rows(&self, at: usize, is_selected: bool) -> Vec<Row> {
        let Self { label_width, has_help, columns, theme, .. } = *self;
        vec![self.suggestions[at].row(is_selected, label_width, has_help, columns, theme)]
    }
}

impl Replaced {
    fn of(kind: Kind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), n_bytes: text.len(), ..Self::default() }
    }

    fn token(kind: Kind, token: Token<'_>) -> Self {
        Self { quote: token.quote, n_bytes: token.n_bytes, ..Self::of(kind, token.text) }
    }

    /// The path at the cursor.
    fn path(editor: &Composer) -> Self {
        if !editor.begins_with('!') {
            return Self::token(Kind::Path, Token::last(editor.before_cursor()));
        }
        let ShellWord { text, n_bytes, quote } = ShellWord::last(editor.before_cursor());
        Self { kind: Kind::Path, text, n_bytes, quote, in_shell: true }
    }
}

impl Suggestion {
    /// A file or folder. Its name is quoted if it would otherwise end early; a folder leaves the
    /// quote open.
    fn path(path: &str, replaced: &Replaced) -> Self {
        let is_folder = path.ends_with('/');
        if replaced.in_shell {
            let word = word_of(path, replaced.quote);
            // Words without a quote may replace one with it.
            let quote = replaced.quote.filter(|quote| word.starts_with(*quote));
            let end =
                if is_folder { String::new() } else { quote.map(String::from).unwrap_or_default() + " " };
            let insertion = Insertion { text: word + &end, goes_on: is_folder };
            return Self { label: path.to_owned(), help: String::new(), insertion };
        }
        let needs_quote = path.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '['));
        // Of an argument, the rest of the line is the path.
        let is_argument = matches!(replaced.kind, Kind::PathArgument | Kind::NewPathArgument);
        let quote = match replaced.quote {
            Some(quote) => quote.to_string(),
            None if is_argument => String::new(),
            None if !needs_quote => String::new(),
            None => if path.contains('"') { "'" } else { "\"" }.to_owned(),
        };
        let at = if replaced.kind == Kind::File { "@" } else { "" };
        let end = match is_folder {
            true => String::new(),
            false if is_argument => quote.clone(),
            false => format!("{quote} "),
        };
        let insertion = Insertion { text: format!("{at}{quote}{path}{end}"), goes_on: is_folder };
        Self { label: path.to_owned(), help: String::new(), insertion }
    }

    fn row(&self, is_selected: bool, label_width: usize, has_help: bool, columns: u16, theme: &Theme) -> Row {
        let (arrow, style) = if is_selected {
            ("→ ", theme.style(Colour::Accent))
        } else {
            ("  ", theme.style(Colour::Text))
        };
        let label = visible_name(&self.label);
        let total = usize::from(columns);
        if has_help {
            let gap = " ".repeat(label_width.saturating_sub(width(&label)));
            let label = format!("{arrow}{label}{gap}");
            let room = total.saturating_sub(width(&label) + 2);
            let help = if room < MIN_HELP_CELLS { "" } else { &*self.help };
            let help = truncate(&sanitize_line(help), room, Ellipsis::One).into_owned();
            let help = Run::new(format!("  {help}"), theme.style(Colour::Muted));
            Row::from_runs([Run::new(label, style), help])
        } else {
            // The end of a path says more than its middle.
            let label = truncate_middle(&label, total.saturating_sub(2)).into_owned();
            Row::styled(format!("{arrow}{label}"), style)
        }
    }
}

#[cfg(test)]
mod tests;
