use super::*;

/// Files below a temporary folder with the folders `agent` and `work`.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = tree.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn load(
        &self,
        settings: &[&str],
        named: &[&str],
        with_project: bool,
    ) -> (Vec<PromptTemplate>, Vec<String>) {
        let settings: Vec<String> = settings.iter().map(|&entry| entry.to_owned()).collect();
        let named: Vec<PathBuf> = named.iter().map(|path| self.path(path)).collect();
        let (templates, problems) = load(&TemplatePlaces {
            agent: &self.path("agent"),
            home: Some(self.0.path()),
            cwd: &self.path("work"),
            settings: &settings,
            project_settings: &[],
            named: &named,
            only_named: false,
            with_project,
        });
        let root = self.0.path().to_str().unwrap();
        let problems = problems.others.iter().chain(&problems.of_flags);
        (templates, problems.map(|problem| problem.to_string().replace(root, "ROOT")).collect())
    }

    fn names(&self, settings: &[&str], named: &[&str], with_project: bool) -> Vec<String> {
        let (templates, problems) = self.load(settings, named, with_project);
        assert!(problems.is_empty(), "{problems:?}");
        templates.into_iter().map(|template| template.name).collect()
    }
}

#[test]
fn fields_and_bytes_that_are_wrong_are_named_and_the_template_counts() {
    let tree =
        Tree::new(&[("agent/prompts/a.md", "---\ndescripton: A\nargument_hint: x\nmodel: m\n---\nGo.")]);
    std::fs::write(tree.path("agent/prompts/b.md"), b"first\n\xe9t\xe9\n").unwrap();
    let (templates, problems) = tree.load(&[], &[], false);
    assert_eq!(templates.len(), 2);
    let invalid = "ROOT/agent/prompts/b.md:2: byte 6 (0xe9) is not UTF-8 and is replaced by U+FFFD; save the file as UTF-8";
    assert_eq!(
        problems,
        [
            "ROOT/agent/prompts/a.md:2: \"descripton\" is no field of prompt templates; did you mean \"description\"?",
            "ROOT/agent/prompts/a.md:3: \"argument_hint\" is no field of prompt templates; did you mean \"argument-hint\"?",
            invalid,
        ]
    );
    let (expanded, problems) = expand(&templates[1], "").unwrap();
    assert_eq!((expanded.as_str(), problems.len()), ("first\n\u{fffd}t\u{fffd}", 1));
}

#[test]
fn all_places_are_searched_and_the_project_only_with_trust() {
    let tree = Tree::new(&[
        ("agent/prompts/b.md", "B"),
        ("agent/prompts/nested/no.md", "not a direct child"),
        ("agent/prompts/notes.txt", ""),
        ("agent/prompts/.hidden.md", ""),
        ("agent/more/c.MD", "C"),
        ("work/.pi/prompts/a.md", "A"),
        ("given/d.md", "D"),
        ("given/e.md", "E"),
    ]);
    assert_eq!(tree.names(&[], &[], false), ["b"]);
    assert_eq!(tree.names(&["more"], &[], true), ["a", "b", "c"]);
    assert_eq!(tree.names(&["~/agent/prompts/nested/no.md"], &[], false), ["b", "no"]);
    assert_eq!(tree.names(&["!b.md"], &["given"], false), ["d", "e"]);
    assert_eq!(tree.names(&["-prompts/b.md"], &["given/d.md"], true), ["a", "d"]);
}

