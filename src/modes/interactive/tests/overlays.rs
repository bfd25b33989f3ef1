//! Dialogs and reports that need something of the world, at five widths, and what happens while they
//! are open.

use std::path::PathBuf;

use crossterm::event::{MouseEvent, MouseEventKind};

use crate::ai::{BlockKind, ScopedModel, StreamEvent, Usage};
use crate::config::{KeySource, ProviderKeys};
use crate::session::{
    ContextPart, ContextReport, EntryId, Header, Question, QuestionId, QuestionKind, SessionStore,
    SessionSummary, SessionTree, SummaryDraft, read_trace,
};
use crate::util::clock::Zone;

use super::super::super::trace::CallFilter;
use super::super::login::{LoginDone, LoginProvider, Purpose};
use super::super::msg::EffectDone;
use super::super::overlays::{ForkPoints, ReadTrace, SummaryReview};
use super::super::reports::{self, ReportDone, ReportEffect, ReportKind};
use super::super::session_picker::SessionsDone;
use super::super::theme_files::ListedTheme;
use super::super::tree::{TreeDone, TreeOptions, read_tree};
use super::super::{context_facts, doctor, session_facts};
use super::screens::at_all_widths;
use super::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions/tree.jsonl")
}

fn tree() -> SessionTree {
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(fixture(), copy.path()).unwrap();
    let none = || -> Header { unreachable!("the file has a header") };
    SessionStore::open(copy.path(), none).unwrap().tree()
}

impl Stage {
    /// A conversation of a prompt and an answer.
    fn short() -> Self {
        let mut stage = Self::new();
        stage.message(user("Explain the parser")).message(answer(StopReason::Stop, vec![says("It parses.")]));
        stage
    }

    fn done(&mut self, done: EffectDone) -> &mut Self {
        self.app.on_effect_done(done, &mut self.effects);
        self
    }

    fn report(&mut self, kind: ReportKind, markdown: &str) -> &mut Self {
        let (markdown, chapters) = (markdown.to_owned(), Vec::new());
        self.done(EffectDone::Report(ReportDone::Report { kind, markdown, chapters }))
    }

    /// The report that was asked for since the last call.
    fn asked(&mut self) -> Option<ReportEffect> {
        self.effects.drain(..).find_map(|effect| match effect {
            Effect::World(WorldEffect::Report(effect)) => Some(effect),
            _ => None,
        })
    }

    pub(super) fn ask_question(&mut self) {
        let question = Arc::new(Question {
            id: QuestionId::new(1),
            kind: QuestionKind::Trust,
            text: "Run this command?".to_owned(),
            options: vec!["Allow".to_owned(), "Don't allow".to_owned()],
            default: 1,
        });
        self.app.dialogs.open_question(&question);
    }
}

fn sessions() -> Vec<SessionSummary> {
    let session =
        |id: &str, name: Option<&str>, first: &str, n_messages: usize, age_ms: u64| SessionSummary {
            path: PathBuf::from(format!("/s/{id}.jsonl")),
            id: format!("01a20169-6a6e-7233-bf8b-{id}"),
            cwd: "/home/me/project".to_owned(),
            name: name.map(str::to_owned),
            first_message: Some(first.to_owned()),
            n_messages,
            created_ms: None,
            modified_ms: 10_000_000_000 - age_ms,
            parent: None,
        };
    vec![
        session("a", Some("Parser"), "x", 1234, 60_000),
        session(
            "b",
            None,
            "Explain how the incremental index resumes at the end of a file that grows",
            12,
            7_200_000,
        ),
        session("c", None, "为什么解析器拒绝带下划线的数字？请修复它，并显示更改的行。", 3, 4_000_000_000),
    ]
}

pub(super) fn providers() -> Vec<LoginProvider> {
    let provider = |id: &str, name: &str, source: KeySource| LoginProvider {
        keys: ProviderKeys {
            id: id.to_owned(),
            name: name.to_owned(),
            is_stored: source == KeySource::Stored,
            source,
            is_known: true,
        },
        offer: None,
        asks_for_client_id: false,
    };
    vec![
        provider("acme", "Acme", KeySource::Stored),
        provider("azure", "Azure OpenAI Responses", KeySource::None),
        provider("cloud", "Cloudflare AI Gateway", KeySource::None),
    ]
}

