//! Fullscreen with the world that reads for it, without a terminal.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Size;
use ratatui::style::Modifier;

use crate::agent::{AgentEvent, ToolOutput};
use crate::ai::{Api, AssistantMessage, BlockKind, Catalog, StreamEvent, ToolCall};
use crate::config::EffectiveSettings;
use crate::session::{
    Entry, EntryBody, EntryId, Header, NoticeLevel, Opened, SessionEvent, SessionState, SessionStore,
    SessionTree,
};
use crate::tui::markdown::Highlighter;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::{Appearance, ColorDepth, Theme};
use crate::tui::widgets::DialogCx;

use super::super::app::AppParts;
use super::super::keybindings;
use super::super::overlays::ForkPoints;
use super::super::sections::{self, ReadEffect};
use super::super::transcript::{Transcript, ViewSettings};
use super::*;

/// The last entries, which the transcript has when a session is opened.
const TAIL: usize = 40;

/// A session of prompts, each with an answer.
fn session(texts: &[(String, String)]) -> SessionTree {
    session_with(texts, "")
}

/// The same with a thought before each answer, unless it is empty.
fn session_with(texts: &[(String, String)], thought: &str) -> SessionTree {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, r#"{{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}}"#).unwrap();
    let mut parent = "null".to_owned();
    let time = r#""timestamp":"2026-11-21T09:23:47.280Z""#;
    for (n, (prompt, answer)) in texts.iter().enumerate() {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (prompt, answer) = (quoted(prompt), quoted(answer));
        let thinking = match thought {
            "" => String::new(),
            thought => format!(r#"{{"type":"thinking","thinking":"{thought} {n:04}"}},"#),
        };
        writeln!(
            file,
            r#"{{"type":"message","id":"u{n}","parentId":{parent},{time},"message":{{"role":"user","content":{prompt}}}}}"#
        )
        .unwrap();
        writeln!(
            file,
            r#"{{"type":"message","id":"a{n}","parentId":"u{n}",{time},"message":{{"role":"assistant","content":[{thinking}{{"type":"text","text":{answer}}}],"api":"x","provider":"x","model":"x","stopReason":"stop","timestamp":0}}}}"#
        )
        .unwrap();
        parent = format!("\"a{n}\"");
    }
    let none = || -> Header { unreachable!("the file has a header") };
    SessionStore::open(file.path(), none).unwrap().tree()
}

fn numbered(n_prompts: usize, n_lines: usize) -> Vec<(String, String)> {
    let text = |n: usize| {
        let lines: Vec<String> = (0..n_lines).map(|line| format!("answer {n:04} line {line}")).collect();
        (format!("question {n:04}"), lines.join("\n\n"))
    };
    (0..n_prompts).map(text).collect()
}

struct Stage {
    app: App,
    tree: SessionTree,
    size: Size,
    copied: Vec<String>,
}

/// Rows at the top of the dock.
const BLANK_ROWS: usize = 2;

impl Stage {
    fn new(texts: &[(String, String)], size: Size) -> Self {
        Self::of(session(texts), size)
    }

    fn of(tree: SessionTree, size: Size) -> Self {
        let path = tree.path(tree.leaf());
        let n_earlier = path.len().saturating_sub(TAIL);
        let opened = Opened {
            tail: tree.read_all(&path[n_earlier..]),
            n_earlier: Some(n_earlier),
            ..Opened::default()
        };
        let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
        let mut transcript = Transcript::new(Highlighter::new(), view);
        transcript.header("pi", "1", &["hint"]);
        transcript.open(&opened, Path::new("/"));
        let catalog = Catalog::builtin();
        let session = SessionState::of(catalog.get("demo", "pi").unwrap(), Path::new("/"));
        let mut app = App::new(AppParts {
            session: session.into(),
            transcript,
            keymap: keybindings::default_keymap(),
            theme: Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap(),
            models: vec![],
            home: None,
        });
        set(&mut app, true);
        Self { app, tree, size, copied: Vec::new() }
    }

    fn numbered(n_prompts: usize, n_lines: usize) -> Self {
        Self::new(&numbered(n_prompts, n_lines), Size::new(60, 20))
    }

    fn settings(mut self, change: impl FnOnce(&mut crate::config::Settings)) -> Self {
        let mut settings = EffectiveSettings::default();
        change(&mut settings.values);
        let session = SessionState { settings: settings.into(), ..(*self.app.session).clone() };
        self.app.session = session.into();
        self
    }

    /// The rows above the editor, once everything they need has been read.
    fn rows(&mut self) -> Vec<Row> {
        loop {
            let page = usize::from(self.size.height);
            let (rows, _) = render(&mut self.app, self.size.width, page, BLANK_ROWS);
            assert_eq!(rows.len(), page);
            assert!(rows.iter().all(|row| row.width() <= usize::from(self.size.width)));
            let wanted = take_wanted(&mut self.app);
            let moves = !self.view().moves.is_empty();
            if wanted.is_empty() && !moves {
                return rows;
            }
            for effect in wanted {
                self.perform(effect);
            }
        }
    }

    fn screen(&mut self) -> Vec<String> {
        self.rows().iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    fn perform(&mut self, effect: WorldEffect) {
        let WorldEffect::Read(Reader::Fullscreen, effect) = effect else { panic!("{effect:?}") };
        let done = match effect {
            ReadEffect::Tree => ReadDone::Tree(self.tree.clone()),
            ReadEffect::Sections { tree, sections } => {
                let read = |(n, entries): (usize, Vec<usize>)| (n, tree.read_all(&entries));
                ReadDone::Sections { sections: sections.into_iter().map(read).collect(), tree }
            }
            ReadEffect::Search { tree, path, query } => {
                let positions = sections::search(&tree, &path, &query);
                ReadDone::Found { tree, query, positions }
            }
        };
        let mut out = Vec::new();
        on_done(&mut self.app, done, &mut out);
        self.take(out);
    }

    fn take(&mut self, out: Vec<Effect>) {
        for effect in out {
            if let Effect::Screen(ScreenEffect::Copy(text)) = effect {
                self.copied.push(text);
            }
        }
    }

    fn view(&self) -> &Fullscreen {
        self.app.fullscreen.as_ref().unwrap()
    }

    fn input(&mut self, input: &InputEvent) -> bool {
        let mut out = Vec::new();
        let is_used = on_input(&mut self.app, input, &mut out);
        self.take(out);
        is_used
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<String> {
        self.input(&InputEvent::Key(KeyEvent::new(code, modifiers)));
        self.screen()
    }

    fn type_text(&mut self, text: &str) -> Vec<String> {
        for c in text.chars() {
            self.input(&InputEvent::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
        self.screen()
    }

    fn page_up(&mut self) -> Vec<String> {
        self.press(KeyCode::PageUp, KeyModifiers::NONE)
    }

    fn mouse(&mut self, kind: MouseEventKind, column: usize, row: usize) {
        let (column, row) = (u16::try_from(column).unwrap(), u16::try_from(row).unwrap());
        self.input(&InputEvent::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self.screen();
    }

    fn click(&mut self, column: usize, row: usize) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
        self.mouse(MouseEventKind::Up(MouseButton::Left), column, row);
    }

    fn drag(&mut self, from: (usize, usize), to: (usize, usize)) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), from.0, from.1);
        self.mouse(MouseEventKind::Drag(MouseButton::Left), to.0, to.1);
        self.mouse(MouseEventKind::Up(MouseButton::Left), to.0, to.1);
    }

    /// The row of the screen that has `text`, and its column there.
    #[track_caller]
    fn find(&mut self, text: &str) -> (usize, usize) {
        let screen = self.screen();
        let found = screen.iter().enumerate().find_map(|(y, row)| {
            let at = row.find(text)?;
            Some((crate::tui::text::width(&row[..at]), y))
        });
        found.unwrap_or_else(|| panic!("{text} is not in {screen:#?}"))
    }

    /// Adds a message of the program below everything.
    fn append(&mut self, text: &str) {
        self.app.transcript.notice(NoticeLevel::Warning, text);
    }
}

fn has(screen: &[String], text: &str) -> bool {
    screen.iter().any(|row| row.contains(text))
}

// Scrolling.

#[test]
fn place_is_kept_while_the_main_screen_is_shown() {
    // In the transcript, and in an earlier part of the session.
    for n_pages in [6, 40] {
        let mut stage = Stage::numbered(60, 12);
        stage.screen();
        for _ in 0..n_pages {
            stage.page_up();
        }
        let first = |screen: &[String]| {
            let row = screen.iter().find(|row| row.contains("answer"))?;
            Some(row.trim_end_matches(['│', '█', ' ']).to_owned())
        };
        let before = first(&stage.screen());
        for width in [60, 40] {
            set(&mut stage.app, false);
            // The main screen has another width, and more follows.
            let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
            stage.app.transcript.layout(width + 1, &theme, stage.app.now);
            stage.append("more");
            stage.app.transcript.layout(width + 1, &theme, stage.app.now);
            stage.size.width = width;
            set(&mut stage.app, true);
            let screen = stage.screen();
            assert_eq!(first(&screen), before, "{n_pages}: {screen:#?}");
        }
        set(&mut stage.app, false);
        set(&mut stage.app, true);
        stage.press(KeyCode::End, KeyModifiers::CONTROL);
        let end = stage.screen();
        assert!(has(&end, "more"), "{end:#?}");
        set(&mut stage.app, false);
        set(&mut stage.app, true);
        assert_eq!(stage.screen(), end);
    }
}

#[test]
fn the_end_is_followed_until_the_user_scrolls_up_and_again_from_the_end_on() {
    let mut stage = Stage::numbered(10, 3);
    assert!(has(&stage.screen(), "answer 0009 line 2"));
    stage.append("new text");
    assert!(has(&stage.screen(), "new text"));
    let before = stage.page_up();
    assert!(!has(&before, "new text") && has(&before, "↓ latest"), "{before:#?}");
    stage.append("newer text");
    let after = stage.screen();
    // The handle of the scrollbar moves.
    let text = |rows: &[String]| -> Vec<String> {
        rows[..19].iter().map(|row| row.trim_end_matches(['│', '█', ' ']).to_owned()).collect()
    };
    assert_eq!(text(&after), text(&before), "what is read stays where it is");
    assert!(after[19].contains("new rows"), "{after:#?}");
    assert!(has(&stage.press(KeyCode::End, KeyModifiers::CONTROL), "newer text"));
    stage.append("newest text");
    assert!(has(&stage.screen(), "newest text"));
}

#[test]
fn who_sends_something_sees_the_end() {
    for sent in ["hello", "!ls"] {
        let mut stage = Stage::numbered(10, 3);
        assert!(!has(&stage.page_up(), "answer 0009 line 2"));
        let mut out = Vec::new();
        stage.app.on_input(&InputEvent::Paste(sent.to_owned()), &mut out);
        assert!(!has(&stage.screen(), "answer 0009 line 2"), "to type is not to send");
        stage.app.on_input(&InputEvent::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)), &mut out);
        assert!(has(&stage.screen(), "answer 0009 line 2"), "{sent}");
    }
}

