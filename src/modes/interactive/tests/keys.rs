//! Keys from the bytes of a terminal to what they do.

use crate::agent::QueueKind;
use crate::session::{Phase, PromptTemplate, QueueView, ResourceOrigin, TakenQueue};
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
        let taken = TakenQueue { follow_up, steering, ..TakenQueue::default() };
        EffectDone::QueueTaken { taken, after: None }
    };
    stage.app.on_effect_done(taken(&[], &["now"]), &mut stage.effects);
    assert_eq!(stage.app.status.hint, None);
    stage.app.on_effect_done(taken(&["later"], &[]), &mut stage.effects);
    assert_eq!(stage.app.status.hint, Some("alt+enter queues it again".into()));
    assert!(stage.editor().contains("later"));
}

/// A working session with queued messages, of which the one at `at` of the list was taken to be edited.
fn editing(at: usize) -> Stage {
    editing_among(&["f1", "f2", "f3"], at)
}

fn editing_among(follow_up: &[&str], at: usize) -> Stage {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut stage = Stage::new();
    stage.session(|session| {
        let (steering, follow_up) = (texts(&["s1", "s2"]), texts(follow_up));
        (session.phase, session.queue) = (Phase::Running, QueueView { steering, follow_up }.into());
    });
    stage.type_keys(&format!("/queue<enter>{}<enter>", "<down>".repeat(at)));
    let asked = stage.effects.drain(..).find_map(|effect| match effect {
        Effect::World(WorldEffect::TakeQueued { slot, after }) => Some((slot, after)),
        _ => None,
    });
    let (slot, after) = asked.unwrap();
    let mut taken = TakenQueue { ticket: 1, ..TakenQueue::default() };
    stage.session(|session| {
        let queue = Arc::make_mut(&mut session.queue);
        let (left, prompts) = match slot.kind {
            QueueKind::Steering => (&mut queue.steering, &mut taken.steering),
            QueueKind::FollowUp => (&mut queue.follow_up, &mut taken.follow_up),
        };
        prompts.push(left.remove(slot.index).as_str().into());
    });
    stage.app.on_effect_done(EffectDone::QueueTaken { taken, after }, &mut stage.effects);
    stage
}

#[test]
fn message_that_is_edited_goes_back_to_its_place_in_the_queue() {
    let check = |stage: &mut Stage, border: &str, keys: &str, when_busy: &str| {
        let screen = stage.screen(80, 24).join("\n");
        assert!(screen.contains(border), "{border:?}: {screen}");
        let sent = stage.type_keys(keys).commands();
        assert!(sent.len() == 1 && sent[0].ends_with(&format!("when_busy: {when_busy} }}")), "{sent:?}");
        let next = stage.type_keys("new<enter>").commands();
        assert!(next[0].ends_with("when_busy: Steer }"), "{next:?}");
    };
    let again = "── enter: queue again after the run ─";
    check(&mut editing(2), again, " more<enter>", "At { kind: FollowUp, index: 0 }");
    check(&mut editing(3), again, " more<enter>", "At { kind: FollowUp, index: 1 }");
    check(&mut editing(4), again, "<enter>", "At { kind: FollowUp, index: 2 }");
    let equal = ["go on", "run", "go on", "commit"];
    check(&mut editing_among(&equal, 5), again, "<enter>", "At { kind: FollowUp, index: 3 }");
    check(&mut editing_among(&equal, 3), again, "<enter>", "At { kind: FollowUp, index: 1 }");
    let steer = "── enter: steer at the next tool · alt+enter: when done ─";
    check(&mut editing(1), steer, "<enter>", "At { kind: Steering, index: 1 }");
    // Other keys do what they always do.
    check(&mut editing(3), again, "<alt+enter>", "FollowUp");
    check(&mut editing(3), again, "<ctrl+enter>", "Now");
    // What was before it was delivered in the meantime.
    let mut stage = editing(4);
    stage.session(|session| drop(Arc::make_mut(&mut session.queue).follow_up.drain(..)));
    check(&mut stage, again, "<enter>", "At { kind: FollowUp, index: 0 }");
    // Nothing else was in the queue, and something was.
    let mut stage = editing(3);
    let taken = |texts: &[&str]| {
        let follow_up = texts.iter().map(|text| (*text).into()).collect();
        EffectDone::QueueTaken { taken: TakenQueue { follow_up, ..TakenQueue::default() }, after: None }
    };
    stage.app.on_effect_done(taken(&[]), &mut stage.effects);
    check(&mut stage, again, "<enter>", "At { kind: FollowUp, index: 1 }");
    let mut stage = editing(3);
    stage.app.on_effect_done(taken(&["f1", "f3"]), &mut stage.effects);
    assert_eq!(stage.app.status.hint, Some("alt+enter queues it again".into()));
    check(&mut stage, steer, "<enter>", "Steer");
    // The run has ended.
    let mut stage = editing(3);
    stage.session(|session| session.phase = Phase::Idle);
    assert!(!stage.screen(80, 24).join("\n").contains("enter: queue"));
    check(&mut stage, "f2", "<enter>", "Steer");
}

