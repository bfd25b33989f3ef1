//! Diagrams in place of the code blocks that describe them.
//!
//! A diagram is drawn once the fence that ends its source has arrived, and copied as
//! its source. Where there is no drawing, the caller shows the source as code.

use std::collections::HashMap;

use ratatui::style::Style;

use crate::util::counted;

use super::super::text::{Row, Run, copied_together, without_controls};
use super::super::theme::{Theme, Token};
use super::mermaid::{self, Ink, Undrawn};
use super::render::MarkdownOptions;

/// When Mermaid diagrams are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiagramTiming {
    /// Their source is shown.
    Never,
    /// As soon as the answer is complete.
    WhenAnswerEnds,
    /// As soon as the diagram is complete.
    #[default]
    WhenFenceCloses,
}

#[derive(Debug, Clone)]
pub(super) enum Diagram {
    Drawn(Vec<Row>),
    /// There is no drawing. A line may follow the source that says why.
    Source(Option<Row>),
}

/// The diagrams of a frame. A block that still arrives is rendered again with every frame; its
/// diagrams are laid out once. All have the same theme and options.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    /// By source and width.
    last_frame: HashMap<(String, u16), Diagram>,
    this_frame: HashMap<(String, u16), Diagram>,
    n_laid_out: u64,
}

impl Drawings {
    pub(super) fn draw(
        &mut self,
        source: &str,
        room: u16,
        theme: &Theme,
        options: &MarkdownOptions,
    ) -> Diagram {
        let key = (source.to_owned(), room);
        let known = self.this_frame.get(&key).cloned().or_else(|| self.last_frame.remove(&key));
        let diagram = known.unwrap_or_else(|| {
            self.n_laid_out += 1;
            draw(source, room, theme, options)
        });
        self.this_frame.insert(key, diagram.clone());
        diagram
    }

    /// Forgets the diagrams that this frame did not show. Returns the number of those that were
    /// laid out for it.
    pub(super) fn end_frame(&mut self) -> u64 {
        self.last_frame = std::mem::take(&mut self.this_frame);
        std::mem::take(&mut self.n_laid_out)
    }
}

/// Whether code in this language is a diagram that is drawn sooner or later.
pub(super) fn is_drawn(lang: &str, options: &MarkdownOptions) -> bool {
    options.mermaid != DiagramTiming::Never && lang.eq_ignore_ascii_case("mermaid")
}

/// Whether a source, or the beginning of one, is not drawn because of its size.
pub(super) fn is_too_large(source: &str) -> bool {
    mermaid::is_too_large(source)
}

fn draw(source: &str, room: u16, theme: &Theme, options: &MarkdownOptions) -> Diagram {
    let rows = match mermaid::draw(source, room) {
        Ok(rows) => rows,
        Err(reason) => return Diagram::Source(hint(reason, room, theme)),
    };
    // They say what leads where, so they are not as pale as frames.
    let line = theme.style(Token::Dim);
    let style = |ink: Ink| match ink {
        Ink::Line => line,
        Ink::Text => options.base,
        Ink::Label => options.base.patch(theme.style(Token::MdCodeBlock)),
    };
    let run = |(ink, text): (Ink, String)| {
        let style = if text.trim().is_empty() { Style::new() } else { style(ink) };
        Run::new(text, style)
    };
    let source = copied(source);
    let rows = rows.into_iter().map(|pieces| Row::from_runs(pieces.into_iter().map(run)));
    Diagram::Drawn(copied_together(rows.collect(), &source))
}

/// Only what can be changed is worth a line.
fn hint(reason: Undrawn, room: u16, theme: &Theme) -> Option<Row> {
    let texts = match reason {
        // The text around a diagram may have margins, so a width would not be that of the terminal.
        Undrawn::TooWide(excess) => [
            format!("diagram is {} too wide", counted(excess as u64, "column")),
            format!("{} too wide", counted(excess as u64, "column")),
            format!("{excess} too wide"),
        ],
        Undrawn::Kind | Undrawn::Syntax | Undrawn::TooLarge => return None,
    };
    let rows = texts.into_iter().map(|text| Row::styled(text, theme.style(Token::Dim)).as_frame());
    rows.into_iter().find(|row| row.width() <= usize::from(room))
}

/// The source as a code block, without control characters except tabs. The fence is longer than all
/// backticks in the source.
fn copied(source: &str) -> String {
    let source = without_controls(source);
    let longest = source.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}mermaid\n{source}{fence}")
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    #[test]
    fn lines_of_a_diagram_are_as_readable_as_hints() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let options = MarkdownOptions::default();
        let Diagram::Drawn(rows) = draw("flowchart LR\nA --> B\n", 40, &theme, &options) else {
            panic!("not drawn");
        };
        let spans: Vec<_> = rows.iter().flat_map(|row| row.line.spans.iter()).collect();
        for (text, token) in [("─►", Some(Token::Dim)), ("A", None)] {
            let found = spans.iter().find(|span| span.content.contains(text));
            let expected = token.and_then(|token| theme.color(token));
            assert_eq!(found.map(|span| span.style.fg), Some(expected), "{text}");
        }
    }
}