#[test]
fn every_entry_of_a_long_session_is_reached_by_scrolling_and_few_stay_in_memory() {
    let mut stage = Stage::numbered(400, 3);
    let mut seen: Vec<usize> = Vec::new();
    for n in 0..2_000 {
        let screen = if n == 0 { stage.screen() } else { stage.page_up() };
        seen.extend(
            screen
                .iter()
                .filter_map(|row| row.trim().strip_prefix("question ")?.get(..4)?.parse::<usize>().ok()),
        );
        let n_read = stage.view().earlier.list.sections.iter().filter(|section| section.is_read()).count();
        assert!(n_read < 80, "{n_read}");
        if stage.view().top == Some(scrollback::Spot { part: 0, row: 0 }) {
            break;
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

/// A session of which the first entries were shown when it was opened, and the others arrived
/// since: `n_fullscreen` prompts with their answers in fullscreen, those before on the main screen.
fn grown(n_prompts: usize, n_fullscreen: usize) -> (Stage, usize) {
    grown_with(n_prompts, n_fullscreen, |_, _| {})
}

/// The same; `remark` is called after each prompt and answer that arrived, with its number.
fn grown_with(
    n_prompts: usize,
    n_fullscreen: usize,
    remark: impl Fn(&mut Transcript, usize),
) -> (Stage, usize) {
    let mut stage = Stage::numbered(n_prompts, 12);
    let path = stage.tree.path(stage.tree.leaf());
    let entries = stage.tree.read_all(&path);
    let opened = Opened { tail: entries[..TAIL].to_vec(), n_earlier: Some(0), ..Opened::default() };
    stage.app.transcript.open(&opened, Path::new("/"));
    set(&mut stage.app, false);
    let mut most = 0;
    for (n, entry) in entries.iter().enumerate().skip(TAIL) {
        if n == entries.len() - 2 * n_fullscreen {
            stage.app.transcript.on_pushed(0);
            set(&mut stage.app, true);
        }
        let EntryBody::Message { message, .. } = &entry.body else { panic!() };
        let crate::session::SessionMessage::Model(message) = message else { panic!() };
        let event = crate::agent::AgentEvent::MessageEnd(std::sync::Arc::clone(message));
        stage.app.transcript.apply(&SessionEvent::Agent(event), std::time::Duration::ZERO);
        remark(&mut stage.app.transcript, n);
        if stage.app.fullscreen.is_some() {
            stage.rows();
        } else {
            let (theme, transcript) = (&stage.app.theme, &mut stage.app.transcript);
            transcript.layout(stage.size.width, theme, std::time::Duration::ZERO);
            let pushed = transcript.len().saturating_sub(20).max(1);
            transcript.on_pushed(pushed);
        }
        most = most.max(stage.app.transcript.n_kept().1);
    }
    (stage, most)
}

/// The numbers of prompts that are seen while paging up from the end to the start.
fn prompts_above(stage: &mut Stage) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let mut screen = stage.screen();
    loop {
        let numbers = screen
            .iter()
            .filter_map(|row| row.trim().strip_prefix("question ")?.get(..4)?.parse::<usize>().ok());
        // Each page has two rows of the one before it.
        for number in numbers.collect::<Vec<_>>().into_iter().rev() {
            if seen.last() != Some(&number) {
                seen.push(number);
            }
        }
        if stage.view().top == Some(scrollback::Spot { part: 0, row: 0 }) {
            return seen;
        }
        screen = stage.page_up();
    }
}

#[test]
fn rows_far_from_the_screen_leave_memory_and_are_read_again_where_they_were() {
    // All in fullscreen, and half of them on the main screen before.
    for n_fullscreen in [670, 350] {
        let (mut stage, most) = grown(700, n_fullscreen);
        // Each prompt and its answer have 28 rows, so that 20,000 would be kept otherwise.
        assert!((9_000..11_000).contains(&most), "{most}");
        let (n_cells, _) = stage.app.transcript.n_kept();
        assert!(n_cells < 900, "{n_cells}");
        assert!(has(&stage.screen(), "answer 0699 line 11"));
        let seen = prompts_above(&mut stage);
        let expected: Vec<usize> = (0..700).rev().collect();
        let first_wrong = seen.iter().zip(&expected).find(|(seen, expected)| seen != expected);
        assert_eq!((seen.len(), first_wrong), (700, None));
        let n_read = stage.view().earlier.list.sections.iter().filter(|section| section.is_read()).count();
        assert!(n_read < 80, "{n_read}");
        assert!(has(&stage.press(KeyCode::End, KeyModifiers::CONTROL), "answer 0699 line 11"));
    }
}

/// Notices after prompts and after answers.
fn remark(transcript: &mut Transcript, n: usize) {
    let what = if n.is_multiple_of(2) { "notice" } else { "another notice" };
    transcript.notice(crate::session::NoticeLevel::Warning, &format!("{what} {:04}", n / 2));
}

#[test]
fn notices_that_left_memory_are_read_again_where_they_were() {
    for n_fullscreen in [670, 350] {
        let (mut stage, _) = grown_with(700, n_fullscreen, remark);
        assert!(stage.app.transcript.n_kept().0 < 1_800);
        let mut seen: Vec<String> = Vec::new();
        let mut screen = stage.screen();
        loop {
            // The label that leads to the end covers a row that was seen before.
            let rows = screen.iter().filter(|row| !row.contains("↓ latest")).map(|row| {
                // Without the scrollbar and the label that leads to the end.
                let text = row.trim().split("  ").next().unwrap();
                text.trim_end_matches(['│', '█', ' ']).trim_start_matches("Warning: ")
            });
            let shown = rows.filter(|row| {
                ["question", "notice", "another notice"].iter().any(|what| row.starts_with(what))
                    || row.ends_with("line 11")
            });
            for row in shown.map(str::to_owned).collect::<Vec<_>>().into_iter().rev() {
                // Each page has two rows of the one before it.
                if !seen.iter().rev().take(4).any(|last| *last == row) {
                    seen.push(row);
                }
            }
            if stage.view().top == Some(scrollback::Spot { part: 0, row: 0 }) {
                break;
            }
            screen = stage.page_up();
        }
        let of = |n: usize| {
            let all = [
                format!("question {n:04}"),
                format!("notice {n:04}"),
                format!("answer {n:04} line 11"),
                format!("another notice {n:04}"),
            ];
            // The first ones were there when the session was opened.
            let was_opened = n < TAIL / 2;
            all.into_iter()
                .enumerate()
                .filter(move |(what, _)| !was_opened || what % 2 == 0)
                .map(|(_, row)| row)
        };
        let expected: Vec<String> = (0..700).flat_map(of).rev().collect();
        let first_wrong = seen.iter().zip(&expected).find(|(seen, expected)| seen != expected);
        assert_eq!((seen.len(), first_wrong), (expected.len(), None));
    }
}

#[test]
fn a_search_finds_notices_that_left_memory() {
    let (mut stage, _) = grown_with(700, 670, remark);
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    stage.type_text("notice 0033");
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(has(&screen, "Warning: notice 0033"), "{screen:#?}");
}

#[test]
fn what_the_user_looks_at_stays_in_memory_while_output_arrives() {
    let (mut stage, _) = grown(300, 280);
    let mut before = stage.screen();
    for _ in 0..100 {
        before = stage.page_up();
    }
    let text = |rows: &[String]| -> Vec<String> {
        rows[..19].iter().map(|row| row.trim_end_matches(['│', '█', ' ']).to_owned()).collect()
    };
    for n in 0..6_000 {
        stage.append(&format!("new text {n}"));
    }
    assert_eq!(text(&stage.screen()), text(&before));
}

#[test]
fn leaving_with_rows_that_left_memory_begins_with_a_line_about_them() {
    let (mut stage, _) = grown(700, 670);
    let (theme, transcript) = (&stage.app.theme, &mut stage.app.transcript);
    let now = std::time::Duration::ZERO;
    let none = super::super::transcript::LeftRows::default();
    let row = super::super::transcript::continue_after(transcript, &none, 60, theme, now);
    assert_eq!(row, 0);
    let rows: Vec<String> = (0..transcript.len()).map(|row| transcript.row(row).text()).collect();
    let lead = rows.iter().position(|row| row.contains("earlier entries hidden (/transcript to show)"));
    assert!(lead.is_some_and(|at| at < 8), "{:#?}", &rows[..10]);
    let count = |text: &str| rows.iter().filter(|row| row.trim() == text).count();
    assert_eq!((count("question 0699"), count("question 0600"), count("question 0025")), (1, 1, 0));
    assert!(rows.len() < 12_000, "{}", rows.len());
}

#[test]
fn pages_up_and_down_show_the_same_rows_in_both_directions() {
    let mut stage = Stage::numbered(60, 3);
    let mut up = vec![stage.screen()];
    for _ in 0..30 {
        up.push(stage.page_up());
    }
    for expected in up.iter().rev().skip(1) {
        let screen = stage.press(KeyCode::PageDown, KeyModifiers::NONE);
        // The label and the scrollbar differ only at the end.
        let text = |rows: &[String]| -> Vec<String> {
            rows[..19].iter().map(|row| row.trim_end_matches(['│', '█', ' ']).to_owned()).collect()
        };
        assert_eq!(text(&screen), text(expected));
    }
    assert_eq!(stage.view().top, None, "the end is followed again");
}

#[test]
fn start_and_end_are_one_key_away() {
    let mut stage = Stage::numbered(300, 2);
    stage.screen();
    assert!(has(&stage.press(KeyCode::Home, KeyModifiers::CONTROL), "question 0000"));
    assert!(has(&stage.press(KeyCode::End, KeyModifiers::CONTROL), "answer 0299 line 1"));
}

#[test]
fn the_header_is_above_a_session_that_begins_with_it() {
    let mut stage = Stage::numbered(10, 3);
    let screen = stage.press(KeyCode::Home, KeyModifiers::CONTROL);
    assert!(screen[1].contains("pi"), "{screen:#?}");
}

#[test]
fn the_row_at_the_top_stays_when_the_width_changes() {
    let words: String = (0..400).fold(String::new(), |mut text, n| {
        let _ = write!(text, "word{n:03} ");
        text
    });
    let texts: Vec<_> = (0..30).map(|n| (format!("question {n:04}"), words.clone())).collect();
    // In the transcript, and in an earlier section.
    for n_pages in [8, 90] {
        let mut stage = Stage::new(&texts, Size::new(60, 20));
        for _ in 0..n_pages {
            stage.page_up();
        }
        let top = stage.screen()[0].clone();
        let first = top.split_whitespace().next().unwrap().to_owned();
        let part = stage.view().top.unwrap().part;
        for width in [100, 33, 200, 21] {
            stage.size.width = width;
            let screen = stage.screen();
            assert_eq!(stage.view().top.unwrap().part, part);
            assert!(screen[0].contains(&first), "{width}: {first} is not in {:?}", screen[0]);
        }
    }
}

#[test]
fn another_width_brings_no_new_rows() {
    let words = "word ".repeat(200);
    let texts: Vec<_> = (0..6).map(|n| (format!("question {n}"), words.clone())).collect();
    let mut stage = Stage::new(&texts, Size::new(80, 20));
    stage.screen();
    stage.page_up();
    for width in [40, 24, 120] {
        stage.size.width = width;
        assert!(!has(&stage.screen(), "new rows") && has(&stage.screen(), "↓ latest"), "{width}");
    }
    stage.append("new text");
    assert!(has(&stage.screen(), "2 new rows"), "{:#?}", stage.screen());
}

#[test]
fn prompts_are_visited_in_both_directions_beyond_the_transcript() {
    let mut stage = Stage::numbered(60, 12);
    stage.screen();
    for n in (0..60).rev() {
        let screen = stage.press(KeyCode::Up, KeyModifiers::CONTROL);
        let shown: Vec<&String> = screen[..4].iter().filter(|row| row.contains("question")).collect();
        assert!(shown.len() == 1 && shown[0].contains(&format!("question {n:04}")), "{n}: {screen:#?}");
    }
    for n in 1..58 {
        let screen = stage.press(KeyCode::Down, KeyModifiers::CONTROL);
        assert!(screen[..4].iter().any(|row| row.contains(&format!("question {n:04}"))), "{n}: {screen:#?}");
    }
}

#[test]
fn the_wheel_scrolls_as_the_setting_says() {
    let mut stage = Stage::numbered(30, 6).settings(|settings| settings.fullscreen.wheel_lines = Some(3));
    let before = stage.screen();
    stage.mouse(MouseEventKind::ScrollUp, 3, 3);
    let after = stage.screen();
    let text = |row: &String| row.trim_end_matches(['│', '█', ' ']).to_owned();
    assert_eq!(
        after[3..19].iter().map(text).collect::<Vec<_>>(),
        before[..16].iter().map(text).collect::<Vec<_>>()
    );
    stage.mouse(MouseEventKind::ScrollDown, 3, 3);
    assert_eq!(stage.view().top, None);
}

#[test]
fn the_wheel_moves_in_a_list_and_stops_at_its_ends() {
    let mut stage = Stage::numbered(30, 6).settings(|settings| settings.fullscreen.wheel_lines = Some(2));
    let prompts = (0..5).map(|n| (EntryId::new(&n.to_string()), format!("prompt {n}"))).collect();
    stage.app.dialogs.show(ForkPoints::new(&stage.app.session.id.clone(), prompts));
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    let mut turn = |down: bool| {
        stage.mouse(if down { MouseEventKind::ScrollDown } else { MouseEventKind::ScrollUp }, 3, 3);
        let cx = DialogCx { width: 60, max_rows: 20, theme: &theme, keymap: &stage.app.keymap };
        let (rows, _) = stage.app.dialogs.render(&cx).unwrap();
        let selected = rows.iter().map(Row::text).find(|row| row.starts_with('→')).unwrap();
        selected.trim_end().chars().next_back().unwrap()
    };
    let order: String = [false, false, false, false, true, true, true].map(&mut turn).into_iter().collect();
    assert_eq!(order, "2000244");
    assert_eq!(stage.view().top, None, "the transcript stays");
}

#[test]
fn the_scrollbar_is_shown_as_the_setting_says_and_can_be_dragged() {
    use crate::config::Scrollbar;
    let bar = |stage: &mut Stage| stage.screen().iter().filter(|row| row.ends_with(['█', '│'])).count();
    for (scrollbar, at_end, scrolled) in
        [(Scrollbar::Auto, 0, 20), (Scrollbar::Always, 20, 20), (Scrollbar::Hidden, 0, 0)]
    {
        let mut stage = Stage::numbered(30, 6).settings(|settings| settings.fullscreen.scrollbar = scrollbar);
        assert_eq!(bar(&mut stage), at_end, "{scrollbar:?}");
        stage.page_up();
        assert_eq!(bar(&mut stage), scrolled, "{scrollbar:?}");
    }
    let words = vec![("a question of words ".repeat(30), "many words of an answer ".repeat(90)); 2];
    for width in [40, 60] {
        let mut stage = Stage::new(&words, Size::new(width, 20));
        stage.screen();
        stage.page_up();
        // The bar does not take the free column beside the text.
        for row in &stage.screen()[..19] {
            let beside = row.trim_end_matches(['█', '│']);
            assert!(beside.len() < row.len() && beside.ends_with(' '), "{row:?}");
        }
    }
    let mut stage =
        Stage::numbered(300, 3).settings(|settings| settings.fullscreen.scrollbar = Scrollbar::Always);
    stage.screen();
    stage.mouse(MouseEventKind::Down(MouseButton::Left), 59, 0);
    assert!(has(&stage.screen(), "question 0000"), "{:#?}", stage.screen());
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), 59, 10);
    let screen = stage.screen();
    let shown =
        screen.iter().find_map(|row| row.trim().strip_prefix("answer ")?.get(..4)?.parse::<usize>().ok());
    assert!((100..200).contains(&shown.unwrap()), "{screen:#?}");
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), 59, 19);
    stage.mouse(MouseEventKind::Up(MouseButton::Left), 59, 19);
    assert!(has(&stage.screen(), "answer 0299 line 2"));
    assert_eq!(stage.copied, [""; 0]);
}

