//! The tree while the session goes on behind it.

use crate::session::{Entry, Header, Navigated, Opened, Phase, SessionStore, SessionTree};

use super::super::msg::{EffectDone, ScreenEffect};
use super::super::tree::{TreeDone, TreeEffect, answer};
use super::*;

/// The app with a session in a file, whose entries arrive as a test wants.
struct Session {
    stage: Stage,
    store: SessionStore,
    _dir: tempfile::TempDir,
}

fn store(dir: &Path, id: &str) -> SessionStore {
    let header = Header { id: id.to_owned(), cwd: "/".to_owned(), ..Header::default() };
    SessionStore::create(header, Some(dir.join(id)))
}

impl Session {
    /// A session whose user has said these words, each answered by its length.
    fn new(prompts: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Self { stage: Stage::new(), store: store(dir.path(), "one"), _dir: dir };
        session.stage.session(|session| session.id = "one".to_owned());
        for prompt in prompts {
            session.user(prompt).answer(&format!("{} letters", prompt.len()));
        }
        session
    }

    /// Adds an entry and reports it.
    fn append(&mut self, body: Value) -> &mut Self {
        let mut line = json!({ "id": "x", "parentId": null, "timestamp": "" });
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let body = Entry::parse(&line.to_string()).unwrap().body;
        let (entry, written) = self.store.append(body, 1_764_000_000_000);
        written.unwrap();
        self.event(&SessionEvent::EntryAppended(entry))
    }

    fn event(&mut self, event: &SessionEvent) -> &mut Self {
        let state = SessionState {
            id: self.store.header().id.clone(),
            leaf: self.store.leaf().cloned(),
            ..(*self.stage.app.session).clone()
        };
        self.stage.app.on_session_event(event, state.into(), &mut self.stage.effects);
        self
    }

    fn message(&mut self, message: Value) -> &mut Self {
        self.append(json!({ "type": "message", "message": message }))
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.message(json!({ "role": "user", "content": text }))
    }

    fn answer(&mut self, text: &str) -> &mut Self {
        self.assistant(json!([{ "type": "text", "text": text }]))
    }

    fn call(&mut self, command: &str) -> &mut Self {
        self.assistant(
            json!([{ "type": "toolCall", "id": command, "name": "bash", "arguments": { "command": command } }]),
        )
    }

    fn assistant(&mut self, content: Value) -> &mut Self {
        self.message(
            json!({ "role": "assistant", "content": content, "api": "x", "provider": "x", "model": "x",
            "stopReason": "stop", "timestamp": 0 }),
        )
    }

    fn result(&mut self, command: &str) -> &mut Self {
        self.message(json!({ "role": "toolResult", "toolCallId": command, "toolName": "bash",
            "content": [{ "type": "text", "text": "done" }], "isError": false, "timestamp": 0 }))
    }

    /// Continues after the last of `n` entries, as after the choice of an entry.
    fn go_to(&mut self, n: usize) -> &mut Self {
        let tree = self.store.tree();
        assert!(self.store.move_leaf(Some(tree.entry(n - 1).id)));
        let branch =
            Opened { tail: tree.read_all(&tree.path(Some(n - 1))), n_earlier: Some(0), ..Opened::default() };
        self.event(&SessionEvent::Navigated(Arc::new(Navigated { branch, prompt: None })))
    }

