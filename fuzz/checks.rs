//! What must hold of any bytes that a server, a model, a process or a terminal sends.
//!
//! Shared by the fuzz targets and by `tests/it/fuzz_corpus.rs`. Each function
//! takes any bytes and panics if something does not hold.

#![allow(dead_code, reason = "a fuzz target uses one of them")]

use std::sync::{Arc, LazyLock};

use crossterm::event::{KeyCode, KeyModifiers};
use pi::ai::{
    Api, AssistantMessage, Credential, MessageBuilder, Millis, Request, StreamEvent, StreamOptions,
    StreamOrder, decode_recorded, finished_arguments, parse_lenient, parse_strict, recorded_frames,
};
use pi::tui::markdown::{Highlighter, MarkdownOptions, MarkdownStream, render};
use pi::tui::term::{InputEvent, recorded_input};
use pi::tui::text::{Row, Wrap, copied_text, keep_tabs, sanitize, terminal_output, wrap_plain};
use pi::tui::theme::{Appearance, ColorDepth, Theme};
use ratatui::style::Style;
use serde_json::json;

/// Server-sent events are the same however they are cut, and no larger than what came.
pub(crate) fn framing(data: &[u8]) {
    let whole = recorded_frames([data]).expect("a frame as large as its limit is no fuzzer's input");
    let n_bytes: usize = whole.iter().map(|frame| frame.event.len() + frame.data.len() + 1).sum();
    // An invalid byte becomes a character of three; a name counts for one event.
    assert!(n_bytes <= 3 * data.len() + 3, "{n_bytes} bytes out of {}", data.len());
    assert_eq!(recorded_frames(pieces(data)).as_ref(), Ok(&whole));
    assert_eq!(recorded_frames(data.chunks(1)).as_ref(), Ok(&whole));
}

/// Arguments that are still being written always show an object, and finished
/// ones are an object or say why not.
pub(crate) fn partial_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let step = text.len() / 32 + 1;
    for (at, _) in text.char_indices().step_by(step) {
        assert!(parse_lenient(&text[..at]).is_object());
    }
    assert!(parse_lenient(&text).is_object());
    let (arguments, error) = finished_arguments(&text);
    assert!(arguments.is_object());
    match parse_strict(&text) {
        Ok(value) => assert_eq!((value, None), (arguments, error)),
        Err(_) => assert!(error.is_some_and(|error| error.ends_with(&*text))),
    }
}

pub(crate) fn anthropic(data: &[u8]) {
    decoder("anthropic-messages", data);
}

pub(crate) fn chat(data: &[u8]) {
    decoder("openai-completions", data);
}

pub(crate) fn responses(data: &[u8]) {
    decoder("openai-responses", data);
}

pub(crate) fn google(data: &[u8]) {
    decoder("google-generative-ai", data);
}

/// While the terminal is asked, its input is the same however it is cut. Keys and pastes
/// contain no control characters, and whatever came before, keys are read again after a while.
pub(crate) fn input(data: &[u8]) {
    let expected = recorded_input([data], true);
    assert_eq!(recorded_input(pieces(data), true), expected);
    assert_eq!(recorded_input(data.chunks(1), true), expected);
    for expects_answers in [true, false] {
        let events = recorded_input([data], expects_answers);
        assert!(events.len() <= data.len(), "{} events out of {} bytes", events.len(), data.len());
        events.iter().for_each(clean_event);
        // The end of a paste, and more than any other sequence or answer may have.
        let later = [data, b"\x1b[201~", &[b'x'; 1_100], b"y"].concat();
        let last = recorded_input([later.as_slice()], expects_answers).pop();
        let is_typed = matches!(&last, Some(InputEvent::Key(key))
            if key.code == KeyCode::Char('y') && key.modifiers == KeyModifiers::NONE);
        assert!(is_typed, "{last:?}");
    }
}

fn clean_event(event: &InputEvent) {
    match event {
        InputEvent::Key(key) => assert!(!matches!(key.code, KeyCode::Char(c) if c.is_control())),
        InputEvent::Paste(text) => {
            assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
        }
        InputEvent::Mouse(_)
        | InputEvent::Resize(_)
        | InputEvent::Focus(_)
        | InputEvent::Answered
        | InputEvent::PasteWaits => {}
    }
}

/// Output of processes becomes rows without control characters, which fit and can be copied.
pub(crate) fn ansi(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = sanitize(&text);
    assert!(clean.chars().all(|c| c == '\n' || !c.is_control()));
    assert_eq!(sanitize(&clean), clean);
    let lines = terminal_output(&text);
    assert!(lines.len() <= data.len() + 1, "{} lines out of {} bytes", lines.len(), data.len());
    let width = width(data);
    for line in &lines {
        check_rows(&Wrap::new(width).line(line), width);
    }
    let line = text.lines().next().unwrap_or_default();
    let line: String =
        line.chars().filter(|c| !matches!(c, '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')).collect();
    let mut rows = wrap_plain(&sanitize(&line), width, Style::new());
    keep_tabs(&mut rows, &line);
    let copied = copied_text(rows.iter().map(|row| (row, 0..u16::MAX)));
    assert_eq!(sanitize(&copied), sanitize(&line));
}