#[test]
fn the_label_leads_to_the_end_with_a_click() {
    let mut stage = Stage::numbered(30, 6);
    stage.screen();
    let screen = stage.page_up();
    let column = crate::tui::text::width(screen[19].split_once('↓').unwrap().0);
    stage.click(column, 19);
    assert_eq!(stage.view().top, None);
    assert!(has(&stage.screen(), "answer 0029 line 5"));
}

#[test]
fn the_work_of_a_frame_does_not_grow_with_the_rows_behind_it() {
    let renders = |n_lines: usize| {
        let mut stage = Stage::numbered(TAIL / 2, n_lines);
        stage.screen();
        stage.press(KeyCode::Home, KeyModifiers::CONTROL);
        stage.press(KeyCode::End, KeyModifiers::CONTROL);
        let before = stage.app.transcript.renders();
        for n in 0..20 {
            stage.append(&format!("text {n}"));
            stage.screen();
        }
        stage.page_up();
        stage.app.transcript.renders() - before
    };
    assert_eq!(renders(400), renders(4));
}

#[test]
fn tiny_screens_and_empty_sessions_are_survived() {
    for (width, height) in [(1, 0), (1, 1), (3, 2), (8, 3), (200, 60)] {
        for n_prompts in [0, 1, 60] {
            let mut stage = Stage::new(&numbered(n_prompts, 2), Size::new(width, height));
            for (code, modifiers) in [
                (KeyCode::PageUp, KeyModifiers::NONE),
                (KeyCode::Home, KeyModifiers::CONTROL),
                (KeyCode::Down, KeyModifiers::CONTROL),
                (KeyCode::Up, KeyModifiers::CONTROL),
                (KeyCode::Char('s'), KeyModifiers::ALT),
                (KeyCode::Char(' '), KeyModifiers::NONE),
                (KeyCode::Up, KeyModifiers::NONE),
                (KeyCode::Char('b'), KeyModifiers::NONE),
                (KeyCode::Enter, KeyModifiers::NONE),
                (KeyCode::Char('/'), KeyModifiers::ALT),
                (KeyCode::Char('x'), KeyModifiers::NONE),
                (KeyCode::Enter, KeyModifiers::NONE),
                (KeyCode::Esc, KeyModifiers::NONE),
                (KeyCode::End, KeyModifiers::CONTROL),
            ] {
                stage.press(code, modifiers);
            }
            if height > 0 {
                stage.drag((0, 0), (usize::from(width) - 1, usize::from(height) - 1));
            }
        }
    }
}

