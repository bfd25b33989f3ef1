//! The input of a terminal on Unix.
//!
//! crossterm's own event source and cursor query are not used, because the event source loses
//! input that arrives together with a signal, and the query cannot run beside the event stream.
//! Here the answer to a query is just another item between two keys.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::time::Duration;

use ratatui::layout::{Position, Size};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::super::answers::{self, CELL_QUERY, CURSOR_QUERY, Questions, Report, SIZE_QUERY, TerminalAnswers};
use super::super::output::write_out;
use super::parse::{Parser, Sent, Tail};
use super::reader::Reader;
use super::strings;
use super::{InputEvent, ScreenReport, normalize};
use crate::util::foreground;

/// Maximum wait for the terminal to report its cursor position.
const CURSOR_LIMIT: Duration = Duration::from_secs(2);
/// Maximum wait for answers before another program reads.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);
/// A terminal that has not answered after this time never will, also behind a slow connection.
const ANSWER_AGE: Duration = Duration::from_secs(2);
/// Maximum time between an Escape that was taken for a key and the rest of its sequence, if that comes in one
/// piece.
const TAIL_LIMIT: Duration = Duration::from_millis(250);
/// The same for a byte alone, which may be a key that was typed. Nobody types that fast.
const TAIL_BYTE_LIMIT: Duration = Duration::from_millis(60);
/// The same for the end of a paste that such an Escape ended.
const PASTE_END_LIMIT: Duration = Duration::from_secs(2);
/// How long an Escape waits at least while answers are due, which all begin with one.
const ANSWER_ESCAPE_WAIT: Duration = Duration::from_millis(250);
/// The same for terminals with kitty's keyboard protocol, whose Escape key sends more than that.
const KITTY_ESCAPE_WAIT: Duration = Duration::from_millis(100);
/// How long the start of a string waits at least for the rest: the terminal sent it in two pieces, or somebody
/// pressed Alt with a key that is seldom bound.
const START_WAIT: Duration = Duration::from_millis(100);
/// The same while answers are due, of which most are strings, or if nobody types that.
const ANSWER_START_WAIT: Duration = Duration::from_millis(600);
/// How long a paste may pause before that is reported.
const PASTE_PAUSE: Duration = Duration::from_secs(1);
/// How long nothing of a paste must have come before a lone key, which is none of its pieces, ends it.
const PASTE_KEY_PAUSE: Duration = Duration::from_millis(250);

/// Reads the terminal's input. At most one may exist.
#[derive(Debug, Default)]
pub struct InputBroker {
    reader: Option<Reader>,
    resizes: Option<Signal>,
    parser: Parser,
    /// How long an Escape waits for the rest of a sequence.
    escape_wait: Duration,
    /// Parsed events that were not returned yet.
    ready: VecDeque<InputEvent>,
    /// When the last bytes came.
    came_at: Option<Instant>,
    /// When the Escape in the parser counts as a key of its own; `None` if there
    /// is none, so that an idle terminal causes no wake-ups.
    escape_at: Option<Instant>,
    /// The last Escape, if it was taken for a key because nothing followed.
    released: Option<Released>,
    /// What came since then, while it may be the rest of its sequence.
    tail: Vec<u8>,
    /// The last start of a string that was taken for keys, and when.
    released_start: Option<(Vec<u8>, Instant)>,
    /// When the last bytes of an open paste came, and whether that was reported.
    paste: Option<PasteProgress>,
    /// What the next query for the cursor asks too.
    questions: Option<Questions>,
    answers: TerminalAnswers,
    /// When the last questions were asked.
    asked_at: Option<Instant>,
    /// The cursor position, if the terminal has reported it since the query.
    cursor: Option<Position>,
    /// The sizes that the terminal has reported since then.
    sizes: Vec<Size>,
    /// What the numbers of these reports mean, once one of them was the size that the system knew.
    size_form: Option<SizeForm>,
    /// Whether the last query for the cursor was not answered, as by a connection that stalls.
    is_silent: bool,
}

/// An Escape that was taken for a key.
#[derive(Debug, Clone, Copy)]
struct Released {
    /// When, or when the last byte came that may belong to it.
    at: Instant,
    ended_paste: bool,
}

impl Released {
    fn new(ended_paste: bool) -> Self {
        Self { at: Instant::now(), ended_paste }
    }

    /// Whether `bytes`, of which the last `n_read` came at once, come soon enough to be the rest of its sequence. Some
    /// are nothing else at any time.
    fn may_begin(self, bytes: &[u8], n_read: usize) -> bool {
        self.at.elapsed() < self.wait_after(bytes, n_read) || Tail::is_certain(bytes)
    }

