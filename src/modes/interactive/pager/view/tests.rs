use std::io::Write as _;
use std::path::Path;

use crossterm::event::{KeyCode, KeyModifiers};

use crate::agent::{AgentEvent, ToolOutput};
use crate::ai::{Api, AssistantMessage, BlockKind, ContentBlock, StreamEvent, ToolCall};
use crate::session::{Header, NoticeLevel, Opened, SessionStore};
use crate::tui::theme::{Appearance, ColorDepth};

use super::super::super::keybindings;
use super::super::super::sections::{self, FAR, NEAR};
use super::super::super::transcript::Transcript;
use super::*;

/// A session of prompts, each with an answer of `n_lines` lines.
fn session(n_prompts: usize, n_lines: usize) -> SessionTree {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, r#"{{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}}"#).unwrap();
    let mut parent = "null".to_owned();
    for n in 0..n_prompts {
        let time = r#""timestamp":"2026-11-21T09:23:47.280Z""#;
        let (user, answer) = (format!("u{n}"), format!("a{n}"));
        writeln!(
            file,
            r#"{{"type":"message","id":"{user}","parentId":{parent},{time},"message":{{"role":"user","content":"question {n:04}"}}}}"#
        )
        .unwrap();
        let lines: Vec<String> = (0..n_lines).map(|line| format!("answer {n:04} line {line}")).collect();
        let text = serde_json::Value::from(lines.join("\n\n")).to_string();
        writeln!(
            file,
            r#"{{"type":"message","id":"{answer}","parentId":"{user}",{time},"message":{{"role":"assistant","content":[{{"type":"text","text":{text}}}],"api":"x","provider":"x","model":"x","stopReason":"stop","timestamp":0}}}}"#
        )
        .unwrap();
        parent = format!("\"{answer}\"");
    }
    let none = || -> Header { unreachable!("the file has a header") };
    SessionStore::open(file.path(), none).unwrap().tree()
}

/// A pager with the world that reads for it.
struct Stage {
    pager: PagerView,
    keymap: Keymap,
    theme: Theme,
    size: Size,
}

impl Stage {
    fn new(tree: SessionTree, size: Size) -> Self {
        let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
        Self::at(tree, None, &view, size)
    }

    /// The pager of an idle session, opened where the main screen shows `place`.
    fn at(tree: SessionTree, place: Option<Anchor>, view: &ViewSettings, size: Size) -> Self {
        let leaf = tree.leaf().map(|idx| tree.entry(idx).id.clone());
        let start = PagerStart { leaf, place, ..PagerStart::default() };
        let pager = PagerView::of_session("A session", (tree, start), view, Highlighter::new());
        Self::of(pager, size)
    }

    fn of(pager: PagerView, size: Size) -> Self {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        Self { pager, keymap: keybindings::default_keymap(), theme, size }
    }

    /// The screen once everything it needs has been read.
    fn screen(&mut self) -> Vec<String> {
        loop {
            let (rows, _) = self.pager.render(self.size, (&self.theme, &self.keymap), Duration::ZERO);
            match self.pager.take_wanted() {
                Some(effect) => self.perform(effect),
                None => return rows.iter().map(Row::text).collect(),
            }
        }
    }

    fn perform(&mut self, effect: ReadEffect) {
        match effect {
            ReadEffect::Tree => unreachable!("it is open"),
            ReadEffect::Sections { tree, sections } => {
                let read = sections.into_iter().map(|(n, entries)| (n, tree.read_all(&entries)));
                self.pager.on_read(&tree, read.collect());
            }
            ReadEffect::Search { tree, path, query } => {
                let positions = sections::search(&tree, &path, &query);
                self.pager.on_found(&tree, &query, &positions);
            }
        }
    }

    fn press(&mut self, code: KeyCode) -> bool {
        let key = InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
        match self.pager.handle(&key, &self.keymap) {
            PagerStep::Stay => true,
            PagerStep::Close => false,
            PagerStep::Search(effect) => {
                self.perform(effect);
                true
            }
        }
    }

    fn search(&mut self, query: &str) -> Vec<String> {
        self.press(KeyCode::Char('/'));
        for c in query.chars() {
            self.press(KeyCode::Char(c));
        }
        self.press(KeyCode::Enter);
        self.screen()
    }
}

/// A screen without its keys.
fn text_of(screen: &[String]) -> String {
    let keys = screen.iter().position(|row| row.contains(": close")).unwrap();
    screen[..keys].join("\n").trim_end().to_owned()
}