// Selecting and copying.

const CODE: &str = "fn main() {\n\tlet text = \"a long line of code that does not fit into sixty columns\";\n\n    if true {\n\t\tprintln!(\"世界\");  \n    }\n}";

fn answer(text: &str) -> Stage {
    Stage::new(&[("question".to_owned(), text.to_owned())], Size::new(60, 40))
}

#[test]
fn text_is_copied_byte_for_byte_whatever_the_width() {
    let paragraph = "A paragraph with  two blanks, a very long tail of words that has to be wrapped, 世界世界世界 and an end.";
    let text = format!(
        "{paragraph}\n\n```rust\n{CODE}\n```\n\n- one item that is so long that it takes more than a single row\n  - nested\n- two\n\n```mermaid\ngraph TD\n\tA[\"x\"] --> B\n```\n\n> quoted text that is wrapped because it is longer than the row is\n\nlast"
    );
    for width in [24, 33, 60, 120, 200] {
        let mut stage = answer(&text);
        stage.size = Size::new(width, 80);
        let (x, y) = stage.find("A paragraph");
        let (end_x, end_y) = stage.find("last");
        stage.drag((x, y), (end_x + 3, end_y));
        assert_eq!(stage.copied.concat(), text, "{width}");
    }
}

#[test]
fn whole_blocks_are_copied_as_they_were_written_also_if_their_rows_left_the_main_screen() {
    let text = "Some **bold words that\ngo on** over *several* lines of [text](https://example.com), and more of it.\n\n\n- an `item` with a long text that wraps and wraps\n* one of another list\n\n> quoted\n>\n> `to` the end";
    for width in [30, 60] {
        let mut stage = answer("before");
        stage.size.width = width;
        let pending = AssistantMessage::pending(Api::default(), "acme", "m-1", crate::ai::Millis(0));
        let start = StreamEvent::BlockStart { index: 0, kind: BlockKind::Text };
        let chars: Vec<char> = text.chars().collect();
        let deltas =
            chars.chunks(9).map(|delta| StreamEvent::Delta { index: 0, text: delta.iter().collect() });
        let events = [start].into_iter().chain(deltas).map(AgentEvent::MessageUpdate);
        for event in [AgentEvent::AssistantStart(std::sync::Arc::new(pending))].into_iter().chain(events) {
            let app = &mut stage.app;
            app.transcript.apply(&SessionEvent::Agent(event), app.now);
            app.transcript.layout(40, &app.theme, app.now);
            let n_rows = app.transcript.len();
            super::super::transcript::freeze(&mut app.transcript, n_rows - 1);
        }
        stage.app.transcript.settle();
        let ((x, y), (end_x, end_y)) = (stage.find("Some bold"), stage.find("the end"));
        stage.drag((x, y), (end_x + 6, end_y));
        assert_eq!(stage.copied, [text], "{width}");
        let (x, y) = stage.find("Some bold");
        stage.drag((x + 5, y), (x + 8, y));
        assert_eq!(stage.copied.last().unwrap(), "bold");
    }
}

#[test]
fn block_of_which_rows_are_hidden_is_copied_as_it_is_shown() {
    let mut stage = answer("before");
    let lines: Vec<String> = (1..=12).map(|n| format!("*line* {n}  ")).collect();
    let content = format!("A **bold** one.\n\n{}", lines.join("\n"));
    let custom = serde_json::json!({"customType": "note", "content": content, "display": true});
    let body = EntryBody::CustomMessage(Box::new(serde_json::from_value(custom).unwrap()));
    let entry = Entry { id: EntryId::new("x"), parent_id: None, timestamp: String::new(), body };
    stage.app.transcript.apply(&SessionEvent::EntryAppended(std::sync::Arc::new(entry)), stage.app.now);
    let ((x, y), (end_x, end_y)) = (stage.find("A bold"), stage.find("line 8"));
    stage.drag((x, y), (end_x + 5, end_y));
    let shown: Vec<String> = (1..=8).map(|n| format!("line {n}")).collect();
    assert_eq!(stage.copied, [format!("A **bold** one.\n\n{}", shown.join("\n"))]);
}

