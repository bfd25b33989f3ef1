//! What a session has loaded, below the header and after it was loaded again.

use std::path::PathBuf;

use ratatui::layout::Position;

use crate::ai::{ScopedModel, ThinkingLevel};
use crate::config::StartDisplay;
use crate::session::{Entry, InstructionFile, Opened, PromptTemplate, ResourceOrigin, Skill};
use crate::tui::term::InlineWindow;

use super::super::msg::EffectDone;
use super::super::resources::{ResourceLists, show_in_header};
use super::super::theme_files::OwnTheme;
use super::super::transcript::set_header_hints;
use super::super::ui::Ui;
use super::super::welcome;
use super::emulators::virtual_terminal::VirtualTerminal;
use super::over_screen::Shared;
use super::*;

fn skill(name: &str, path: &str, origin: ResourceOrigin) -> Skill {
    let (path, description) = (PathBuf::from(path), "Does it".to_owned());
    Skill { name: name.to_owned(), description, path, origin, is_listed: true }
}

fn load(session: &mut SessionState) {
    let file = |path: &str, origin: ResourceOrigin| InstructionFile { path: PathBuf::from(path), origin };
    session.instructions = [
        file("/home/me/.pi/agent/AGENTS.md", ResourceOrigin::User),
        file("/home/me/project/AGENTS.md", ResourceOrigin::Project),
    ]
    .into();
    session.skills = [
        skill("deploy", "/home/me/project/.pi/skills/deploy/SKILL.md", ResourceOrigin::Project),
        skill("release-notes", "/home/me/.pi/agent/skills/release-notes/SKILL.md", ResourceOrigin::User),
        skill("review", "/home/me/.pi/agent/skills/review/SKILL.md", ResourceOrigin::User),
    ]
    .into();
    session.templates = [PromptTemplate {
        name: "explain".to_owned(),
        description: String::new(),
        argument_hint: String::new(),
        path: "/srv/prompts/explain.md".into(),
        origin: ResourceOrigin::CommandLine,
    }]
    .into();
}

/// A start with a display; nothing of a conversation is shown.
fn started(display: StartDisplay, change: impl FnOnce(&mut SessionState)) -> Stage {
    let mut stage = Stage::new();
    stage.session(|session| {
        change(session);
        Arc::make_mut(&mut session.settings).values.start_display = display;
    });
    stage.app.resources = ResourceLists::new(&stage.app.session);
    let hints = welcome::hints(&stage.app.keymap, &stage.app.session);
    set_header_hints(&mut stage.app.transcript, hints, welcome::keys(&stage.app.keymap));
    show_in_header(&mut stage.app);
    stage
}

fn event(stage: &mut Stage, event: &SessionEvent, change: impl FnOnce(&mut SessionState)) {
    let mut state = (*stage.app.session).clone();
    change(&mut state);
    stage.app.on_session_event(event, Arc::new(state), &mut stage.effects);
}

fn list_themes(stage: &mut Stage, names: &[&str]) {
    let theme = |name: &&str| OwnTheme {
        name: (*name).to_owned(),
        path: format!("/home/me/.pi/agent/themes/{name}.json").into(),
        origin: ResourceOrigin::User,
    };
    let done = EffectDone::OwnThemes(names.iter().map(theme).collect());
    stage.app.on_effect_done(done, &mut stage.effects);
}

/// The rows above the editor, without blank ones at the start and end.
fn above_editor(stage: &mut Stage, width: u16) -> String {
    let rows = stage.screen(width, 60);
    let end = rows.iter().position(|row| row.starts_with("──")).unwrap_or(rows.len());
    rows[..end].join("\n").trim_matches('\n').to_owned()
}

/// The same without what is below blank rows.
fn header(stage: &mut Stage, width: u16) -> String {
    let rows = above_editor(stage, width);
    rows.split("\n\n\n").next().unwrap().to_owned()
}