#[test]
fn every_entry_of_a_long_session_is_reached_from_its_end_and_few_stay_in_memory() {
    let mut stage = Stage::new(session(400, 3), Size::new(60, 20));
    let screen = stage.screen();
    assert!(text_of(&screen).ends_with("answer 0399 line 2"), "{screen:#?}");
    let mut seen = Vec::new();
    for _ in 0..1_000 {
        let screen = stage.screen();
        seen.extend(
            screen.iter().filter_map(|row| row.trim().strip_prefix("question ")?.parse::<usize>().ok()),
        );
        assert!(
            stage.pager.text.list.sections.iter().filter(|section| section.is_read()).count()
                <= 2 * FAR + 3 * NEAR
        );
        if stage.pager.pager.top() == (0, 0) {
            break;
        }
        stage.press(KeyCode::PageUp);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

#[test]
fn a_search_finds_text_that_is_not_in_memory_and_goes_around() {
    let mut stage = Stage::new(session(300, 3), Size::new(60, 20));
    stage.screen();
    let screen = stage.search("ANSWER 0007 line 1");
    assert!(screen.iter().any(|row| row.contains("answer 0007 line 1")), "{screen:#?}");
    stage.search("question 0150");
    stage.press(KeyCode::Char('n'));
    let screen = stage.screen();
    assert!(screen.iter().any(|row| row.contains("question 0150")), "the only one: {screen:#?}");
    let screen = stage.search("not there");
    assert!(screen.contains(&"\"not there\" was not found".to_owned()), "{screen:#?}");
}

#[test]
fn a_search_names_the_key_that_shows_what_is_hidden() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let time = r#""timestamp":"2026-11-21T09:23:47.280Z""#;
    let output: Vec<String> = (0..60).map(|line| format!("line {line:02}")).collect();
    let output = serde_json::Value::from(format!("needle\n{}", output.join("\n"))).to_string();
    for line in [
        r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#.to_owned(),
        format!(
            r#"{{"type":"message","id":"a","parentId":null,{time},"message":{{"role":"assistant","content":[{{"type":"thinking","thinking":"a secret thought"}},{{"type":"text","text":"done"}}],"api":"x","provider":"x","model":"x","stopReason":"stop","timestamp":0}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"b","parentId":"a",{time},"message":{{"role":"bashExecution","command":"make","output":{output},"exitCode":0,"cancelled":false,"truncated":false,"timestamp":0}}}}"#
        ),
    ] {
        writeln!(file, "{line}").unwrap();
    }
    let none = || -> Header { unreachable!("the file has a header") };
    let tree = SessionStore::open(file.path(), none).unwrap().tree();
    let mut stage = Stage::new(tree, Size::new(80, 24));
    stage.screen();
    let toggle = |stage: &mut Stage, key: char| {
        let toggle = InputEvent::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
        stage.pager.handle(&toggle, &stage.keymap);
        stage.screen()
    };
    for (key, query, note, hint, text) in [
        ('o', "needle", "\"needle\" is only in collapsed text", "ctrl+o: expand", "needle"),
        ('t', "secret", "\"secret\" is only in hidden thinking", "ctrl+t: show", "a secret thought"),
    ] {
        toggle(&mut stage, key);
        let screen = stage.search(query);
        let at = screen.iter().position(|row| row == note).unwrap_or_else(|| panic!("{screen:#?}"));
        assert_eq!(screen[at + 1], hint);
        let screen = toggle(&mut stage, key);
        let row = screen.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("{screen:#?}"));
        let (current, (_, top)) = (stage.pager.pager.current_match(), stage.pager.pager.top());
        // The title is above the text.
        assert_eq!(current.map(|(_, current)| current - top + 1), Some(row), "{screen:#?}");
        assert!(!screen.iter().any(|row| row.contains("is only in")), "{screen:#?}");
    }
}

/// Notices are in no file: the pager has those of the transcript, between the entries where they came.
#[test]
fn notices_are_between_the_entries_of_the_session_and_are_found() {
    let tree = session(6, 1);
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let mut recent = Transcript::new(Highlighter::new(), view.clone());
    let path = tree.path(tree.leaf());
    // The transcript was opened with the last four entries.
    let entries = tree.read_all(&path[8..]);
    let first_entry = Some(entries[0].id.clone());
    recent.open(
        &Opened { tail: entries[..2].to_vec(), n_earlier: Some(8), ..Opened::default() },
        Path::new("/"),
    );
    recent.notice(NoticeLevel::Warning, "the disk is nearly full");
    for entry in &entries[2..] {
        recent.apply(&SessionEvent::EntryAppended(Arc::clone(entry)), Duration::ZERO);
    }
    let leaf = tree.leaf().map(|idx| tree.entry(idx).id.clone());
    let remarks = recent.remarks();
    let start = PagerStart { leaf, remarks, first_entry, ..PagerStart::default() };
    let pager = PagerView::of_session("A session", (tree, start), &view, Highlighter::new());
    let mut stage = Stage::of(pager, Size::new(60, 40));
    let screen = stage.screen().join("\n");
    let place = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(place("answer 0004") < place("the disk is nearly full"), "{screen}");
    assert_eq!(screen.matches("the disk is nearly full").count(), 1);
    let found = stage.search("nearly full").join("\n");
    assert!(found.contains("the disk is nearly full") && !found.contains("was not found"), "{found}");
}