#[test]
fn a_triple_click_copies_the_source_of_its_line() {
    for width in [24, 60, 200] {
        let mut stage = answer(&format!("before\n\n```\n{CODE}\n```"));
        stage.size.width = width;
        for (shown, expected) in [
            ("let text", CODE.lines().nth(1).unwrap()),
            ("println", CODE.lines().nth(4).unwrap()),
            ("before", "before"),
        ] {
            let (x, y) = stage.find(shown);
            stage.copied.clear();
            stage.app.now += std::time::Duration::from_secs(1);
            for _ in 0..3 {
                stage.click(x, y);
            }
            assert_eq!(stage.copied.last().unwrap(), expected, "{width}");
        }
    }
}

#[test]
fn a_double_click_copies_a_word_and_a_drag_goes_on_by_words() {
    let mut stage = answer("see src/main.rs and then docs/cli.md here");
    let (x, y) = stage.find("main.rs");
    stage.click(x, y);
    stage.click(x, y);
    assert_eq!(stage.copied, ["src/main.rs"]);
    stage.app.now += std::time::Duration::from_secs(1);
    let (to, _) = stage.find("cli.md");
    stage.click(x, y);
    stage.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), to, y);
    stage.mouse(MouseEventKind::Up(MouseButton::Left), to, y);
    assert_eq!(stage.copied.last().unwrap(), "src/main.rs and then docs/cli.md");
}

#[test]
fn one_click_selects_nothing() {
    let mut stage = answer("text");
    let (x, y) = stage.find("text");
    stage.click(x, y);
    assert_eq!(stage.copied, [""; 0]);
    assert_eq!(stage.view().selection, None);
}

#[track_caller]
fn check_drag(stage: &mut Stage, from: (usize, usize), to: (usize, usize), expected: &[&str]) {
    stage.copied.clear();
    stage.drag(from, to);
    assert_eq!(stage.copied, expected, "{from:?} {to:?}");
}

#[test]
fn text_under_a_pressed_button_stays_while_more_arrives() {
    let lines: Vec<String> = (0..90).map(|n| format!("line {n}\n\n")).collect();
    let mut stage = answer(&lines.concat());
    let (x, y) = stage.find("line 85");
    let (end_x, end_y) = stage.find("line 87");
    stage.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
    for n in 0..10 {
        stage.append(&format!("more {n}"));
        assert_eq!(stage.find("line 85"), (x, y));
    }
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), end_x + 7, end_y);
    stage.append("more");
    stage.mouse(MouseEventKind::Up(MouseButton::Left), end_x + 7, end_y);
    assert_eq!(stage.copied, ["line 85\n\nline 86\n\nline 87"]);
    stage.append("the last one");
    assert!(has(&stage.screen(), "the last one"));
}

#[test]
fn drag_may_begin_on_the_blank_rows_above_the_prompt() {
    let lines: Vec<String> = (0..90).map(|n| format!("line {n}\n\n")).collect();
    let mut stage = answer(&lines.concat());
    let (x, y) = stage.find("line 89");
    let page = stage.view().shown.page;
    check_drag(&mut stage, (3, page), (x, y), &["line 89"]);
    check_drag(&mut stage, (3, page + 1), (x, y), &["line 89"]);
    check_drag(&mut stage, (3, page + 2), (x, y), &[]);
}

#[test]
fn blank_rows_at_the_ends_of_a_selection_are_not_copied() {
    let mut stage = answer("first\n\nsecond");
    let (x, y) = stage.find("first");
    let (_, last) = stage.find("second");
    let check = |stage: &mut Stage, from, to, expected: &str| check_drag(stage, from, to, &[expected]);
    let (below, blank) = ((3, 38), (0, y + 1));
    check(&mut stage, below, (x, y), "first\n\nsecond");
    check(&mut stage, (x, y), below, "first\n\nsecond");
    check(&mut stage, below, (x + 3, last), "ond");
    check(&mut stage, below, blank, "second");
    check(&mut stage, (0, y - 1), (50, y), "first");
    check(&mut stage, (50, y), (0, y - 1), "first");
    check(&mut stage, (x, y), blank, "first");
    stage.copied.clear();
    for _ in 0..3 {
        stage.click(below.0, below.1);
    }
    assert_eq!(stage.copied, [""; 0]);
}

#[test]
fn boxes_and_margins_are_not_copied() {
    let mut stage = answer("the answer");
    let (_, y) = stage.find("question");
    let (_, end) = stage.find("the answer");
    // From the margin beside the box to behind the answer.
    stage.drag((0, y - 1), (50, end));
    assert_eq!(stage.copied, ["question\n\nthe answer"]);
}

#[test]
fn output_of_a_command_is_copied_with_its_tabs_whatever_the_width() {
    let output = "all:\n\tgcc\t-o x  你好.c\n\n\t\techo a line that wraps at twenty columns\tend";
    for width in [14, 20, 60] {
        let mut stage = answer("before");
        stage.size.width = width;
        let arguments = serde_json::json!({"command": "make -n"}).as_object().unwrap().clone();
        let call = std::sync::Arc::new(ToolCall::new("c1", "bash", arguments));
        // Colours are no part of the text.
        let text = output.replace("gcc", "\x1b[31mgcc\x1b[0m");
        let result = std::sync::Arc::new(call.result().text(&text).build());
        for event in [
            AgentEvent::ToolStart { call: std::sync::Arc::clone(&call) },
            AgentEvent::ToolEnd { call_id: "c1".to_owned(), result },
        ] {
            stage.app.transcript.apply(&SessionEvent::Agent(event), stage.app.now);
        }
        stage.app.transcript.set_view(ViewSettings { expanded: true, ..stage.app.transcript.view().clone() });
        let (x, y) = stage.find("all:");
        let (end_x, end_y) = stage.find("end");
        stage.drag((x, y), (end_x + 2, end_y));
        assert_eq!(stage.copied, [output], "{width}");
    }
}

#[test]
fn a_table_is_copied_as_markdown_and_a_cell_as_its_text() {
    let table =
        "|name | meaning|\n|:----|:-:|\n| a\\|b | *something* long that\twraps in its `cell`|  \n c | d";
    // The narrower ones have no room for columns.
    for width in [14, 20, 30, 60] {
        let mut stage = answer(&format!("before\n\n{table}\n\nafter"));
        stage.size.width = width;
        let (x, y) = stage.find("before");
        let (end_x, end_y) = stage.find("after");
        stage.drag((x, y), (end_x + 4, end_y));
        assert_eq!(stage.copied, [format!("before\n\n{table}\n\nafter")], "{width}");
        if width >= 30 {
            // From its first letter to its last one, without the lines around it.
            let ((x, y), (_, end_y)) = (stage.find("name"), stage.find("after"));
            let last: Vec<char> = stage.rows()[end_y - 3].text().chars().collect();
            let end_x = last.iter().rposition(|c| *c == 'd').unwrap();
            stage.drag((x, y), (end_x, end_y - 3));
            assert_eq!(stage.copied.last().unwrap(), table, "{width}");
        }
        let (x, y) = stage.find("something");
        stage.drag((x, y), (x + 8, y));
        assert_eq!(stage.copied.last().unwrap(), "something");
    }
}

#[test]
fn items_are_copied_with_the_marks_that_were_written() {
    for text in [
        "* one\n* two",
        "+ one\n  - deeper\n    * deepest",
        "1. one\n2. two\n10. ten\n\n    below ten",
        "7) seven\n7) seven again",
        "-   far\n\n    below\n    - nested",
        "- [x] done\n- [ ] open",
        "1. - > quoted\n   - ```rust\n     code();\n     ```",
    ] {
        for width in [30, 60] {
            let mut stage = answer(&format!("before\n\n{text}\n\nafter"));
            stage.size.width = width;
            let ((x, y), (end_x, end_y)) = (stage.find("before"), stage.find("after"));
            stage.drag((x, y), (end_x + 4, end_y));
            assert_eq!(stage.copied, [format!("before\n\n{text}\n\nafter")], "{width}");
        }
    }
}

#[test]
fn a_table_that_begins_an_item_is_copied_with_its_mark() {
    for text in [
        "- |v1|v2|\n  |--|--|\n  |1|  2|\n- after",
        "- > |v1|v2|\n  > |--|--|\n  > |1|  2|\n- after",
        "1. - |v1|v2|  \n     |:--|--|\n     |1|  2|\n2. after",
    ] {
        for width in [30, 60] {
            let mut stage = answer(&format!("before\n\n{text}"));
            stage.size.width = width;
            let ((x, y), (end_x, end_y)) = (stage.find("before"), stage.find("after"));
            stage.drag((x, y), (end_x + 4, end_y));
            assert_eq!(stage.copied, [format!("before\n\n{text}")], "{width}");
        }
    }
}

