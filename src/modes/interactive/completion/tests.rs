use std::path::PathBuf;
use std::sync::Arc;

use crate::ai::Catalog;
use crate::session::{PromptTemplate, ResourceOrigin};
use crate::tui::theme::{Appearance, ColorDepth};

use super::super::commands as table;
use super::*;

fn skill(name: &str) -> Skill {
    let description = "Does\u{1b}[2J it".to_owned();
    let path = "/s/SKILL.md".into();
    Skill { name: name.to_owned(), description, path, origin: ResourceOrigin::Project, is_listed: true }
}

/// An editor with its completion.
struct Typing {
    completion: Completion,
    editor: Composer,
    session: SessionState,
    models: Vec<ModelChoice>,
}

impl Typing {
    fn new() -> Self {
        let catalog = Catalog::builtin();
        let session = SessionState::of(catalog.get("demo", "pi").unwrap(), Path::new("/project"));
        let skills = [skill("quit"), skill("model-cards"), skill("a b")];
        let session = SessionState { skills: skills.into(), ..session };
        let model = |provider: &str, id: &str, name: &str| ModelChoice {
            id: id.to_owned(),
            provider: provider.to_owned(),
            name: name.to_owned(),
        };
        let models = vec![model("acme", "fast-1", "Fast One"), model("acme", "slow-1", "Slow One")];
        let mut completion = Completion::default();
        completion.set_providers(ProviderChoice::of(&catalog));
        Self { completion, editor: Composer::new(), session, models }
    }

    fn of(text: &str) -> Self {
        let mut typing = Self::new();
        typing.set(text);
        typing
    }

    fn set(&mut self, text: &str) {
        self.editor.set_text(text);
        self.update();
    }

    fn update(&mut self) {
        let cx = CompletionCx { session: &self.session, models: &self.models, home: None };
        self.completion.update(&self.editor, &cx);
    }

    fn force(&mut self) {
        let cx = CompletionCx { session: &self.session, models: &self.models, home: None };
        self.completion.force(&self.editor, &cx);
    }

    /// What is to be found.
    fn wanted(&mut self) -> Option<Wanted> {
        self.completion.take_request().map(|request| request.wanted)
    }

    /// Answers the last request.
    fn find(&mut self, paths: &[&str]) -> Option<Replacement> {
        let id = self.completion.n_requests;
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        self.completion.on_found(&FoundFiles { id, paths, is_done: true })
    }

    fn apply(&mut self, replacement: Option<Replacement>) -> String {
        if let Some(Replacement { n_bytes, with }) = replacement {
            self.editor.replace_before_cursor(n_bytes, &with);
        }
        self.update();
        self.editor.text()
    }

    /// Tab on the selected suggestion.
    fn accept(&mut self) -> String {
        let replacement = self.completion.accept();
        self.apply(replacement)
    }

    fn labels(&self) -> Vec<&str> {
        self.completion.suggestions.iter().map(|one| one.label.as_str()).collect()
    }

