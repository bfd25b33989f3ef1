use std::path::Path;

use crossterm::event::KeyModifiers;
use proptest::prelude::*;
use serde_json::json;

use crate::session::{Header, SessionStore};
use crate::tui::keymap::{BINDINGS, Platform};

use super::super::super::actions;
use super::super::super::msg::Effect;
use super::super::super::overlays::tests::{check_hints, draw};
use super::super::TreeDone;
use super::super::effects::{answer, read};
use super::super::tests::{tree_of, user};
use super::super::texts::{describe, search};
use super::*;

fn keymap() -> Keymap {
    Keymap::new(&[BINDINGS, &actions::bindings()], Platform::Unix)
}

fn dialog_of(tree: SessionTree, filter: TreeFilter) -> TreeDialog {
    let options = TreeOptions { filter, skip_prompt: false };
    TreeDialog::new(read(tree, options, None), Phase::Idle)
}

/// The session with branches, a label and a summary that the original wrote.
fn of_the_original(filter: TreeFilter) -> TreeDialog {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions/tree.jsonl");
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(path, copy.path()).unwrap();
    let none = || -> Header { unreachable!("the file has a header") };
    dialog_of(SessionStore::open(copy.path(), none).unwrap().tree(), filter)
}

fn shown(dialog: &mut TreeDialog, width: u16, max_rows: u16) -> String {
    let (rows, _) = draw(dialog, width, max_rows);
    assert!(rows.len() <= usize::from(max_rows.max(1)));
    assert!(rows.iter().all(|row| row.width() <= usize::from(width.max(1))));
    rows.iter().map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Presses keys as users name them, does what they ask for, and returns what remains.
fn press(dialog: &mut TreeDialog, keys: &str) -> Vec<String> {
    let keymap = keymap();
    let mut left = Vec::new();
    for key in keys.split(' ').filter(|key| !key.is_empty()) {
        let (code, modifiers) = match key {
            "up" => (KeyCode::Up, KeyModifiers::NONE),
            "down" => (KeyCode::Down, KeyModifiers::NONE),
            "enter" => (KeyCode::Enter, KeyModifiers::NONE),
            "escape" => (KeyCode::Esc, KeyModifiers::NONE),
            "backspace" => (KeyCode::Backspace, KeyModifiers::NONE),
            "fold" => (KeyCode::Left, KeyModifiers::CONTROL),
            "unfold" => (KeyCode::Right, KeyModifiers::CONTROL),
            "label" => (KeyCode::Char('L'), KeyModifiers::SHIFT),
            "times" => (KeyCode::Char('T'), KeyModifiers::SHIFT),
            key => match key.strip_prefix("ctrl+") {
                Some(letter) => (KeyCode::Char(letter.chars().next().unwrap()), KeyModifiers::CONTROL),
                None => {
                    let step = dialog.handle(&InputEvent::Paste(key.to_owned()), &keymap);
                    left.extend(perform(dialog, step));
                    continue;
                }
            },
        };
        let step = dialog.handle(&InputEvent::Key(KeyEvent::new(code, modifiers)), &keymap);
        left.extend(perform(dialog, step));
    }
    left
}

/// Reads and searches at once; returns what is for the session.
fn perform(dialog: &mut TreeDialog, step: OverlayStep) -> Option<String> {
    let effect = match step {
        OverlayStep::Stay => return None,
        OverlayStep::Close => return Some("close".to_owned()),
        OverlayStep::StayWith(DialogOutcome::Effect(Effect::World(effect)))
        | OverlayStep::CloseWith(DialogOutcome::Effect(Effect::World(effect))) => effect,
        other => panic!("{other:?}"),
    };
    match effect {
        WorldEffect::Tree(TreeEffect::ReadTexts { tree, wanted }) => {
            let texts = wanted.into_iter().map(|idx| (idx, describe(&tree, idx))).collect();
            dialog.on_texts(&tree, texts);
            None
        }
        WorldEffect::Tree(TreeEffect::Search { tree, query, from }) => {
            let entries = search((&tree, from), &query, &|| false).unwrap();
            let more = dialog.on_found(&tree, (query, from), entries);
            assert_eq!(more, [], "a small tree is known already");
            None
        }
        WorldEffect::Tree(TreeEffect::ReadWhole { entry, .. }) => Some(format!("copy {entry}")),
        WorldEffect::Session(SessionCommand::SetLabel { target, label }) => {
            Some(format!("label {target} {label:?}"))
        }
        WorldEffect::Session(SessionCommand::Navigate { target, summary, if_busy: IfBusy::Cancel }) => {
            Some(format!("go to {target}: {summary:?}"))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tree_of_the_original_at_80_and_40_columns() {
    let mut dialog = of_the_original(TreeFilter::Default);
    insta::assert_snapshot!(shown(&mut dialog, 80, 24), @"
    ────────────────────────────────────────────────────────────────────────────────
    Session tree
    >
      • [start] user: first question
      • assistant: answer to: first question
      ├⊟ • user: run echo hello
      │  • [bash: echo hello]
      │  • assistant: the tool said: hello
      │  ├⊟ • user: fourth question
    › │  │  • assistant: answer to: fourth question
      │  └⊟ user: second question
      │     assistant: answer to: second question
      └⊟ [branch summary]: ## Goal SUMMARY OF THE BRANCH
         user: run echo hello
         [bash: echo hello]
         assistant: the tool said: hello
         user: third question
         assistant: answer to: third question
      (7/15)
    type: search · enter: continue here · ctrl+left: fold · shift+l: label
    ctrl+o: filter · alt+p: pin · ctrl+x: copy · escape: close
    ");
    insta::assert_snapshot!(shown(&mut dialog, 40, 14), @"
    ────────────────────────────────────────
    Session tree
    >
      • assistant: answer to: first question
      ├⊟ • user: run echo hello
      │  • [bash: echo hello]
      │  • assistant: the tool said: hello
      │  ├⊟ • user: fourth question
    › │  │  • assistant: answer to: fourth …
      (7/15)
    type: search · enter: continue here
    ctrl+left: fold · shift+l: label
    ctrl+o: filter · alt+p: pin
    ctrl+x: copy · escape: close
    ");
}

#[test]
fn filters_show_less_or_more() {
    let lines = |filter: TreeFilter| {
        let mut dialog = of_the_original(filter);
        shown(&mut dialog, 60, 40)
    };
    insta::assert_snapshot!(lines(TreeFilter::UserOnly), @"
    ────────────────────────────────────────────────────────────
    Session tree
    >
      • [start] user: first question
      ├⊟ • user: run echo hello
      │  ├⊟ • user: fourth question
    › │  │  • assistant: answer to: fourth question
      │  └─ user: second question
      └⊟ user: run echo hello
         user: third question
      (4/7) [user-only]
    type: search · enter: continue here · ctrl+left: fold
    shift+l: label · ctrl+o: filter · alt+p: pin · ctrl+x: copy
    escape: close
    ");
    insta::assert_snapshot!(lines(TreeFilter::LabeledOnly), @"
    ────────────────────────────────────────────────────────────
    Session tree
    >
      • [start] user: first question
    › • assistant: answer to: fourth question
      (2/2) [labeled-only]
    type: search · enter: continue here · ctrl+left: fold
    shift+l: label · ctrl+o: filter · alt+p: pin · ctrl+x: copy
    escape: close
    ");
    let mut dialog = of_the_original(TreeFilter::Default);
    assert!(!shown(&mut dialog, 60, 40).contains("[system]"));
    press(&mut dialog, "ctrl+a");
    assert!(shown(&mut dialog, 60, 40).contains("[label: start]"));
    assert!(shown(&mut dialog, 60, 40).contains("[system]"));
    press(&mut dialog, "ctrl+o");
    assert!(!shown(&mut dialog, 60, 40).contains("[label: start]"), "behind the last filter comes the first");
    press(&mut dialog, "ctrl+t");
    assert!(!shown(&mut dialog, 60, 40).contains("[bash: echo hello]"));
}

#[test]
fn branches_fold_and_the_selection_stays_visible() {
    let mut dialog = of_the_original(TreeFilter::Default);
    // To the start of the branch, and shut it.
    press(&mut dialog, "fold fold");
    insta::assert_snapshot!(shown(&mut dialog, 60, 40), @"
    ────────────────────────────────────────────────────────────
    Session tree
    >
      • [start] user: first question
      • assistant: answer to: first question
      ├⊟ • user: run echo hello
      │  • [bash: echo hello]
      │  • assistant: the tool said: hello
    › │  ├⊞ • user: fourth question
      │  └⊟ user: second question
      │     assistant: answer to: second question
      └⊟ [branch summary]: ## Goal SUMMARY OF THE BRANCH
         user: run echo hello
         [bash: echo hello]
         assistant: the tool said: hello
         user: third question
         assistant: answer to: third question
      (6/14)
    type: search · enter: continue here · ctrl+left: fold
    shift+l: label · ctrl+o: filter · alt+p: pin · ctrl+x: copy
    escape: close
    ");
    press(&mut dialog, "unfold unfold");
    assert!(shown(&mut dialog, 60, 40).contains("› │"), "{}", shown(&mut dialog, 60, 40));
}

#[test]
fn typing_searches_and_escape_ends_that_first() {
    let mut dialog = of_the_original(TreeFilter::Default);
    press(&mut dialog, "hello fold");
    insta::assert_snapshot!(shown(&mut dialog, 60, 40), @"
    ────────────────────────────────────────────────────────────
    Session tree
    > hello
    › ├⊟ • user: run echo hello
      │  • [bash: echo hello]
      │  • assistant: the tool said: hello
      └⊟ user: run echo hello
         [bash: echo hello]
         assistant: the tool said: hello
      (1/6)
    type: search · enter: continue here · ctrl+left: fold
    ctrl+o: filter · alt+p: pin · ctrl+x: copy
    escape: end the search
    ");
    // A letter that does something else without a search is a part of it.
    assert_eq!(press(&mut dialog, "backspace backspace label times"), [""; 0]);
    assert!(shown(&mut dialog, 60, 40).contains("> helLT"));
    assert_eq!(press(&mut dialog, "escape"), [""; 0]);
    assert!(shown(&mut dialog, 60, 40).contains("first question"));
    assert!(shown(&mut dialog, 60, 40).contains("shift+l: label"));
    assert_eq!(press(&mut dialog, "nothing-like-it"), [""; 0]);
    assert!(shown(&mut dialog, 60, 40).contains("No entries"));
    assert_eq!(press(&mut dialog, "enter escape escape"), ["close"]);
}

#[test]
fn search_that_begins_with_any_capital_but_those_of_the_labels_only_searches() {
    for capital in ('A'..='Z').filter(|capital| !['L', 'T'].contains(capital)) {
        let mut dialog = of_the_original(TreeFilter::Default);
        let key = InputEvent::Key(KeyEvent::new(KeyCode::Char(capital), KeyModifiers::SHIFT));
        let step = dialog.handle(&key, &keymap());
        assert_eq!(perform(&mut dialog, step), None, "{capital}");
        assert!(shown(&mut dialog, 60, 40).contains(&format!("> {capital}")), "{capital}");
    }
}

#[test]
fn change_of_the_model_at_the_end_is_the_current_entry() {
    let change = user("change", Some("b"))
        .replace(r#""type":"message""#, r#""type":"model_change","provider":"acme","modelId":"rocket""#);
    let tree = tree_of(&[user("a", None), user("b", Some("a")), change]);
    for filter in [TreeFilter::Default, TreeFilter::UserOnly, TreeFilter::LabeledOnly] {
        let mut dialog = dialog_of(tree.clone(), filter);
        let text = shown(&mut dialog, 60, 40);
        assert!(text.contains("› • [model: rocket]"), "{text}");
        assert_eq!(press(&mut dialog, "enter"), [""; 0]);
        assert!(shown(&mut dialog, 80, 40).contains("already at this point"));
    }
    // Above it the conversation has another model.
    assert_eq!(press(&mut dialog_of(tree, TreeFilter::Default), "up enter"), ["go to b: Leave"]);
}

#[test]
fn long_label_leaves_most_of_the_row_to_the_text() {
    let mut dialog = of_the_original(TreeFilter::Default);
    press(&mut dialog, "label a-label-that-is-longer-than-any-narrow-terminal enter times");
    assert!(shown(&mut dialog, 200, 24).contains("just now"), "{}", shown(&mut dialog, 200, 24));
    press(&mut dialog, "times");
    let row = |dialog: &mut TreeDialog, width: u16| {
        let screen = shown(dialog, width, 24);
        screen.lines().find(|row| row.starts_with('›')).unwrap().to_owned()
    };
    assert_eq!(row(&mut dialog, 40), "› │  │  • [a-label-tha… assistant: answ…");
    assert_eq!(row(&mut dialog, 20), "› │  • [a-la… assis…");
    press(&mut dialog, "ctrl+l");
    assert!(row(&mut dialog, 80).contains("assistant: answer to: fourth"));
}

#[test]
fn labels_are_edited_where_they_stand() {
    let mut dialog = of_the_original(TreeFilter::Default);
    assert_eq!(press(&mut dialog, "label mine enter"), ["label e59c0855 Some(\"mine\")"]);
    assert!(shown(&mut dialog, 60, 40).contains("[mine] assistant: answer to: fourth question"));
    assert_eq!(press(&mut dialog, "label enter"), [""; 0], "unchanged");
    assert_eq!(press(&mut dialog, "label escape"), [""; 0]);
    assert_eq!(press(&mut dialog, "label ctrl+u enter"), ["label e59c0855 None"]);
    assert!(!shown(&mut dialog, 60, 40).contains("[mine]"));
    press(&mut dialog, "times");
    assert!(shown(&mut dialog, 60, 40).contains("[start] 2026-11-22 04:01 user: first question"));
}

#[test]
fn enter_asks_what_becomes_of_the_branch_that_is_left() {
    let go = |keys: &str| press(&mut of_the_original(TreeFilter::Default), keys);
    let mut dialog = of_the_original(TreeFilter::Default);
    assert_eq!(press(&mut dialog, "enter"), [""; 0]);
    assert!(shown(&mut dialog, 80, 40).contains("already at this point"));
    press(&mut dialog, "up enter");
    insta::assert_snapshot!(shown(&mut dialog, 40, 14), @"
    ────────────────────────────────────────
    Summarise the branch you leave?
    → No summary
      Summarise
      Summarise with a focus of your own
    enter: choose · escape: back to the tree
    ");
    assert_eq!(press(&mut dialog, "escape"), [""; 0]);
    assert!(
        shown(&mut dialog, 60, 40).contains("› │  ├⊟ • user: fourth question"),
        "{}",
        shown(&mut dialog, 60, 40)
    );
    assert_eq!(go("up enter enter"), ["go to 295d2dbf: Leave"]);
    assert_eq!(go("up enter down enter"), ["go to 295d2dbf: Summarize { focus: None }"]);
    assert_eq!(go("up enter up enter tests enter"), ["go to 295d2dbf: Summarize { focus: Some(\"tests\") }"]);
    assert_eq!(go("up enter up enter escape escape escape"), ["close"]);
    assert_eq!(go("ctrl+x"), ["copy 20"]);
}

#[test]
fn hostile_texts_stay_text() {
    let line = user("a", None).replace("says a", "\\u001b[2Jwipe\\u0007 \\u202eevil");
    let mut dialog = dialog_of(tree_of(&[line]), TreeFilter::Default);
    let text = shown(&mut dialog, 60, 20);
    assert!(text.contains("<U+001B>[2Jwipe<U+0007> <U+202E>evil"), "{text}");
    press(&mut dialog, "label \u{1b}[2J\u{202e}x enter");
    let text = shown(&mut dialog, 80, 20);
    assert!(text.contains("[[2J<U+202E>x]") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn any_size_is_survived() {
    let mut dialog = of_the_original(TreeFilter::All);
    for width in 0..12 {
        for max_rows in 0..12 {
            shown(&mut dialog, width, max_rows);
        }
    }
    let mut empty = dialog_of(tree_of(&[]), TreeFilter::Default);
    assert_eq!(press(&mut empty, "up down enter fold unfold label x ctrl+x escape escape"), ["close"]);
}

/// Opening and moving in a large tree reads the entries near the selection only.
#[test]
fn a_hundred_thousand_entries_are_shown_by_reading_a_few() {
    let n = 100_000;
    let parent = |at: usize| match at {
        0 => None,
        // A new branch now and then, all of them one level deeper than the one before.
        at if at % 1_000 == 0 => Some((at - 500).to_string()),
        at => Some((at - 1).to_string()),
    };
    let lines: Vec<String> = (0..n).map(|at| user(&at.to_string(), parent(at).as_deref())).collect();
    let mut dialog = dialog_of(tree_of(&lines), TreeFilter::Default);
    assert_eq!(dialog.outline.len(), n);
    assert!(dialog.texts.len() <= 160, "{} were read before the first frame", dialog.texts.len());
    let n_before = dialog.texts.len();
    for _ in 0..50 {
        shown(&mut dialog, 80, 40);
        press(&mut dialog, "up");
    }
    press(&mut dialog, "fold fold ctrl+u ctrl+d");
    shown(&mut dialog, 80, 40);
    let n_read = dialog.texts.len() - n_before;
    assert!(n_read <= 600, "{n_read} more were read for a few keys");
}

#[test]
fn hints_of_all_stages_name_the_keys_of_the_user() {
    let mut dialog = of_the_original(TreeFilter::Default);
    check_hints(&mut dialog);
    for keys in ["label", "escape up up enter", "down down enter"] {
        press(&mut dialog, keys);
        assert!(!matches!(dialog.stage, Stage::Browse), "{keys}");
        check_hints(&mut dialog);
    }
}

/// A dialog whose requests have all been answered.
fn settled(mut dialog: TreeDialog, mut effects: Vec<TreeEffect>) -> TreeDialog {
    while let Some(effect) = effects.pop() {
        let now = dialog.tree.clone();
        match answer(effect, now) {
            TreeDone::Texts { tree, texts } => dialog.on_texts(&tree, texts),
            TreeDone::Found { tree, query, from, entries } => {
                effects.extend(dialog.on_found(&tree, (query, from), entries));
            }
            TreeDone::Refreshed(read) => effects.extend(dialog.on_refreshed(*read)),
            other => panic!("{other:?}"),
        }
    }
    dialog
}

fn refreshed(mut dialog: TreeDialog, later: &SessionTree) -> TreeDialog {
    let effect = dialog.refresh().unwrap();
    let TreeDone::Refreshed(read) = answer(effect, later.clone()) else { panic!("no tree") };
    let more = dialog.on_refreshed(*read);
    settled(dialog, more)
}

/// The ids of all rows.
fn ids(dialog: &TreeDialog) -> Vec<String> {
    let row = |at: usize| dialog.tree.entry(dialog.outline.row(at).unwrap().entry).id.to_string();
    (0..dialog.outline.len()).map(row).collect()
}

proptest! {
    /// A tree that follows the session is the one that would be opened now: with the folds, the query and
    /// the selected entry that it has, in the row of the screen where it was.
    #[test]
    fn followed_tree_is_the_one_that_would_be_opened(
        parents in prop::collection::vec(prop::option::weighted(0.95, any::<prop::sample::Index>()), 2..60),
        n_before in any::<prop::sample::Index>(),
        selected in any::<prop::sample::Index>(),
        folds in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        query in prop::sample::select(vec!["", "1", "says"]),
        // The later file has other entries before.
        n_moved in prop::sample::select(vec![0_usize, 0, 0, 3]),
    ) {
        let lines: Vec<String> = parents
            .iter()
            .enumerate()
            .map(|(at, parent)| {
                let parent = parent.as_ref().filter(|_| at > 0).map(|parent| parent.index(at).to_string());
                user(&at.to_string(), parent.as_deref())
            })
            .collect();
        let n_before = n_before.index(lines.len()) + 1;
        let moved: Vec<String> = (0..n_moved).map(|n| user(&format!("m{n}"), None)).collect();
        let (earlier, later) = (tree_of(&lines[..n_before]), tree_of(&[moved, lines].concat()));

        let mut dialog = dialog_of(earlier, TreeFilter::Default);
        dialog.folded = folds.iter().map(|fold| fold.index(n_before)).collect();
        let search = dialog.search.start(&dialog.tree, query.to_owned());
        let mut dialog = settled(dialog, search.into_iter().collect());
        dialog.rebuild(Some(selected.index(n_before)));
        let page = 8;
        let row_on_screen = |dialog: &mut TreeDialog| {
            let (rows, _) = draw(dialog, 80, page + 6);
            rows.iter().position(|row| row.text().starts_with('›'))
        };
        let (row, place) = (row_on_screen(&mut dialog), dialog.list.selected());
        let (entry, n_rows) = (dialog.entry().map(|entry| dialog.tree.entry(entry).id.to_string()), dialog.outline.len());
        let folded = dialog.folded.clone();
        let mut dialog = refreshed(dialog, &later);

        let mut fresh = dialog_of(later.clone(), TreeFilter::Default);
        fresh.folded = folded.iter().map(|idx| idx + n_moved).collect();
        let search = fresh.search.start(&later, query.to_owned());
        let mut fresh = settled(fresh, search.into_iter().collect());
        fresh.rebuild(None);
        prop_assert_eq!(ids(&dialog), ids(&fresh));
        prop_assert_eq!(&dialog.folded, &fresh.folded);
        for (entry, text) in &dialog.texts {
            prop_assert_eq!(text, &describe(&later, *entry));
        }
        let row_after = row_on_screen(&mut dialog);
        if let Some(entry) = entry {
            prop_assert_eq!(dialog.entry().map(|entry| later.entry(entry).id.to_string()), Some(entry));
            let (above, page) = (dialog.list.selected(), dialog.list.page());
            let below = dialog.outline.len() - above;
            if query.is_empty() && n_rows >= page && above >= page && below >= page && place >= page {
                prop_assert_eq!(row_after, row);
            }
        }
    }
}

/// What arrives in a long session is read, and nothing else.
#[test]
fn refresh_of_ten_thousand_entries_reads_what_was_added() {
    let n = 10_000;
    let parent = |at: usize| at.checked_sub(1).map(|at| at.to_string());
    let label = |at: usize| {
        json!({ "type": "label", "id": format!("l{at}"), "parentId": null, "timestamp": "", "targetId": "7", "label": "x" })
            .to_string()
    };
    let mut lines: Vec<String> = (0..n).map(|at| user(&at.to_string(), parent(at).as_deref())).collect();
    lines.extend((0..1_000).map(label));
    let earlier = tree_of(&lines);
    lines.push(user("new", Some("9999")));
    let later = tree_of(&lines);
    let mut dialog = dialog_of(earlier, TreeFilter::Default);
    let TreeDone::Refreshed(read) = answer(dialog.refresh().unwrap(), later) else { panic!("no tree") };
    assert_eq!((read.texts.len(), read.labels.len()), (1, 0));
    let n_before = dialog.texts.len();
    assert_eq!(dialog.on_refreshed(*read), []);
    assert_eq!(dialog.texts.len(), n_before + 1);
}

#[test]
fn tree_of_a_session_that_is_open_elsewhere_takes_no_label_and_pins_nothing() {
    let mut dialog = of_the_original(TreeFilter::Default);
    let session = SessionState::of(&Arc::new(crate::ai::Model::default()), Path::new("/"));
    dialog.on_session(&SessionState { is_read_only: true, ..session });
    for (key, held) in [('L', KeyModifiers::SHIFT), ('p', KeyModifiers::ALT)] {
        let key = InputEvent::Key(KeyEvent::new(KeyCode::Char(key), held));
        let step = dialog.handle(&key, &keymap());
        assert_eq!(perform(&mut dialog, step), None);
        assert!(
            shown(&mut dialog, 80, 24)
                .contains("(7/15)  The session is open elsewhere; here it is read-only.")
        );
        press(&mut dialog, "down up");
    }
    // Other branches can be looked at; a summary of this one could not be stored.
    assert_eq!(press(&mut dialog, "down down enter"), ["go to 6b2d947b: Leave"]);
}
