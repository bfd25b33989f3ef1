//! Draws the lines of a diff.
//!
//! Sign and number have the colour of added or removed lines, the text has the colours of its
//! language. Where the theme has the colours for it, changed lines are on a tint of their colour and
//! changed words on a stronger one; elsewhere changed words are reversed. The signs and the weight
//! of changed words say the same without colours.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use ratatui::style::{Modifier, Style};

use crate::util::visible::Replaced;

use super::super::super::markdown::{CodeLines, Highlighter};
use super::super::super::text::{Row, Run, Wrap, keep_replaced};
use super::super::super::theme::{Theme, Tint, TintStrength, Token};
use super::marks::{Change, Marks};
use super::{DiffKind, DiffLine};

/// The rows of a diff, line by line. Of lines that are not asked for, only those are compared whose similarity
/// decides about the marks of lines that are drawn: those of a small change, and those around in a large one.
#[derive(Debug)]
pub struct DiffRows<'a> {
    lines: &'a [DiffLine],
    next: usize,
    /// The change that the line before `next` belongs to, and its first line.
    change: Option<(usize, Change<'a>)>,
    /// Pairs of lines that were compared in changes before that.
    n_compared: usize,
    code: Sides,
    width: u16,
    theme: &'a Theme,
    added: Palette,
    removed: Palette,
}

impl<'a> DiffRows<'a> {
    /// `lang` is a language name or a file extension.
    pub fn new(
        lines: &'a [DiffLine],
        lang: &str,
        width: u16,
        highlighter: &Highlighter,
        theme: &'a Theme,
    ) -> Self {
        Self {
            lines,
            next: 0,
            change: None,
            n_compared: 0,
            code: Sides::new(highlighter.lines(lang)),
            width,
            theme,
            added: Palette::new(Token::ToolDiffAdded, theme),
            removed: Palette::new(Token::ToolDiffRemoved, theme),
        }
    }

    /// Lines that were not drawn.
    pub fn n_left(&self) -> usize {
        self.lines.len() - self.next
    }

    /// Lines highlighted so far, as a measure of work.
    pub fn n_highlighted(&self) -> usize {
        self.code.n_highlighted
    }

    /// Pairs of lines that were compared so far to find changed words, as a measure of work.
    pub fn n_compared(&self) -> usize {
        self.n_compared + self.change.as_ref().map_or(0, |(_, change)| change.n_compared())
    }

    fn marks_of_next(&mut self) -> Marks {
        let next = self.next;
        let known = self.change.take_if(|(first, change)| next < *first + change.len());
        let (first, mut change) = known.unwrap_or_else(|| {
            self.n_compared = self.n_compared();
            (next, self.change_at(next))
        });
        let marks = change.take(next - first);
        self.change = Some((first, change));
        marks
    }

    /// The change that begins with this line.
    fn change_at(&self, first: usize) -> Change<'a> {
        let rest = &self.lines[first..];
        let of = |lines: &'a [DiffLine], kind| -> Vec<&'a str> {
            lines.iter().take_while(|line| line.kind == kind).map(DiffLine::compared).collect()
        };
        let removed = of(rest, DiffKind::Removed);
        let added = of(&rest[removed.len()..], DiffKind::Added);
        Change::new(removed, added)
    }

    fn draw(
        &self,
        line: &DiffLine,
        tokens: Option<&[(usize, Option<Token>)]>,
        marks: &[Range<usize>],
    ) -> Vec<Row> {
        let palette = match line.kind {
            DiffKind::Added => Some(&self.added),
            DiffKind::Removed => Some(&self.removed),
            DiffKind::Context | DiffKind::Gap => None,
        };
        let style = |token: Option<Token>, is_marked: bool| match palette {
            Some(palette) => palette.style(token, is_marked, self.theme),
            None => self.theme.style(token.unwrap_or(Token::ToolDiffContext)),
        };
        let is_spelt_out = |one: &&Replaced| one.source != '\t';
        let spelt_out: Vec<_> =
            line.replaced.iter().filter(is_spelt_out).map(|one| one.range.clone()).collect();
        let has_language = tokens.is_some();
        let plain = [(line.text.len(), None)];
        let of_text = |token: Option<Token>, place: Range<usize>| {
            let token = if covers(&spelt_out, &place) { Some(Token::Warning) } else { token };
            let code = has_language && palette.is_some_and(Palette::is_tinted);
            style(token.or(code.then_some(Token::Text)), covers(marks, &place))
        };
        let mut runs: Vec<Run> = Vec::new();
        let mut start = 0;
        for &(end, token) in tokens.unwrap_or(&plain) {
            for place in pieces(start..end, [marks, &spelt_out]) {
                let text = line.text.get(place.clone()).unwrap_or_default();
                runs.push(Run::new(text, of_text(token, place)));
            }
            start = end;
        }
        let sign = match line.kind {
            DiffKind::Added => '+',
            DiffKind::Removed => '-',
            DiffKind::Context | DiffKind::Gap => ' ',
        };
        let blank = if line.number.is_empty() { "" } else { " " };
        let lead = format!("{sign}{}{blank}", line.number);
        let (indent, around) = (" ".repeat(lead.len()), style(None, false));
        let mut rows = Wrap::new(self.width).first(lead, around).rest(indent, around).runs(&runs);
        keep_replaced(&mut rows, &line.replaced);
        if let Some(tint) = palette.and_then(|palette| palette.tints.as_ref()) {
            rows.iter_mut().for_each(|row| row.pad(self.width, tint.line.style()));
        }
        rows
    }
}

