//! The inputs of drawing a cell, other than the cell itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ratatui::style::{Modifier, Style};

use crate::config::{self, LayoutSettings};
use crate::tui::keymap::Keymap;
use crate::tui::markdown::{DiagramTiming, Highlighter, MarkdownOptions};
use crate::tui::text::{LinkTarget, Row, Run, sanitize_line, truncate_middle, visible_name};
use crate::tui::theme::{Theme, Token};
use crate::util::paths;

use super::super::pictures::PictureView;

/// How the transcript is shown; the same for all cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewSettings {
    /// Whether tool output, summaries and long errors are shown completely.
    pub(crate) expanded: bool,
    /// Most rows of the output of a running call: they cannot move to the scrollback. `None` for all.
    pub(crate) live_rows: Option<usize>,
    /// Whether thinking is replaced by a single line.
    pub(crate) hide_thinking: bool,
    /// Whether the terminal shows links.
    pub(crate) links: bool,
    /// How images are shown; `None` if they are lines of text.
    pub(crate) pictures: Option<PictureView>,
    /// Blank columns left and right of answers, at most.
    pub(crate) output_padding: u16,
    /// In front of each line of code.
    pub(crate) code_indent: String,
    /// When Mermaid diagrams are drawn.
    pub(crate) mermaid: DiagramTiming,
    /// The key that expands, as shown in hints; empty if there is none.
    pub(crate) expand_key: String,
    /// What opens the pager, as shown in hints.
    pub(crate) page_key: String,
    /// Paths are shown relative to this directory, or with `~` for `home`.
    pub(crate) cwd: PathBuf,
    pub(crate) home: Option<PathBuf>,
}

impl ViewSettings {
    /// With what the user's settings say about the layout.
    pub(crate) fn laid_out(self, settings: &LayoutSettings) -> Self {
        let code_indent = sanitize_line(&settings.code_indent).into_owned();
        let mermaid = match settings.mermaid {
            config::DiagramTiming::Never => DiagramTiming::Never,
            config::DiagramTiming::WhenAnswerEnds => DiagramTiming::WhenAnswerEnds,
            config::DiagramTiming::WhenFenceCloses => DiagramTiming::WhenFenceCloses,
        };
        Self { output_padding: settings.output_padding, code_indent, mermaid, ..self }
    }

    /// With everything open that is closed, and the other way round.
    pub(super) fn toggled(&self) -> Self {
        Self { expanded: !self.expanded, hide_thinking: !self.hide_thinking, ..self.clone() }
    }

    /// With the keys of the user in hints.
    pub(crate) fn with_keys(self, keymap: &Keymap) -> Self {
        let page_key = match keymap.hint("app.transcript.page") {
            key if key.is_empty() => "/transcript".to_owned(),
            key => key,
        };
        Self { expand_key: keymap.hint("app.tools.expand"), page_key, ..self }
    }

    /// Collapsed, with thinking and without links.
    pub(crate) fn new(expand_key: String, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        const LIVE_ROWS: usize = 10;
        let page_key = "/transcript".to_owned();
        Self {
            expanded: false,
            live_rows: Some(LIVE_ROWS),
            hide_thinking: false,
            links: false,
            pictures: None,
            output_padding: 1,
            code_indent: MarkdownOptions::default().code_indent,
            mermaid: DiagramTiming::default(),
            expand_key,
            page_key,
            cwd,
            home,
        }
    }
}

/// Longer paths are shortened in the middle, in cells.
const MAX_PATH_CELLS: usize = 300;

/// Passed to everything that draws; cheap to copy.
#[derive(Clone, Copy)]
pub(crate) struct RenderCx<'a> {
    /// Cells a row may take, at least 1.
    pub(crate) width: u16,
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    pub(crate) view: &'a ViewSettings,
    /// Monotonic time of this frame.
    pub(crate) now: Duration,
}

impl<'a> RenderCx<'a> {
    /// Blank columns left and right of an answer.
    pub(crate) fn answer_side(&self) -> u16 {
        side(self.width).min(self.view.output_padding)
    }

