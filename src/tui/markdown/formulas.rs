//! Finds the formulas in Markdown before it is parsed.
//!
//! Code spans bind tighter than dollars, so the text is parsed once without formulas to find the code; a formula is
//! only where none is. Each is replaced by a placeholder, which the parser returns as text: nothing in a formula has a
//! meaning in Markdown. Delimiters around other text stay, and its Markdown works.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};

use super::math;

/// A noncharacter around the number of a formula. The dollars around that are what the parser sees beside other text;
/// the space keeps the placeholder from being the address of a link.
const MARK: char = '\u{fdd1}';

/// A text with placeholders for its formulas.
#[derive(Debug)]
pub(super) struct Formulas<'a> {
    pub(super) text: Cow<'a, str>,
    found: Vec<Formula>,
}

#[derive(Debug)]
pub(super) struct Formula {
    /// With its delimiters.
    written: String,
    pub(super) shown: String,
    /// Whether it is on lines of its own.
    pub(super) is_display: bool,
}

/// A part of the text that the parser returned.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Formula(&'a Formula),
}

impl<'a> Formulas<'a> {
    /// `options` are those the text is parsed with.
    pub(super) fn new(text: &'a str, options: pulldown_cmark::Options) -> Self {
        let mut formulas = Self { text: Cow::Borrowed(text), found: Vec::new() };
        if !["$", r"\(", r"\["].iter().any(|delimiter| text.contains(delimiter)) {
            return formulas;
        }
        let mut replaced = String::new();
        let mut done = 0;
        for passage in passages(text, options) {
            for (range, found) in passage.found(text) {
                // A delimiter of other text may be in a formula.
                let Some(before) = text.get(done..range.start) else { continue };
                replaced.push_str(before);
                match found {
                    Found::Formula(formula) => {
                        // Writing to a string cannot fail.
                        let _written = write!(replaced, "${MARK} {}{MARK}$", formulas.found.len());
                        formulas.found.push(formula);
                    }
                    Found::Backslash => replaced.push_str(r"\\\"),
                }
                done = range.end;
            }
        }
        if done > 0 {
            replaced.push_str(&text[done..]);
            formulas.text = Cow::Owned(replaced);
        }
        formulas
    }

    /// The pieces of `text`, which the parser returned.
    pub(super) fn pieces<'t>(&'t self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, formula, after)) = self.split_first(rest) {
            pieces.extend([Piece::Text(before), Piece::Formula(formula)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest));
        pieces.retain(|piece| !matches!(piece, Piece::Text("")));
        pieces
    }

    /// A text of the parser with the formulas as they were written.
    pub(super) fn written<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.found.is_empty() || !text.contains(MARK) {
            return Cow::Borrowed(text);
        }
        let pieces = self.pieces(text).into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Formula(formula) => &formula.written,
        });
        Cow::Owned(pieces.collect())
    }

    /// The first formula in `text`, and what is before and after it.
    fn split_first<'t>(&'t self, text: &'t str) -> Option<(&'t str, &'t Formula, &'t str)> {
        let (before, rest) = text.split_once(MARK)?;
        let (number, after) = rest.split_once(MARK)?;
        let formula = self.found.get(number.trim_start().parse::<usize>().ok()?)?;
        Some((before.strip_suffix('$')?, formula, after.strip_prefix('$')?))
    }
}

/// The text of a paragraph, heading or cell.
#[derive(Debug)]
struct Passage {
    range: Range<usize>,
    is_cell: bool,
    /// Code, which no formula contains.
    code: Vec<Range<usize>>,
    /// Tags, addresses and the like, where dollars are no delimiters.
    opaque: Vec<Range<usize>>,
}

