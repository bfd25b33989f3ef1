//! What the user said.

use crate::ai::{ContentBlock, UserContent, UserMessage};
use crate::tui::markdown::{self, MarkdownOptions};
use crate::tui::text::{Row, wrap_plain};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{RenderCx, box_inset, boxed};

#[derive(Debug)]
pub(in super::super) struct UserCell {
    text: String,
    /// Media types of the pictures.
    images: Vec<String>,
}

impl UserCell {
    pub(in super::super) fn new(message: &UserMessage) -> Self {
        let images = match &message.content {
            UserContent::Text(_) => Vec::new(),
            UserContent::Blocks(blocks) => images(blocks),
        };
        Self { text: message.content.text(), images }
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let inner = cx.narrower(box_inset(cx.width));
        let mut content = Vec::new();
        if !self.text.trim().is_empty() {
            let options =
                MarkdownOptions { keep_breaks: true, ..cx.markdown(cx.style(Token::UserMessageText)) };
            content = markdown::render(&self.text, inner.width, cx.theme, cx.highlighter, &options);
        }
        for mime in &self.images {
            content.extend(wrap_plain(&tool_view::image_label(mime), inner.width, cx.style(Token::Muted)));
        }
        if content.is_empty() {
            return content;
        }
        boxed(content, cx.width, cx.style(Token::UserMessageBg))
    }
}

fn images(blocks: &[ContentBlock]) -> Vec<String> {
    let mime = |block: &ContentBlock| match block {
        ContentBlock::Image(image) => Some(image.mime_type.clone()),
        ContentBlock::Text(_) | ContentBlock::Unknown(_) => None,
    };
    blocks.iter().filter_map(mime).collect()
}