    pub(crate) fn style(&self, token: Token) -> Style {
        self.theme.style(token)
    }

    pub(crate) fn bold(&self, token: Token) -> Style {
        self.theme.style(token).add_modifier(Modifier::BOLD)
    }

    /// The same context with `cells` fewer cells per row.
    pub(crate) fn narrower(self, cells: u16) -> Self {
        Self { width: self.width.saturating_sub(cells).max(1), ..self }
    }

    pub(crate) fn markdown(&self, base: Style) -> MarkdownOptions {
        let code_indent = self.view.code_indent.clone();
        let (links, mermaid) = (self.view.links, self.view.mermaid);
        MarkdownOptions { base, links, code_indent, mermaid }
    }

    /// A path of a model or a user, shown relative to the session's
    /// directory or to the home directory, as a link if the terminal supports it.
    pub(crate) fn path(&self, path: &str, style: Style) -> Run {
        let (cwd, home): (&Path, Option<&Path>) = (&self.view.cwd, self.view.home.as_deref());
        let path = path.strip_prefix('@').unwrap_or(path);
        let whole = paths::normalise(&cwd.join(paths::expand_home(path, home)));
        let relative = paths::relative(&whole, cwd);
        let shown = if relative.is_absolute() {
            paths::display(&relative, home)
        } else {
            relative.display().to_string()
        };
        let is_plain = |path: &&str| !path.contains('%') && visible_name(path) == *path;
        let shown = truncate_middle(&visible_name(&shown), MAX_PATH_CELLS).into_owned();
        let url = whole.to_str().filter(|path| self.view.links && path.starts_with('/')).filter(is_plain);
        match url.and_then(|path| LinkTarget::new(&format!("file://{path}"))) {
            Some(link) => Run::linked(shown, style, link),
            None => Run::new(shown, style),
        }
    }
}

/// Padding beside the text of cells and boxes; 0 if there is no room.
pub(super) fn side(width: u16) -> u16 {
    const LEAST: u16 = 8;
    u16::from(width >= LEAST)
}

/// What tells the content of a box from other text where the theme has no background for it: its
/// first row begins with a mark.
#[derive(Debug, Clone, Copy)]
pub(super) enum BoxMark {
    Prompt,
    Tool,
    /// The content begins with a label.
    Labelled,
}

impl BoxMark {
    fn glyph(self) -> &'static str {
        match self {
            Self::Prompt => "›",
            Self::Tool => "•",
            Self::Labelled => " ",
        }
    }
}

/// Draws rows in a box of `width`, with a blank row above and
/// below. If the theme has no such background, a mark is in place of the blank rows.
pub(super) fn boxed(content: Vec<Row>, width: u16, background: Style, mark: BoxMark) -> Vec<Row> {
    let edge = || {
        let mut row = Row::default();
        row.pad(width, background);
        background.bg.map(|_| row.as_frame())
    };
    let blanks = " ".repeat(usize::from(left_padding(width, background)));
    let mut rows = Vec::with_capacity(content.len() + 2);
    rows.extend(edge());
    for (row_idx, mut row) in content.into_iter().enumerate() {
        let is_marked = row_idx == 0 && blanks.len() > 1;
        row.underlay(background);
        row.indent(if is_marked { format!("{} ", mark.glyph()) } else { blanks.clone() }, background);
        row.pad(width, background);
        rows.push(row);
    }
    rows.extend(edge());
    rows
}

/// One cell more than at the right where a mark is needed.
fn left_padding(width: u16, background: Style) -> u16 {
    side(width) * if background.bg.is_some() { 1 } else { 2 }
}

/// Cells beside the text within [`boxed`].
pub(super) fn box_inset(width: u16, background: Style) -> u16 {
    left_padding(width, background) + side(width)
}

/// Moves rows away from the left edge.
pub(super) fn indented(mut row: Row, width: u16) -> Row {
    row.indent(" ".repeat(usize::from(side(width))), Style::new());
    row
}
