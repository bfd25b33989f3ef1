use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::session::{Author, HitRank, MessageHit, Snippet};
use crate::tui::keymap::{BINDINGS, Keymap, Platform};
use crate::tui::term::InputEvent;

use super::super::actions;
use super::super::msg::{Effect, WorldEffect};
use super::super::overlays::tests::{check_hints, draw};
use super::super::overlays::{DialogOutcome, Overlay as _, OverlayStep};
use super::*;

const NOW_MS: u64 = 1_000_000_000_000;

/// The session `id`, forked from `parent`, `time` minutes after the first one.
pub(super) fn session(id: &str, parent: &str, time: u64) -> SessionSummary {
    SessionSummary {
        path: PathBuf::from(format!("/s/{id}.jsonl")),
        id: id.to_owned(),
        cwd: "/home/ada/project".to_owned(),
        name: None,
        first_message: Some(format!("Message of {id}")),
        n_messages: 12,
        created_ms: None,
        modified_ms: NOW_MS - 600_000 + time * 60_000,
        parent: (!parent.is_empty()).then(|| PathBuf::from(format!("/s/{parent}.jsonl"))),
    }
}

fn sessions() -> Vec<SessionSummary> {
    let named = SessionSummary { name: Some("Parser".to_owned()), ..session("a", "", 1) };
    let long = SessionSummary {
        first_message: Some("Explain how the incremental index resumes at the end of a file".to_owned()),
        n_messages: 1234,
        modified_ms: NOW_MS - 45 * 24 * 3_600_000,
        ..session("b", "", 0)
    };
    vec![named, long, session("c", "a", 2), session("here", "", 9)]
}

struct List {
    dialog: SessionsDialog,
    keymap: Keymap,
}

