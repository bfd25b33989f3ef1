//! Keys from the bytes of a terminal to what they do.

use crate::session::{Phase, PromptTemplate, ResourceOrigin, TakenQueue};
use crate::tui::keymap::Chord;

use super::super::msg::{EffectDone, ScreenEffect};
use super::super::welcome;
use super::*;

/// Types `keys` into an empty editor, in both encodings; compares text and cursor.
#[track_caller]
fn check(keys: &str, expected: &str) {
    for encoding in [KITTY, LEGACY] {
        let mut stage = Stage { encoding, ..Stage::new() };
        stage.type_keys(keys);
        assert_eq!(stage.editor(), expected, "{keys} in {encoding:?}");
    }
}

#[test]
fn editing_keys_do_what_they_say() {
    check("hello world<ctrl+a>X", "X|hello world");
    check("one two<ctrl+w>", "one |");
    check("one two<alt+b><alt+b><alt+d>", "| two");
    check("one two<ctrl+a><ctrl+k><ctrl+y><ctrl+y>", "one twoone two|");
    check("ab<left><left>c<right>d<end>e<home>f", "f|cadbe");
    check("one<ctrl+j>two<up>X<down>Y", "oneX\ntwoY|");
    check("世界<left><backspace>", "|界");
    check("👨‍👩‍👧‍👦x<left><backspace>", "|x");
    check("word<ctrl+u>", "|");
    let mut stage = Stage::new();
    assert_eq!(stage.type_keys("one two<ctrl+a><ctrl+]>t").editor(), "one |two");
}

/// A Cyrillic layout, of which the terminal reports the letters of the standard one too.
#[test]
fn ctrl_keys_of_another_script_do_what_their_latin_ones_do() {
    let mut stage = Stage::new();
    stage.type_keys("abc").type_bytes(b"\x1b[1092::97;5u").type_keys("ф");
    assert_eq!(stage.editor(), "ф|abc", "ctrl+a");
    assert_eq!(stage.type_bytes(b"\x1b[1089::99;5u").editor(), "|", "ctrl+c");
    stage.effects.clear();
    stage.type_bytes(b"\x1b[1074::100;5u");
    assert!(matches!(stage.effects[..], [Effect::Screen(ScreenEffect::Quit)]), "ctrl+d");
}

#[test]
fn follow_up_that_is_edited_says_how_it_is_one_again() {
    let mut stage = Stage::new();
    let taken = |follow_up: &[&str], steering: &[&str]| {
        let prompts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
        let (follow_up, steering) = (prompts(follow_up), prompts(steering));
        EffectDone::QueueTaken(TakenQueue { follow_up, steering, ..TakenQueue::default() })
    };
    stage.app.on_effect_done(taken(&[], &["now"]), &mut stage.effects);
    assert_eq!(stage.app.status.hint, None);
    stage.app.on_effect_done(taken(&["later"], &[]), &mut stage.effects);
    let hint = stage.app.status.hint.clone().unwrap_or_default();
    assert_eq!(hint, "alt+enter queues it again");
    assert!(stage.editor().contains("later"));
}

#[test]
fn unpin_names_the_key_of_the_user() {
    let mut stage = Stage::new();
    assert_eq!(stage.app.keymap.apply(json!({ "app.tree.togglePin": "f3" }).as_object().unwrap()), []);
    stage.type_keys("/unpin<enter>");
    let screen = stage.screen(100, 30).join("\n");
    assert!(screen.contains("/pin pins your latest one, and f3 in /tree any other."), "{screen}");
}

#[test]
fn hints_of_new_entries_name_the_keys_that_were_reloaded() {
    let mut stage = Stage::new();
    let mut keymap = default_keymap();
    let keys = json!({ "app.tools.expand": "f2", "app.transcript.page": [] });
    assert_eq!(keymap.apply(keys.as_object().unwrap()), []);
    let reloaded = EffectDone::Reloaded { problems: Vec::new(), keymap: Some(keymap) };
    stage.app.on_effect_done(reloaded, &mut stage.effects);
    stage.message(user(&"line\n\n".repeat(90)));
    let screen = stage.screen(80, 60).join("\n");
    assert!(screen.contains("f2 to expand") && !screen.contains("ctrl+o to expand"), "{screen}");
    assert_eq!(stage.app.transcript.view().page_key, "/transcript");
}

#[test]
fn parts_of_hints_without_a_key_are_left_out() {
    let mut stage = Stage::new();
    let mut keymap = default_keymap();
    let keys = json!({
        "app.interrupt": [], "app.clear": [], "app.tools.expand": [], "app.message.followUp": [],
        "app.session.toggleScope": []
    });
    assert_eq!(keymap.apply(keys.as_object().unwrap()), []);
    assert_eq!(welcome::hints(&keymap, &stage.app.session)[0], "/ commands · ! bash");
    let reloaded = EffectDone::Reloaded { problems: Vec::new(), keymap: Some(keymap) };
    stage.app.on_effect_done(reloaded, &mut stage.effects);
    stage.message(user(&"line\n\n".repeat(90)));
    stage.type_keys("/queue<enter>");
    let screen = stage.screen(80, 60).join("\n");
    assert!(screen.contains("more lines)") && !screen.contains("to expand"), "{screen}");
    assert!(screen.contains("While the agent works, enter queues a message."), "{screen}");
}