    fn rows(&mut self, columns: u16) -> Vec<String> {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let rows = self.completion.rows(columns, 6, &theme);
        rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let typing = Typing::of(text);
    let names: Vec<&str> =
        typing.labels().iter().map(|label| label.split(' ').next().unwrap_or_default()).collect();
    assert!(names.starts_with(expected) && names.is_empty() == expected.is_empty(), "{text}: {names:?}");
}

#[test]
fn slash_suggests_commands_and_an_exact_name_comes_first() {
    check("/mo", &["/model", "/skill:model-cards"]);
    check("/Mo", &["/model", "/skill:model-cards"]);
    check("/quit", &["/quit", "/skill:quit"]);
    check("/skill:q", &["/skill:quit"]);
    check("/Skill:Q", &["/skill:quit"]);
    check("/cards", &["/skill:model-cards"]);
    check("hello", &[]);
    check("line\n/mo", &[]);
}

#[test]
fn nothing_that_ends_something_is_run_by_surprise() {
    let runs = |text: &str| match Typing::of(text).completion.on_enter() {
        OnEnter::InsertAndSubmit(replacement) => Some(replacement.with),
        OnEnter::Insert(_) | OnEnter::Submit => None,
    };
    let mut texts: Vec<String> = ('a'..='z').map(|c| format!("/{c}")).collect();
    texts.push("/".to_owned());
    for text in texts {
        let run = runs(&text).unwrap_or_default();
        let name = run.trim_matches(['/', ' ']);
        assert!(!table::ENDING.contains(&name), "{text} and Enter runs {run}");
    }
    assert_eq!(runs("/ne").as_deref(), Some("/new"));
    assert_eq!(runs("/quit").as_deref(), Some("/quit"));
    assert_eq!(runs("/mod").as_deref(), Some("/model "));
    let mut typing = Typing::of("/");
    while !typing.labels()[typing.completion.list.selected()].starts_with("/new") {
        typing.completion.select_next();
    }
    let chosen = typing.completion.on_enter();
    assert!(matches!(&chosen, OnEnter::InsertAndSubmit(run) if run.with == "/new"), "{chosen:?}");
}

#[test]
fn dismissed_list_stays_closed_until_the_text_changes() {
    let mut typing = Typing::of("/n");
    assert!(typing.completion.is_open());
    typing.completion.dismiss("/n");
    typing.update();
    assert!(!typing.completion.is_open());
    typing.set("/ne");
    assert!(typing.completion.is_open());
}

#[test]
fn accepted_command_leads_to_its_arguments() {
    assert_eq!(Typing::of("/qui").accept(), "/quit");
    let mut typing = Typing::of("/mod");
    assert_eq!(typing.accept(), "/model ");
    assert_eq!(typing.labels(), ["acme/fast-1", "acme/slow-1"]);
    let mut typing = Typing::of("/skill:mo");
    assert_eq!(typing.accept(), "/skill:model-cards ");
    assert!(!typing.completion.is_open());
}

#[test]
fn arguments_are_completed_by_what_the_command_takes() {
    let mut typing = Typing::of("/model fa");
    assert_eq!(typing.labels(), ["acme/fast-1"]);
    assert_eq!(typing.rows(60), ["→ acme/fast-1  Fast One"]);
    let run = Replacement { n_bytes: 2, with: "acme/fast-1".to_owned() };
    assert_eq!(typing.completion.on_enter(), OnEnter::InsertAndSubmit(run));
    // Enter without a word opens the list of the command.
    assert_eq!(Typing::of("/model ").completion.on_enter(), OnEnter::Submit);
    assert!(Typing::of("/model acme/fast-1").labels().is_empty());
    assert_eq!(Typing::of("/thinking o").labels()[0], "off");
    assert_eq!(Typing::of("/login anthro").labels()[0], "anthropic");
    assert_eq!(Typing::of("/trace --f").accept(), "/trace --failed");
    assert!(Typing::of("/name fa").labels().is_empty());
    // Options are fine as typed.
    assert_eq!(Typing::of("/compact ").completion.on_enter(), OnEnter::Submit);
}

/// What Enter submits.
#[track_caller]
fn check_enter(mut typing: Typing, expected: &str) {
    let typed = typing.editor.text();
    let submitted = match typing.completion.on_enter() {
        OnEnter::InsertAndSubmit(replacement) => typing.apply(Some(replacement)),
        OnEnter::Submit => typed.clone(),
        OnEnter::Insert(replacement) => panic!("{typed}: {replacement:?}"),
    };
    assert_eq!(submitted, expected, "{typed}");
}

#[test]
fn enter_never_replaces_an_argument_that_is_complete() {
    let model = |id: &str| ModelChoice {
        id: id.to_owned(),
        provider: "acme".to_owned(),
        name: "The fast model".to_owned(),
    };
    let check = |text: &str, expected: &str| {
        let mut typing = Typing::new();
        typing.models = vec![model("fast-mini"), model("fast")];
        typing
            .completion
            .known
            .providers
            .push(ProviderChoice { id: "mine".to_owned(), name: "My Server".to_owned() });
        typing.set(text);
        check_enter(typing, expected);
    };
    for text in [
        "/login mine",
        "/login MINE",
        "/login My Server",
        "/login Anthropic",
        "/logout mine",
        "/model fast",
        "/model acme/fast",
        "/model acme/fast:high",
        "/model FAST",
        "/thinking max",
        "/theme mine",
        "/compact the tests",
        "/trace --tool bash",
    ] {
        check(text, text);
    }
    // Letters within the name of another provider, or nothing known.
    for text in ["/login mime", "/login opnrtr", "/login none-of-them", "/logout mi-mo"] {
        check(text, text);
    }
    check("/login min", "/login minimax");
    check("/login Anthro", "/login anthropic");
    check("/model fst-m", "/model acme/fast-mini");
    check("/thinking of", "/thinking off");
    check("/theme da", "/theme dark");
    check("/theme drk", "/theme drk");
    check("/trace --fa", "/trace --failed");
    check("/compact --e", "/compact --edit");
    let mut typing = Typing::of("/model acme/fast");
    typing.models = vec![model("fast-mini"), model("fast")];
    typing.set("/model fast");
    typing.completion.select_next();
    let chosen = typing.completion.on_enter();
    assert!(matches!(chosen, OnEnter::InsertAndSubmit(_)), "{chosen:?}");
}

#[test]
fn providers_of_models_json_are_offered() {
    let mut catalog = Catalog::builtin();
    let text =
        r#"{"providers":{"mine":{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]}}}"#;
    catalog.add_user_models(text).unwrap();
    let mut typing = Typing::new();
    typing.completion.set_providers(ProviderChoice::of(&catalog));
    typing.set("/login mi");
    assert!(typing.labels().contains(&"mine"));
}

#[test]
fn themes_in_files_are_offered_too() {
    let mut typing = Typing::new();
    typing.completion.set_themes(vec!["solar".to_owned()]);
    typing.set("/theme ");
    assert_eq!(typing.labels(), ["system", "dark", "light", "solar"]);
    typing.set("/theme so");
    assert_eq!(typing.labels(), ["solar"]);
}

#[test]
fn every_argument_in_the_table_is_one_of_a_command() {
    for (name, _) in arguments::ARGUMENTS {
        assert!(table::all().any(|command| command.name == *name && !command.args.is_empty()), "{name}");
    }
}

#[test]
fn file_is_inserted_behind_its_at_sign_and_a_folder_goes_on() {
    let mut typing = Typing::of("see @ma");
    assert_eq!(typing.wanted(), Some(Wanted::Matching { query: "ma".to_owned(), is_new: true }));
    assert_eq!(typing.completion.on_enter(), OnEnter::Submit, "nothing was found yet");
    assert_eq!(typing.find(&["main/", "a map.md"]), None);
    assert_eq!(typing.rows(20), ["→ main/", "  a map.md"]);
    assert_eq!(typing.accept(), "see @main/");
    assert_eq!(typing.wanted(), Some(Wanted::Matching { query: "main/".to_owned(), is_new: true }));
    typing.find(&["main/a.rs"]);
    assert_eq!(typing.completion.planned(), OnEnter::Submit, "the folder may be meant");
    typing.completion.select_next();
    let insert = Replacement { n_bytes: 6, with: "@main/a.rs ".to_owned() };
    assert_eq!(typing.completion.on_enter(), OnEnter::Insert(insert));

    let mut typing = Typing::of("@map");
    typing.find(&["a map.md", "b maps/"]);
    assert_eq!(typing.accept(), "@\"a map.md\" ");
    let mut typing = Typing::of("@\"b m");
    typing.find(&["b maps/"]);
    assert_eq!(typing.accept(), "@\"b maps/");
    assert_eq!(typing.wanted(), Some(Wanted::Matching { query: "b maps/".to_owned(), is_new: true }));
}

#[test]
fn enter_sends_a_path_that_is_complete() {
    let check = |text: &str, found: &[&str], expected: &str| {
        let mut typing = Typing::of(text);
        typing.find(found);
        let planned = typing.completion.planned();
        assert_eq!(typing.completion.on_enter(), planned, "{text}");
        let with = match planned {
            OnEnter::Insert(replacement) => typing.apply(Some(replacement)),
            OnEnter::Submit => text.to_owned(),
            OnEnter::InsertAndSubmit(replacement) => panic!("{text}: {replacement:?}"),
        };
        assert_eq!(with, expected);
    };
    for (text, found) in [
        ("explain @src/", ["src/deep/", "src/"]),
        ("explain @~/", ["~/a/", "~/b"]),
        ("explain @\"a b/", ["a b/c", "a b/d"]),
        ("explain @lib.rs", ["old/lib.rs", "lib.rs"]),
    ] {
        check(text, &found, text);
    }
    check("explain @lib", &["lib.rs", "lib.md"], "explain @lib.rs ");
    check("explain @lib.rs", &["src/lib.rs", "old/lib.rs"], "explain @src/lib.rs ");
}

#[test]
fn answer_to_an_earlier_text_is_not_shown() {
    let mut typing = Typing::of("@a");
    typing.wanted();
    typing.find(&["a.rs"]);
    typing.set("@ab");
    assert_eq!(typing.wanted(), Some(Wanted::Matching { query: "ab".to_owned(), is_new: false }));
    assert_eq!(typing.accept(), "@ab", "the list is that of @a");
    let late = FoundFiles { id: 1, paths: vec!["late.rs".to_owned()], is_done: true };
    typing.completion.on_found(&late);
    assert_eq!(typing.labels(), ["a.rs"]);
    typing.update();
    assert_eq!(typing.wanted(), None, "it was asked already");
    typing.find(&["ab.rs"]);
    assert_eq!(typing.labels(), ["ab.rs"]);
    typing.set("done");
    typing.find(&["ab.rs"]);
    assert!(!typing.completion.is_open());
}

#[test]
fn tab_completes_a_path_and_applies_the_only_one() {
    let mut typing = Typing::of("!cat no");
    assert_eq!(typing.wanted(), None);
    typing.force();
    assert_eq!(typing.wanted(), Some(Wanted::Beginning { path: "no".to_owned() }));
    let only = typing.find(&["notes.md"]);
    assert_eq!(typing.apply(only), "!cat notes.md ");

    let mut typing = Typing::of("open s");
    typing.force();
    assert_eq!(typing.find(&["src/", "s p.md"]), None);
    assert_eq!(typing.labels(), ["src/", "s p.md"]);
    let insert = Replacement { n_bytes: 1, with: "src/".to_owned() };
    assert_eq!(typing.completion.on_enter(), OnEnter::Insert(insert), "the list was asked for");

    let mut typing = Typing::of("open s");
    typing.force();
    typing.find(&["src/", "s p.md"]);
    typing.completion.select_next();
    let insert = Replacement { n_bytes: 1, with: "\"s p.md\" ".to_owned() };
    assert_eq!(typing.completion.on_enter(), OnEnter::Insert(insert));
    let mut typing = Typing::of("");
    typing.force();
    assert_eq!(typing.wanted(), None);

    // The list stays for arrow keys, and follows what is typed without replacing it.
    let mut typing = Typing::of("ls pkg");
    typing.force();
    typing.find(&["pkg1/", "pkg2/"]);
    typing.completion.select_next();
    typing.update();
    assert_eq!(typing.labels(), ["pkg1/", "pkg2/"]);
    typing.set("ls pkg2");
    assert_eq!(typing.find(&["pkg2/"]), None);
    assert_eq!(typing.labels(), ["pkg2/"]);
    typing.set("ls pkg2 ");
    assert!(!typing.completion.is_open());
    typing.set("ls pkg2 a");
    assert_eq!(typing.wanted(), None, "the list was closed");
}

#[test]
fn enter_accepts_in_a_list_of_paths_that_tab_opened() {
    let check = |text: &str, found: &[&str], expected: &str| {
        let mut typing = Typing::of(text);
        typing.force();
        typing.find(found);
        let OnEnter::Insert(replacement) = typing.completion.on_enter() else { panic!("{text}") };
        assert_eq!(typing.apply(Some(replacement)), expected);
    };
    check("look at /tmp/fi", &["/tmp/file", "/tmp/fire"], "look at /tmp/file ");
    check("look at src/", &["src/a.rs", "src/b.rs"], "look at src/a.rs ");
    check("/import s", &["s.jsonl", "src/"], "/import s.jsonl");
    check("!cat s", &["s.rs", "src/"], "!cat s.rs ");
    // What is typed on narrows the same list.
    let mut typing = Typing::of("open s");
    typing.force();
    typing.find(&["src/", "s p.md"]);
    typing.set("open sr");
    typing.find(&["src/", "srv/"]);
    assert!(matches!(typing.completion.on_enter(), OnEnter::Insert(_)));
    // A list that opened by itself takes nothing that was not selected.
    let mut typing = Typing::of("look at /tmp/fi");
    typing.find(&["/tmp/file", "/tmp/fire"]);
    assert_eq!(typing.completion.on_enter(), OnEnter::Submit);
}

#[test]
fn path_of_a_command_for_the_shell_is_one_word_of_it() {
    let check = |text: &str, found: &str, expected: &str| {
        let mut typing = Typing::of(text);
        typing.force();
        let only = typing.find(&[found]);
        assert_eq!(typing.apply(only), expected);
    };
    check("!cat xx", "xx;id>x.txt", r"!cat xx\;id\>x.txt ");
    check("!cat yy", "yy`id` $(id).txt", r"!cat yy\`id\`\ \$\(id\).txt ");
    check("!cat d", "dir with space/", r"!cat dir\ with\ space/");
    check(r"!cat dir\ w", "dir with space/", r"!cat dir\ with\ space/");
    check(r"!cat dir\ with\ space/a", "dir with space/a.rs", r"!cat dir\ with\ space/a.rs ");
    check("!cat \"a", "a $b.rs", "!cat \"a \\$b.rs\" ");
    check("!! cat 'a", "a b/", "!! cat 'a b/");
    check("!echo\ncat a", "a b.rs", "!echo\ncat a\\ b.rs ");
    check("see xx", "xx;id>x.txt", "see xx;id>x.txt ");
}

#[test]
fn key_that_comes_before_the_files_accepts_the_first_of_them() {
    let mut typing = Typing::of("see @rea");
    assert!(typing.wanted().is_some());
    typing.force();
    assert!(typing.completion.is_awaited());
    assert_eq!(typing.wanted(), None, "the files are found already");
    assert_eq!(
        typing.find(&["README.md", "area.rs"]).map(|found| found.with).as_deref(),
        Some("@README.md ")
    );
    assert!(!typing.completion.is_awaited());

    // The list is that of the letter before.
    let mut typing = Typing::of("@r");
    typing.find(&["README.md", "area.rs"]);
    typing.set("@re");
    typing.wanted();
    assert_eq!(typing.completion.on_tab(), None);
    assert!(typing.completion.is_awaited());
    assert_eq!(typing.find(&["area.rs"]).map(|found| found.with).as_deref(), Some("@area.rs "));

    // Other text, other files.
    let mut typing = Typing::of("@r");
    typing.wanted();
    typing.force();
    typing.set("@rx");
    assert!(!typing.completion.is_awaited());
    assert_eq!(typing.find(&["area.rs"]), None);
    // None is found.
    let mut typing = Typing::of("@r");
    typing.wanted();
    typing.force();
    assert_eq!(typing.find(&[]), None);
    assert!(!typing.completion.is_awaited());
}

#[test]
fn path_after_a_command_is_offered_but_enter_takes_what_was_typed() {
    let mut typing = Typing::of("/export out");
    assert_eq!(typing.wanted(), Some(Wanted::Beginning { path: "out".to_owned() }));
    typing.find(&["outer.md", "out put/"]);
    assert_eq!(typing.completion.on_enter(), OnEnter::Submit);
    typing.set("/export outer");
    typing.find(&["outer.md"]);
    assert_eq!(typing.accept(), "/export outer.md");
    typing.find(&["outer.md"]);
    assert!(!typing.completion.is_open(), "it is complete");
    typing.set("/import ou");
    typing.find(&["out put/"]);
    assert_eq!(typing.accept(), "/import out put/");
}

#[test]
fn enter_runs_a_command_with_the_marked_path_that_continues_what_was_typed() {
    let check = |text: &str, found: &[&str], expected: OnEnter| {
        let mut typing = Typing::of(text);
        typing.find(found);
        assert_eq!(typing.completion.on_enter(), expected, "{text}");
    };
    let with = |n_bytes, with: &str| Replacement { n_bytes, with: with.to_owned() };
    check("/import p", &["pic.png"], OnEnter::InsertAndSubmit(with(1, "pic.png")));
    check("/import \"p", &["p c.png"], OnEnter::InsertAndSubmit(with(2, "\"p c.png\"")));
    check("/import p", &["pics/", "pic.png"], OnEnter::Insert(with(1, "pics/")));
    check("/import p", &["p/", "p", "pa"], OnEnter::Submit);
    check("/import pics/", &["pics/a", "pics/b"], OnEnter::Submit);
    check("/import ", &["pic.png"], OnEnter::Submit);
    check("/export p", &["pic.png"], OnEnter::Submit);
    check("/export /tm", &["/tmp/"], OnEnter::Insert(with(3, "/tmp/")));
    check("/export \"/tm", &["/tmp/"], OnEnter::Insert(with(4, "\"/tmp/")));
    check("/export p.md", &["p.md.d/"], OnEnter::Submit);
    check("/export pics/", &["pics/a/"], OnEnter::Submit);
    check("/export ", &["pics/"], OnEnter::Submit);
}

#[test]
fn an_option_that_takes_a_value_is_completed_and_not_run() {
    let mut typing = Typing::of("/trace --to");
    assert_eq!(typing.labels(), ["--tool"]);
    let insert = Replacement { n_bytes: 4, with: "--tool ".to_owned() };
    assert_eq!(typing.completion.planned(), OnEnter::Insert(insert));
    assert_eq!(typing.accept(), "/trace --tool ");
    assert_eq!(typing.completion.on_enter(), OnEnter::Submit);
}

#[test]
fn skills_are_told_apart() {
    let mut typing = Typing::new();
    typing.session.skills = Arc::from([skill("pdf")]);
    typing.set("/skill:");
    assert_eq!(typing.rows(60), ["→ /skill:pdf [TEXT]  [p] Does it"]);
}

#[test]
fn no_more_rows_are_shown_than_wanted_and_the_selected_one_is_among_them() {
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    let mut typing = Typing::of("/");
    let n_suggestions = typing.labels().len();
    assert!(n_suggestions > 20);
    for _ in 0..n_suggestions {
        let selected = typing.labels()[typing.completion.list.selected()].to_owned();
        for max_rows in [3, 6, 20] {
            let rows = typing.completion.rows(60, max_rows, &theme);
            assert_eq!(rows.len(), max_rows + 1, "the last one counts");
            let marked: Vec<String> = rows.iter().map(Row::text).filter(|row| row.starts_with('→')).collect();
            assert!(matches!(&marked[..], [row] if row.contains(&selected)), "{marked:?} {selected}");
        }
        typing.completion.select_next();
    }
}

#[test]
fn rows_fit_at_every_width() {
    let mut typing = Typing::of("@x");
    let path: PathBuf = ["深い", "フォルダ", "with-a-long-name", "file.rs"].iter().collect();
    typing.find(&[path.to_str().unwrap(), "\u{202e}x"]);
    assert_eq!(typing.rows(20), ["→ 深い/フ…e/file.rs", "  <U+202E>x"]);
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
    for columns in [1, 3, 7, 20, 40, 80, 200] {
        for typing in [&mut typing, &mut Typing::of("/")] {
            let rows = typing.completion.rows(columns, 6, &theme);
            assert!(rows.iter().all(|row| row.width() <= usize::from(columns)), "{columns}");
        }
    }
}

#[test]
fn templates_show_their_hint_and_a_command_hides_one_of_its_name() {
    let template = |name: &str, hint: &str| PromptTemplate {
        name: name.to_owned(),
        description: "Reviews\u{7} it".to_owned(),
        argument_hint: hint.to_owned(),
        path: "/p/x.md".into(),
        origin: ResourceOrigin::User,
    };
    let mut typing = Typing::new();
    typing.session.templates =
        [template("model", ""), template("modest", ""), template("review", "<file> [focus]")].into();
    typing.set("/rev");
    assert_eq!(typing.rows(60)[0], "→ /review <file> [focus]  [u] Reviews it");
    assert_eq!(typing.accept(), "/review ");
    typing.set("/mod");
    let names = typing.labels();
    assert_eq!(names.iter().filter(|name| name.starts_with("/model")).count(), 1);
    assert!(names.starts_with(&["/model [MODEL]", "/modest"]), "{names:?}");
}
