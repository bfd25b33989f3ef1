//! A user message, shown as it was typed. An inserted skill is one row, unless expanded.

use std::sync::Arc;

use crate::ai::{Message, UserMessage};
use crate::session::SkillBlock;
use crate::tui::markdown::{self, DiagramTiming, MarkdownOptions};
use crate::tui::text::{
    Row, Run, Wrap, copied_text, keep_tabs, linked_runs, sanitize, sanitize_line, visible_source,
};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{BoxMark, RenderCx, box_inset, boxed};
use super::picture::Picture;

#[derive(Debug)]
pub(in super::super) struct UserCell {
    skill: Option<Skill>,
    text: String,
    pub(super) pictures: Vec<Picture>,
}

#[derive(Debug)]
struct Skill {
    name: String,
    body: String,
}

impl UserCell {
    pub(in super::super) fn new(user: &UserMessage, message: &Arc<Message>) -> Self {
        let pictures = Picture::of_prompt(message);
        // A person judges it before it is sent again, and others wrote what was pasted.
        let text = visible_source(&user.content.text()).into_owned();
        match SkillBlock::parse(&text) {
            Some(block) => {
                let skill = Skill { name: block.name, body: block.body.to_owned() };
                Self { skill: Some(skill), text: block.args.to_owned(), pictures }
            }
            None => Self { skill: None, text, pictures },
        }
    }

    /// Passes on the text and that of the skill.
    pub(super) fn each_text(&self, each: &mut dyn FnMut(&str)) {
        each(&self.text);
        if let Some(skill) = &self.skill {
            each(&skill.body);
        }
    }

    pub(super) fn rows(&mut self, cx: &RenderCx<'_>) -> Vec<Row> {
        let background = cx.style(Token::UserMessageBg);
        let inner = cx.narrower(box_inset(cx.width, background));
        let mut content = self.skill.as_ref().map(|skill| skill.title(&inner)).unwrap_or_default();
        if let Some(skill) = self.skill.as_ref().filter(|_| cx.view.expanded) {
            content.push(Row::default());
            content.extend(skill.body(&inner));
            content.push(Row::default());
        }
        let long = if cx.view.expanded { None } else { LongText::of(&self.text, &inner) };
        match long {
            Some(long) => content.extend(long.rows(&inner)),
            None if self.text.trim().is_empty() => {}
            None => content.extend(typed(&self.text, &inner)),
        }
        content.extend(self.pictures.iter_mut().flat_map(|picture| picture.rows(&inner)));
        if content.is_empty() {
            return content;
        }
        boxed(content, cx.width, background, BoxMark::Prompt)
    }
}

/// The lines of a prompt, wrapped, with links.
fn typed(text: &str, cx: &RenderCx<'_>) -> Vec<Row> {
    let style = cx.style(Token::UserMessageText);
    let link_style = style.patch(cx.style(Token::MdLink));
    let mut rows = Vec::new();
    for line in text.trim_end().split('\n') {
        let shown = sanitize(line);
        let runs = match cx.view.links {
            true => linked_runs(&shown, style, link_style),
            false => vec![Run::new(shown, style)],
        };
        let mut line_rows = Wrap::new(cx.width).runs(&runs);
        keep_tabs(&mut line_rows, line);
        rows.extend(line_rows);
    }
    rows
}

/// A prompt of which only both ends are shown, because the user pasted most of it.
struct LongText {
    head: Vec<Row>,
    hidden: Hidden,
    tail: Vec<Row>,
}

enum Hidden {
    Lines(usize),
    Characters(usize),
}

/// A prompt with more rows is shown in part.
const LONG_ROWS: usize = 30;
/// What is shown of it at both ends: the question often follows what was pasted.
const HEAD_ROWS: usize = 10;
const TAIL_ROWS: usize = 4;
/// Hidden lines that are longer, in bytes, on average, are counted in characters: there may be just one.
const LONG_LINE_BYTES: usize = 200;

impl LongText {
    /// `None` if the whole text is shown. Wraps only as much of it as that takes.
    fn of(text: &str, cx: &RenderCx<'_>) -> Option<Self> {
        let text = text.trim_end();
        let beginning = &text[..text.floor_char_boundary(bytes_of(LONG_ROWS + 1, cx.width))];
        let mut head = typed(beginning, cx);
        if beginning.len() == text.len() && head.len() <= LONG_ROWS {
            return None;
        }
        head.truncate(HEAD_ROWS);
        // Where a line is cut off, its first row begins within a word and is not shown.
        let end = text.len().saturating_sub(bytes_of(TAIL_ROWS + 1, cx.width));
        let mut tail = typed(&text[text.ceil_char_boundary(end)..], cx);
        tail.drain(..tail.len().saturating_sub(TAIL_ROWS));
        let n_bytes = |rows: &[Row]| copied_text(rows.iter().map(|row| (row, 0..u16::MAX))).len();
        let from = text.floor_char_boundary(n_bytes(&head));
        let to = text.floor_char_boundary(text.len().saturating_sub(n_bytes(&tail)));
        let between = text.get(from..to).unwrap_or_default().trim_matches('\n');
        let n_lines = between.lines().count();
        let hidden = match between.len() > n_lines * LONG_LINE_BYTES {
            true => Hidden::Characters(between.chars().count()),
            false => Hidden::Lines(n_lines),
        };
        Some(Self { head, hidden, tail })
    }

    fn rows(self, cx: &RenderCx<'_>) -> Vec<Row> {
        let mut rows = self.head;
        rows.push(match self.hidden {
            Hidden::Lines(n_lines) => tool_view::hint(n_lines, "more", cx),
            Hidden::Characters(n_chars) => tool_view::characters_hint(n_chars, cx),
        });
        rows.extend(self.tail);
        rows
    }
}

/// At least as many bytes as these rows have, unless many characters take no cell.
fn bytes_of(n_rows: usize, width: u16) -> usize {
    const MAX_BYTES_PER_CELL: usize = 4;
    n_rows * usize::from(width) * MAX_BYTES_PER_CELL
}

impl Skill {
    fn title(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let mut title = vec![
            Run::new("[skill]", cx.bold(Token::CustomMessageLabel)),
            Run::new(format!(" {}", sanitize_line(&self.name)), cx.style(Token::UserMessageText)),
        ];
        if !cx.view.expanded && !cx.view.expand_key.is_empty() {
            title.push(Run::new(format!(" ({} to expand)", cx.view.expand_key), cx.style(Token::Muted)));
        }
        Wrap::new(cx.width).runs(&title)
    }

    /// Its text for the model, which is Markdown.
    fn body(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let options = cx.markdown(cx.style(Token::UserMessageText));
        let options = MarkdownOptions { mermaid: DiagramTiming::Never, ..options };
        markdown::render(&self.body, cx.width, cx.theme, cx.highlighter, &options)
    }
}
