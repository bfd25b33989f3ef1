//! A user message. An inserted skill is one row, unless expanded.

use crate::ai::{UserContent, UserMessage};
use crate::session::SkillBlock;
use crate::tui::markdown::{self, MarkdownOptions};
use crate::tui::text::{Row, Run, Wrap, sanitize_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{RenderCx, box_inset, boxed};

#[derive(Debug)]
pub(in super::super) struct UserCell {
    skill: Option<Skill>,
    text: String,
    /// Texts that replace the images.
    images: Vec<String>,
}

#[derive(Debug)]
struct Skill {
    name: String,
    body: String,
}

impl UserCell {
    pub(in super::super) fn new(message: &UserMessage) -> Self {
        let images = match &message.content {
            UserContent::Text(_) => Vec::new(),
            UserContent::Blocks(blocks) => blocks.iter().filter_map(tool_view::image_label).collect(),
        };
        let text = message.content.text();
        match SkillBlock::parse(&text) {
            Some(block) => {
                let skill = Skill { name: block.name, body: block.body.to_owned() };
                Self { skill: Some(skill), text: block.args.to_owned(), images }
            }
            None => Self { skill: None, text, images },
        }
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let inner = cx.narrower(box_inset(cx.width));
        let options = MarkdownOptions { keep_breaks: true, ..cx.markdown(cx.style(Token::UserMessageText)) };
        let render = |text: &str| markdown::render(text, inner.width, cx.theme, cx.highlighter, &options);
        let mut content = self.skill.as_ref().map(|skill| skill.title(&inner)).unwrap_or_default();
        if let Some(skill) = self.skill.as_ref().filter(|_| cx.view.expanded) {
            content.push(Row::default());
            content.extend(render(&skill.body));
            content.push(Row::default());
        }
        if !self.text.trim().is_empty() {
            content.extend(render(&self.text));
        }
        for label in &self.images {
            content.extend(wrap_plain(label, inner.width, cx.style(Token::Muted)));
        }
        if content.is_empty() {
            return content;
        }
        boxed(content, cx.width, cx.style(Token::UserMessageBg))
    }
}

impl Skill {
    fn title(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let mut title = vec![
            Run::new("[skill]", cx.bold(Token::CustomMessageLabel)),
            Run::new(format!(" {}", sanitize_line(&self.name)), cx.style(Token::UserMessageText)),
        ];
        if !cx.view.expanded {
            title.push(Run::new(format!(" ({} to expand)", cx.view.expand_key), cx.style(Token::Muted)));
        }
        Wrap::new(cx.width).runs(&title)
    }
}