    /// What is asked about the tree.
    fn asked(&mut self) -> Vec<TreeEffect> {
        let effects = std::mem::take(&mut self.stage.effects);
        let (asked, others) = effects
            .into_iter()
            .partition::<Vec<_>, _>(|effect| matches!(effect, Effect::World(WorldEffect::Tree(_))));
        self.stage.effects = others;
        asked
            .into_iter()
            .map(|effect| match effect {
                Effect::World(WorldEffect::Tree(effect)) => effect,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn done(&mut self, done: TreeDone) {
        self.world(EffectDone::Tree(done));
    }

    fn world(&mut self, done: EffectDone) {
        self.stage.app.on_effect_done(done, &mut self.stage.effects);
    }

    /// Reads what is asked until nothing more is. Returns how often the tree was read again.
    fn settle(&mut self) -> usize {
        let mut n_refreshed = 0;
        loop {
            let asked = self.asked();
            if asked.is_empty() {
                return n_refreshed;
            }
            for effect in asked {
                n_refreshed += usize::from(matches!(effect, TreeEffect::Refresh(_)));
                self.done(answer(effect, self.store.tree()));
            }
        }
    }

    fn keys(&mut self, keys: &str) -> &mut Self {
        self.stage.type_keys(keys);
        self.settle();
        self
    }

    fn open(&mut self) -> &mut Self {
        self.keys("/tree<enter>")
    }

    /// The rows of the screen from the title on, without keys and footer.
    fn screen(&mut self, height: u16) -> Vec<String> {
        let rows = self.stage.screen(80, height);
        let title = rows.iter().position(|row| row.contains("Session tree")).unwrap_or(rows.len());
        let entries = rows.iter().skip(title + 1);
        let is_end = |row: &&String| row.contains(": search");
        entries.take_while(|row| !is_end(row)).map(|row| row.trim_end().to_owned()).collect()
    }

    fn text(&mut self) -> String {
        self.screen(30).join("\n")
    }
}

#[test]
fn entries_appear_while_the_tree_is_open_and_the_selection_stays() {
    let mut session = Session::new(&["one"]);
    session.open().user("run it").call("ls").settle();
    insta::assert_snapshot!(session.text(), @"
    >
      • user: one
    › • assistant: 3 letters
      • user: run it
      • [bash: ls]
      (2/4)
    ");
    session.result("ls").answer("It ran.").settle();
    insta::assert_snapshot!(session.text(), @"
    >
      • user: one
    › • assistant: 3 letters
      • user: run it
      • [bash: ls]
      • assistant: It ran.
      (2/5)
    ");
    // A call that is selected while it runs is selected as its result.
    session.call("pwd").settle();
    session.keys("<end>");
    session.result("pwd").answer("So.").settle();
    insta::assert_snapshot!(session.text(), @"
    >
      • user: one
      • assistant: 3 letters
      • user: run it
      • [bash: ls]
      • assistant: It ran.
    › • [bash: pwd]
      • assistant: So.
      (6/7)
    ");
}

#[test]
fn what_becomes_of_a_copy_is_said_in_the_open_tree() {
    let mut session = Session::new(&["one"]);
    session.open().keys("<ctrl+x>");
    assert!(session.stage.effects.contains(&ScreenEffect::Copy("3 letters".to_owned()).into()));
    session.world(EffectDone::Hint("copied".to_owned()));
    assert!(session.text().ends_with("(2/2)  copied"), "{}", session.text());
    session.keys("<up>");
    assert!(session.text().ends_with("(1/2)"), "the next key has another effect: {}", session.text());
    session.keys("<ctrl+x>").world(EffectDone::NotCopied("one".to_owned()));
    assert!(session.text().ends_with("(1/2)  copied through the terminal, if it supports that"));
    session.done(TreeDone::Whole(None));
    assert!(session.text().ends_with("(1/2)  this entry has no text to copy"));
    session.keys("<escape>");
    assert!(session.stage.app.status.hint.is_none(), "it was said in the tree");
    session.world(EffectDone::Hint("copied".to_owned()));
    assert!(session.stage.app.status.hint.is_some());
}

#[test]
fn selected_row_stays_where_it_is_on_the_screen() {
    let prompts: Vec<String> = (0..20).map(|n| format!("prompt {n}")).collect();
    let mut session = Session::new(&prompts.iter().map(String::as_str).collect::<Vec<_>>());
    // A second branch, which is shown above the first.
    session.go_to(2).user("another way").answer("Yes.").open();
    let row_of = |session: &mut Session, text: &str| {
        let screen = session.screen(20);
        screen
            .iter()
            .position(|row| row.starts_with('›') && row.contains(text))
            .unwrap_or_else(|| panic!("{screen:#?}"))
    };
    session.keys("<end><up><up><up><up><up>");
    let row = row_of(&mut session, "prompt 17");
    for n in 0..5 {
        session.user(&format!("more {n}")).answer("More.").settle();
        assert_eq!(row_of(&mut session, "prompt 17"), row);
    }
    let before = session.screen(20);
    session.keys("<home>");
    let top = row_of(&mut session, "prompt 0");
    session.user("and more").settle();
    assert_eq!(row_of(&mut session, "prompt 0"), top, "nothing was added above it");
    session.keys("<end><up><up><up><up><up>");
    assert_ne!(session.screen(20), before, "the number of rows has grown");
}

#[test]
fn search_finds_what_arrives_and_what_is_typed_stays() {
    let mut session = Session::new(&["apple", "pear"]);
    session.open().keys("apple");
    session.user("a pear again").answer("An apple pie.").settle();
    insta::assert_snapshot!(session.text(), @"
    > apple
    › • user: apple
      • assistant: An apple pie.
      (1/2)
    ");
    // While the search goes on.
    session.stage.type_keys("x");
    let searches = session.asked();
    session.user("applex").settle();
    assert!(
        !session.text().contains("user: applex") && session.text().contains("searching…"),
        "{}",
        session.text()
    );
    for search in searches {
        let found = answer(search, session.store.tree());
        session.done(found);
    }
    session.settle();
    insta::assert_snapshot!(session.text(), @"
    > applex
    › • user: applex
      (1/1)
    ");
    session.keys("<escape>");
    assert!(session.text().contains("user: pear"), "{}", session.text());
}

#[test]
fn folded_branch_stays_folded() {
    let mut session = Session::new(&["one", "two"]);
    session.go_to(2).user("three").answer("5 letters").open();
    session.keys("<end><up><ctrl+left>");
    let folded = session.text();
    assert!(folded.contains("› └⊞ user: two"), "{folded}");
    session.user("four").answer("4 letters").settle();
    insta::assert_snapshot!(session.text(), @"
    >
      • user: one
      • assistant: 3 letters
      ├⊟ • user: three
      │  • assistant: 5 letters
      │  • user: four
      │  • assistant: 4 letters
    › └⊞ user: two
      (7/7)
    ");
}

#[test]
fn label_that_is_being_typed_is_kept_and_goes_to_its_entry() {
    let mut session = Session::new(&["one", "two"]);
    session.open().keys("<up>").stage.type_keys("<shift+L>mi");
    session.user("more").answer("4 letters").settle();
    session.stage.type_keys("ne");
    assert!(session.stage.screen(80, 20).join("\n").contains("mine"));
    session.stage.type_keys("<enter>");
    let target = session.store.tree().entry(2).id.to_string();
    let label = format!("SetLabel {{ target: EntryId(\"{target}\"), label: Some(\"mine\") }}");
    assert_eq!(session.stage.commands(), [label]);
    session.stage.type_keys("<shift+T>");
    assert!(session.text().contains("[mine] just now user: two"), "{}", session.text());
    // It is stored.
    session.append(json!({ "type": "label", "targetId": target, "label": "mine" })).settle();
    assert!(session.text().contains("[mine] 2025-11-24 16:00 user: two"), "{}", session.text());
    session.append(json!({ "type": "label", "targetId": target })).settle();
    assert!(!session.text().contains("[mine]"), "{}", session.text());
}

/// What was read before a label was typed does not show the label from before.
#[test]
fn label_is_not_replaced_by_an_older_one() {
    let mut session = Session::new(&["one", "two"]);
    session.open().keys("<up><shift+L>old<enter>");
    let target = session.store.tree().entry(2).id.to_string();
    session.append(json!({ "type": "label", "targetId": target, "label": "old" }));
    let refresh = session.asked().remove(0);
    let read = answer(refresh, session.store.tree());
    session.stage.type_keys("<shift+L><ctrl+u>new<enter>");
    session.done(read);
    assert!(session.text().contains("[new] user: two"), "{}", session.text());
}

#[test]
fn question_about_the_branch_that_is_left_stays_open() {
    let mut session = Session::new(&["one", "two"]);
    session.open().keys("<up><up><enter><down><down><enter>parser");
    session.user("three").settle();
    let screen = session.stage.screen(80, 20).join("\n");
    assert!(screen.contains("What should the summary focus on?") && screen.contains("parser"), "{screen}");
    session.stage.type_keys("<enter>");
    let target = session.store.tree().entry(1).id.to_string();
    let commands = session.stage.commands();
    assert!(commands[0].contains(&target) && commands[0].contains("parser"), "{commands:?}");
}

#[test]
fn place_that_becomes_the_end_of_the_session_is_not_gone_to() {
    let mut session = Session::new(&["one", "two"]);
    session.open().keys("<up><up><enter>");
    assert!(session.stage.screen(80, 20).join("\n").contains("Summarise the branch you leave?"));
    session.go_to(2).settle();
    assert!(session.text().contains("already at this point"), "{}", session.text());
    session.user("three").settle();
    assert!(!session.text().contains("already at this point"), "{}", session.text());
}

#[test]
fn long_label_leaves_room_for_its_time() {
    let mut session = Session::new(&["one"]);
    session.open();
    let target = session.store.tree().entry(0).id.clone();
    let label = "a label that is much longer than half of the row";
    session.append(json!({ "type": "label", "targetId": target, "label": label })).settle();
    session.keys("<shift+t>");
    let text = session.text();
    let row = text.lines().find(|row| row.contains("[a label")).unwrap();
    assert!(row.contains("20") && row.contains(':') && row.contains("user: one"), "{text}");
}

#[test]
fn entry_with_a_new_label_at_the_end_is_where_the_session_is() {
    let mut session = Session::new(&["one"]);
    session.open();
    let target = session.store.leaf().unwrap().to_string();
    session.append(json!({ "type": "label", "targetId": target, "label": "here" })).settle();
    session.keys("<enter>");
    assert_eq!(session.stage.commands(), [""; 0]);
    assert!(session.text().contains("already at this point"), "{}", session.text());
}

#[test]
fn tree_is_read_once_more_however_much_arrives_meanwhile() {
    let mut session = Session::new(&["one"]);
    session.open().user("two");
    let first = session.asked();
    assert!(matches!(first[..], [TreeEffect::Refresh(_)]), "{first:?}");
    for _ in 0..10 {
        session.answer("more");
        assert_eq!(session.asked(), []);
    }
    for effect in first {
        let read = answer(effect, session.store.tree());
        session.done(read);
    }
    assert_eq!(session.settle(), 1);
    assert_eq!(session.text().matches("assistant: more").count(), 10);
    // Pieces of a message are no entries.
    session.event(&SessionEvent::Agent(AgentEvent::AgentStart)).event(&SessionEvent::QueueChanged);
    assert_eq!(session.asked(), []);
}

#[test]
fn tree_that_was_behind_when_it_opened_is_read_again() {
    let mut session = Session::new(&["one"]);
    session.stage.type_keys("/tree<enter>");
    let read = session.asked().remove(0);
    let read = answer(read, session.store.tree());
    session.user("two");
    session.done(read);
    assert!(!session.text().contains("user: two"));
    assert_eq!(session.settle(), 1);
    assert!(session.text().contains("user: two"), "{}", session.text());
}

#[test]
fn branch_that_is_left_meanwhile_is_shown_as_left() {
    let mut session = Session::new(&["one", "two"]);
    session.open();
    assert!(session.text().contains("› • assistant: 3 letters"), "{}", session.text());
    session.go_to(2).settle();
    insta::assert_snapshot!(session.text(), @"
    >
      • user: one
      • assistant: 3 letters
      user: two
    › assistant: 3 letters
      (4/4)
    ");
}

#[test]
fn tree_of_another_session_is_never_shown() {
    let mut session = Session::new(&["one"]);
    session.open().user("two");
    let refresh = session.asked().remove(0);
    let late = answer(refresh, session.store.tree());
    session.stage.type_keys("<escape>/tree<enter>");
    let read = session.asked().remove(0);
    let late_read = answer(read, session.store.tree());
    // The dialog that is open then.
    session.open().user("three");
    let foreign_refresh = session.asked().remove(0);
    let other: SessionStore = store(session._dir.path(), "other");
    let foreign: SessionTree = other.tree();
    let before = session.text();
    let mixed = answer(foreign_refresh, foreign);
    session.done(mixed);
    assert_eq!(session.text(), before);
    session.store = other;
    session.event(&SessionEvent::Opened(Arc::new(Opened::default())));
    for done in [late, late_read] {
        session.done(done);
        assert!(!session.stage.app.dialogs.is_open());
    }
    session.open().user("of the other").settle();
    insta::assert_snapshot!(session.text(), @"
    >
    › • user: of the other
      (1/1)
    ");
}

#[test]
fn covered_tree_knows_whether_the_agent_works() {
    let mut session = Session::new(&["one", "two"]);
    session.stage.session(|session| session.phase = Phase::Running);
    session.open().keys("<up><up><enter>");
    let asks =
        |session: &mut Session| session.stage.screen(80, 20).join("\n").contains("moving cancels that");
    assert!(asks(&mut session));
    session.stage.app.open_trust(super::super::dialogs::AskedBy::User);
    session.stage.session(|session| session.phase = Phase::Idle);
    session.event(&SessionEvent::Settled { aborted: false });
    session.stage.app.dialogs.close_trust();
    assert!(!asks(&mut session));
}

#[test]
fn messages_to_fork_from_are_those_of_the_open_session() {
    let mut session = Session::new(&["first"]);
    session.stage.type_keys("/fork<enter>");
    let asked = session.asked().remove(0);
    let late = answer(asked, session.store.tree());
    let dir = tempfile::tempdir().unwrap();
    let open = |session: &mut Session, id: &str| {
        session.store = store(dir.path(), id);
        let opened = Opened { tail: Vec::new(), n_earlier: Some(0), ..Opened::default() };
        session.event(&SessionEvent::Opened(Arc::new(opened)));
    };
    open(&mut session, "two");
    session.done(late);
    assert!(!session.stage.app.dialogs.is_open(), "it lists the session before");
    session.user("second").keys("/fork<enter>");
    let is_open = |session: &mut Session| session.stage.screen(80, 20).join("\n").contains("Fork: continue");
    assert!(is_open(&mut session));
    session.user("third");
    assert!(is_open(&mut session), "the session goes on");
    session.stage.ask_question();
    open(&mut session, "three");
    session.stage.type_keys("<escape>");
    assert!(!is_open(&mut session), "nothing of another session can be chosen");
}