#[test]
fn the_model_in_use_is_selected_in_both_lists_of_models() {
    let chosen = |current: usize, keys: &str| {
        let mut stage = Stage::short();
        let models = models();
        stage.session(|session| {
            let scoped = [2, 1].map(|at| ScopedModel {
                model: Arc::clone(&models[at]),
                thinking: None,
                pattern: models[at].id.clone(),
            });
            (session.scope, session.model) = (scoped.into(), Arc::clone(&models[current]));
        });
        stage.type_keys("<ctrl+l>");
        stage.type_keys(keys);
        stage.type_keys("<enter>");
        stage.commands().concat()
    };
    assert!(chosen(1, "").contains("acme/mini"), "{}", chosen(1, ""));
    assert!(chosen(2, "").contains("acme/qwen3"), "{}", chosen(2, ""));
    assert!(chosen(1, "<tab>").contains("acme/mini"), "{}", chosen(1, "<tab>"));
    // It is not in the list.
    assert!(chosen(0, "").contains("acme/qwen3"), "{}", chosen(0, ""));
}

#[test]
fn the_model_of_new_sessions_is_marked() {
    let mut stage = Stage::new();
    let default = models()[1].reference();
    stage.session(|session| {
        let (provider, id) = default.split_once('/').unwrap();
        let mut settings = (*session.settings).clone();
        settings.values.default_provider = Some(provider.to_owned());
        settings.values.default_model = Some(id.to_owned());
        session.settings = Arc::new(settings);
    });
    stage.type_keys("<ctrl+l>");
    let rows = stage.screen(80, 20);
    let marked: Vec<&String> = rows.iter().filter(|row| row.contains("· default")).collect();
    assert!(matches!(&marked[..], [row] if row.contains("mini")), "{rows:#?}");
}

#[test]
fn a_read_only_session_can_be_opened_again() {
    let open = |is_read_only: bool| {
        let mut stage = Stage::new();
        stage.session(|session| {
            (session.path, session.is_read_only) = (Some("/s/a.jsonl".into()), is_read_only);
        });
        stage.type_keys("hello");
        let label = "the session is open elsewhere and read-only here";
        assert_eq!(stage.screen(80, 20).join("\n").contains(label), is_read_only);
        stage.type_keys("<ctrl+u>/resume<enter>");
        stage.done(EffectDone::Sessions(SessionsDone::Opened));
        let listed = SessionsDone::Listed { request: 0, is_first: true, sessions: sessions(), is_done: true };
        stage.done(EffectDone::Sessions(listed));
        stage.commands();
        stage.type_keys("<enter>");
        stage.commands()
    };
    assert_eq!(open(false), ["Open { path: \"/s/b.jsonl\", if_busy: Refuse }"], "it is not listed");
    assert_eq!(open(true), ["Open { path: \"/s/a.jsonl\", if_busy: Refuse }"]);
}

fn summary() -> SummaryDraft {
    serde_json::from_value(json!({
        "text": "## Goal\n\nFix the parser so that numbers with underscores are read.\n\n## Done\n\n- lexer",
        "firstKeptEntryId": "a", "tokensBefore": 123_456, "nReplaced": 42, "model": "acme/sonata-4-large",
        "usage": Usage::default(), "details": null,
    }))
    .unwrap()
}

fn context_report() -> ContextReport {
    let part = |name: &str, tokens: u64, text: Option<&str>| ContextPart {
        name: name.to_owned(),
        tokens,
        text: text.map(Into::into),
        ..ContextPart::default()
    };
    let whole = |name: &str, items: Vec<ContextPart>| ContextPart {
        name: name.to_owned(),
        tokens: items.iter().map(|item| item.tokens).sum(),
        items,
        text: None,
    };
    ContextReport {
        parts: vec![
            whole(
                "System prompt",
                vec![part("preamble", 300, Some("You are an agent.")), part("cwd", 20, Some("/x"))],
            ),
            whole("Tools", vec![part("read", 410, Some("{}")), part("bash", 380, Some("{}"))]),
            whole(
                "Instruction files",
                vec![part("/home/me/project/AGENTS.md", 1500, Some("Use tabs.\nRun tests."))],
            ),
            whole("Messages", vec![part("your messages", 1200, None), part("tool results", 43_000, None)]),
        ],
        tokens: 46_810,
        counted: Some(47_100),
        window: 200_000,
        reserve: Some(16_384),
        n_templates: 2,
        n_pinned: 1,
    }
}