#[test]
fn matches_are_visited_in_order_in_both_directions() {
    let mut stage = Stage::new(session(3, 2), Size::new(60, 40));
    stage.screen();
    stage.press(KeyCode::Char('g'));
    stage.search("line 1");
    let current = |stage: &Stage| {
        let (section, row) = stage.pager.pager.current_match().unwrap();
        stage.pager.text.list.sections[section].row(row).text().trim().to_owned()
    };
    let mut visited = vec![current(&stage)];
    for key in ['n', 'n', 'n', 'N'] {
        stage.press(KeyCode::Char(key));
        stage.screen();
        visited.push(current(&stage));
    }
    let line = |n: usize| format!("answer {n:04} line 1");
    assert_eq!(visited, [line(0), line(1), line(2), line(0), line(2)]);
}

#[test]
fn prompts_are_visited_and_views_toggled() {
    let mut stage = Stage::new(session(30, 8), Size::new(60, 12));
    stage.screen();
    stage.press(KeyCode::Char('g'));
    stage.screen();
    let next = InputEvent::Key(KeyEvent::new(KeyCode::Down, KeyModifiers::CONTROL));
    for _ in 0..3 {
        stage.pager.handle(&next, &stage.keymap);
    }
    let screen = stage.screen();
    assert!(screen[1..5].iter().any(|row| row.contains("question 0003")), "{screen:#?}");
    let expand = InputEvent::Key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    stage.pager.handle(&expand, &stage.keymap);
    assert!(stage.screen().join("\n").contains("ctrl+o: expand"));
}

#[test]
fn toggles_keep_the_row_at_the_top() {
    let mut stage = Stage::new(session(30, 40), Size::new(60, 12));
    stage.screen();
    for _ in 0..7 {
        stage.press(KeyCode::PageUp);
    }
    let top = stage.screen()[1].clone();
    assert!(top.contains("answer"), "{top}");
    for key in ['o', 't', 't', 'o'] {
        let toggle = InputEvent::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
        stage.pager.handle(&toggle, &stage.keymap);
        assert_eq!(stage.screen()[1], top, "ctrl+{key}");
    }
}

/// The main screen's transcript of the whole session.
fn main_screen(tree: &SessionTree, view: &ViewSettings, width: u16) -> Transcript {
    let entries = tree.read_all(&tree.path(tree.leaf()));
    let mut transcript = Transcript::whole(Highlighter::new(), view.clone());
    transcript.open(&Opened { tail: entries, n_earlier: Some(0), ..Opened::default() }, Path::new("/"));
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    transcript.layout(width, &theme, Duration::ZERO);
    transcript
}

#[test]
fn it_opens_at_the_first_row_of_the_main_screen() {
    let tree = session(60, 12);
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let mut main = main_screen(&tree, &view, 60);
    // A line about the program is not in the pager.
    main.notice(NoticeLevel::Info, "Reloaded.");
    main.layout(60, &Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap(), Duration::ZERO);
    for from_end in [30, 31, 40, 200] {
        let top = main.len() - from_end;
        let mut stage = Stage::at(tree.clone(), main.anchor(top), &view, Size::new(60, 20));
        let screen = stage.screen();
        assert_eq!(screen[1].trim(), main.row(top).text().trim(), "{from_end}: {screen:#?}");
    }
    let mut stage = Stage::at(tree, main.anchor(main.len()), &view, Size::new(60, 20));
    let screen = stage.screen();
    assert!(text_of(&screen).ends_with("answer 0059 line 11"), "{screen:#?}");
}

fn agent(event: AgentEvent) -> SessionEvent {
    SessionEvent::Agent(event)
}

fn delta(text: &str) -> SessionEvent {
    agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text: text.to_owned() }))
}

