//! An image of a message: a picture where the terminal shows them, a line otherwise.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::ai::{ContentBlock, Image, Message, ToolResultMessage, UserContent};
use crate::tui::term::{PictureState, PictureStore};
use crate::tui::text::{PictureId, PictureKey, Row, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::picture_rows;
use crate::util::image;

use super::super::super::pictures::PictureSource;
use super::super::super::tool_view;
use super::super::render::RenderCx;

/// Bytes at both ends of an image that its hash depends on; more would take time.
const HASHED_BYTES: usize = 64 * 1024;

/// The bytes of the image are in memory until the picture is asked for.
#[derive(Debug)]
pub(in super::super) struct Picture {
    label: String,
    /// Width and height in pixels; `None` for an image that is not sent to the terminal.
    pixels: Option<(u32, u32)>,
    id: PictureId,
    source: Option<PictureSource>,
    /// What it waits for, and where that comes.
    awaited: Option<(PictureStore, PictureKey)>,
}

impl Picture {
    /// The images of a tool's result.
    pub(super) fn of_result(result: &Arc<ToolResultMessage>) -> Vec<Self> {
        let source = |index| PictureSource::Result(Arc::clone(result), index);
        Self::of_blocks(&result.content, source)
    }

    /// The images of a prompt.
    pub(super) fn of_prompt(message: &Arc<Message>) -> Vec<Self> {
        match &**message {
            Message::User(user) => match &user.content {
                UserContent::Text(_) => Vec::new(),
                UserContent::Blocks(blocks) => {
                    Self::of_blocks(blocks, |index| PictureSource::Prompt(Arc::clone(message), index))
                }
            },
            Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => Vec::new(),
        }
    }

    fn of_blocks(blocks: &[ContentBlock], source: impl Fn(usize) -> PictureSource) -> Vec<Self> {
        let picture = |(index, block): (usize, &ContentBlock)| {
            let label = tool_view::image_label(block)?;
            let no_picture =
                Self { label, pixels: None, id: PictureId::of_hash(0), source: None, awaited: None };
            let ContentBlock::Image(image) = block else { return Some(no_picture) };
            let Some(probe) = image::probe(&image.data) else { return Some(no_picture) };
            let pixels = (probe.width, probe.height);
            let label = format!("{} {}×{}]", no_picture.label.trim_end_matches(']'), pixels.0, pixels.1);
            Some(Self {
                label,
                pixels: Some(pixels),
                id: PictureId::of_hash(hash(image)),
                source: Some(source(index)),
                awaited: None,
            })
        };
        blocks.iter().enumerate().filter_map(picture).collect()
    }

    /// Releases the bytes: a picture that was never drawn is a line from now on.
    pub(in super::super) fn release(&mut self) {
        self.source = None;
        self.awaited = None;
    }

    /// Whether it was drawn without its picture, which may still come.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Whether drawing it again would show more.
    pub(super) fn has_come(&self) -> bool {
        self.awaited.as_ref().is_some_and(|(store, key)| store.state(key) != PictureState::Awaited)
    }

    pub(super) fn rows(&mut self, cx: &RenderCx<'_>) -> Vec<Row> {
        self.awaited = None;
        let style = cx.style(Token::Muted);
        let (Some(view), Some(pixels)) = (&cx.view.pictures, self.pixels) else {
            self.release();
            return wrap_plain(&self.label, cx.width, style);
        };
        let key = view.key(self.id, pixels, cx.width);
        let source = self.source.take();
        let state = match view.gallery.store.state(&key) {
            PictureState::Unknown { has_image } if has_image || source.is_some() => {
                view.want(key, source.filter(|_| !has_image));
                PictureState::Awaited
            }
            known => known,
        };
        match state {
            PictureState::Unknown { .. } | PictureState::Failed => wrap_plain(&self.label, cx.width, style),
            PictureState::Ready => picture_rows(key, &self.label, style),
            PictureState::Awaited => {
                self.awaited = Some((view.gallery.store.clone(), key));
                picture_rows(key, &self.label, style)
            }
        }
    }
}

fn hash(image: &Image) -> u64 {
    let bytes = image.data.as_bytes();
    let mut hasher = DefaultHasher::new();
    bytes.len().hash(&mut hasher);
    bytes[..bytes.len().min(HASHED_BYTES)].hash(&mut hasher);
    bytes[bytes.len().saturating_sub(HASHED_BYTES)..].hash(&mut hasher);
    hasher.finish()
}