/// Opens a dialog by its name.
fn open(name: &str) -> Stage {
    let mut stage = Stage::short();
    match name {
        "login" => {
            let (purpose, wanted, providers) = (Purpose::Login, None, providers());
            stage.done(EffectDone::Login(LoginDone::Listed { purpose, wanted, providers }));
        }
        "theme" => {
            let theme = |name: &str| ListedTheme { name: name.to_owned(), problem: None };
            let mut themes = ["dark", "light", "system", "my-own-theme-with-a-long-name"].map(theme).to_vec();
            let problem = "~/.pi/agent/themes/broken.json:7: colors.accnt: unknown key".to_owned();
            themes.push(ListedTheme { name: "broken".to_owned(), problem: Some(problem) });
            stage.done(EffectDone::Themes { themes, query: String::new() });
        }
        "trace" => {
            let trace = read_trace(&fixture()).unwrap();
            let path = PathBuf::from("/s/traced.jsonl");
            stage.session(|session| session.path = Some(path.clone()));
            let read = ReadTrace { path, trace, filter: CallFilter::default(), zone: Zone::utc() };
            stage.done(EffectDone::Trace(Box::new(read)));
        }
        "fork" => {
            let prompt = |id: &str, text: &str| (EntryId::new(id), text.to_owned());
            let prompts = vec![
                prompt(
                    "a",
                    "Why does the parser reject 1_000? Please fix it, and show me the rows that change.",
                ),
                prompt("b", "现在运行测试"),
            ];
            stage.app.dialogs.show(ForkPoints::new(&stage.app.session.id.clone(), prompts));
        }
        "summary" => stage.app.dialogs.open_summary(SummaryReview::new(&Arc::new(summary()))),
        "sessions" => {
            stage.app.now_ms = 10_000_000_000;
            stage.done(EffectDone::Sessions(SessionsDone::Opened));
            let done =
                SessionsDone::Listed { request: 0, is_first: true, sessions: sessions(), is_done: true };
            stage.done(EffectDone::Sessions(done));
        }
        "tree" => {
            let options = TreeOptions::of(&crate::config::Settings::default());
            let tree = tree();
            stage.session(|session| session.id = tree.session_id().to_owned());
            let view = Box::new(read_tree(tree, options, None));
            stage.done(EffectDone::Tree(TreeDone::Read(view)));
        }
        "hotkeys" => drop(stage.type_keys("/hotkeys<enter>")),
        "session" => {
            stage.type_keys("/session<enter>");
            stage.report(ReportKind::Session, &session_facts::tests::example());
        }
        "context" => {
            stage.type_keys("/context<enter>");
            let done = context_facts::reported(&context_report(), Some(Path::new("/home/me")));
            stage.done(EffectDone::Report(done));
        }
        "doctor" => {
            stage.type_keys("/doctor<enter>");
            stage.report(ReportKind::Doctor, &doctor::tests::example());
        }
        "outputs" => {
            stage.type_keys("/output<enter>");
            stage.done(EffectDone::Report(reports::outputs_of(&tree())));
        }
        other => panic!("{other} is no dialog"),
    }
    stage
}

#[test]
fn dialogs_at_all_widths() {
    for name in ["login", "theme", "trace", "fork", "summary", "sessions", "tree"] {
        insta::assert_snapshot!(format!("overlay_{name}"), at_all_widths(18, || open(name)));
    }
}

#[test]
fn reports_at_all_widths() {
    for name in ["hotkeys", "session", "context", "doctor", "outputs"] {
        insta::assert_snapshot!(format!("overlay_{name}"), at_all_widths(24, || open(name)));
    }
}