    /// How long to wait for more after `bytes`.
    fn wait_after(self, bytes: &[u8], n_read: usize) -> Duration {
        let is_end = self.ended_paste && b"[201~".starts_with(bytes);
        match n_read {
            _ if is_end => PASTE_END_LIMIT,
            1 => TAIL_BYTE_LIMIT,
            _ => TAIL_LIMIT,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct PasteProgress {
    came_at: Instant,
    is_reported: bool,
}

impl PasteProgress {
    fn waits_at(self) -> Instant {
        self.came_at + PASTE_PAUSE
    }
}

/// Which number of a reported size is the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SizeForm {
    Rows,
    /// In tmux 3.3a, against xterm.
    Columns,
}

impl SizeForm {
    /// `None` if `reported` is not `known`, or does not tell.
    fn of(reported: Size, known: Size) -> Option<Self> {
        [Self::Rows, Self::Columns]
            .into_iter()
            .find(|form| form.read(reported) == known && known.width != known.height)
    }

    fn read(self, reported: Size) -> Size {
        match self {
            Self::Rows => reported,
            Self::Columns => Size::new(reported.height, reported.width),
        }
    }
}

impl InputBroker {
    /// A broker that is not reading yet; the first [`Self::next`] starts it. `escape_wait` is the
    /// longest time between an Escape and the rest of its sequence, and `erase_byte` what the terminal's
    /// Backspace sends, if that is known.
    pub fn new(escape_wait: Duration, erase_byte: Option<u8>) -> Self {
        let mut broker = Self { escape_wait, ..Self::default() };
        broker.parser.erases_with_ctrl_h = erase_byte == Some(0x08);
        broker
    }

    /// The next event. Cancel safe: an event is either returned or kept.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub async fn next(&mut self) -> io::Result<InputEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            self.read()?;
            let (Some(reader), Some(resizes)) = (&self.reader, &mut self.resizes) else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let escape_at = self.escape_at;
            let waiting = self.paste.filter(|paste| !paste.is_reported);
            tokio::select! {
                biased;
                // First, because bytes that have arrived belong to the Escape.
                bytes = reader.bytes() => self.understand(&bytes?),
                () = until(escape_at) => {
                    // The rest has arrived, but the thread that reads it has not had its turn.
                    if reader.has_unread() {
                        let least = if self.parser.holds_start() { START_WAIT } else { Duration::ZERO };
                        self.escape_at = Some(Instant::now() + self.escape_wait.max(least));
                    } else {
                        self.release_escape();
                    }
                }
                () = until(waiting.map(PasteProgress::waits_at)) => {
                    self.paste = waiting.map(|paste| PasteProgress { is_reported: true, ..paste });
                    return Ok(InputEvent::PasteWaits);
                }
                _ = resizes.recv() => {
                    if let Some(size) = self.size() {
                        return Ok(InputEvent::Resize(size));
                    }
                }
            }
        }
    }

    /// The event after the one that [`Self::next`] just returned, if it has already arrived,
    /// so that input typed at once is shown at once.
    pub fn next_arrived(&mut self) -> Option<InputEvent> {
        if self.ready.is_empty()
            && let Some(Ok(Some(bytes))) = self.reader.as_ref().map(Reader::take)
        {
            self.understand(&bytes);
        }
        self.ready.pop_front()
    }

    /// Stops reading, so that another program can read; the next [`Self::next`] starts
    /// again. After it returns, every key goes to the other program. Waits a moment for answers
    /// that are due: they are no keys for others.
    pub fn pause(&mut self) {
        self.finish_answers();
        if let Some(reader) = &mut self.reader {
            reader.pause();
        }
    }