#[test]
fn part_of_a_table_is_copied_without_its_lines_and_each_word_once() {
    let table = "| name | meaning |\n| --- | --- |\n| alpha | words that wrap in their narrow cell |\n| beta | gamma |";
    let mut stage = answer(&format!("before\n\n{table}\n\nafter"));
    stage.size.width = 30;
    let mut copy = |from: &str, to: &str| {
        let (from, (x, y)) = (stage.find(from), stage.find(to));
        stage.drag(from, (x + to.len() - 1, y));
        stage.copied.pop().unwrap()
    };
    // Within a row that wraps, from there to another one, and over the whole of it.
    assert_eq!(copy("that", "narrow"), "that wrap in their narrow");
    assert_eq!(copy("alpha", "narrow"), "alpha | words that wrap in their narrow");
    assert_eq!(copy("narrow", "beta"), "narrow cell\nbeta");
    assert_eq!(
        copy("meaning", "gamma"),
        "meaning\nalpha | words that wrap in their narrow cell\nbeta | gamma"
    );
    assert_eq!(copy("before", "that"), "before\n\nname | meaning\nalpha | words that");
    // A triple click takes the row of the table, wherever it is.
    let (x, y) = stage.find("narrow");
    stage.app.now += std::time::Duration::from_secs(1);
    for _ in 0..3 {
        stage.click(x, y);
    }
    assert_eq!(stage.copied.last().unwrap(), "| alpha | words that wrap in their narrow cell |");
    // Where there is no room for columns.
    stage.size.width = 14;
    let (from, (x, y)) = (stage.find("alpha"), stage.find("wrap"));
    stage.drag(from, (x + 3, y));
    assert_eq!(stage.copied.last().unwrap(), "alpha\nmeaning: words that wrap");
}

#[test]
fn a_selection_stays_on_its_text_while_output_arrives_and_the_screen_scrolls() {
    let mut stage = Stage::numbered(30, 6);
    let (x, y) = stage.find("answer 0029 line 3");
    stage.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), x + 5, y);
    stage.append("new text\n\nmore text");
    let (_, moved) = stage.find("answer 0029 line 3");
    assert_eq!(moved, y, "it does not move under the button");
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), x + 17, moved);
    stage.mouse(MouseEventKind::Up(MouseButton::Left), x + 17, moved);
    assert_eq!(stage.copied, ["answer 0029 line 3"]);
    stage.page_up();
    let is_marked = |row: &Row| {
        row.line.spans.iter().any(|span| {
            span.style.add_modifier.contains(Modifier::REVERSED)
                && span.content.contains("answer 0029 line 3")
        })
    };
    stage.press(KeyCode::End, KeyModifiers::CONTROL);
    assert!(stage.rows().iter().any(is_marked));
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(!stage.rows().iter().any(is_marked), "Escape removes it");
}

#[test]
fn a_drag_beyond_the_edge_scrolls_and_copies_what_came_into_view() {
    let mut stage = Stage::numbered(120, 3);
    let (x, y) = stage.find("answer 0119 line 2");
    stage.mouse(MouseEventKind::Down(MouseButton::Left), x + 17, y);
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), 0, 0);
    assert!(stage.view().is_moving());
    let mut frames = 0;
    while !has(&stage.screen(), "question 0005") {
        frames += 1;
        assert!(frames < 2_000);
    }
    let (_, row) = stage.find("question 0005");
    stage.mouse(MouseEventKind::Drag(MouseButton::Left), 0, row);
    assert_eq!(stage.view().is_moving(), row == 0);
    stage.mouse(MouseEventKind::Up(MouseButton::Left), 0, row);
    while stage.copied.is_empty() {
        stage.screen();
    }
    let expected: Vec<String> =
        numbered(120, 3)[5..].iter().map(|(prompt, answer)| format!("{prompt}\n\n{answer}")).collect();
    assert_eq!(stage.copied, [expected.join("\n\n")], "nothing is missing in between");
}