#[test]
fn answer_in_progress_is_shown_and_grows_at_the_end() {
    let tree = session(3, 2);
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let mut main = main_screen(&tree, &view, 60);
    let pending = AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "x", "x").build();
    let begin = StreamEvent::BlockStart { index: 0, kind: BlockKind::Text };
    for event in [
        agent(AgentEvent::AssistantStart(Arc::new(pending.clone()))),
        agent(AgentEvent::MessageUpdate(begin)),
        delta("first streamed"),
    ] {
        main.apply(&event, Duration::ZERO);
    }
    let leaf = tree.leaf().map(|idx| tree.entry(idx).id.clone());
    let mut events = main.in_progress(Duration::ZERO);
    // Before the session was read.
    events.push((delta(" second"), Duration::ZERO));
    let start = PagerStart { leaf, is_busy: true, events, ..PagerStart::default() };
    let pager = PagerView::of_session("A session", (tree, start), &view, Highlighter::new());
    let mut stage = Stage::of(pager, Size::new(60, 12));
    stage.pager.on_session_event(&delta(" third"), Duration::ZERO);
    let screen = stage.screen().join("\n");
    assert!(screen.contains("first streamed second third"), "{screen}");
    // At the end the view follows; elsewhere it stays.
    let many: String = (0..30).map(|n| format!("\n\nrow {n:02}")).collect();
    stage.pager.on_session_event(&delta(&many), Duration::ZERO);
    assert!(stage.screen().join("\n").contains("row 29"));
    stage.press(KeyCode::Up);
    let before = stage.screen();
    stage.pager.on_session_event(&delta("\n\nrow 30"), Duration::ZERO);
    assert_eq!(stage.screen(), before);
    stage.press(KeyCode::Char('G'));
    let text = format!("first streamed second third{many}\n\nrow 30 and the end");
    let answer = AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "x", "x").text(text).build();
    stage.pager.on_session_event(&agent(AgentEvent::MessageEnd(Arc::new(answer.into()))), Duration::ZERO);
    let screen = stage.screen().join("\n");
    assert!(screen.contains("row 30 and the end"), "{screen}");
    assert_eq!(screen.matches("row 30").count(), 1);
}

#[test]
fn number_of_entries_grows_with_the_session() {
    let (tree, later) = (session(20, 2), session(23, 2));
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let added =
        |range| later.read_all(&later.path(later.leaf())[range]).into_iter().map(SessionEvent::EntryAppended);
    let leaf = tree.leaf().map(|idx| tree.entry(idx).id.clone());
    // Before the session was read.
    let events = added(40..41).map(|event| (event, Duration::ZERO)).collect();
    let start = PagerStart { leaf, events, ..PagerStart::default() };
    let pager = PagerView::of_session("A session", (tree, start), &view, Highlighter::new());
    let mut stage = Stage::of(pager, Size::new(60, 12));
    let of = |stage: &mut Stage| stage.screen()[0].rsplit(' ').next().map(str::to_owned);
    // Before its last section was.
    for event in added(41..42) {
        stage.pager.on_session_event(&event, Duration::ZERO);
    }
    assert_eq!(of(&mut stage).as_deref(), Some("42"));
    for (event, n) in added(42..46).zip(43..) {
        stage.pager.on_session_event(&event, Duration::ZERO);
        stage.pager.on_session_event(&agent(AgentEvent::AgentStart), Duration::ZERO);
        assert_eq!(of(&mut stage), Some(n.to_string()));
    }
    // Entries of another conversation do not count.
    stage.pager.on_session_event(&SessionEvent::Opened(Arc::default()), Duration::ZERO);
    for event in added(0..3) {
        stage.pager.on_session_event(&event, Duration::ZERO);
    }
    assert_eq!(of(&mut stage).as_deref(), Some("46"));
}

#[test]
fn a_search_finds_text_that_arrived_after_the_pager_was_opened() {
    let tree = session(60, 2);
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let mut stage = Stage::at(tree, None, &view, Size::new(60, 12));
    stage.screen();
    stage.press(KeyCode::Char('g'));
    stage.screen();
    let pending = AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "x", "x").build();
    let begin = StreamEvent::BlockStart { index: 0, kind: BlockKind::Text };
    for event in [
        agent(AgentEvent::AssistantStart(Arc::new(pending))),
        agent(AgentEvent::MessageUpdate(begin)),
        delta("a needle"),
    ] {
        stage.pager.on_session_event(&event, Duration::ZERO);
    }
    let screen = stage.search("needle").join("\n");
    assert!(screen.contains("a needle"), "{screen}");
    stage.pager.on_session_event(&delta("\n\nanother needle"), Duration::ZERO);
    stage.press(KeyCode::Char('n'));
    stage.screen();
    assert!(stage.pager.pager.current_match() > Some((59, 3)), "{:?}", stage.pager.pager.current_match());
    assert!(!stage.screen().join("\n").contains("not found"));
}