impl Iterator for DiffRows<'_> {
    type Item = Vec<Row>;

    fn next(&mut self) -> Option<Vec<Row>> {
        let line = self.lines.get(self.next)?;
        let marks = match line.kind {
            DiffKind::Added | DiffKind::Removed => self.marks_of_next().unwrap_or_default(),
            DiffKind::Context | DiffKind::Gap => Vec::new(),
        };
        self.next += 1;
        let tokens = self.code.tokens(line);
        Some(self.draw(line, tokens.as_deref(), &marks))
    }
}

/// Whether one of the ranges, which ascend, has all of the place.
fn covers(ranges: &[Range<usize>], place: &Range<usize>) -> bool {
    let at = ranges.partition_point(|range| range.end < place.end);
    ranges.get(at).is_some_and(|range| range.start <= place.start && place.end <= range.end)
}

/// A range cut where one of the others begins or ends.
fn pieces(range: Range<usize>, others: [&[Range<usize>]; 2]) -> Vec<Range<usize>> {
    let within = |others: &[Range<usize>]| {
        let first = others.partition_point(|other| other.end <= range.start);
        let others: Vec<_> =
            others[first..].iter().take_while(|other| other.start < range.end).cloned().collect();
        others.into_iter().flat_map(|other| [other.start, other.end])
    };
    let mut cuts: Vec<usize> = others.into_iter().flat_map(within).collect();
    cuts.retain(|cut| range.contains(cut));
    cuts.push(range.end);
    cuts.sort_unstable();
    let mut start = range.start;
    let ends = cuts.into_iter().filter_map(|end| {
        let piece = start..end;
        start = end;
        (piece.start < piece.end).then_some(piece)
    });
    ends.collect()
}

/// The colours of added or of removed lines.
#[derive(Debug)]
struct Palette {
    token: Token,
    tints: Option<Tints>,
    /// On the tints, by token and whether the text is marked: among few colours, readable ones are searched for.
    styles: RefCell<HashMap<(Token, bool), Style>>,
}

#[derive(Debug)]
struct Tints {
    line: Tint,
    word: Tint,
}

impl Palette {
    fn new(token: Token, theme: &Theme) -> Self {
        let tint = |strength| theme.tint(token, strength);
        let tints = || Some(Tints { line: tint(TintStrength::Line)?, word: tint(TintStrength::Word)? });
        Self { token, tints: tints(), styles: RefCell::default() }
    }

    fn is_tinted(&self) -> bool {
        self.tints.is_some()
    }

    fn style(&self, token: Option<Token>, is_marked: bool, theme: &Theme) -> Style {
        let shown = token.unwrap_or(self.token);
        let on_tint = |tint: Tint, weight: Modifier| {
            let mut styles = self.styles.borrow_mut();
            let style = styles.entry((shown, is_marked));
            *style.or_insert_with(|| tint.text(shown, theme).add_modifier(weight))
        };
        match (&self.tints, is_marked) {
            (Some(tints), false) => on_tint(tints.line, Modifier::empty()),
            (Some(tints), true) => on_tint(tints.word, Modifier::BOLD),
            (None, false) => theme.style(shown),
            // Words in many colours would be blocks in many colours.
            (None, true) => theme.style(self.token).add_modifier(Modifier::REVERSED),
        }
    }
}

/// Highlights both sides of a diff, each as if the other were not there. What precedes a hunk is
/// unknown, so each one begins anew.
#[derive(Debug)]
struct Sides {
    new: CodeLines,
    /// `None` while both sides have been the same.
    old: Option<CodeLines>,
    n_highlighted: usize,
}

impl Sides {
    fn new(code: CodeLines) -> Self {
        Self { new: code, old: None, n_highlighted: 0 }
    }

    /// Where each token ends; `None` if the line is plain.
    fn tokens(&mut self, line: &DiffLine) -> Option<Vec<(usize, Option<Token>)>> {
        let text = line.text.as_str();
        match line.kind {
            DiffKind::Added => {
                self.old.get_or_insert_with(|| self.new.clone());
                counted(&mut self.new, text, &mut self.n_highlighted)
            }
            DiffKind::Removed => {
                let old = self.old.get_or_insert_with(|| self.new.clone());
                counted(old, text, &mut self.n_highlighted)
            }
            DiffKind::Context => {
                let tokens = counted(&mut self.new, text, &mut self.n_highlighted);
                if let Some(old) = &mut self.old {
                    counted(old, text, &mut self.n_highlighted);
                    if self.new.goes_on_like(old) {
                        self.old = None;
                    }
                }
                tokens
            }
            DiffKind::Gap => {
                self.new.start_over();
                self.old = None;
                None
            }
        }
    }
}

fn counted(
    code: &mut CodeLines,
    line: &str,
    n_highlighted: &mut usize,
) -> Option<Vec<(usize, Option<Token>)>> {
    let tokens = code.next_tokens(line);
    *n_highlighted += usize::from(tokens.is_some());
    tokens
}

#[cfg(test)]
mod tests;