#[test]
fn report_adds_no_row_to_the_transcript_and_leaves_the_footer() {
    for name in ["hotkeys", "session", "context", "doctor", "outputs", "trace"] {
        let mut before = Stage::short();
        let screen = before.screen(80, 24);
        let n_rows = before.app.transcript.len();
        let mut stage = open(name);
        let shown = stage.screen(80, 24);
        assert_ne!(shown, screen, "{name}");
        assert_eq!(shown[22..], screen[22..], "{name}: the footer");
        assert_eq!(stage.app.transcript.len(), n_rows, "{name}");
        stage.type_keys("<escape>");
        assert_eq!(stage.screen(80, 24), screen, "{name}");
    }
}

#[test]
fn last_row_of_the_footer_stays_below_dialogs_of_small_screens() {
    for (width, height) in [(20, 10), (40, 10), (40, 11)] {
        let footer = Stage::short().screen(width, height).pop().unwrap();
        assert!(footer.contains("200k"), "{footer}");
        for (name, title, entry) in [
            ("login", "Log in", "→ "),
            ("theme", "Theme", "→ "),
            ("fork", "Fork", "→ "),
            ("sessions", "Sessions", "→ "),
            ("tree", "Session tree", "› "),
            ("hotkeys", "Keys", "While typing"),
        ] {
            let rows = open(name).screen(width, height);
            let has = |part: &str| rows[..rows.len() - 1].iter().any(|row| row.contains(part));
            assert_eq!(rows.last(), Some(&footer), "{name} at {width}×{height}: {rows:#?}");
            for part in [title, entry, "escape"] {
                assert!(has(part), "{part} of {name} at {width}×{height}: {rows:#?}");
            }
        }
    }
}

#[test]
fn report_is_open_before_its_text_is_known_and_comes_not_after_it_was_closed() {
    let mut stage = Stage::short();
    let before = stage.screen(80, 24);
    stage.type_keys("/doctor<enter>");
    assert_eq!(stage.asked(), Some(ReportEffect::Doctor));
    assert!(stage.screen(80, 24).iter().any(|row| row.trim() == "reading…"));
    stage.type_keys("<escape>").report(ReportKind::Doctor, "### Late");
    assert_eq!(stage.screen(80, 24), before);
    stage.type_keys("/session<enter>").report(ReportKind::Doctor, "### Of another");
    assert!(!stage.screen(80, 24).join("\n").contains("Of another"));
}

#[test]
fn answer_that_streams_behind_a_report_does_not_change_it() {
    let mut stage = open("hotkeys");
    stage.type_keys("jjj");
    let before = stage.screen(80, 24);
    let pending = AssistantMessage::pending(Default::default(), "acme", "m-1", Millis(0));
    stage.agent(AgentEvent::AssistantStart(Arc::new(pending)));
    stage.agent(AgentEvent::MessageUpdate(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }));
    for n in 0..40 {
        let text = format!("streamed {n}\n\n");
        stage.agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text }));
        assert_eq!(stage.screen(80, 24), before);
    }
    stage.type_keys("q");
    assert!(stage.screen(80, 24).join("\n").contains("streamed 39"));
}

#[test]
fn question_waits_below_a_report_that_is_read() {
    let mut stage = open("hotkeys");
    stage.screen(80, 24);
    stage.ask_question();
    let screen = stage.screen(80, 24).join("\n");
    assert!(
        screen.contains("pi is waiting for an answer") && !screen.contains("Run this command?"),
        "{screen}"
    );
    // Keys that scroll answer nothing.
    stage.type_keys(" j<down>");
    assert_eq!(stage.commands(), [""; 0]);
    stage.type_keys("<escape>");
    assert!(stage.screen(80, 24).join("\n").contains("Run this command?"));
    stage.type_keys("<enter>");
    assert_eq!(stage.commands().len(), 1);
    // Over other dialogs it appears at once.
    let mut stage = open("theme");
    stage.ask_question();
    assert!(stage.screen(80, 24).join("\n").contains("Run this command?"));
}

#[test]
fn report_follows_every_size() {
    let mut stage = open("context");
    stage.type_keys("/tools<enter>");
    for (width, height) in [(80, 24), (20, 10), (200, 60), (40, 6), (7, 3), (80, 24)] {
        let screen = stage.screen(width, height);
        assert_eq!(screen.len(), usize::from(height));
        if height > 5 {
            assert!(screen.join("\n").contains("Tools"), "{width}: {screen:#?}");
        }
    }
}

