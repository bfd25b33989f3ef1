//! Server-sent events, framed incrementally from bytes.
//!
//! Pure: accepts chunks of any size and returns frames in order. Decoders
//! interpret the frames. Work is linear in the bytes received, and a frame of one
//! `data` line is borrowed, not copied.
//!
//! Failing servers sometimes write a bare JSON document in place of an event, as
//! the whole body or in the middle of a stream; the parser returns it as
//! [`SseItem::Bare`] instead of dropping it as an unknown field.
//!
//! Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>.

use std::borrow::Cow;
use std::ops::Range;

/// Default limit for the length of a frame.
pub(in crate::ai) const FRAME_LIMIT_BYTES: usize = 64 << 20;

/// The next item of the stream.
#[derive(Debug, PartialEq)]
pub(in crate::ai) enum SseItem<'a> {
    Frame(SseFrame<'a>),
    /// A JSON document outside an event, complete unless the stream ended in it.
    Bare(Cow<'a, str>),
}

/// One event. Invalid UTF-8 is replaced by replacement characters.
#[derive(Debug, PartialEq)]
pub(in crate::ai) struct SseFrame<'a> {
    /// The `event` field; empty if the frame has none.
    pub(in crate::ai) event: Cow<'a, str>,
    /// The `data` lines, joined by line feeds.
    pub(in crate::ai) data: Cow<'a, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::ai) enum SseError {
    #[error("the stream holds an event larger than {limit_bytes} bytes")]
    TooLong { limit_bytes: usize },
}

/// Splits a byte stream into frames. Feed with [`Self::push`], then drain with
/// [`Self::next`]; call [`Self::finish`] at the end and drain once more.
#[derive(Debug)]
pub(in crate::ai) struct SseParser {
    buffer: Vec<u8>,
    /// Start of the frame being read; earlier bytes are consumed.
    frame_start: usize,
    line_start: usize,
    /// The first byte that has not been scanned.
    scan: usize,
    /// The last line ended in `\r`, so a `\n` at this position belongs to it.
    skip_lf: bool,
    event: Option<Range<usize>>,
    data: Vec<Range<usize>>,
    bare: Option<Nesting>,
    /// The current frame has been returned.
    spent: bool,
    at_start: bool,
    at_end: bool,
    limit_bytes: usize,
}

