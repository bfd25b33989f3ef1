//! Renders Markdown as rows: complete texts, and texts that are still arriving.
//!
//! A text is rendered by top-level block and by item of top-level lists, each parsed
//! separately, so that a streamed text settles part by part and looks the same as one
//! rendered at once. For the same reason a label alone in brackets refers only to definitions above it and those of
//! its own part; one that comes later is shown. From the first link as `[text][label]` or `[label][]` on that has
//! no definition above it, 16 KiB do not settle before the end, and all definitions in them count. Callers choose the text
//! and its box.

mod blocks;
mod code;
mod copy;
mod diagram;
mod formulas;
mod highlight;
mod math;
mod mermaid;
mod parts;
mod render;
mod stream;
mod table;

pub use copy::{CopyRow, copied_markdown};
pub use diagram::DiagramTiming;
pub use highlight::{CodeLines, Highlighter};
pub use render::MarkdownOptions;
pub use stream::MarkdownStream;

use super::text::Row;
use super::theme::Theme;

/// Renders a complete text, with at least one row.
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