#[test]
fn small_lists_name_the_way_out() {
    for name in ["fork", "sessions", "outputs", "theme", "tree"] {
        let screen = open(name).screen(20, 5);
        assert!(screen[4].contains("esc"), "{name}: {screen:#?}");
    }
}

#[test]
fn wheel_scrolls_a_report_and_not_what_is_behind_it() {
    let mut stage = open("hotkeys");
    let first = stage.screen(80, 24);
    let wheel =
        MouseEvent { kind: MouseEventKind::ScrollDown, column: 3, row: 3, modifiers: KeyModifiers::NONE };
    stage.app.on_input(&InputEvent::Mouse(wheel), &mut stage.effects);
    let second = stage.screen(80, 24);
    assert_eq!(first[5..15], second[2..12], "three rows further");
}

#[test]
fn parts_of_the_context_are_read_from_the_report() {
    let mut stage = open("context");
    stage.type_keys("<enter>agents<enter>");
    let screen = stage.screen(60, 20).join("\n");
    assert!(screen.contains("Instruction files: ~/project/AGENTS.md"), "{screen}");
    assert!(screen.contains("Use tabs.\n Run tests."), "{screen}");
    stage.type_keys("<escape>");
    assert!(stage.screen(60, 20).join("\n").contains("> agents"), "back in the list");
    stage.type_keys("<escape>");
    assert!(stage.screen(60, 20).join("\n").contains("Share of 200k"), "back in the report");
    stage.type_keys("<escape>");
    assert!(!stage.app.dialogs.is_open());
}

#[test]
fn complete_output_is_read_when_it_is_chosen() {
    let mut stage = open("outputs");
    stage.asked();
    stage.type_keys("<enter>");
    let Some(ReportEffect::Output(source)) = stage.asked() else { panic!("nothing is read") };
    let lines: String = (1..=5_000).map(|n| format!("\u{1b}[31mrow {n}\u{1b}[0m of the output\n")).collect();
    stage.done(EffectDone::Report(ReportDone::Chapter { source, lines }));
    let screen = stage.screen(60, 20).join("\n");
    assert!(screen.contains("lines 1–15 of 5000") && screen.contains(" row 1 of the output"), "{screen}");
    stage.type_keys("/row 4321<enter>");
    assert!(stage.screen(60, 20).join("\n").contains(" row 4321 of the output"));
    stage.type_keys("<escape>");
    stage.type_keys("<escape>");
    assert!(!stage.app.dialogs.is_open());
}

/// What was asked about a session that is no longer open when the answer arrives.
#[test]
fn answers_about_another_session_are_not_shown() {
    let mut stage = Stage::short();
    stage.session(|session| session.path = Some("/s/new.jsonl".into()));
    let trace = |path: &str| {
        let (path, trace) = (PathBuf::from(path), read_trace(&fixture()).unwrap());
        EffectDone::Trace(Box::new(ReadTrace {
            path,
            trace,
            filter: CallFilter::default(),
            zone: Zone::utc(),
        }))
    };
    stage.done(trace("/s/old.jsonl"));
    assert!(!stage.app.dialogs.is_open());
    stage.done(trace("/s/new.jsonl"));
    assert!(stage.app.dialogs.is_open());
    let branch = |cwd: &str, branch: &str| EffectDone::Branch {
        cwd: cwd.into(),
        branch: Some(branch.to_owned()),
        head: None,
    };
    stage.done(branch("/home/me/project", "here")).done(branch("/elsewhere", "there"));
    assert_eq!(stage.app.footer.branch.as_deref(), Some("here"));
}

#[test]
fn lists_and_reports_name_the_way_out_on_small_screens() {
    let names = ["login", "theme", "trace", "fork", "summary", "sessions", "tree", "hotkeys", "outputs"];
    for (width, height) in [(20, 8), (20, 12), (20, 20), (40, 12), (80, 24)] {
        for name in names {
            let screen = open(name).screen(width, height);
            let is_named = screen.iter().any(|row| row.contains("escape: ") || row.contains("escape/q: "));
            assert!(is_named, "{name} at {width}×{height}: {screen:#?}");
        }
    }
}