impl SseParser {
    pub(in crate::ai) fn new(limit_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            frame_start: 0,
            line_start: 0,
            scan: 0,
            skip_lf: false,
            event: None,
            data: Vec::new(),
            bare: None,
            spent: false,
            at_start: true,
            at_end: false,
            limit_bytes,
        }
    }

    /// Adds the next bytes of the stream.
    pub(in crate::ai) fn push(&mut self, bytes: &[u8]) {
        self.drop_spent();
        // Never moves more bytes than are pending, and only after a frame was returned.
        if self.frame_start > 0 {
            let spent = self.frame_start;
            self.buffer.drain(..spent);
            self.frame_start = 0;
            self.line_start -= spent;
            self.scan -= spent;
            if let Some(event) = &mut self.event {
                *event = event.start - spent..event.end - spent;
            }
            for line in &mut self.data {
                *line = line.start - spent..line.end - spent;
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the bytes; the rest counts as a complete frame.
    pub(in crate::ai) fn finish(&mut self) {
        if self.bare.is_none() {
            // Ends the open line, then the open frame; extra blank lines do no harm.
            self.push(b"\n\n\n");
        }
        self.at_end = true;
    }

    /// The next item in the bytes pushed so far.
    ///
    /// # Errors
    /// If a frame exceeds the limit; the parser must not be used afterwards.
    pub(in crate::ai) fn next(&mut self) -> Result<Option<SseItem<'_>>, SseError> {
        self.drop_spent();
        loop {
            if let Some(nesting) = &mut self.bare {
                let rest = &self.buffer[self.scan..];
                let end = rest.iter().position(|byte| nesting.closes(*byte));
                self.scan = end.map_or(self.buffer.len(), |end| self.scan + end + 1);
                if end.is_none() && !self.at_end {
                    return self.out_of_bytes();
                }
                self.bare = None;
                self.spent = true;
                let document = self.line_start..self.scan;
                self.line_start = self.scan;
                return Ok(Some(SseItem::Bare(text(&self.buffer, &document))));
            }
            let Some(line) = self.next_line() else { return self.out_of_bytes() };
            match self.buffer[line.clone()].first() {
                None if self.data.is_empty() => {
                    self.event = None;
                    self.frame_start = self.scan;
                }
                None => {
                    self.spent = true;
                    return Ok(Some(SseItem::Frame(self.frame())));
                }
                Some(b'{' | b'[') => {
                    self.scan = line.start;
                    self.line_start = line.start;
                    self.skip_lf = false;
                    self.bare = Some(Nesting::default());
                    if !self.data.is_empty() {
                        self.spent = true;
                        return Ok(Some(SseItem::Frame(self.frame())));
                    }
                }
                Some(_) => self.field(line),
            }
        }
    }

    fn out_of_bytes(&self) -> Result<Option<SseItem<'_>>, SseError> {
        if self.buffer.len() - self.frame_start > self.limit_bytes {
            return Err(SseError::TooLong { limit_bytes: self.limit_bytes });
        }
        Ok(None)
    }

    fn drop_spent(&mut self) {
        if self.spent {
            self.spent = false;
            self.event = None;
            self.data.clear();
            self.frame_start = self.scan;
        }
    }

    /// The next complete line, without its terminator. A bare document is recognised by
    /// the first byte of its line, so such a line is returned even if it is incomplete.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.at_start {
            let bom = b"\xEF\xBB\xBF";
            let head = &self.buffer[..self.buffer.len().min(bom.len())];
            if head.len() < bom.len() && bom.starts_with(head) && !self.at_end {
                return None;
            }
            self.at_start = false;
            if head == bom {
                (self.frame_start, self.line_start, self.scan) = (bom.len(), bom.len(), bom.len());
            }
        }
        if self.skip_lf && self.scan < self.buffer.len() {
            self.skip_lf = false;
            if self.buffer[self.scan] == b'\n' {
                self.scan += 1;
                self.line_start = self.scan;
                if self.data.is_empty() && self.event.is_none() {
                    self.frame_start = self.scan;
                }
            }
        }
        if self.scan == self.line_start && matches!(self.buffer.get(self.scan), Some(b'{' | b'[')) {
            return Some(self.line_start..self.line_start + 1);
        }
        let rest = &self.buffer[self.scan..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n' || *byte == b'\r') else {
            self.scan = self.buffer.len();
            return None;
        };
        let line = self.line_start..self.scan + length;
        self.skip_lf = rest[length] == b'\r';
        self.scan = line.end + 1;
        self.line_start = self.scan;
        Some(line)
    }

    /// Handles `name: value`; a line without a colon is a name with an empty value.
    fn field(&mut self, line: Range<usize>) {
        let bytes = &self.buffer[line.clone()];
        let colon = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
        let (name, rest) = bytes.split_at(colon);
        let skipped = match rest {
            [b':', b' ', ..] => 2,
            [b':', ..] => 1,
            _ => 0,
        };
        let value = line.start + colon + skipped..line.end;
        match name {
            b"data" => self.data.push(value),
            b"event" => self.event = Some(value),
            // llama.cpp reports errors in this field instead of an event of that name.
            b"error" if bytes_begin_object(&self.buffer[value.clone()]) => {
                self.event = Some(line.start..line.start + colon);
                self.data.push(value);
            }
            _ if self.data.is_empty() && self.event.is_none() => self.frame_start = self.scan,
            _ => {}
        }
    }

    fn frame(&self) -> SseFrame<'_> {
        let event = self.event.as_ref().map_or(Cow::Borrowed(""), |event| text(&self.buffer, event));
        let data = match self.data.as_slice() {
            [line] => text(&self.buffer, line),
            lines => {
                let lines: Vec<Cow<'_, str>> = lines.iter().map(|line| text(&self.buffer, line)).collect();
                Cow::Owned(lines.join("\n"))
            }
        };
        SseFrame { event, data }
    }
}

fn text<'a>(buffer: &'a [u8], range: &Range<usize>) -> Cow<'a, str> {
    let bytes = &buffer[range.clone()];
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// One item of a recorded stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFrame {
    /// The `event` field; empty if there is none.
    pub event: String,
    /// The data of the event.
    pub data: String,
    /// Whether it is a JSON document in place of an event.
    pub is_bare: bool,
}

/// The frames of a recorded stream, which arrives in the given `chunks`.
/// For tests and fuzzing; `decode_recorded` reads answers.
///
/// # Errors
/// If a frame exceeds the limit.
pub fn recorded_frames<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<RecordedFrame>, String> {
    let mut parser = SseParser::new(FRAME_LIMIT_BYTES);
    let mut frames = Vec::new();
    let mut drain = |parser: &mut SseParser| -> Result<(), String> {
        while let Some(item) = parser.next().map_err(|error| error.to_string())? {
            frames.push(match item {
                SseItem::Frame(SseFrame { event, data }) => {
                    RecordedFrame { event: event.into_owned(), data: data.into_owned(), is_bare: false }
                }
                SseItem::Bare(document) => {
                    RecordedFrame { event: String::new(), data: document.into_owned(), is_bare: true }
                }
            });
        }
        Ok(())
    };
    for chunk in chunks {
        parser.push(chunk);
        drain(&mut parser)?;
    }
    parser.finish();
    drain(&mut parser)?;
    Ok(frames)
}