#[test]
fn head_of_a_file_gives_description_and_hint() {
    let long = format!("{}é and more", "x".repeat(59));
    let tree = Tree::new(&[
        (
            "agent/prompts/a.md",
            "---\ndescription: Does  it\nargument-hint: \"<file> [focus]\"\nother: 1\n---\nText\n",
        ),
        ("agent/prompts/b.md", "\n\n# Heading  here\nmore"),
        ("agent/prompts/c.md", "---\nargument-hint: [a, b]\n---\n"),
        ("agent/prompts/d.md", &long),
        ("agent/prompts/e.md", "---\nargument-hint: [a] [b]\n---\nText"),
    ]);
    let (templates, problems) = tree.load(&[], &[], false);
    assert!(problems.is_empty(), "{problems:?}");
    let shown: Vec<(&str, &str, &str)> = templates
        .iter()
        .map(|one| (one.name.as_str(), one.description.as_str(), one.argument_hint.as_str()))
        .collect();
    let cut = format!("{}é...", "x".repeat(59));
    assert_eq!(
        shown,
        [
            ("a", "Does it", "<file> [focus]"),
            ("b", "# Heading here", ""),
            ("c", "", "[a, b]"),
            ("d", cut.as_str(), ""),
            ("e", "Text", "[a] [b]")
        ]
    );
}

#[test]
fn broken_templates_and_collisions_are_named_and_the_rest_is_loaded() {
    let tree = Tree::new(&[
        ("agent/prompts/bad.md", "---\ndescription: a\n other: b\n---\nText"),
        ("agent/prompts/list.md", "---\n[\"a\"]\n---\nText"),
        ("agent/prompts/open.md", "---\ndescription: x\n"),
        ("agent/prompts/hint.md", "---\nargument-hint: [a [b\n---\nText"),
        ("agent/prompts/object.md", "---\ndescription: x\nargument-hint: {a: b}\n---\nText"),
        ("agent/prompts/with space.md", "Text"),
        ("agent/prompts/good.md", "Text"),
        ("work/.pi/prompts/good.md", "Other"),
    ]);
    std::os::unix::fs::symlink(tree.path("agent/prompts/good.md"), tree.path("work/.pi/prompts/again.md"))
        .unwrap();
    let (templates, problems) = tree.load(&[], &["missing.md"], true);
    assert_eq!(templates.len(), 1);
    assert_eq!(templates[0].origin, ResourceOrigin::User);
    let starts = [
        "ROOT/agent/prompts/bad.md:3: the prompt template is not loaded: ",
        "ROOT/agent/prompts/hint.md:2: the prompt template is not loaded: ",
        "ROOT/agent/prompts/list.md:2: the prompt template is not loaded: ",
        "ROOT/agent/prompts/object.md:3: the prompt template is not loaded: argument-hint is neither text nor a list of texts",
        "ROOT/agent/prompts/open.md: the prompt template is not loaded: its frontmatter has no closing --- line",
        "ROOT/agent/prompts/with space.md: the prompt template is not loaded: its name contains a space",
        "two prompt templates are named \"good\"; using ROOT/agent/prompts/good.md, ignoring ROOT/work/.pi/prompts/good.md",
        "prompt templates: ROOT/missing.md does not exist",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
    assert!(problems[2].contains("expected fields such as description: TEXT"), "{}", problems[2]);
    assert!(problems[1].ends_with("put the argument-hint in quotes"), "{problems:?}");
}

#[test]
fn a_call_reads_the_file_as_it_is_now() {
    let tree = Tree::new(&[("agent/prompts/fix.md", "---\ndescription: d\n---\n\nFix $1.\r\nNow.\n")]);
    let (templates, _) = tree.load(&[], &[], false);
    let (template, args) = call(" /fix\nit", &templates).unwrap();
    let (expanded, problem) = expand(template, args).unwrap();
    assert!(expanded == "Fix it.\nNow." && problem.is_empty(), "{expanded}");
    assert!(call("/fixed it", &templates).is_none() && call("fix it", &templates).is_none());
    fs::write(&template.path, "$1").unwrap();
    let error = expand(template, "").unwrap_err().to_string();
    assert!(error.starts_with("the prompt template \"fix\" is empty with these arguments: "), "{error}");
    fs::write(&template.path, "x".repeat(600 << 10)).unwrap();
    assert!(expand(template, "").unwrap_err().to_string().contains("is longer than 512 KiB"));
    fs::remove_file(&template.path).unwrap();
    assert!(
        expand(template, "").unwrap_err().to_string().starts_with("cannot read the prompt template \"fix\"")
    );
}
