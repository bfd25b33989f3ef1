use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value};

use crate::ai::{Model, Usage};
use crate::config::{LiveSettings, Trust};
use crate::session::{
    EntryId, IfBusy, ProjectState, Question, QuestionId, QuestionKind, QueueView, SummaryDraft, Trace,
};
use crate::tui::theme::{Appearance, ColorDepth, Theme, Token};
use crate::tui::widgets::Picker;
use crate::util::clock::Zone;

use super::super::super::trace::CallFilter;
use super::super::keybindings::default_keymap;
use super::super::theme_files::ListedTheme;
use super::*;

/// Draws a dialog with the dark theme and the default keys.
pub(in super::super) fn draw<M>(overlay: &mut dyn Overlay<M>, width: u16, max_rows: u16) -> Drawn {
    draw_with(overlay, width, max_rows, &default_keymap())
}

fn draw_with<M>(overlay: &mut dyn Overlay<M>, width: u16, max_rows: u16, keymap: &Keymap) -> Drawn {
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    overlay.render(&DialogCx { width, max_rows, theme: &theme, keymap })
}

/// The rows of a list with the dark theme and the default keys.
pub(in super::super) fn draw_picker<T: Clone>(picker: &mut Picker<T>, width: u16) -> Vec<Row> {
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    picker.render(&DialogCx { width, max_rows: 20, theme: &theme, keymap: &default_keymap() }).rows
}

/// The hints at the end of a dialog, in one line.
fn hints<M>(overlay: &mut dyn Overlay<M>, width: u16, keymap: &Keymap) -> String {
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    let dim = theme.style(Token::Dim);
    let (rows, _) = draw_with(overlay, width, 30, keymap);
    let is_hint =
        |row: &&Row| row.line.spans.iter().all(|span| span.style == dim) && row.text().contains(": ");
    let mut lines: Vec<String> = rows.iter().rev().take_while(is_hint).map(Row::text).collect();
    lines.reverse();
    lines.join(" · ")
}

/// Checks that a dialog names the keys of the user, and all of them at any usual width.
#[track_caller]
pub(in super::super) fn check_hints<M>(overlay: &mut dyn Overlay<M>) {
    let mut mine = default_keymap();
    let ids: Vec<&str> = mine.rows().map(|(binding, _)| binding.id).collect();
    // Each has a key of its own, which no default is.
    let own = ('一'..).map(|key| Value::from(key.to_string()));
    let overrides: Map<String, Value> = ids.iter().map(|id| (*id).to_owned()).zip(own).collect();
    let is_own = |keys: &str| keys.split('/').all(|key| key.chars().count() == 1 && key >= "一");
    assert_eq!(mine.apply(&overrides), []);
    for width in [40, 80, 120] {
        let shown = hints(overlay, width, &mine);
        for hint in shown.split(" · ") {
            let is_mine = hint.split_once(": ").is_some_and(|(keys, _)| keys == "type" || is_own(keys));
            assert!(is_mine, "{width}: {shown}");
        }
        assert!(shown.split(": ").any(|part| part.ends_with(|c| c >= '一')), "{width}: {shown}");
        assert_eq!(hints(overlay, width, &default_keymap()), hints(overlay, 400, &default_keymap()));
    }
}

fn press(overlay: &mut dyn Overlay, code: KeyCode) {
    overlay.handle(&InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)), &default_keymap());
}

#[test]
fn dialogs_name_the_keys_of_the_user_at_all_widths() {
    let model = Arc::new(Model::default());
    let session = SessionState::of(&model, Path::new("/home/me/project"));
    let choices = ModelChoice::of(&[Arc::clone(&model)]);
    check_hints(&mut Confirmation::cancel_work(SessionCommand::New { if_busy: IfBusy::Refuse }));
    check_hints(&mut ForkPoints::new("s", vec![(EntryId::new("a"), "say it".to_owned())]));
    check_hints(&mut Models::new(&choices, &session, ""));
    check_hints(&mut ModelScope::new(&choices, &session));
    check_hints(&mut ThinkingLevels::new(&session));
    let queue = QueueView { steering: vec!["a".to_owned()], follow_up: vec!["b".to_owned()] };
    check_hints(&mut QueuedMessages::new(&queue));
    let theme = |name: &str| ListedTheme { name: name.to_owned(), problem: None };
    check_hints(&mut Themes::new(&[theme("dark"), theme("light")], "dark", ""));
    let project = ProjectState { trust: Trust::Undecided, ..ProjectState::default() };
    check_hints(&mut TrustDialog::new(&project, Path::new("/home/me/project"), None));
    let read = ReadTrace {
        path: PathBuf::new(),
        trace: Trace::default(),
        filter: CallFilter::default(),
        zone: Zone::utc(),
    };
    check_hints(&mut TraceDialog::new(read));
    let question = Question {
        id: QuestionId::new(1),
        kind: QuestionKind::Trust,
        text: "Run it?\nIt lists files.".to_owned(),
        options: vec!["Allow".to_owned(), "Don't allow".to_owned()],
        default: 1,
    };
    check_hints(&mut QuestionDialog::new(Arc::new(question)));
}

#[test]
fn stages_of_settings_and_summary_name_the_keys_of_the_user() {
    let (live, _) = LiveSettings::load("/nowhere/settings.json".into(), vec![]);
    let mut settings = SettingsDialog::new(&live.get(), &[], "retry.maxRetries");
    check_hints(&mut settings);
    press(&mut settings, KeyCode::Enter);
    check_hints(&mut settings);
    let draft: SummaryDraft = serde_json::from_value(serde_json::json!({
        "text": "## Goal", "firstKeptEntryId": "a", "tokensBefore": 9, "nReplaced": 2, "model": "m",
        "usage": Usage::default(), "details": null,
    }))
    .unwrap();
    let mut summary = SummaryReview::new(&Arc::new(draft));
    check_hints(&mut summary);
    press(&mut summary, KeyCode::Esc);
    check_hints(&mut summary);
}