/// Nesting depth of the next byte inside a JSON document.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    /// Reads the next byte; returns whether it ends the document.
    fn closes(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

fn bytes_begin_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parser's output for `pieces`, one string per item: `event|data` or `!bare`.
    fn items<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut parser = SseParser::new(FRAME_LIMIT_BYTES);
        let mut items = Vec::new();
        let mut drain = |parser: &mut SseParser| {
            while let Some(item) = parser.next().unwrap() {
                items.push(match item {
                    SseItem::Frame(frame) => format!("{}|{}", frame.event, frame.data),
                    SseItem::Bare(document) => format!("!{}", document.trim_end()),
                });
            }
        };
        for piece in pieces {
            parser.push(piece);
            drain(&mut parser);
        }
        parser.finish();
        drain(&mut parser);
        items
    }

    #[track_caller]
    fn check(stream: &str, expected: &[&str]) {
        let bytes = stream.as_bytes();
        assert_eq!(items([bytes]), expected, "{stream:?}");
        assert_eq!(items(bytes.chunks(1)), expected, "{stream:?} byte by byte");
        for at in 0..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(items([head, tail]), expected, "{stream:?} cut at {at}");
        }
    }

    #[test]
    fn frames_end_at_blank_lines_whatever_ends_a_line() {
        check("data: a\n\ndata: b\n\n", &["|a", "|b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["|a", "|b"]);
        check("data: a\r\rdata: b\r\r", &["|a", "|b"]);
        check("event: x\r\ndata: é漢🦀\r\n\r\n\r\n", &["x|é漢🦀"]);
        check("\u{feff}data: a\n\n", &["|a"]);
    }

    #[test]
    fn fields_lose_one_space_and_join_by_line() {
        check("data:a\ndata:  b\ndata\n\n", &["|a\n b\n"]);
        check(": keep-alive\n\nid: 7\nretry: 1\nevent: e\n: c\ndata: x\n\n", &["e|x"]);
        check("event: lonely\n\ndata: x\n\n", &["|x"]);
        check("data: [DONE]\n\n", &["|[DONE]"]);
    }

    #[test]
    fn the_last_frame_needs_no_blank_line() {
        check("data: a", &["|a"]);
        check("data: a\r", &["|a"]);
        check("data: a\r\n", &["|a"]);
        check("", &[]);
    }

    #[test]
    fn bare_documents_are_items_of_their_own() {
        check(
            "{\"error\": {\n \"message\": \"} \\\" {\"}\n}\n",
            &["!{\"error\": {\n \"message\": \"} \\\" {\"}\n}"],
        );
        check("data: a\n\n[{\"error\":1}]\ndata: b\n\n", &["|a", "![{\"error\":1}]", "|b"]);
        check("data: a\n{\"x\":1}\n\n", &["|a", "!{\"x\":1}"]);
        check("{\"cut\":", &["!{\"cut\":"]);
    }

    #[test]
    fn invalid_utf8_becomes_replacement_characters() {
        assert_eq!(items([&b"data: a\xff\xf0\x9f\n\n"[..]]), ["|a\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn a_frame_past_the_limit_is_an_error() {
        let mut parser = SseParser::new(64);
        for _ in 0..100 {
            parser.push(b": keep-alive\n\n");
            assert_eq!(parser.next(), Ok(None));
        }
        parser.push(&[b'x'; 65]);
        assert_eq!(parser.next(), Err(SseError::TooLong { limit_bytes: 64 }));
    }

    proptest! {
        #[test]
        fn cuts_do_not_change_the_frames(
            stream in "(data: |event: |:|\\{|\\}|\"|é|a|\r\n|\n|\r| ){0,40}",
            cuts in prop::collection::vec(1_usize..7, 0..40),
        ) {
            let bytes = stream.as_bytes();
            let mut pieces = Vec::new();
            let mut rest = bytes;
            for cut in cuts {
                let (piece, tail) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            pieces.push(rest);
            prop_assert_eq!(items(pieces), items([bytes]));
        }

        #[test]
        fn any_bytes_are_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            items(pieces.iter().map(Vec::as_slice));
        }
    }
}