#[test]
fn start_lists_what_was_loaded() {
    let mut stage = started(StartDisplay::Whole, load);
    list_themes(&mut stage, &["sea", "sand"]);
    insta::assert_snapshot!(header(&mut stage, 80), @"
    pi v0
    escape interrupt · ctrl+c twice quit · / commands · ! bash · ctrl+o expand

    [Context] ~/.pi/agent/AGENTS.md, AGENTS.md
    [Skills] deploy, release-notes, review
    [Prompts] /explain
    [Themes] sea, sand
    ");
    insta::assert_snapshot!(header(&mut stage, 40), @"
    pi v0
    escape interrupt · ctrl+c twice quit
    · / commands · ! bash · ctrl+o expand

    [Context] ~/.pi/agent/AGENTS.md,
      AGENTS.md
    [Skills] deploy, release-notes,
      review
    [Prompts] /explain
    [Themes] sea, sand
    ");
}

#[test]
fn expanded_start_lists_keys_and_paths() {
    let mut stage = started(StartDisplay::Whole, load);
    list_themes(&mut stage, &["sea"]);
    stage.type_keys("<ctrl+o>");
    insta::assert_snapshot!(header(&mut stage, 80), @"
    pi v0
    escape: Interrupt the agent and return queued messages to the editor
    ctrl+c: Clear the editor; press twice to quit
    ctrl+d: Quit if the editor is empty
    ctrl+z: Suspend; resume with fg in the shell
    alt+enter: Queue the message until the agent is done
    alt+up: Return queued messages to the editor
    shift+tab: Next thinking level
    ctrl+t: Show or hide thinking
    ctrl+l: Choose a model
    ctrl+p: Next model
    ctrl+shift+p: Previous model
    ctrl+o: Expand or collapse tool output and the header
    alt+o: Show the whole transcript, with search
    ctrl+r: Search your earlier prompts
    ctrl+g: Edit the message in $VISUAL or $EDITOR
    ctrl+v: Paste an image, files or text
    /: Commands; /hotkeys lists all keys
    !: Run a command in bash, !! without the model knowing
    @: Name a file

    [Context]
      user
        ~/.pi/agent/AGENTS.md
      project
        AGENTS.md
    [Skills]
      user
        ~/.pi/agent/skills/release-notes/SKILL.md
        ~/.pi/agent/skills/review/SKILL.md
      project
        .pi/skills/deploy/SKILL.md
    [Prompts]
      command line
        /srv/prompts/explain.md
    [Themes]
      user
        ~/.pi/agent/themes/sea.json
    ");
    insta::assert_snapshot!(header(&mut stage, 40), @"
    pi v0
    escape: Interrupt the agent and
      return queued messages to the
      editor
    ctrl+c: Clear the editor; press twice
      to quit
    ctrl+d: Quit if the editor is empty
    ctrl+z: Suspend; resume with fg in
      the shell
    alt+enter: Queue the message until
      the agent is done
    alt+up: Return queued messages to the
      editor
    shift+tab: Next thinking level
    ctrl+t: Show or hide thinking
    ctrl+l: Choose a model
    ctrl+p: Next model
    ctrl+shift+p: Previous model
    ctrl+o: Expand or collapse tool
      output and the header
    alt+o: Show the whole transcript,
      with search
    ctrl+r: Search your earlier prompts
    ctrl+g: Edit the message in $VISUAL
      or $EDITOR
    ctrl+v: Paste an image, files or text
    /: Commands; /hotkeys lists all keys
    !: Run a command in bash, !! without
      the model knowing
    @: Name a file

    [Context]
      user
        ~/.pi/agent/AGENTS.md
      project
        AGENTS.md
    [Skills]
      user
        ~/.pi/agent/skills/release-notes/
        SKILL.md
        ~/.pi/agent/skills/review/
        SKILL.md
      project
        .pi/skills/deploy/SKILL.md
    [Prompts]
      command line
        /srv/prompts/explain.md
    [Themes]
      user
        ~/.pi/agent/themes/sea.json
    ");
}

#[test]
fn start_without_resources_has_no_more_rows_than_its_header() {
    let mut stage = started(StartDisplay::Whole, |_| {});
    list_themes(&mut stage, &[]);
    assert_eq!(above_editor(&mut stage, 100).lines().count(), 2);
}

#[test]
fn start_names_the_models_to_cycle_through_and_the_key_of_the_user() {
    let scope = |session: &mut SessionState| {
        let models = models();
        let scoped = |n: usize, thinking| ScopedModel {
            model: Arc::clone(&models[n]),
            thinking,
            pattern: String::new(),
        };
        session.scope = [scoped(1, Some(ThinkingLevel::High)), scoped(2, None)].into();
    };
    let mut stage = started(StartDisplay::Whole, scope);
    let line = "Model scope: mini:high, qwen3-coder-480b-a35b-instruct (ctrl+p to cycle)";
    let shown = above_editor(&mut stage, 100);
    assert!(shown.contains(line), "{shown}");
    assert_eq!(stage.app.keymap.apply(json!({ "app.model.cycleForward": [] }).as_object().unwrap()), []);
    show_in_header(&mut stage.app);
    assert!(above_editor(&mut stage, 100).lines().any(|row| row.trim_end().ends_with("-instruct")));
    let shown = above_editor(&mut started(StartDisplay::Header, scope), 100);
    assert!(!shown.contains("Model scope"), "{shown}");
}

#[test]
fn session_that_was_compacted_says_so_when_it_is_opened() {
    let mut stage = started(StartDisplay::Whole, |_| {});
    let mut open = |n_compactions: usize| {
        let opened = Opened { n_earlier: Some(0), n_compactions, ..Opened::default() };
        event(&mut stage, &SessionEvent::Opened(Arc::new(opened)), |_| {});
        above_editor(&mut stage, 80)
    };
    assert!(open(1).ends_with("Session compacted 1 time"));
    assert!(open(2).ends_with("Session compacted 2 times"));
    assert!(!open(0).contains("compacted"));
}

#[test]
fn quiet_start_lists_nothing() {
    for display in [StartDisplay::Header, StartDisplay::Nothing] {
        let mut stage = started(display, load);
        event(&mut stage, &SessionEvent::ProjectChanged, |_| {});
        list_themes(&mut stage, &["sea"]);
        stage.message(user("hello"));
        event(&mut stage, &SessionEvent::ProjectChanged, |_| {});
        list_themes(&mut stage, &["sea"]);
        let shown = above_editor(&mut stage, 80);
        assert!(!shown.contains("[Skills]") && !shown.contains("[Themes]"), "{shown}");
    }
}

#[test]
fn what_is_loaded_again_is_in_the_header_until_something_was_said() {
    let mut stage = started(StartDisplay::Whole, |_| {});
    event(&mut stage, &SessionEvent::ProjectChanged, load);
    list_themes(&mut stage, &["sea"]);
    stage.message(user("hello"));
    let shown = above_editor(&mut stage, 80);
    let (skills, said) = (shown.find("[Skills] deploy, release-notes"), shown.find("hello"));
    assert!(skills.is_some() && skills < said, "{shown}");
    event(&mut stage, &SessionEvent::ProjectChanged, |session| session.skills = [].into());
    list_themes(&mut stage, &["sea", "sand"]);
    let shown = above_editor(&mut stage, 80);
    let (before, after) = shown.split_once("hello").unwrap();
    assert!(before.contains("[Skills]") && before.contains("[Themes] sea\n"), "{shown}");
    assert!(!after.contains("[Skills]") && after.contains("[Themes] sea, sand"), "{shown}");
    stage.type_keys("<ctrl+o>");
    let shown = above_editor(&mut stage, 80);
    assert!(shown.split_once("hello").unwrap().1.contains("~/.pi/agent/themes/sand.json"), "{shown}");
}

#[test]
fn new_session_lists_what_is_loaded_and_a_continued_one_does_not() {
    let mut stage = started(StartDisplay::Whole, load);
    let mut open = |id: &str, texts: &[&str]| {
        let entry = |text: &&str| {
            let line = json!({ "type": "message", "id": *text, "parentId": null, "timestamp": "T",
                "message": { "role": "user", "content": *text, "timestamp": 0 } });
            Arc::new(Entry::parse(&line.to_string()).unwrap())
        };
        let tail = texts.iter().map(entry).collect();
        let opened = Opened { tail, n_earlier: Some(0), ..Opened::default() };
        event(&mut stage, &SessionEvent::Opened(Arc::new(opened)), |session| session.id = id.to_owned());
        list_themes(&mut stage, &["sea"]);
        above_editor(&mut stage, 80)
    };
    // The one of the start.
    assert!(open("", &["question"]).contains("[Skills]"));
    let shown = open("other", &["question"]);
    assert!(!shown.contains("[Skills]") && !shown.contains("[Themes]"), "{shown}");
    let shown = open("new", &[]);
    assert!(shown.contains("[Skills]") && shown.contains("[Themes]"), "{shown}");
}

#[test]
fn rows_that_left_the_screen_stay_when_lists_arrive_or_expand() {
    let size = Size::new(60, 14);
    let terminal = Shared::new(VirtualTerminal::new(size));
    let mut ui = Ui::new(InlineWindow::new(terminal.clone(), size, Position::new(0, 0)));
    let mut stage = started(StartDisplay::Whole, load);
    for n in 0..12 {
        stage.message(user(&format!("question {n:02}")));
    }
    ui.draw(&mut stage.app).unwrap();
    let before = terminal.0.borrow_mut().scrollback();
    assert!(before.iter().any(|row| row.contains("[Skills]")), "{before:?}");
    list_themes(&mut stage, &["sea"]);
    ui.draw(&mut stage.app).unwrap();
    stage.type_keys("<ctrl+o>");
    ui.draw(&mut stage.app).unwrap();
    let after = terminal.0.borrow_mut().scrollback();
    let screen = terminal.0.borrow_mut().screen();
    assert_eq!(after[..before.len()], before);
    let all = after.iter().chain(&screen).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!((0..12).all(|n| all.matches(&format!("question {n:02}")).count() == 1), "{all}");
}