/// Markdown becomes rows that fit, and ends as it would have been at once, however it arrives.
pub(crate) fn markdown(data: &[u8]) {
    static THEME: LazyLock<Theme> =
        LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).expect("it is built in"));
    let text = String::from_utf8_lossy(data);
    let (width, options) = (width(data), MarkdownOptions::default());
    let highlighter = Highlighter::new();
    let whole = render(&text, width, &THEME, &highlighter, &options);
    check_rows(&whole, width);
    let mut stream = MarkdownStream::new(options);
    let mut settled: Vec<Row> = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(chars.len() / 7 + 1) {
        stream.push(&String::from_iter(piece));
        let rows = stream.rows(width, &THEME, &highlighter).to_vec();
        check_rows(&rows, width);
        assert_eq!(rows.get(..settled.len()), Some(settled.as_slice()), "a settled row changed");
        settled = rows.get(..stream.stable_rows()).expect("stable rows are rows").to_vec();
    }
    stream.finish();
    let rows = stream.rows(width, &THEME, &highlighter).to_vec();
    assert_eq!(rows.get(..settled.len()), Some(settled.as_slice()), "a settled row changed at the end");
    assert_eq!(rows, whole);
}

/// A width that depends on the bytes.
fn width(data: &[u8]) -> u16 {
    u16::try_from(data.len() % 83 + 1).expect("it is small")
}

fn check_rows(rows: &[Row], width: u16) {
    for row in rows {
        assert!(row.width() <= usize::from(width), "{} columns at {width}", row.width());
        assert!(!row.text().chars().any(char::is_control), "{:?}", row.text());
    }
}

/// The bytes as they are, where hardly any change passes the checksums, and lines of
/// `EVENT PAYLOAD` in frames whose checksums are right.
pub(crate) fn bedrock(data: &[u8]) {
    decoder("bedrock-converse-stream", data);
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    decoder("bedrock-converse-stream", &lines.flat_map(event).collect::<Vec<u8>>());
}

/// A message of an event stream: lengths, their checksum, headers, payload, checksum.
fn event(line: &[u8]) -> Vec<u8> {
    let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (kind, payload) = (&line[..at.min(200)], line.get(at + 1..).unwrap_or_default());
    let is_exception = kind.ends_with(b"Exception");
    let (name, message) =
        if is_exception { (":exception-type", "exception") } else { (":event-type", "event") };
    let mut headers = Vec::new();
    for (name, value) in [(name, kind), (":message-type", message.as_bytes())] {
        headers.push(u8::try_from(name.len()).expect("names are short"));
        headers.extend(name.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).expect("cut above").to_be_bytes());
        headers.extend(value);
    }
    let length = |n: usize| u32::try_from(n).expect("inputs are small").to_be_bytes();
    let mut bytes = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// An answer's events are in order, add up to its message, are the same however
/// the bytes are cut, and are no more than the bytes can say.
fn decoder(api: &str, data: &[u8]) {
    let request = request(api);
    let events = decode_recorded(&request, [data]);
    let mut order = StreamOrder::default();
    let mut builder = MessageBuilder::new(AssistantMessage::pending(Api::default(), "", "", Millis(0)));
    let mut n_bytes = 0;
    for event in &events {
        order.accept(event).expect("events are in order");
        match event {
            StreamEvent::Delta { text, .. } => n_bytes += text.len(),
            StreamEvent::Done(message) => check_message(message, &builder),
            StreamEvent::Start | StreamEvent::BlockStart { .. } | StreamEvent::BlockEnd { .. } => {}
        }
        builder.push(event);
    }
    assert!(order.is_done());
    // A block costs three events, a byte of an argument at most the six of its escape
    // and an index of `partialArgs` as many commas as the gap that it may leave.
    assert!(events.len() <= data.len() + 8, "{} events out of {} bytes", events.len(), data.len());
    assert!(n_bytes <= 512 * data.len() + 64, "{n_bytes} bytes out of {}", data.len());
    assert_eq!(decode_recorded(&request, pieces(data)).last(), events.last());
}

fn check_message(message: &AssistantMessage, builder: &MessageBuilder) {
    assert_eq!(builder.message().content, message.content, "the events add up to the message");
    for call in message.tool_calls() {
        assert!(call.arguments.is_object(), "{call:?}");
        assert!(call.arguments_error.is_none() || *call.sent_arguments() == json!({}), "{call:?}");
    }
    // What is stored must be what is read back.
    let stored = serde_json::to_string(message).expect("a message is JSON");
    let read: AssistantMessage = serde_json::from_str(&stored).expect("and can be read again");
    assert_eq!(read.content, message.content);
}

/// `data` in pieces of a size that depends on it.
fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.chunks(data.len() % 61 + 1)
}

fn request(api: &str) -> Request {
    let model = json!({"id": "m", "api": api, "provider": "p"});
    Request {
        model: Arc::new(serde_json::from_value(model).expect("the model is written above")),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}