#[test]
fn without_copy_on_select_the_copy_keys_take_the_selection() {
    for key in ['c', 'x'] {
        let mut stage = answer("some text").settings(|settings| settings.fullscreen.copy_on_select = false);
        let (x, y) = stage.find("some");
        stage.drag((x, y), (x + 3, y));
        assert_eq!(stage.copied, [""; 0]);
        stage.press(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(stage.copied, ["some"]);
        let again = InputEvent::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
        assert!(!stage.input(&again), "without a selection the key belongs to the app");
    }
}

#[test]
fn text_is_selected_with_the_keyboard() {
    let mut stage = answer("one two three\n\nfour 世界 six");
    stage.screen();
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    let none = KeyModifiers::NONE;
    let row = stage_row(&mut stage, "one two");
    while stage.view().caret.unwrap().spot > stage.view().shown.spots[row] {
        stage.press(KeyCode::Up, none);
    }
    stage.press(KeyCode::Home, none);
    stage.press(KeyCode::Char('w'), none);
    stage.press(KeyCode::Char(' '), none);
    stage.press(KeyCode::Down, none);
    stage.press(KeyCode::Down, none);
    stage.press(KeyCode::Right, none);
    stage.press(KeyCode::Enter, none);
    assert_eq!(stage.copied, ["two three\n\nfour 世"]);
    assert_eq!(stage.view().caret, None);
    // Whole lines.
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    stage.press(KeyCode::Char('v'), none);
    stage.press(KeyCode::Char('y'), none);
    assert_eq!(stage.copied.last().unwrap(), "four 世界 six");
    // Keys that arrive together are handled one after the other.
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    for code in [KeyCode::Up, KeyCode::Up, KeyCode::Home, KeyCode::Char(' '), KeyCode::End, KeyCode::Enter] {
        stage.input(&InputEvent::Key(KeyEvent::new(code, none)));
    }
    assert_eq!(stage.copied.pop().unwrap(), "one two three");
    // Escape leaves without a copy, and keys are typed again.
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    stage.press(KeyCode::Esc, none);
    assert_eq!((stage.copied.len(), stage.view().caret), (2, None));
    assert!(!stage.input(&InputEvent::Key(KeyEvent::new(KeyCode::Char('v'), none))));
}

#[test]
fn keys_of_the_keyboard_selection_are_those_of_the_user() {
    let mut stage = answer("one two three");
    let mine = serde_json::json!({
        "tui.selection.start": "s", "tui.selection.copy": "ctrl+y", "tui.selection.cancel": "f2",
        "tui.selection.lineStart": "[", "tui.selection.lineEnd": "]",
    });
    assert_eq!(stage.app.keymap.apply(mine.as_object().unwrap()), []);
    let none = KeyModifiers::NONE;
    stage.screen();
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    let screen = stage.screen();
    assert!(screen.last().unwrap().contains("s: start here · f2: close"), "{screen:#?}");
    for key in ['[', 's', ']'] {
        stage.press(KeyCode::Char(key), none);
    }
    assert!(stage.screen().last().unwrap().contains("ctrl+y: copy · f2: cancel"));
    stage.press(KeyCode::Esc, none);
    assert!(stage.view().caret.is_some(), "Escape has no meaning any more");
    stage.press(KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(stage.copied, ["one two three"]);
    stage.press(KeyCode::Char('s'), KeyModifiers::ALT);
    stage.press(KeyCode::F(2), none);
    assert_eq!(stage.view().caret, None);
}

fn stage_row(stage: &mut Stage, text: &str) -> usize {
    stage.find(text).1
}

// Searching.

#[test]
fn a_search_marks_all_matches_and_goes_from_one_to_the_next() {
    let mut stage = Stage::numbered(TAIL / 2, 3);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    let screen = stage.type_text("LINE 1");
    assert!(screen[19].contains("Search: LINE 1   19 of 20 · enter: next"), "{screen:#?}");
    let marked = |stage: &mut Stage| -> Vec<String> {
        let rows = stage.rows();
        let spans = rows[..19].iter().flat_map(|row| &row.line.spans);
        let marked = spans.filter(|span| span.style.add_modifier.contains(Modifier::REVERSED));
        marked.map(|span| span.content.to_string()).filter(|text| text != "█").collect()
    };
    let found = marked(&mut stage);
    assert!(found.len() > 1 && found.iter().all(|text| text == "line 1"), "{found:?}");
    let current = |stage: &Stage| stage.view().search.as_ref().unwrap().current.unwrap().from;
    let first = current(&stage);
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(screen[19].contains("   20 of 20 · "), "{screen:#?}");
    let second = current(&stage);
    assert!(second > first || second.spot.row < first.spot.row);
    stage.press(KeyCode::Enter, KeyModifiers::SHIFT);
    assert_eq!(current(&stage), first);
    stage.press(KeyCode::Enter, KeyModifiers::SHIFT);
    let third = current(&stage);
    stage.press(KeyCode::Left, KeyModifiers::NONE);
    assert_eq!(current(&stage), third, "the cursor of the query moves");
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(stage.view().search.is_none() && marked(&mut stage).iter().all(|text| text != "line 1"));
}

#[test]
fn a_search_finds_earlier_messages_that_are_not_in_memory() {
    let mut stage = Stage::numbered(300, 3);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    let screen = stage.type_text("answer 0007 line 1");
    assert!(screen[19].contains("not here · enter: search all"), "{screen:#?}");
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(has(&screen[..19], "answer 0007 line 1"), "{screen:#?}");
    assert!(screen[19].contains("1 of 1 · "), "{screen:#?}");
    let screen = stage.type_text("?");
    assert!(!screen[19].contains("enter: next"), "{screen:#?}");
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(screen[19].contains("not found"), "{screen:#?}");
}

/// Applies the events of a call that printed ten lines.
fn run_call(stage: &mut Stage) {
    let arguments = serde_json::json!({"command": "make"});
    let call = ToolCall::new("1", "bash", arguments.as_object().unwrap().clone());
    let lines: String = (0..10).map(|n| format!("Line {n} of output\n")).collect();
    let result = serde_json::json!({"toolCallId": "1", "toolName": "bash", "isError": false, "timestamp": 0,
        "content": [{"type": "text", "text": lines}], "details": {"note": "stored only"}});
    let result = std::sync::Arc::new(serde_json::from_value(result).unwrap());
    let end = AgentEvent::ToolEnd { call_id: "1".to_owned(), result };
    for event in [AgentEvent::ToolStart { call: call.into() }, end] {
        stage.app.transcript.apply(&agent(event), std::time::Duration::ZERO);
    }
}

#[test]
fn a_search_says_that_text_is_collapsed_and_goes_to_it_when_it_is_expanded() {
    let mut stage = answer("a paragraph");
    run_call(&mut stage);
    assert!(!has(&stage.screen(), "Line 1 of output"));
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    let screen = stage.type_text("line 1");
    assert_eq!(screen[39], " Search: line 1   only in collapsed text · ctrl+o: expand");
    for (width, expected) in
        [(50, " Search: line 1   collapsed · ctrl+o: expand"), (30, " Search: ine 1 ctrl+o: expand")]
    {
        stage.size.width = width;
        stage.press(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(stage.screen()[39], expected);
    }
    stage.size.width = 60;
    stage.press(KeyCode::Enter, KeyModifiers::NONE);
    let key = InputEvent::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    stage.app.on_input(&key, &mut Vec::new());
    let screen = stage.screen();
    assert!(has(&screen, "Line 1 of output"), "{screen:#?}");
    assert!(screen[39].starts_with(" Search: line 1   1 of 1 · "), "{screen:#?}");
    // The same key hides it again, and leaves the search open.
    stage.app.on_input(&key, &mut Vec::new());
    assert!(stage.view().search.is_some());
    // What no view shows is not found.
    stage.press(KeyCode::Char('u'), KeyModifiers::CONTROL);
    assert!(stage.type_text("stored only")[39].ends_with("   not found"));
}

#[test]
fn a_search_finds_hidden_thinking_of_earlier_messages() {
    let mut stage = Stage::of(session_with(&numbered(300, 1), "a secret plan"), Size::new(60, 20));
    let hide = |stage: &mut Stage, hide_thinking| {
        let view = ViewSettings { hide_thinking, ..stage.app.transcript.view().clone() };
        stage.app.transcript.set_view(view);
    };
    hide(&mut stage, true);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    assert!(stage.type_text("SECRET plan 0007")[19].contains("not here · enter: search all"));
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(screen[19], " Search: plan 0007   only in hidden thinking · ctrl+t: show");
    hide(&mut stage, false);
    let screen = stage.screen();
    assert!(has(&screen, "a secret plan 0007"), "{screen:#?}");
}

#[test]
fn a_count_says_that_earlier_messages_may_have_more_until_they_are_known() {
    let mut stage = Stage::numbered(300, 3);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    // Twenty prompts are in memory, and one more in a section of its own.
    let screen = stage.type_text("question 02");
    assert!(screen[19].contains(" of 20+ · "), "{screen:#?}");
    let mut stage = Stage::numbered(300, 3);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    stage.type_text("9 line 2");
    let counts: Vec<String> = (0..31)
        .map(|_| {
            let screen = stage.press(KeyCode::Up, KeyModifiers::NONE);
            let count = screen[19].split("   ").nth(1).unwrap_or_default();
            count.split(" · ").next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(counts[0], "1 of 2+", "{counts:?}");
    assert_eq!(counts[28..], ["1 of 30", "30 of 30", "29 of 30"]);
}

fn agent(event: AgentEvent) -> SessionEvent {
    SessionEvent::Agent(event)
}

fn stream(stage: &mut Stage, event: StreamEvent) {
    stage.app.transcript.apply(&agent(AgentEvent::MessageUpdate(event)), std::time::Duration::ZERO);
}

/// Begins an answer of one text.
fn begin_answer(stage: &mut Stage) {
    let answer = AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "x", "x").build();
    let start = agent(AgentEvent::AssistantStart(answer.into()));
    stage.app.transcript.apply(&start, std::time::Duration::ZERO);
    stream(stage, StreamEvent::BlockStart { index: 0, kind: BlockKind::Text });
}

fn delta(stage: &mut Stage, text: &str) {
    stream(stage, StreamEvent::Delta { index: 0, text: text.to_owned() });
}

#[test]
fn a_count_follows_text_that_arrives_and_reads_only_its_rows() {
    let mut stage = Stage::numbered(TAIL / 2, 30);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    let screen = stage.type_text("line 1 ");
    assert!(screen[19].contains("not found"), "{screen:#?}");
    begin_answer(&mut stage);
    delta(&mut stage, "a line 1 that streams");
    let screen = stage.screen();
    assert!(screen[19].contains("Search: line 1    1 match · enter: next"), "{screen:#?}");
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(screen[19].contains("   1 of 1 · "), "{screen:#?}");
    let n_lines = |stage: &Stage| stage.view().search.as_ref().unwrap().recent.n_lines_read();
    let (before, n_paragraphs) = (n_lines(&stage), 100);
    for n in 2..=n_paragraphs {
        for piece in ["\n\n", "again a line 1 ", "streams", " in", " pieces"] {
            delta(&mut stage, piece);
            stage.screen();
        }
        assert!(stage.screen()[19].contains(&format!("   1 of {n} · ")));
    }
    let n_read = n_lines(&stage) - before;
    assert!(n_read < 5 * 4 * n_paragraphs, "{n_read}");
    // A frame without news reads nothing.
    let before = n_lines(&stage);
    stage.screen();
    assert_eq!(n_lines(&stage), before);
}

#[test]
fn a_count_follows_the_output_of_a_running_call() {
    let mut stage = answer("a paragraph");
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    stage.type_text("passed");
    let arguments = serde_json::json!({"command": "make"});
    let call = ToolCall::new("1", "bash", arguments.as_object().unwrap().clone());
    let apply = |stage: &mut Stage, event| {
        stage.app.transcript.apply(&agent(event), std::time::Duration::ZERO);
    };
    apply(&mut stage, AgentEvent::ToolStart { call: call.into() });
    apply(&mut stage, AgentEvent::ToolRunning { call_id: "1".to_owned() });
    let output = |text: &str| AgentEvent::ToolUpdate {
        call_id: "1".to_owned(),
        partial: ToolOutput::text(text).into(),
    };
    apply(&mut stage, output("a passed\nb passed\n"));
    assert!(stage.screen()[39].contains("   2 matches"), "{:#?}", stage.screen());
    assert!(stage.press(KeyCode::Enter, KeyModifiers::NONE)[39].contains("   1 of 2"));
    apply(&mut stage, output("a passed\nb passed\nc passed\n"));
    assert!(stage.screen()[39].contains("   1 of 3"), "{:#?}", stage.screen());
    // The match that was gone to is not there any more.
    apply(&mut stage, output("a failed\nb failed\nc passed\n"));
    assert!(stage.screen()[39].contains("   1 match "), "{:#?}", stage.screen());
}

#[test]
fn a_long_query_leaves_room_for_what_was_found() {
    let mut stage = answer("a paragraph with words");
    stage.size.width = 30;
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    let screen = stage.type_text("a paragraph with words");
    assert_eq!(screen[39], " Search: graph with words 1/1");
    let screen = stage.type_text("!");
    assert_eq!(screen[39], " Search: ith words! not found");
    let (_, cursor) = render(&mut stage.app, 30, 40, 0);
    assert_eq!(cursor, Some((39, 19)));
}

#[test]
fn a_search_for_text_that_is_stored_but_not_shown_ends() {
    let mut stage = Stage::numbered(300, 1);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    stage.type_text("stopReason");
    let screen = stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(screen[19].contains("not found"), "{screen:#?}");
    assert!(stage.view().earlier.list.sections.iter().filter(|section| section.is_read()).count() < 300);
}

#[test]
fn a_match_may_be_wrapped() {
    let mut stage = answer("a paragraph that is long enough to be wrapped in the middle of these words");
    stage.size.width = 24;
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    stage.type_text("that is long enough to be wrapped in the middle");
    assert!(stage.view().search.as_ref().unwrap().current.is_some());
}

// What else happens.

#[test]
fn another_session_is_shown_from_its_end() {
    let mut stage = Stage::numbered(30, 6);
    stage.page_up();
    let opened = Opened { tail: vec![], n_earlier: Some(0), ..Opened::default() };
    stage.app.transcript.open(&opened, Path::new("/"));
    stage.app.fullscreen.as_mut().unwrap().start_over();
    let screen = stage.screen();
    assert!(screen[1].contains("pi") && !has(&screen, "answer"), "{screen:#?}");
}

#[test]
fn a_toggle_redraws_what_is_on_the_screen_and_earlier_sections() {
    let long: Vec<String> = (0..60).map(|n| format!("pasted {n}")).collect();
    let mut texts = vec![(long.join("\n"), "answer".to_owned())];
    texts.extend(numbered(60, 2));
    let mut stage = Stage::new(&texts, Size::new(60, 30));
    stage.screen();
    let screen = stage.press(KeyCode::Home, KeyModifiers::CONTROL);
    assert!(has(&screen, "more lines"), "{screen:#?}");
    let mut view = stage.app.transcript.view().clone();
    view.expanded = true;
    stage.app.transcript.set_view(view);
    let screen = stage.screen();
    assert!(has(&screen, "pasted 20") && !has(&screen, "more lines"), "{screen:#?}");
}

fn count(screen: &[String], text: &str) -> usize {
    screen.iter().filter(|row| row.contains(text)).count()
}

#[test]
fn a_click_opens_and_closes_one_block_where_it_is() {
    let mut stage = answer("a paragraph");
    run_call(&mut stage);
    run_call(&mut stage);
    let closed = stage.screen();
    assert_eq!((count(&closed, "$ make"), count(&closed, "Line 1 of output")), (2, 0), "{closed:#?}");
    let second_later = |stage: &mut Stage| stage.app.now += std::time::Duration::from_secs(1);
    for text in ["$ make", "ctrl+o to expand"] {
        let (x, y) = stage.find(text);
        second_later(&mut stage);
        stage.click(x, y);
        let open = stage.screen();
        assert_eq!(count(&open, "Line 1 of output"), 1, "{open:#?}");
        assert_eq!(open[..y], closed[..y]);
        let second = closed.iter().rposition(|row| row.contains("$ make")).unwrap();
        assert!(closed[second..].iter().all(|row| open.contains(row)), "{open:#?}");
        second_later(&mut stage);
        stage.click(x, y);
        assert_eq!(stage.screen(), closed);
    }
    // What shows or hides all does so.
    let (x, y) = stage.find("$ make");
    second_later(&mut stage);
    stage.click(x, y);
    let key = InputEvent::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    for n_open in [2, 0] {
        stage.app.on_input(&key, &mut Vec::new());
        let screen = stage.screen();
        assert_eq!(count(&screen, "Line 1 of output"), n_open, "{screen:#?}");
    }
    // Neither the blank row before it nor a drag is a click on it.
    second_later(&mut stage);
    stage.click(0, closed.iter().position(|row| row.contains("a paragraph")).unwrap() + 1);
    stage.drag((x, y), (x + 3, y));
    assert_eq!(count(&stage.screen(), "Line 1 of output"), 0);
}

#[test]
fn a_double_click_on_a_block_selects_a_word_and_leaves_it_as_it_was() {
    for hide_thinking in [false, true] {
        let mut stage = Stage::of(session_with(&numbered(2, 1), "a secret plan"), Size::new(60, 40));
        run_call(&mut stage);
        let view = ViewSettings { hide_thinking, ..stage.app.transcript.view().clone() };
        stage.app.transcript.set_view(view);
        let before = stage.screen();
        for word in ["make", "ctrl+o", if hide_thinking { "Thinking" } else { "secret" }] {
            let (x, y) = stage.find(word);
            stage.app.now += std::time::Duration::from_secs(1);
            stage.click(x, y);
            assert_ne!(stage.screen(), before, "{word}");
            stage.click(x, y);
            assert_eq!(stage.screen(), before, "{word}");
            assert_eq!(stage.copied.pop().as_deref(), Some(word));
        }
    }
}

#[test]
fn a_block_that_is_opened_at_the_end_stays_where_it_is() {
    let mut stage = Stage::numbered(30, 3);
    run_call(&mut stage);
    let (x, y) = stage.find("$ make");
    let closed = stage.screen();
    stage.click(x, y);
    let open = stage.screen();
    let text = |row: &String| row.trim_end_matches([' ', '│', '┃', '█']).to_owned();
    let above = |screen: &[String]| screen[..=y].iter().map(text).collect::<Vec<_>>();
    assert_eq!(above(&open), above(&closed), "without the scrollbar");
    assert!(!open[19].contains("new"), "{open:#?}");
    stage.app.now += std::time::Duration::from_secs(1);
    stage.click(x, y);
    assert_eq!(stage.screen(), closed);
    assert!(stage.view().top.is_none(), "the end is followed again");
}

#[test]
fn a_search_goes_to_a_match_in_a_block_that_is_opened_with_a_click() {
    let mut stage = answer("a paragraph");
    run_call(&mut stage);
    stage.screen();
    stage.press(KeyCode::Char('/'), KeyModifiers::ALT);
    assert!(stage.type_text("line 1")[39].contains("only in collapsed text"));
    let (x, y) = stage.find("$ make");
    stage.click(x, y);
    let screen = stage.screen();
    assert!(screen[39].starts_with(" Search: line 1   1 of 1 · "), "{screen:#?}");
}

#[test]
fn a_block_of_an_earlier_message_is_opened_with_a_click() {
    let mut stage = Stage::of(session_with(&numbered(300, 1), "a secret plan"), Size::new(60, 20));
    let view = ViewSettings { hide_thinking: true, ..stage.app.transcript.view().clone() };
    stage.app.transcript.set_view(view);
    stage.screen();
    stage.press(KeyCode::Home, KeyModifiers::CONTROL);
    stage.press(KeyCode::PageDown, KeyModifiers::NONE);
    let (x, y) = stage.find("Thinking…");
    let closed = stage.screen();
    stage.click(x, y);
    let open = stage.screen();
    assert_eq!(count(&open, "a secret plan"), 1, "{open:#?}");
    assert_eq!(count(&open, "Thinking…") + 1, count(&closed, "Thinking…"), "{open:#?}");
    assert_eq!(open[..y], closed[..y]);
}

#[test]
fn messages_that_arrive_are_events_of_the_same_transcript() {
    let mut stage = Stage::numbered(3, 1);
    let EntryBody::Message { message, .. } = &stage.tree.read(0).unwrap().body else { panic!() };
    let crate::session::SessionMessage::Model(message) = message else { panic!() };
    let event = SessionEvent::Agent(crate::agent::AgentEvent::MessageEnd(std::sync::Arc::clone(message)));
    stage.app.transcript.apply(&event, std::time::Duration::ZERO);
    assert_eq!(stage.screen().iter().filter(|row| row.contains("question 0000")).count(), 2);
}