impl List {
    fn new() -> Self {
        let bindings = actions::bindings();
        let keymap = Keymap::new(&[BINDINGS, &bindings], Platform::Unix);
        let current = PathBuf::from("/s/here.jsonl");
        let home = PathBuf::from("/home/ada");
        let mut dialog = SessionsDialog::new(Some(&current), NOW_MS, Some(&home));
        let sessions = sessions();
        dialog.on_done(SessionsDone::Listed { request: 0, is_first: true, sessions, is_done: true });
        Self { dialog, keymap }
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<DialogOutcome> {
        match self.dialog.handle(&InputEvent::Key(KeyEvent::new(code, modifiers)), &self.keymap) {
            OverlayStep::Stay | OverlayStep::Close => None,
            OverlayStep::StayWith(outcome) | OverlayStep::CloseWith(outcome) => Some(outcome),
        }
    }

    fn press(&mut self, code: KeyCode) -> Option<DialogOutcome> {
        self.key(code, KeyModifiers::NONE)
    }

    fn ctrl(&mut self, c: char) -> Option<DialogOutcome> {
        self.key(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    fn screen(&mut self, width: u16, max_rows: u16) -> String {
        let (rows, _) = draw(&mut self.dialog, width, max_rows);
        assert!(rows.iter().all(|row| row.width() <= usize::from(width)));
        rows.iter().map(|row| row.text().trim_end().to_owned() + "\n").collect()
    }
}

fn effect(outcome: Option<DialogOutcome>) -> SessionsEffect {
    match outcome {
        Some(DialogOutcome::Effect(Effect::World(WorldEffect::Sessions(effect)))) => effect,
        other => panic!("{other:?}"),
    }
}

fn hit(session: SessionSummary, rank: HitRank, text: &str, mark: std::ops::Range<usize>) -> SearchHit {
    let snippet = Snippet { text: text.to_owned(), marks: vec![mark] };
    let message = MessageHit { entry_id: "m1".to_owned(), author: Author::Assistant, snippet };
    SearchHit { session, rank, message: Some(message), n_messages: 1 }
}

#[test]
fn age_and_number_stay_on_the_row_at_any_width() {
    let mut list = List::new();
    insta::assert_snapshot!(list.screen(80, 20));
    insta::assert_snapshot!(list.screen(40, 20));
}

#[test]
fn hints_name_the_keys_of_the_user_while_browsing_renaming_and_deleting() {
    let mut list = List::new();
    check_hints(&mut list.dialog);
    for change in ['r', 'd'] {
        list.ctrl(change);
        check_hints(&mut list.dialog);
        list.press(KeyCode::Esc);
    }
}

#[test]
fn found_texts_stand_below_their_sessions() {
    let mut list = List::new();
    for c in ['i', 'n'] {
        list.press(KeyCode::Char(c));
    }
    let asked = effect(list.press(KeyCode::Char('d')));
    let text = "ind".to_owned();
    assert_eq!(asked, SessionsEffect::Search { request: 3, is_all: false, text });
    let (first, second) = (sessions()[0].clone(), sessions()[1].clone());
    let late = hit(second, HitRank::Message, "…of the index, which is found", 9..12);
    let named = hit(first, HitRank::Name, "the ind", 4..7);
    let found = |request, is_first, hits| SessionsDone::Found { request, is_first, hits, is_done: true };
    // An answer to an earlier request does not count.
    list.dialog.on_done(found(2, true, vec![named.clone()]));
    list.dialog.on_done(found(3, true, vec![late]));
    assert!(list.screen(80, 20).contains("enter: show it in its tree"), "{}", list.screen(80, 20));
    list.dialog.on_done(found(3, false, vec![named]));
    insta::assert_snapshot!(list.screen(40, 20));
    let chosen = list.press(KeyCode::Enter);
    let entry = Some(EntryId::new("m1"));
    let path = PathBuf::from("/s/a.jsonl");
    assert_eq!(chosen, Some(DialogOutcome::SessionChosen(ChosenSession { path, entry })));
}

#[test]
fn hits_that_need_the_id_come_after_those_in_texts_and_names() {
    let mut list = List::new();
    list.press(KeyCode::Char('x'));
    let [first, second, third, _] = sessions().try_into().unwrap();
    let hits = vec![
        hit(first, HitRank::Header, "x", 0..1),
        hit(second, HitRank::Session, "x", 0..1),
        hit(third, HitRank::Message, "x", 0..1),
    ];
    list.dialog.on_done(SessionsDone::Found { request: 1, is_first: true, hits, is_done: true });
    let screen = list.screen(80, 20);
    let row = |title: &str| screen.lines().position(|row| row.contains(title));
    let rows = ["Explain how", "Message of c", "Parser"].map(row);
    assert!(rows.is_sorted() && rows[0].is_some(), "{screen}");
}

#[test]
fn only_the_current_search_reports_a_bad_pattern() {
    let mut list = List::new();
    for c in "re:(a".chars() {
        list.press(KeyCode::Char(c));
    }
    let bad = |request| SessionsDone::BadQuery { request, problem: "unclosed group".to_owned() };
    let asked = effect(list.press(KeyCode::Char(')')));
    let text = "re:(a)".to_owned();
    let request = 6;
    assert_eq!(asked, SessionsEffect::Search { request, is_all: false, text });
    list.dialog.on_done(bad(request - 1));
    assert!(!list.screen(80, 20).contains("unclosed"));
    list.dialog.on_done(bad(request));
    assert!(list.screen(80, 20).contains("unclosed"));
}

#[test]
fn keys_switch_scope_order_and_filter() {
    let mut list = List::new();
    assert_eq!(effect(list.press(KeyCode::Tab)), SessionsEffect::List { request: 1, is_all: true });
    assert!(list.screen(80, 20).contains("Sessions of all directories · reading… 0\n"));
    list.dialog.on_done(SessionsDone::Listed {
        request: 1,
        is_first: true,
        sessions: sessions(),
        is_done: true,
    });
    insta::assert_snapshot!(list.screen(80, 20));
    list.ctrl('s');
    list.ctrl('n');
    insta::assert_snapshot!(list.screen(80, 20));
}

#[test]
fn selected_session_stays_selected_when_the_scope_changes() {
    let mut list = List::new();
    let selected = |list: &mut List| {
        let screen = list.screen(80, 20);
        screen.lines().find(|row| row.starts_with('→')).unwrap_or_default().to_owned()
    };
    let listed =
        |request, is_first, sessions, is_done| SessionsDone::Listed { request, is_first, sessions, is_done };
    list.press(KeyCode::Down);
    assert!(selected(&mut list).contains("Message of c"));
    list.press(KeyCode::Tab);
    // It is read after others, and others follow that are shown above it.
    list.dialog.on_done(listed(1, true, vec![session("d", "", 5)], false));
    assert!(selected(&mut list).contains("Message of d"));
    list.dialog.on_done(listed(1, false, sessions(), false));
    assert!(selected(&mut list).contains("Message of c"));
    list.dialog.on_done(listed(1, false, vec![session("e", "", 6)], true));
    assert!(selected(&mut list).contains("Message of c"));
    // A key pressed meanwhile counts, and so does a list without the session.
    list.press(KeyCode::Tab);
    list.dialog.on_done(listed(2, true, sessions(), false));
    list.press(KeyCode::Up);
    list.dialog.on_done(listed(2, false, Vec::new(), true));
    assert!(selected(&mut list).contains("Parser"));
    list.press(KeyCode::Tab);
    list.dialog.on_done(listed(3, true, vec![session("f", "", 6)], true));
    assert!(selected(&mut list).contains("Message of f"));
    // In a search, too.
    list.press(KeyCode::Char('x'));
    let hits = ["f", "g"].map(|id| hit(session(id, "", 1), HitRank::Message, "x", 0..1)).to_vec();
    let found = |request, hits| SessionsDone::Found { request, is_first: true, hits, is_done: true };
    list.dialog.on_done(found(4, hits.clone()));
    list.press(KeyCode::Down);
    assert!(selected(&mut list).contains("Message of g"));
    list.press(KeyCode::Tab);
    list.dialog.on_done(found(5, hits));
    assert!(selected(&mut list).contains("Message of g"));
}

#[test]
fn changed_query_marks_the_best_match_and_other_keys_leave_the_mark() {
    let mut list = List::new();
    let selected = |list: &mut List| {
        let screen = list.screen(80, 20);
        screen.lines().find(|row| row.starts_with('→')).unwrap_or_default().to_owned()
    };
    list.press(KeyCode::Down);
    list.press(KeyCode::Down);
    list.press(KeyCode::Char('m'));
    let found = |id: &str| hit(session(id, "", 1), HitRank::Message, "Message", 0..1);
    let hits = vec![found("c"), found("a")];
    // The session that was marked before is among the hits, but not the best.
    list.dialog.on_done(SessionsDone::Found { request: 1, is_first: true, hits, is_done: false });
    assert!(selected(&mut list).contains("Message of c"));
    list.press(KeyCode::Down);
    for key in [KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End] {
        list.press(key);
    }
    let more = vec![found("b")];
    list.dialog.on_done(SessionsDone::Found { request: 1, is_first: false, hits: more, is_done: true });
    assert!(selected(&mut list).contains("Message of a"));
}

#[test]
fn deletion_is_confirmed_and_the_open_session_is_kept() {
    let mut list = List::new();
    assert_eq!(list.ctrl('d'), None);
    assert!(list.screen(80, 20).contains("Delete this session?"));
    assert_eq!(list.press(KeyCode::Esc), None);
    list.ctrl('d');
    let path = PathBuf::from("/s/a.jsonl");
    assert_eq!(effect(list.press(KeyCode::Enter)), SessionsEffect::Delete { path: path.clone() });
    list.dialog.on_done(SessionsDone::Deleted { path, how: Deleted::Permanently });
    let screen = list.screen(80, 20);
    assert!(screen.contains("The session was deleted.") && !screen.contains("Parser"), "{screen}");
    list.ctrl('s');
    assert!(!list.screen(80, 20).contains("was deleted"), "the next key has another effect");
    // Only a search shows the open session.
    list.press(KeyCode::Char('x'));
    let here = hit(session("here", "", 9), HitRank::Message, "x", 0..1);
    list.dialog.on_done(SessionsDone::Found { request: 1, is_first: true, hits: vec![here], is_done: true });
    assert_eq!(list.ctrl('d'), None);
    assert!(list.screen(80, 20).contains("This session is open; open another one to delete it."));
    assert_eq!(list.ctrl('r'), None);
    assert!(list.screen(80, 20).contains("This session is open; /name renames it."));
}

#[test]
fn session_is_renamed_in_the_list() {
    let mut list = List::new();
    list.ctrl('r');
    assert!(list.screen(80, 20).contains("Name: Parser\n"));
    list.press(KeyCode::Char('s'));
    let (path, name) = (PathBuf::from("/s/a.jsonl"), "Parsers".to_owned());
    let renamed = SessionsEffect::Rename { path: path.clone(), name: name.clone() };
    assert_eq!(effect(list.press(KeyCode::Enter)), renamed);
    list.dialog.on_done(SessionsDone::Renamed { path, name });
    assert!(list.screen(80, 20).contains("→ Parsers"));
}

#[test]
fn name_that_is_refused_stays_to_be_tried_again() {
    let mut list = List::new();
    list.ctrl('r');
    list.press(KeyCode::Char('s'));
    let (path, name) = (PathBuf::from("/s/a.jsonl"), "Parsers".to_owned());
    let rename = SessionsEffect::Rename { path: path.clone(), name: name.clone() };
    assert_eq!(effect(list.press(KeyCode::Enter)), rename);
    let problem = "the session is open in another pi (process 7)".to_owned();
    list.dialog.on_done(SessionsDone::NotRenamed { path, name, problem: problem.clone() });
    let screen = list.screen(80, 20);
    assert!(screen.contains("Name: Parsers\n") && screen.contains(&problem), "{screen}");
    assert_eq!(effect(list.press(KeyCode::Enter)), rename);
    assert!(!list.screen(80, 20).contains(&problem));
}

#[test]
fn blank_query_reads_the_list_again_if_a_search_cancelled_it() {
    let mut list = List::new();
    list.press(KeyCode::Tab);
    list.press(KeyCode::Char('x'));
    assert_eq!(effect(list.press(KeyCode::Backspace)), SessionsEffect::List { request: 3, is_all: true });
    list.dialog.on_done(SessionsDone::Listed {
        request: 3,
        is_first: true,
        sessions: sessions(),
        is_done: true,
    });
    list.press(KeyCode::Char('x'));
    assert_eq!(list.press(KeyCode::Backspace), None);
}

#[test]
fn any_size_is_survived() {
    let mut list = List::new();
    list.press(KeyCode::Char('x'));
    let hits = sessions().into_iter().map(|session| hit(session, HitRank::Session, "äxä", 2..3)).collect();
    list.dialog.on_done(SessionsDone::Found { request: 1, is_first: true, hits, is_done: true });
    list.press(KeyCode::Up);
    for width in 1..12 {
        for max_rows in 0..9 {
            list.screen(width, max_rows);
        }
    }
}

#[test]
fn what_cannot_be_seen_in_a_name_is_spelt_out() {
    let theme = crate::tui::theme::Theme::builtin(
        "dark",
        crate::tui::theme::Appearance::Dark,
        crate::tui::theme::ColorDepth::True,
    )
    .unwrap();
    let style = rows::RowStyle { width_cells: 80, theme: &theme, now_ms: NOW_MS, home: None, with_cwd: true };
    let named = SessionSummary {
        name: Some("fix \u{202e}txt.exe\u{1b}[2J".to_owned()),
        cwd: "/pro\nject".to_owned(),
        ..session("a", "", 1)
    };
    let row = style.session(&named, 0, false, false).text();
    assert!(row.contains("fix <U+202E>txt.exe<U+001B>[2J"), "{row}");
    assert!(row.contains("/pro<U+000A>ject"), "{row}");
}