fn passages(text: &str, options: pulldown_cmark::Options) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut open: Option<Passage> = None;
    let (mut is_cell, mut is_raw) = (false, false);
    // Per open link whether its text is its address.
    let mut links = Vec::new();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let is_inline = match &event {
            Event::Text(_) | Event::Html(_) => !is_raw,
            Event::Code(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Start(
                Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. },
            )
            | Event::End(
                TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image,
            ) => true,
            _ => false,
        };
        if !is_inline {
            passages.extend(open.take());
            match event {
                Event::Start(Tag::TableCell) => is_cell = true,
                Event::End(TagEnd::TableCell) => is_cell = false,
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => is_raw = true,
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) => is_raw = false,
                _ => {}
            }
            continue;
        }
        let passage = open.get_or_insert_with(|| Passage {
            // The text of an escaped character is without its backslash.
            range: range.start - usize::from(text[..range.start].ends_with('\\'))..range.start,
            is_cell,
            code: Vec::new(),
            opaque: Vec::new(),
        });
        match event {
            Event::Code(_) => passage.code.push(range.clone()),
            Event::InlineHtml(_) | Event::FootnoteReference(_) => passage.opaque.push(range.clone()),
            Event::Start(Tag::Link { link_type, .. } | Tag::Image { link_type, .. }) => {
                links.push(matches!(link_type, LinkType::Autolink | LinkType::Email));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let is_address = links.pop().unwrap_or_default();
                // The address of others follows their text.
                let start = if is_address { range.start } else { passage.range.end.max(range.start) };
                passage.opaque.push(start..range.end);
            }
            _ => {}
        }
        if !matches!(event, Event::Start(_)) {
            passage.range.end = passage.range.end.max(range.end);
        }
    }
    passages.extend(open);
    passages
}

/// What a formula is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delimiters {
    Dollar,
    Dollars,
    Parentheses,
    Brackets,
}

impl Delimiters {
    /// Whether a formula between them is on lines of its own.
    fn are_display(self) -> bool {
        matches!(self, Self::Dollars | Self::Brackets)
    }

    fn are_dollars(self) -> bool {
        matches!(self, Self::Dollar | Self::Dollars)
    }
}

/// A delimiter or other characters in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open(Delimiters),
    Close(Delimiters),
    /// Either, by its place.
    Both(Delimiters),
    /// Escaped characters, and more dollars than any delimiter has.
    Other,
}

#[derive(Debug)]
enum Found {
    Formula(Formula),
    /// The backslash of a delimiter around text that is no formula.
    Backslash,
}

