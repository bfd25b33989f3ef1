//! Markdown as rows: whole texts, and texts that are still arriving.
//!
//! A text is rendered top-level block by top-level block, each parsed alone, so
//! that a streamed text settles block by block and comes out the same as one
//! rendered at once. For the same reason a link reference sees only definitions
//! above it. Which text to render, and in which box, is the caller's business.

mod blocks;
mod code;
mod highlight;
mod render;
mod stream;
mod table;

pub use highlight::{CodeLines, Highlighter};
pub use render::MarkdownOptions;
pub use stream::MarkdownStream;

use super::text::Row;
use super::theme::Theme;

/// Renders a whole text. At least no row for an empty one.
pub fn render(
    text: &str,
    width: u16,
    theme: &Theme,
    highlighter: &Highlighter,
    options: &MarkdownOptions,
) -> Vec<Row> {
    let mut stream = MarkdownStream::new(options.clone());
    stream.push(text);
    stream.finish();
    stream.rows(width, theme, highlighter).to_vec()
}