#[test]
fn enter_sends_and_its_variants_are_told_apart() {
    let sent = |keys: &str, phase: Phase| {
        let mut stage = Stage::new();
        stage.session(|session| session.phase = phase).type_keys(keys).commands()
    };
    let prompt =
        |text: &str, when: &str| vec![format!("Prompt {{ text: {text:?}, images: [], when_busy: {when} }}")];
    assert_eq!(sent("hi<enter>", Phase::Idle), prompt("hi", "Steer"));
    assert_eq!(sent("hi<alt+enter>", Phase::Running), prompt("hi", "FollowUp"));
    assert_eq!(sent("a<shift+enter>b<enter>", Phase::Idle), prompt("a\nb", "Steer"));
    assert_eq!(sent("a\\<enter>b<enter>", Phase::Idle), prompt("a\nb", "Steer"));
    assert_eq!(sent("<escape>", Phase::Running), ["Interrupt"]);
    assert_eq!(sent("<enter>", Phase::Running), [""; 0]);
}

/// What `keys` lead to, with other keys for some actions.
#[track_caller]
fn check_clash(overrides: serde_json::Value, keys: &str, expected: impl FnOnce(&mut Stage) -> bool) {
    let mut stage = Stage::new();
    assert_eq!(stage.app.keymap.apply(overrides.as_object().unwrap()), []);
    stage.type_keys(keys);
    assert!(expected(&mut stage), "{overrides} {keys}: {:#?}", stage.screen(80, 30));
}

/// Each place gives a key to the action that the report at the start names, and to no other.
#[test]
fn key_of_two_actions_does_in_each_place_what_the_report_says() {
    let shows = |text: &'static str| {
        move |stage: &mut Stage| stage.screen(80, 30).iter().any(|row| row.contains(text))
    };
    let hides = |text: &'static str| {
        move |stage: &mut Stage| !stage.screen(80, 30).iter().any(|row| row.contains(text))
    };
    // Suggestions over the editor.
    check_clash(json!({ "app.transcript.page": "tab" }), "/mod<tab>", |stage| stage.editor() == "/mod|");
    check_clash(json!({ "app.model.select": "escape" }), "/mod<escape>", shows("→"));
    // The second key that would quit.
    let cleared = json!({ "app.message.copy": "ctrl+c" });
    check_clash(cleared, "x<ctrl+c><ctrl+c>", |stage| stage.editor() == "x|");
    // A dialog whose action lost its key, and its hint.
    let lost = json!({ "app.queue.drop": "ctrl+s" });
    check_clash(lost.clone(), "/thinking<enter><ctrl+s>", |stage| stage.commands().is_empty());
    check_clash(lost, "/thinking<enter>", hides("ctrl+s"));
    // An action of a dialog has its key before those of lists, and the hints show it once.
    let saves = json!({ "app.models.save": "enter" });
    check_clash(saves.clone(), "<ctrl+l><enter>", |stage| stage.commands()[0].contains("Default"));
    check_clash(saves, "<ctrl+l>", |stage| {
        let rows = stage.screen(120, 30).join(" ");
        rows.matches("enter: ").count() == 1 && rows.contains("enter: also as default")
    });
}

#[test]
fn lists_open_choose_and_close_by_keys() {
    let mut stage = Stage::new();
    stage.type_keys("<ctrl+l>mini");
    assert!(stage.screen(80, 20).iter().any(|row| row.contains("→") && row.contains("mini")));
    stage.type_keys("<enter>");
    let commands = stage.commands();
    assert!(commands.len() == 1 && commands[0].contains("mini"), "{commands:?}");
    stage.type_keys("<ctrl+l><escape>typed");
    assert_eq!(stage.editor(), "typed|");
}

/// Every key of the tables is recognised as itself if the terminal speaks the kitty protocol.
#[test]
fn every_default_key_is_told_apart_with_the_kitty_protocol() {
    let keymap = default_keymap();
    let mut n_keys = 0;
    for (binding, chords) in keymap.rows() {
        for chord in chords {
            let name = chord.to_string();
            // Keys that no test can name are letters beyond the tables of terminals.
            let sent = bytes(&format!("<{}>", name.replace("plus", "+")), KITTY);
            let events = recorded_input([sent.as_slice()], false);
            let [InputEvent::Key(key)] = events.as_slice() else { panic!("{name}: {events:?}") };
            assert_eq!(Chord::from_event(key), *chord, "{name} of {}", binding.id);
            n_keys += 1;
        }
    }
    assert!(n_keys > 80, "{n_keys}");
}

#[test]
fn template_that_a_command_hides_is_reported_once() {
    let mut stage = Stage::new();
    let template = |name: &str| PromptTemplate {
        name: name.to_owned(),
        description: String::new(),
        argument_hint: String::new(),
        path: format!("/home/me/.pi/agent/prompts/{name}.md").into(),
        origin: ResourceOrigin::User,
    };
    for _ in 0..2 {
        let mut state = (*stage.app.session).clone();
        state.templates = Arc::new([template("model"), template("review")]);
        stage.app.on_session_event(&SessionEvent::QueueChanged, state.into(), &mut stage.effects);
    }
    let screen = stage.screen(120, 20).join("\n");
    let warning =
        "prompt template ~/.pi/agent/prompts/model.md: /model is a command of pi, so nothing calls it";
    assert_eq!((screen.matches(warning).count(), screen.matches("review").count()), (1, 0), "{screen}");
}