impl Passage {
    /// Its formulas and the backslashes that stay, in their order.
    fn found(&self, text: &str) -> Vec<(Range<usize>, Found)> {
        let mut found = Vec::new();
        let mut from = self.range.start;
        while let Some((token, open)) = self.next_token(text, from) {
            from = open.end;
            let (Token::Open(delimiters) | Token::Both(delimiters)) = token else { continue };
            let Some(close) = self.close(text, delimiters, open.end) else { continue };
            if let Some(formula) = self.formula(text, delimiters, (open.clone(), close.clone())) {
                from = close.end;
                found.push((open.start..close.end, Found::Formula(formula)));
            } else if !delimiters.are_dollars() {
                found.extend([open, close].map(|place| (place.start..place.start + 1, Found::Backslash)));
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        found
    }

    /// Where the delimiter is that closes one before `from`.
    fn close(&self, text: &str, delimiters: Delimiters, mut from: usize) -> Option<Range<usize>> {
        loop {
            let (token, place) = self.next_token(text, from)?;
            match token {
                Token::Close(found) | Token::Both(found) if found == delimiters => return Some(place),
                Token::Open(found) if found == delimiters => return None,
                Token::Both(Delimiters::Dollars) if delimiters == Delimiters::Dollar => return None,
                _ => from = place.end,
            }
        }
    }

    fn formula(
        &self,
        text: &str,
        delimiters: Delimiters,
        (open, close): (Range<usize>, Range<usize>),
    ) -> Option<Formula> {
        let code = self.code.get(self.code.partition_point(|code| code.start < open.end));
        if code.is_some_and(|code| code.start < close.start) {
            return None;
        }
        let source = &text[open.end..close.start];
        if delimiters == Delimiters::Dollar {
            let is_outer = source.starts_with(char::is_whitespace) || source.ends_with(char::is_whitespace);
            if is_outer || text[close.end..].starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
        }
        let is_display = delimiters.are_display();
        let source = self.content(source, if is_display { "\n" } else { " " });
        let is_short = match delimiters {
            Delimiters::Dollar | Delimiters::Dollars => false,
            Delimiters::Parentheses => math::is_short_formula(&source),
            // Brackets without a backslash would begin a link, so those of other short texts have one.
            Delimiters::Brackets => source.contains(['=', '<', '>']) && math::is_short_formula(&source),
        };
        if !is_short && !math::is_formula(&source) {
            return None;
        }
        let written = [&text[open], &source, &text[close]].concat();
        let unicode = math::unicode(&source).filter(|shown| is_display || !shown.contains('\n'));
        let shown = unicode.unwrap_or_else(|| written.clone());
        Some(Formula { written, shown, is_display })
    }

    /// A source without what marks its lines as part of a quote or item, and without the backslashes before the
    /// lines of a cell.
    fn content(&self, source: &str, line_break: &str) -> String {
        let source = if self.is_cell { source.replace("\\|", "|") } else { source.to_owned() };
        let lines = source.split('\n').enumerate().map(|(line_idx, line)| match line_idx {
            0 => line,
            _ => line.trim_start_matches(['>', ' ', '\t']),
        });
        lines.collect::<Vec<_>>().join(line_break)
    }

    /// The next token from `from` on and its place.
    fn next_token(&self, text: &str, mut from: usize) -> Option<(Token, Range<usize>)> {
        loop {
            let at = from + text.get(from..self.range.end)?.find(['$', '\\'])?;
            if let Some(past) = self.opaque_end(at) {
                from = past;
                continue;
            }
            let rest = &text[at..self.range.end];
            let (token, len) = match rest.strip_prefix('\\').map(|escaped| escaped.chars().next()) {
                Some(Some('(')) => (Token::Open(Delimiters::Parentheses), 2),
                Some(Some(')')) => (Token::Close(Delimiters::Parentheses), 2),
                Some(Some('[')) => (Token::Open(Delimiters::Brackets), 2),
                Some(Some(']')) => (Token::Close(Delimiters::Brackets), 2),
                Some(escaped) => (Token::Other, 1 + escaped.map_or(0, char::len_utf8)),
                None => match rest.len() - rest.trim_start_matches('$').len() {
                    1 => (Token::Both(Delimiters::Dollar), 1),
                    2 => (Token::Both(Delimiters::Dollars), 2),
                    n_dollars => (Token::Other, n_dollars),
                },
            };
            return Some((token, at..at + len));
        }
    }

    /// The end of the code, tag or address at `at`.
    fn opaque_end(&self, at: usize) -> Option<usize> {
        let end_in = |ranges: &[Range<usize>]| {
            let next = ranges.partition_point(|range| range.end <= at);
            ranges.get(next).filter(|range| range.start <= at).map(|range| range.end)
        };
        end_in(&self.code).or_else(|| end_in(&self.opaque))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{Block, Definitions, Inline, parse};

    fn inlines(text: &str) -> Vec<Inline> {
        let blocks = parse(text, &Definitions::new(), |_, _| ());
        blocks
            .into_iter()
            .flat_map(|block| match block {
                Block::Paragraph(inlines) => inlines,
                other => panic!("{text:?}: {other:?}"),
            })
            .collect()
    }

    /// The text as it is shown, with code between backticks and bold text between asterisks.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = inlines(text).into_iter().map(|Inline { text, look, .. }| match look {
            _ if look.code => format!("`{text}`"),
            _ if look.bold => format!("**{text}**"),
            _ => text,
        });
        assert_eq!(shown.collect::<String>(), expected, "{text:?}");
    }

    #[test]
    fn code_binds_tighter_than_dollars() {
        for text in [
            "It costs $5. Set `$HOME` first.",
            "Use $PATH or `$HOME` there.",
            "In bash $1 is `first` and `$2` second.",
            "Pay $10 for `--flag=$x` **bold** and `y`.",
            "$$ and `$$` pid.",
            "`$x_1` and `$x_2`",
            "$x_1 `code` y_2$ and $$x_1 `code` y_2$$",
        ] {
            check(text, text);
        }
        check("Pay $5, `$x`, $x_i$ and `$y`", "Pay $5, `$x`, xᵢ and `$y`");
    }

    #[test]
    fn dollars_around_other_text_stay_and_its_markdown_works() {
        check("$5 and **$6** or $*a*$", "$5 and **$6** or $a$");
        check("It costs $5, so $x_1$ and $x_2$.", "It costs $5, so x₁ and x₂.");
        check("$$5, **$x_1$** and $$$x_2$$$", "$$5, **x₁** and $$$x_2$$$");
        check(r"\$x_1$ and $x_2\$ $x_1$2", "$x_1$ and $x_2$ $x_1$2");
    }