#[test]
fn message_that_is_edited_keeps_its_place_until_the_editor_is_cleared() {
    let label = |stage: &mut Stage| {
        let screen = stage.screen(80, 24);
        let border = screen.iter().find_map(|row| row.split_once("── enter: "));
        border.map(|(_, label)| label.trim_end_matches('─').trim().to_owned()).unwrap_or_default()
    };
    const AGAIN: &str = "queue again after the run";
    for keys in
        ["<ctrl+u><ctrl+y>", "x<ctrl+-><alt+->", "<ctrl+u>another wording", "<backspace><backspace>f2"]
    {
        let mut stage = editing(3);
        stage.type_keys(keys);
        assert_eq!(label(&mut stage), AGAIN, "{keys}");
        let sent = stage.type_keys("<enter>").commands();
        assert!(sent[0].contains("At { kind: FollowUp, index: 1 }"), "{keys}: {sent:?}");
    }
    let mut stage = editing(3);
    stage.type_keys("<ctrl+c>");
    assert_eq!(stage.editor(), "|");
    // Undo brings message and place back.
    stage.type_keys("<left><ctrl+->");
    assert_eq!((stage.editor().as_str(), label(&mut stage).as_str()), ("f2|", AGAIN));
    stage.type_keys("<ctrl+c>x");
    assert_eq!(label(&mut stage), "steer at the next tool · alt+enter: when done");
    assert!(stage.type_keys("<enter>").commands()[0].ends_with("when_busy: Steer }"));
}

#[test]
fn jump_ends_with_any_key_that_types_nothing() {
    for (keys, editor) in [
        ("hello<ctrl+a><ctrl+]><enter>x", "x|hello"),
        ("hello<ctrl+a><ctrl+]><ctrl+c>x", "x|"),
        ("hello<ctrl+a><ctrl+]><ctrl+o>x", "x|hello"),
        ("hello<ctrl+a><ctrl+]><escape>x", "x|hello"),
        ("hello<ctrl+a><ctrl+]>o", "hell|o"),
    ] {
        let mut stage = Stage::new();
        stage.type_keys(keys);
        assert_eq!((stage.editor().as_str(), stage.commands()), (editor, Vec::new()), "{keys}");
    }
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
    let hints = welcome::hints(&keymap, &stage.app.session);
    stage.app.transcript.header("pi", "1", &hints.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(stage.screen(80, 60).join("\n").contains("ctrl+o expand"));
    let keys = json!({ "app.tools.expand": "f2", "app.transcript.page": [] });
    assert_eq!(keymap.apply(keys.as_object().unwrap()), []);
    let reloaded = EffectDone::Reloaded { problems: Vec::new(), keymap: Some(keymap) };
    stage.app.on_effect_done(reloaded, &mut stage.effects);
    let screen = stage.screen(80, 60).join("\n");
    assert!(screen.contains("f2 expand") && !screen.contains("ctrl+o"), "{screen}");
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
    let prompt = |text: &str, when: &str| {
        vec![format!(
            "Prompt {{ prompt: PromptDraft {{ text: {text:?}, images: [], pastes: [] }}, when_busy: {when} }}"
        )]
    };
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