#[test]
fn running_call_is_shown_with_its_output_and_ends_in_place() {
    let view = ViewSettings::new("ctrl+o".to_owned(), "/".into(), None);
    let mut main = Transcript::whole(Highlighter::new(), view.clone());
    let arguments = serde_json::json!({"command": "make"}).as_object().unwrap().clone();
    let call = Arc::new(ToolCall::new("c1", "bash", arguments));
    let output = |text: &str| ToolOutput { content: vec![ContentBlock::text(text)], ..ToolOutput::default() };
    let update = |text: &str| {
        let (call_id, partial) = ("c1".to_owned(), Arc::new(output(text)));
        agent(AgentEvent::ToolUpdate { call_id, partial })
    };
    main.apply(&agent(AgentEvent::ToolStart { call: Arc::clone(&call) }), Duration::ZERO);
    main.apply(&agent(AgentEvent::ToolRunning { call_id: call.id.clone() }), Duration::ZERO);
    main.apply(&update("compiling"), Duration::ZERO);
    let tree = session(0, 0);
    let events = main.in_progress(Duration::ZERO);
    let start = PagerStart { is_busy: true, events, ..PagerStart::default() };
    let pager = PagerView::of_session("A session", (tree, start), &view, Highlighter::new());
    let mut stage = Stage::of(pager, Size::new(60, 12));
    assert!(stage.screen().join("\n").contains("compiling"));
    stage.pager.on_session_event(&update("linking"), Duration::ZERO);
    assert!(stage.screen().join("\n").contains("linking"));
    let result = Arc::new(call.result().text("built").build());
    let end = AgentEvent::ToolEnd { call_id: "c1".to_owned(), result };
    stage.pager.on_session_event(&agent(end), Duration::ZERO);
    let screen = stage.screen().join("\n");
    assert!(screen.contains("built") && !screen.contains("linking"), "{screen}");
    assert_eq!(screen.matches("$ make").count(), 1, "{screen}");
}

#[test]
fn it_stays_at_its_text_if_the_width_changes() {
    let mut stage = Stage::new(session(40, 12), Size::new(60, 20));
    stage.screen();
    stage.search("question 0020");
    for width in [20, 120, 40] {
        stage.size.width = width;
        let screen = stage.screen();
        assert!(screen.iter().any(|row| row.contains("question 0020")), "{width}: {screen:#?}");
    }
}

#[test]
fn pager_at_all_widths() {
    let mut screens = Vec::new();
    for width in [20, 40, 80, 120, 200] {
        let mut stage = Stage::new(session(12, 2), Size::new(width, 12));
        stage.screen();
        let screen = stage.search("0010");
        let rows: Vec<&str> = screen.iter().map(|row| row.trim_end()).collect();
        screens.push(format!("── {width} columns\n{}\n", rows.join("\n")));
    }
    insta::assert_snapshot!(screens.concat());
}

#[test]
fn an_empty_session_and_tiny_screens_are_survived() {
    for (width, height) in [(1, 1), (3, 2), (80, 24)] {
        for n_prompts in [0, 1] {
            let mut stage = Stage::new(session(n_prompts, 1), Size::new(width, height));
            for code in [KeyCode::Up, KeyCode::Down, KeyCode::Home, KeyCode::End, KeyCode::Char('n')] {
                stage.press(code);
                assert!(stage.screen().len() <= usize::from(height));
            }
            stage.search("x");
        }
    }
}

#[test]
fn way_out_is_named_whole_on_small_screens() {
    for (width, height) in [(20, 8), (20, 12), (20, 20), (40, 12), (80, 24)] {
        let mut stage = Stage::new(session(3, 4), Size::new(width, height));
        let named = |rows: &[String], hint: &str| {
            let is_named = rows.iter().any(|row| row.contains(hint));
            assert!(is_named, "{hint:?} at {width}×{height}: {rows:#?}");
        };
        named(&stage.screen(), "escape/q: close");
        stage.pager.set_waiting(true);
        named(&stage.screen(), "escape/q: close");
        stage.pager.set_waiting(false);
        stage.press(KeyCode::Char('/'));
        named(&stage.screen(), "escape: cancel");
        stage.press(KeyCode::Esc);
        let found = stage.search("line");
        named(&found, "escape/q: close");
        // What has no room is left out, not cut.
        let is_cut = |row: &String| row.ends_with('/') || row.ends_with(':');
        assert!(!found.last().is_some_and(is_cut), "{width}×{height}: {found:#?}");
    }
}