    fn finish_answers(&mut self) {
        let deadline = answers_until(self.asked_at, Instant::now());
        while self.parser.n_asked > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(Ok(Some(bytes))) = self.reader.as_ref().map(|reader| reader.bytes_within(left)) else {
                break;
            };
            self.understand(&bytes);
        }
        // A terminal that has not answered by now never will.
        self.parser.n_asked = 0;
    }

    /// Queries the terminal for cursor and size at one moment; blocks for the answer, usually some
    /// milliseconds, and at most for two seconds, or 0.2 if the last query was not answered. The size is
    /// the system's if the terminal does not report its own.
    pub fn ask_screen(&mut self) -> ScreenReport {
        let (first, second) = match self.questions.take() {
            // It may have changed with the size of the screen.
            None if self.answers.cell_pixels.is_some() => (CELL_QUERY.to_owned(), String::new()),
            None => (String::new(), String::new()),
            Some(questions) => {
                self.parser.n_asked += 2;
                self.asked_at = Some(Instant::now());
                (questions.first() + answers::LAST, questions.second() + answers::LAST)
            }
        };
        // Terminals answer in order, so that nothing waits for the answers after the position.
        let is_asked = self.read().is_ok() && {
            let text = [&first, SIZE_QUERY, CURSOR_QUERY, &second].concat();
            write_out(&text).is_ok()
        };
        let cursor = if is_asked { self.wait_for_cursor(!second.is_empty()) } else { None };
        let known = self.size();
        let reported = self.sizes.last().copied().filter(|_| is_asked);
        if let (None, Some(reported), Some(known)) = (self.size_form, reported, known) {
            self.size_form = SizeForm::of(reported, known);
        }
        let size = self.size_form.zip(reported).map(|(form, reported)| form.read(reported));
        ScreenReport { cursor, size: size.or(known) }
    }

    /// Whether the terminal reports its size. The system may know of a change later than the terminal.
    pub fn reports_size(&self) -> bool {
        self.size_form.is_some()
    }

    /// The sizes that the terminal had before and after a frame that asked for them. Blocks like
    /// [`Self::ask_screen`]; `None` if the terminal does not answer. Nothing else may have been read since the
    /// frame.
    pub fn sizes_around_frame(&mut self) -> Option<(Size, Size)> {
        self.wait_for_cursor(false)?;
        let form = self.size_form?;
        match self.sizes[..] {
            [before, .., after] => Some((form.read(before), form.read(after))),
            [] | [_] => None,
        }
    }

    fn wait_for_cursor(&mut self, has_questions_after: bool) -> Option<Position> {
        self.cursor = None;
        self.sizes.clear();
        self.parser.expects_cursor = true;
        let deadline = Instant::now() + cursor_limit(self.is_silent);
        while self.awaits_cursor(has_questions_after) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(Ok(Some(bytes))) = self.reader.as_ref().map(|reader| reader.bytes_within(left)) else {
                break;
            };
            self.understand(&bytes);
        }
        self.is_silent = self.cursor.is_none();
        if self.is_silent {
            // Frames ask for sizes only while the terminal answers.
            self.size_form = None;
        }
        self.cursor
    }

    /// Terminals answer in order, so none comes after the last answer if questions follow the one for the position.
    fn awaits_cursor(&self, has_questions_after: bool) -> bool {
        self.cursor.is_none() && !(has_questions_after && self.parser.n_asked == 0)
    }

    /// Makes the next query for the cursor's position ask the terminal about itself. Answers
    /// that take no time are there with the position; [`InputEvent::Answered`] follows with the
    /// last ones.
    pub fn ask_with_cursor(&mut self, questions: Questions) {
        self.questions = Some(questions);
    }

    /// What the terminal has said so far; includes what has arrived unread.
    pub fn answers(&mut self) -> &TerminalAnswers {
        if let Some(Ok(Some(bytes))) = self.reader.as_ref().map(Reader::take) {
            self.understand(&bytes);
        }
        &self.answers
    }

    /// The size of the terminal; `None` if it is unknown or zero.
    pub fn size(&self) -> Option<Size> {
        // Crossterm opens the terminal for every question, and this one is asked with every frame.
        let (width, height) = match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
            Ok(size) if size.ws_col > 0 => (size.ws_col, size.ws_row),
            _ => crossterm::terminal::size().ok()?,
        };
        (width > 0 && height > 0).then(|| Size::new(width, height))
    }

    /// Ensures that the thread is running and size changes are reported.
    fn read(&mut self) -> io::Result<()> {
        if self.resizes.is_none() {
            self.resizes = Some(signal(SignalKind::window_change())?);
        }
        match &self.reader {
            Some(reader) => reader.resume(),
            None => self.reader = Some(Reader::start(File::from(rustix::io::dup(rustix::stdio::stdin())?))?),
        }
        Ok(())
    }

    fn understand(&mut self, bytes: &[u8]) {
        let mut sent = Vec::new();
        let now = Instant::now();
        // The rest of what was cut off will not come any more.
        if self.came_at.replace(now).is_some_and(|before| now >= before + ANSWER_AGE) {
            self.parser.drop_cut();
        }
        if self.paste.is_some_and(|paste| now >= paste.came_at + PASTE_KEY_PAUSE) && ends_paste(bytes) {
            self.paste = None;
            self.parser.end_paste(&mut sent);
            // It may have been the first piece of the end, after all.
            self.released = (bytes == b"\x1b").then(|| Released::new(true));
            return self.take_sent(sent);
        }
        let start = self.released_start.take().filter(|(_, at)| now < *at + ANSWER_AGE);
        let start = start.filter(|(start, _)| strings::continues(start, bytes)).map(|(start, _)| start);
        let n_read = bytes.len();
        let bytes = [start.unwrap_or_default(), std::mem::take(&mut self.tail), bytes.to_vec()].concat();
        if let Some(released) = self.released.take().filter(|released| released.may_begin(&bytes, n_read)) {
            let tail = Tail::of(&bytes);
            match tail {
                // The key is known late, but its rest is not typed into the text.
                Tail::Rest(whole) => self.parser.feed(&whole, &mut sent),
                Tail::Beginning | Tail::Start => {
                    let now = Instant::now();
                    let wait =
                        if tail == Tail::Start { START_WAIT } else { released.wait_after(&bytes, n_read) };
                    self.released = Some(Released { at: now, ..released });
                    self.escape_at = Some(now + wait);
                    self.tail = bytes;
                    return;
                }
                Tail::Other => self.parser.feed(&bytes, &mut sent),
            }
        } else {
            self.parser.feed(&bytes, &mut sent);
        }
        let is_answer_due = self.parser.n_asked > 0 && self.asked_at.is_some_and(|at| now < at + ANSWER_AGE);
        let least = match self.parser.holds_start() {
            // With kitty's protocol, such a key is sent otherwise.
            true if is_answer_due || self.answers.has_kitty_keys || self.parser.holds_more_than_a_key() => {
                ANSWER_START_WAIT
            }
            true => START_WAIT,
            false if is_answer_due => ANSWER_ESCAPE_WAIT,
            false if self.answers.has_kitty_keys => KITTY_ESCAPE_WAIT,
            false => Duration::ZERO,
        };
        let holds = self.parser.holds_escape() || self.parser.holds_start();
        self.escape_at = holds.then(|| now + self.escape_wait.max(least));
        self.paste = self.parser.is_pasting().then_some(PasteProgress { came_at: now, is_reported: false });
        self.take_sent(sent);
    }

    fn release_escape(&mut self) {
        let mut sent = Vec::new();
        self.escape_at = None;
        if self.tail.is_empty() {
            self.released = self.parser.holds_escape().then(|| Released::new(false));
            let start = self.parser.release_escape(&mut sent);
            self.released_start = (!start.is_empty()).then(|| (start, Instant::now()));
        } else {
            // Typed by somebody, after all.
            self.parser.feed(&std::mem::take(&mut self.tail), &mut sent);
            self.released = None;
        }
        self.take_sent(sent);
    }

    fn take_sent(&mut self, sent: Vec<Sent>) {
        for sent in sent {
            match sent {
                Sent::Event(event) => self.ready.extend(normalize(event)),
                Sent::Cursor(position) => self.cursor = Some(position),
                Sent::Report(report) => self.take_report(&report),
            }
        }
    }

    fn take_report(&mut self, report: &[u8]) {
        let meaning = self.answers.take(report);
        self.parser.has_kitty_keys = self.answers.has_kitty_keys;
        match meaning {
            // An answer may come after the last one, from a terminal around tmux.
            Report::Last | Report::Answer if self.parser.n_asked == 0 => {
                if self.ready.back() != Some(&InputEvent::Answered) {
                    self.ready.push_back(InputEvent::Answered);
                }
            }
            Report::Size(size) => self.sizes.push(size),
            Report::SchemeChanged => {
                let questions = Questions { colors: true, ..Questions::default() };
                let text = [&questions.first(), &questions.second(), answers::LAST].concat();
                // A terminal that is gone is noticed when it is read.
                if write_out(&text).is_ok() {
                    self.parser.n_asked = self.parser.n_asked.saturating_add(1);
                    self.asked_at = Some(Instant::now());
                }
            }
            Report::Last | Report::Answer | Report::Unknown => {}
        }
    }
}

