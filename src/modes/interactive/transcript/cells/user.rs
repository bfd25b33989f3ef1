//! A user message, shown as it was typed. An inserted skill is one row, unless expanded.

use std::sync::Arc;

use crate::ai::{Message, UserMessage};
use crate::session::SkillBlock;
use crate::tui::markdown::{self, DiagramTiming, MarkdownOptions};
use crate::tui::text::{Row, Run, Wrap, keep_tabs, linked_runs, sanitize, sanitize_line, visible_source};
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
        match LongText::of(&self.text).filter(|_| !cx.view.expanded) {
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
struct LongText<'a> {
    head: &'a str,
    n_hidden: usize,
    tail: &'a str,
}

/// A prompt with more lines or bytes is shown in part.
const LONG_LINES: usize = 30;
const LONG_BYTES: usize = 6_000;
/// What is shown of it at both ends: the question often follows what was pasted.
const HEAD_LINES: usize = 10;
const TAIL_LINES: usize = 4;
const HEAD_BYTES: usize = 1_200;
const TAIL_BYTES: usize = 400;

impl<'a> LongText<'a> {
    /// `None` if the whole text is shown.
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_end();
        let n_lines = text.lines().count();
        if n_lines <= LONG_LINES && text.len() <= LONG_BYTES {
            return None;
        }
        let line_starts = || text.match_indices('\n').map(|(at, _)| at + 1);
        let head_end = line_starts().nth(HEAD_LINES - 1).unwrap_or(text.len()).min(HEAD_BYTES);
        let tail_start =
            line_starts().rev().nth(TAIL_LINES - 1).unwrap_or(0).max(text.len().saturating_sub(TAIL_BYTES));
        let head = &text[..text.floor_char_boundary(head_end)];
        let tail = &text[text.ceil_char_boundary(tail_start)..];
        let hidden = text.get(head.len()..text.len() - tail.len())?;
        let n_hidden = hidden.trim_matches('\n').lines().count();
        Some(Self { head: head.trim_end(), n_hidden, tail })
    }

    fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let mut rows = typed(self.head, cx);
        rows.push(tool_view::hint(self.n_hidden, "more", cx));
        rows.extend(typed(self.tail, cx));
        rows
    }
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