    #[test]
    fn parentheses_and_brackets_with_backslashes_are_delimiters() {
        check(r"Let \(a \to b\), \( x_1 \) and \(O(n)\).", "Let a → b, x₁ and O(n).");
        check("so \\[\nE = mc^2\n\\] holds", "so \nE = mc²\nholds");
        check(r"\[a \\[2pt] b_1\] \[f(x) = y\]", "a\nb₁\nf(x) = y");
        for text in [
            r"see \(this\) and \[that\](https://a.b)",
            r"\(**bold**\) and \(`x_1`\) and `\(x_1\)`",
            r"\(foo\|bar\)\+ \[x\] \[1\]",
            r"\[\begin{pmatrix} a & b \\ c & d \end{pmatrix}\]",
        ] {
            let shown = text.replace(r"\|", "|").replace(r"\+", "+");
            check(text, &shown);
        }
        // A single one is an escaped character.
        check(r"\(x_1 and y\] \\(x_1\\)", r"(x_1 and y] \(x_1\)");
    }

    #[test]
    fn formulas_have_no_markdown() {
        check(r"$a_1*b_1*c_1$ and $\unknown{*a*}\\$", r"a₁*b₁*c₁ and $\unknown{*a*}\\$");
        check("a $$x_1$$ b", "a \nx₁\nb");
        check("$$\\begin{aligned} a &= 1 \\\\ b &\\leq 2 \\end{aligned}$$", "a = 1\nb ≤ 2");
        for text in [
            r"$$f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}$$",
            "$$\n\\begin{pmatrix} a & b \\\\\nc & d \\end{pmatrix}\n$$",
            r"$\begin{cases} 1 & x > 0 \\ 0 & x_1 \end{cases}$",
            r"$\begin{aligned} a &= 1 \\ b &\leq 2 \end{aligned}$",
        ] {
            check(text, text);
        }
        check("$x_1 +\ny_1$ and $f[x](y_1)$", "x₁ + y₁ and f[x](y₁)");
    }

    #[test]
    fn dollars_in_tags_and_addresses_are_part_of_them() {
        check("<https://a.b/$x_1> $y_1$", "https://a.b/$x_1 y₁");
        check("<a b=\"$x_1\"> $y_1$", "<a b=\"$x_1\"> y₁");
        let link = &inlines("[a $x_1$ b](https://a.b/$x_1 \"$\") $y_1$")[0];
        assert_eq!((&*link.text, link.link.as_deref()), ("a x₁ b", Some("https://a.b/$x_1")));
    }

    #[test]
    fn lines_of_a_formula_in_a_quote_are_without_its_marks() {
        let [Block::Quote(blocks)] = &parse("> $$\n> a_1\n> $$", &Definitions::new(), |_, _| ())[..] else {
            panic!()
        };
        let [Block::Paragraph(inlines)] = &blocks[..] else { panic!("{blocks:?}") };
        assert_eq!(inlines[0].text, "a₁");
    }

    fn mixed(pieces: &[&'static str]) -> impl Strategy<Value = String> {
        let pieces = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24);
        pieces.prop_map(|pieces| format!("a{}", pieces.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn dollars_leave_code_as_it_is(
            text in mixed(&["$", "$", "$$", "`", "`", "``", "**", " ", "\nb", "word", "5", "x_1", r"\(", r"\)", r"\[", r"\]", r"\", "[", "](b)", "<a>", "|"]),
        ) {
            let code = |text: &str| -> Vec<String> {
                let code = inlines(text).into_iter().filter(|inline| inline.look.code);
                code.map(|inline| inline.text.replace('%', "$")).collect()
            };
            // Percent signs have no meaning.
            prop_assert_eq!(code(&text), code(&text.replace('$', "%")));
        }

        #[test]
        fn dollars_lose_no_text(text in mixed(&["$", "$", "$$", "`", "`", "**", "**", " ", "\nb", "word", "5", "后。"])) {
            let visible = |text: &str| text.replace(['`', '*', ' ', '\n'], "");
            let shown: String = inlines(&text).into_iter().map(|inline| inline.text).collect();
            prop_assert_eq!(visible(&shown), visible(&text));
        }
    }
}