/// The events of bytes that a terminal sent, in the pieces in which they arrived. An Escape at
/// the end is a key, as after a pause. Answers of the terminal are whole and recognised however they
/// are cut if `expects_answers`; otherwise they must begin in one piece.
pub fn recorded_input<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    expects_answers: bool,
) -> Vec<InputEvent> {
    let (mut parser, mut sent) = (Parser::default(), Vec::new());
    parser.n_asked = if expects_answers { u8::MAX } else { 0 };
    parser.has_whole_answers = expects_answers;
    for piece in pieces {
        parser.feed(piece, &mut sent);
    }
    parser.release_escape(&mut sent);
    let event = |sent| match sent {
        Sent::Event(event) => normalize(event),
        Sent::Cursor(_) | Sent::Report(_) => None,
    };
    sent.into_iter().filter_map(event).collect()
}

/// Whether these bytes are Escape or ctrl+c, in the forms of terminals without and with a key protocol.
fn ends_paste(bytes: &[u8]) -> bool {
    matches!(bytes, b"\x1b" | b"\x03" | b"\x1b[27u" | b"\x1b[99;5u" | b"\x1b[27;5;99~")
}

/// How long answers are waited for that were asked at `asked_at`.
fn answers_until(asked_at: Option<Instant>, now: Instant) -> Instant {
    asked_at.map_or(now, |asked_at| (asked_at + ANSWER_AGE).min(now + ANSWER_LIMIT))
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => foreground::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How long the answer about the cursor is waited for; `is_silent` is whether the last one did not come.
fn cursor_limit(is_silent: bool) -> Duration {
    if is_silent { ANSWER_LIMIT } else { CURSOR_LIMIT }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;

    const ESCAPE_WAIT: Duration = Duration::from_millis(10);

    /// A broker that reads a pipe, and the pipe's write end.
    fn broker() -> (InputBroker, io::PipeWriter) {
        let (terminal, keys) = io::pipe().unwrap();
        let reader = Reader::start(File::from(std::os::fd::OwnedFd::from(terminal))).unwrap();
        (InputBroker { reader: Some(reader), ..InputBroker::new(ESCAPE_WAIT, None) }, keys)
    }

    fn key(code: KeyCode) -> InputEvent {
        InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn numbers_of_a_size_are_told_apart_by_the_size_that_the_system_knows() {
        let known = Size::new(90, 20);
        assert_eq!(SizeForm::of(known, known), Some(SizeForm::Rows));
        assert_eq!(SizeForm::of(Size::new(20, 90), known), Some(SizeForm::Columns));
        assert_eq!(SizeForm::Columns.read(Size::new(20, 90)), known);
        assert_eq!(SizeForm::of(Size::new(90, 21), known), None);
        assert_eq!(SizeForm::of(Size::new(30, 30), Size::new(30, 30)), None);
    }

    #[test]
    fn terminal_that_never_answers_is_not_waited_for_at_the_end() {
        let now = Instant::now();
        let left = |age: Duration| answers_until(Some(now), now + age).saturating_duration_since(now + age);
        assert_eq!(left(Duration::ZERO), ANSWER_LIMIT);
        assert_eq!(left(ANSWER_AGE - ANSWER_LIMIT / 2), ANSWER_LIMIT / 2);
        assert_eq!(left(ANSWER_AGE * 2), Duration::ZERO);
        assert_eq!(answers_until(None, now), now);
    }

    #[test]
    fn terminal_that_fell_silent_is_asked_less_and_waited_for_less_until_it_answers() {
        assert_eq!([false, true].map(cursor_limit), [CURSOR_LIMIT, ANSWER_LIMIT]);
        let (mut silent, keys) = broker();
        silent.size_form = Some(SizeForm::Rows);
        // A terminal that is gone does not answer either.
        drop(keys);
        assert_eq!(silent.wait_for_cursor(false), None);
        assert!(silent.is_silent && !silent.reports_size());
        let (mut answers, mut keys) = broker();
        answers.is_silent = true;
        keys.write_all(b"\x1b[3;5R").unwrap();
        assert_eq!(answers.wait_for_cursor(false), Some(Position::new(4, 2)));
        assert!(!answers.is_silent);
    }

    #[test]
    fn position_is_not_waited_for_after_the_last_answer() {
        let (mut broker, _keys) = broker();
        (broker.parser.n_asked, broker.asked_at) = (2, Some(Instant::now()));
        broker.understand(b"\x1b[?62;22c");
        assert!(broker.awaits_cursor(true));
        broker.understand(b"\x1b[?62;22c");
        assert!(!broker.awaits_cursor(true) && broker.awaits_cursor(false));
    }

    #[test]
    fn answers_that_are_due_do_not_reach_the_next_program() {
        let (mut broker, mut keys) = broker();
        broker.parser.n_asked = 1;
        broker.asked_at = Some(Instant::now());
        let late = std::thread::spawn(move || {
            for piece in [&b"a\x1b]11;rgb:1111/2222/3333"[..], b"\x07\x1b[?62", b";22c"] {
                keys.write_all(piece).unwrap();
            }
            keys
        });
        broker.pause();
        assert_eq!((broker.parser.n_asked, broker.answers.colors.background), (0, Some([0x11, 0x22, 0x33])));
        let kept: Vec<InputEvent> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
        assert_eq!(kept, [key(KeyCode::Char('a')), InputEvent::Answered]);
        drop(late.join());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_escape_is_a_key_after_the_wait() {
        let (mut broker, _keys) = broker();
        broker.understand(b"\x1b");
        let began = Instant::now();
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Esc));
        assert_eq!(began.elapsed(), ESCAPE_WAIT);
        assert_eq!(broker.escape_at, None, "nothing wakes an idle terminal");
    }

    #[tokio::test(start_paused = true)]
    async fn an_arrow_key_cut_in_two_is_no_escape() {
        let (mut broker, mut keys) = broker();
        broker.understand(b"\x1b");
        tokio::time::advance(ESCAPE_WAIT / 2).await;
        broker.understand(b"[A");
        assert_eq!((broker.next().await.unwrap(), broker.escape_at), (key(KeyCode::Up), None));
        // The time has passed, but the rest arrived before the broker checked.
        broker.understand(b"\x1b");
        keys.write_all(b"[B").unwrap();
        while broker.reader.as_ref().unwrap().is_empty() {
            std::thread::yield_now();
        }
        tokio::time::advance(ESCAPE_WAIT * 2).await;
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Down));
    }

    #[tokio::test(start_paused = true)]
    async fn paste_without_an_end_is_reported_and_ended_by_a_key() {
        let (mut broker, _keys) = broker();
        broker.understand(b"\x1b[200~never ");
        tokio::time::advance(PASTE_KEY_PAUSE / 2).await;
        // Part of the paste, like anything that comes without a pause.
        broker.understand(b"\x03");
        assert_eq!(broker.next().await.unwrap(), InputEvent::PasteWaits);
        broker.understand(b"ends\r");
        assert_eq!(broker.next().await.unwrap(), InputEvent::PasteWaits);
        broker.understand(b"\x1b");
        assert_eq!(broker.next().await.unwrap(), InputEvent::Paste("never ends\n".to_owned()));
        broker.understand(b"a\x1b[201~b");
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Char('a')));
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Char('b')));
        assert!(broker.paste.is_none(), "nothing wakes an idle terminal");
    }

    #[tokio::test(start_paused = true)]
    async fn key_after_a_short_pause_ends_a_paste_whose_end_is_lost() {
        let (mut broker, _keys) = broker();
        for (key, rest) in [(b"\x03".as_slice(), b"".as_slice()), (b"\x1b", b""), (b"\x1b", b"[201~")] {
            broker.understand(b"\x1b[200~lost");
            for typed in [b"k", b"k"] {
                tokio::time::advance(PASTE_KEY_PAUSE).await;
                broker.understand(typed);
            }
            tokio::time::advance(PASTE_KEY_PAUSE).await;
            broker.understand(key);
            broker.understand(rest);
            broker.understand(b"x");
            let events: Vec<InputEvent> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            let expected = [InputEvent::Paste("lostkk".to_owned()), self::key(KeyCode::Char('x'))];
            assert_eq!(events, expected, "{key:?} {rest:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_a_paste_that_comes_in_pieces_with_pauses_is_no_text() {
        let end = b"\x1b[201~";
        for (first, second) in (1..end.len()).flat_map(|at| (at..=end.len()).map(move |to| (at, to))) {
            let (mut broker, _keys) = broker();
            broker.understand(b"\x1b[200~pasted");
            for piece in [&end[..first], &end[first..second], &end[second..]] {
                tokio::time::advance(PASTE_KEY_PAUSE * 2).await;
                if !piece.is_empty() {
                    broker.understand(piece);
                }
            }
            broker.understand(b"x");
            let events: Vec<InputEvent> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            let expected = [InputEvent::Paste("pasted".to_owned()), key(KeyCode::Char('x'))];
            assert_eq!(events, expected, "{first} {second}");
        }
        // A key that is typed after Escape is only late.
        let (mut broker, _keys) = broker();
        broker.understand(b"\x1b[200~pasted");
        tokio::time::advance(PASTE_KEY_PAUSE).await;
        broker.understand(b"\x1b");
        broker.understand(b"[");
        assert_eq!(broker.next().await.unwrap(), InputEvent::Paste("pasted".to_owned()));
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Char('[')));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sequence_that_was_cut_off_takes_nothing_that_is_typed_later() {
        for cut in [b"\x1b]11;rgb:0c0".as_slice(), b"\x1bP1$r0", b"\x1b[12", "ü".as_bytes().split_at(1).0] {
            let (mut broker, _keys) = broker();
            broker.understand(cut);
            tokio::time::advance(ANSWER_AGE).await;
            for byte in b"hi" {
                broker.understand(&[*byte]);
            }
            let events: Vec<InputEvent> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            assert_eq!(events, ['h', 'i'].map(|c| key(KeyCode::Char(c))), "{cut:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn escape_waits_longer_while_answers_are_due() {
        let (mut broker, _keys) = broker();
        (broker.parser.n_asked, broker.asked_at) = (1, Some(Instant::now()));
        broker.understand(b"\x1b");
        assert_eq!(broker.escape_at, Some(Instant::now() + ANSWER_ESCAPE_WAIT));
        tokio::time::advance(ANSWER_AGE).await;
        broker.understand(b"\x1b");
        assert_eq!(broker.escape_at, Some(Instant::now() + ESCAPE_WAIT));
    }

    #[tokio::test(start_paused = true)]
    async fn escape_is_the_start_of_more_in_a_terminal_with_kitty_keys() {
        let (mut broker, _keys) = broker();
        broker.answers.has_kitty_keys = true;
        broker.understand(b"\x1b");
        tokio::time::advance(KITTY_ESCAPE_WAIT - Duration::from_millis(1)).await;
        assert_eq!(broker.escape_at, Some(Instant::now() + Duration::from_millis(1)));
        broker.understand(b"[200~pasted\x1b[201~");
        broker.understand(b"\x1b[27u");
        let events: Vec<InputEvent> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
        assert_eq!(events, [InputEvent::Paste("pasted".to_owned()), key(KeyCode::Esc)]);
    }

    #[tokio::test]
    async fn a_return_with_escape_is_shift_enter_only_in_a_terminal_that_sends_alt_enter_otherwise() {
        let (mut broker, _keys) = broker();
        let enter = |modifiers| InputEvent::Key(KeyEvent::new(KeyCode::Enter, modifiers));
        broker.understand(b"\x1b\r");
        assert_eq!(broker.ready.pop_front(), Some(enter(KeyModifiers::ALT)));
        broker.understand(b"\x1b[?5u");
        assert_eq!(broker.ready.pop_front(), Some(InputEvent::Answered));
        for (sent, modifiers) in [
            (b"\x1b\r".as_slice(), KeyModifiers::SHIFT),
            (b"\x1b[13;3u", KeyModifiers::ALT),
            (b"\r", KeyModifiers::NONE),
        ] {
            broker.understand(sent);
            assert_eq!(broker.ready.pop_front(), Some(enter(modifiers)), "{sent:?}");
        }
        // In two pieces.
        broker.understand(b"\x1b");
        broker.understand(b"\r");
        assert_eq!(broker.ready.pop_front(), Some(enter(KeyModifiers::SHIFT)));
    }

    #[tokio::test(start_paused = true)]
    async fn late_answer_that_comes_in_pieces_is_no_text() {
        let (mut broker, _keys) = broker();
        for (start, rest) in [
            ("\x1bP", ">|foo 1.0\x1b\\"),
            ("\x1b]", "7501;1\x1b\\"),
            ("\x1b]1", "1;rgb:0000/0000/0000\x1b\\"),
            ("\x1b]4", ";3;rgb:0000/0000/0000\x1b\\"),
        ] {
            (broker.parser.n_asked, broker.asked_at) = (9, Some(Instant::now()));
            tokio::time::advance(Duration::from_millis(300)).await;
            broker.understand(start.as_bytes());
            let late = Instant::now() + Duration::from_millis(500);
            assert!(broker.escape_at.is_none_or(|at| at > late), "{start}");
            tokio::time::advance(Duration::from_millis(500)).await;
            broker.understand(rest.as_bytes());
            let events: Vec<_> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            assert!(events.iter().all(|event| *event == InputEvent::Answered), "{start}: {events:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_sequence_whose_escape_was_taken_for_a_key_is_no_text() {
        let (mut broker, _keys) = broker();
        let late = async |broker: &mut InputBroker, rest: &[u8], after: Duration| {
            broker.understand(b"\x1b");
            assert_eq!(broker.next().await.unwrap(), key(KeyCode::Esc));
            tokio::time::advance(after).await;
            broker.understand(rest);
            std::iter::from_fn(|| broker.ready.pop_front()).collect::<Vec<_>>()
        };
        let soon = TAIL_LIMIT / 2;
        assert_eq!(late(&mut broker, b"[A", soon).await, [key(KeyCode::Up)]);
        assert_eq!(late(&mut broker, b"OBx", soon).await, [key(KeyCode::Down), key(KeyCode::Char('x'))]);
        let pasted = InputEvent::Paste("OK".to_owned());
        assert_eq!(late(&mut broker, b"[200~OK\x1b[201~", soon).await, [pasted]);
        assert_eq!(late(&mut broker, b"]11;rgb:1111/2222/3333\x07", soon).await, [InputEvent::Answered]);
        // Each byte by itself.
        assert_eq!(late(&mut broker, b"[", TAIL_BYTE_LIMIT / 2).await, []);
        for byte in b"200~O" {
            tokio::time::advance(TAIL_BYTE_LIMIT / 2).await;
            broker.understand(&[*byte]);
        }
        broker.understand(b"K\x1b[201~");
        assert_eq!(broker.ready.pop_front(), Some(InputEvent::Paste("OK".to_owned())));
        let strings = [
            "]11;rgb:1111/2222/3333\x07",
            "P>|XTerm(379)\x1b\\",
            "_Gi=1;OK\x1b\\",
            "P1+r524742=38\x1b\\",
            "P1$r0m\x1b\\",
        ];
        for string in strings {
            broker.understand(b"\x1b");
            assert_eq!(broker.next().await.unwrap(), key(KeyCode::Esc));
            for byte in string.as_bytes() {
                broker.understand(&[*byte]);
                tokio::time::advance(START_WAIT / 2).await;
            }
            let events: Vec<_> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            assert!(events.iter().all(|event| *event == InputEvent::Answered), "{string}: {events:?}");
        }
        // In two pieces, the second of them late.
        for (first, rest) in [
            (b"\x1b]1".as_slice(), b"1;rgb:1111/2222/3333\x1b\\".as_slice()),
            (b"\x1b]11", b";rgb:1111/2222/3333\x07"),
            (b"\x1bP>", b"|XTerm(379)\x1b\\"),
        ] {
            broker.understand(first);
            assert_eq!(
                tokio::time::timeout(START_WAIT * 5, broker.next()).await.ok().map(Result::unwrap),
                None
            );
            broker.understand(rest);
            let events: Vec<_> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            assert!(events.iter().all(|event| *event == InputEvent::Answered), "{events:?}");
        }
        // So late that the first one was taken for keys.
        for (first, rest) in [
            (b"\x1b]".as_slice(), b"11;rgb:1111/2222/3333\x1b\\".as_slice()),
            (b"\x1b]1", b"1;rgb:1111/2222/3333\x07"),
            (b"\x1bP", b">|XTerm(379)\x1b\\"),
            (b"\x1bP", b"1+r524742=38"),
            (b"\x1b_", b"Gi=1;OK\x1b\\"),
        ] {
            broker.understand(first);
            while broker.escape_at.is_some() {
                broker.next().await.unwrap();
            }
            broker.ready.clear();
            tokio::time::advance(ANSWER_AGE / 2).await;
            let end = rest.iter().position(|byte| *byte < 0x20).unwrap_or(rest.len() / 2);
            broker.understand(&rest[..end]);
            broker.understand(&rest[end..]);
            let events: Vec<_> = std::iter::from_fn(|| broker.ready.pop_front()).collect();
            assert!(events.iter().all(|event| *event == InputEvent::Answered), "{events:?}");
        }
        broker.understand(b"\x1b]");
        broker.next().await.unwrap();
        broker.understand(b"1;");
        assert_eq!(std::iter::from_fn(|| broker.ready.pop_front()).count(), 2, "typed together");
        assert_eq!(late(&mut broker, b"P", TAIL_BYTE_LIMIT / 2).await, []);
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Char('P')));
        // Typed by somebody.
        for keys in ["[x]", "[1]", "OA", "OH", "[<5m", "P>"] {
            broker.understand(b"\x1b");
            assert_eq!(broker.next().await.unwrap(), key(KeyCode::Esc));
            for typed in keys.chars() {
                tokio::time::advance(soon).await;
                broker.understand(&[typed as u8]);
                let shown = tokio::time::timeout(START_WAIT * 2, broker.next()).await.unwrap().unwrap();
                assert!(matches!(shown, InputEvent::Key(key) if key.code == KeyCode::Char(typed)), "{keys}");
            }
        }
        let at_once = TAIL_BYTE_LIMIT / 2;
        assert_eq!(late(&mut broker, b"[", at_once).await, []);
        assert_eq!(broker.next().await.unwrap(), key(KeyCode::Char('[')));
        assert_eq!(broker.escape_at, None);
        assert_eq!(late(&mut broker, b"[", at_once).await, []);
        broker.understand(b"\r");
        assert_eq!(std::iter::from_fn(|| broker.ready.pop_front()).count(), 2);
        assert_eq!(late(&mut broker, b"[A", TAIL_LIMIT).await.len(), 2);
        // What nobody types is known at any time.
        let late_answers = [b"]11;rgb:1111/2222/3333\x07".as_slice(), b"[?62;4c"];
        for answer in late_answers {
            assert_eq!(late(&mut broker, answer, TAIL_LIMIT * 40).await, [InputEvent::Answered]);
        }
        let pasted = InputEvent::Paste("late".to_owned());
        assert_eq!(late(&mut broker, b"[200~late\x1b[201~", TAIL_LIMIT * 40).await, [pasted]);
        assert_eq!(late(&mut broker, b"[201~", TAIL_LIMIT * 40).await, []);
        // Longer than any key.
        let digits = [b"[".as_slice(), &[b'1'; 40]].concat();
        assert_eq!(late(&mut broker, &digits, soon).await.len(), digits.len());
        // Only what comes right after the Escape.
        assert_eq!(late(&mut broker, b"x", soon).await, [key(KeyCode::Char('x'))]);
        broker.understand(b"[A");
        assert_eq!(std::iter::from_fn(|| broker.ready.pop_front()).count(), 2);
    }
}
