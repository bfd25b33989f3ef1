//! Tests of skills from all sources together.

use std::fs;

use super::*;

/// Options that differ from the defaults.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    settings: &'a [String],
    project_settings: &'a [String],
    named: &'a [PathBuf],
    only_named: bool,
    untrusted: bool,
}

/// A user, a repository in their home, and a folder in it to work in.
struct World(tempfile::TempDir);

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["home/repo/sub", "home/repo/.git"] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        fs::write(world.path("home/repo/.git/HEAD"), "ref: refs/heads/main").unwrap();
        for (path, text) in files {
            let path = world.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Skills and problems, one line each, paths from the world's root.
    fn load(&self, asked: Asked<'_>) -> (Vec<String>, Vec<String>) {
        let (agent, home, cwd) = (self.path("home/.pi/agent"), self.path("home"), self.path("home/repo/sub"));
        let places = SkillPlaces {
            agent: &agent,
            home: Some(&home),
            cwd: &cwd,
            settings: asked.settings,
            project_settings: asked.project_settings,
            named: asked.named,
            only_named: asked.only_named,
            with_project: !asked.untrusted,
        };
        let (skills, problems) = load(&places);
        let root = format!("{}/", self.0.path().display());
        let short = |text: String| text.replace(&root, "");
        let skills = skills.iter().map(|skill| {
            let mark = if skill.is_listed { "" } else { " (hidden)" };
            short(format!("{} {:?} {}{mark}", skill.name, skill.origin, skill.path.display()))
        });
        let problems = problems.others.iter().chain(&problems.of_flags);
        (skills.collect(), problems.map(|problem| short(problem.to_string())).collect())
    }
}

const TEXT: &str = "---\ndescription: Does it\n---\nDo it.\n";

fn called(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does it\n---\nDo it.\n")
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

#[test]
fn the_user_comes_before_the_project_and_what_is_near_before_what_is_above() {
    let world = World::new(&[
        ("home/.pi/agent/skills/a/SKILL.md", TEXT),
        ("home/.agents/skills/b/SKILL.md", TEXT),
        ("home/more/c/SKILL.md", TEXT),
        ("home/repo/sub/.pi/skills/d/SKILL.md", TEXT),
        ("home/repo/sub/.agents/skills/e/SKILL.md", TEXT),
        ("home/repo/.agents/skills/f/SKILL.md", TEXT),
        ("named/g/SKILL.md", TEXT),
    ]);
    let settings = ["~/more".to_owned()];
    let named = [world.path("named/g")];
    let asked = Asked { settings: &settings, named: &named, ..Asked::default() };
    let (skills, problems) = world.load(asked);
    assert_eq!(problems, owned(&[]));
    assert_eq!(
        skills,
        owned(&[
            "a User home/.pi/agent/skills/a/SKILL.md",
            "b User home/.agents/skills/b/SKILL.md",
            "c User home/more/c/SKILL.md",
            "d Project home/repo/sub/.pi/skills/d/SKILL.md",
            "e Project home/repo/sub/.agents/skills/e/SKILL.md",
            "f Project home/repo/.agents/skills/f/SKILL.md",
            "g CommandLine named/g/SKILL.md",
        ])
    );

    // The same, all of one name: each place wins over those after it.
    let places = [
        "home/.pi/agent/skills/a/SKILL.md",
        "home/.agents/skills/b/SKILL.md",
        "home/more/c/SKILL.md",
        "home/repo/sub/.pi/skills/d/SKILL.md",
        "home/repo/sub/.agents/skills/e/SKILL.md",
        "home/repo/.agents/skills/f/SKILL.md",
        "named/g/SKILL.md",
    ];
    for (at, kept) in places.iter().enumerate() {
        for place in places {
            fs::write(world.path(place), called("same")).unwrap();
        }
        for gone in &places[..at] {
            fs::write(world.path(gone), TEXT).unwrap();
        }
        let (skills, problems) = world.load(asked);
        let same: Vec<&String> = skills.iter().filter(|line| line.starts_with("same ")).collect();
        assert!(matches!(same[..], [line] if line.ends_with(kept)), "{skills:?}");
        let expected: Vec<String> = places[at + 1..]
            .iter()
            .map(|dropped| format!("two skills are named \"same\"; using {kept}, ignoring {dropped}"))
            .collect();
        assert_eq!(problems, expected);
    }
}

#[test]
fn an_untrusted_project_brings_none() {
    let world = World::new(&[
        ("home/.pi/agent/skills/a/SKILL.md", TEXT),
        ("home/repo/sub/.pi/skills/d/SKILL.md", TEXT),
        ("home/repo/.agents/skills/f/SKILL.md", "---\n: [\n---\n"),
    ]);
    let (skills, problems) = world.load(Asked { untrusted: true, ..Asked::default() });
    assert_eq!((skills, problems), (owned(&["a User home/.pi/agent/skills/a/SKILL.md"]), owned(&[])));
}

#[test]
fn without_skills_only_those_named_count() {
    let world =
        World::new(&[("home/.pi/agent/skills/a/SKILL.md", TEXT), ("x/own.md", TEXT), ("x/y.md", TEXT)]);
    let named = [world.path("x/own.md"), world.path("x/gone")];
    let (skills, problems) = world.load(Asked { named: &named, only_named: true, ..Asked::default() });
    assert_eq!(skills, owned(&["own CommandLine x/own.md"]));
    assert_eq!(problems, owned(&["skills: x/gone does not exist"]));
}

#[test]
fn the_settings_leave_out_the_users_own() {
    let world = World::new(&[
        ("home/.pi/agent/skills/a/SKILL.md", TEXT),
        ("home/.pi/agent/skills/b/SKILL.md", TEXT),
        ("home/.agents/skills/c/SKILL.md", TEXT),
        ("home/repo/sub/.pi/skills/d/SKILL.md", TEXT),
    ]);
    let settings = owned(&["!skills/*", "+skills/b", "-~/.agents/skills/c", "!d"]);
    let (skills, problems) = world.load(Asked { settings: &settings, ..Asked::default() });
    assert_eq!(problems, owned(&[]));
    assert_eq!(
        skills,
        owned(&["b User home/.pi/agent/skills/b/SKILL.md", "d Project home/repo/sub/.pi/skills/d/SKILL.md"])
    );
}

#[test]
fn a_skill_that_several_links_lead_to_is_one() {
    use std::os::unix::fs::symlink;

    let world = World::new(&[("src/a/SKILL.md", TEXT), ("home/.agents/skills/keep", "")]);
    fs::create_dir_all(world.path("home/.pi/agent/skills")).unwrap();
    symlink(world.path("src/a"), world.path("home/.pi/agent/skills/z")).unwrap();
    symlink(world.path("src/a"), world.path("home/.agents/skills/a")).unwrap();
    let named = [world.path("src")];
    let (skills, problems) = world.load(Asked { named: &named, ..Asked::default() });
    assert_eq!(skills, owned(&["z User home/.pi/agent/skills/z/SKILL.md"]));
    assert_eq!(problems, owned(&[]));
}

/// The problems of one skill, and whether it is loaded.
#[track_caller]
fn check(path: &str, text: &str, loaded: &[&str], problem: &[&str]) {
    let world = World::new(&[(&format!("home/.pi/agent/skills/{path}"), text)]);
    let (skills, problems) = world.load(Asked::default());
    let strip = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().map(|line| line.replace("home/.pi/agent/skills/", "")).collect()
    };
    assert_eq!(strip(skills), owned(loaded), "{text}");
    let problems = strip(problems);
    assert_eq!(problems.len(), problem.len(), "{problems:?}");
    for (found, expected) in problems.iter().zip(problem) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn what_is_wrong_is_named_and_only_the_worst_is_not_loaded() {
    let name = |name: &str| format!("{name} User x/SKILL.md");
    check(
        "x/SKILL.md",
        &called("Bad Name"),
        &[&name("Bad Name")],
        &["x/SKILL.md: the name \"Bad Name\" contains characters other"],
    );
    check("x/SKILL.md", &called("a--b"), &[&name("a--b")], &["contains two consecutive -"]);
    let long = format!("---\ndescription: {}\n---\n", "d".repeat(1025));
    check("x/SKILL.md", &long, &[&name("x")], &["the description has 1025 characters; the limit is 1024"]);
    check(
        "x/SKILL.md",
        "---\nname: x\n---\n",
        &[],
        &["x/SKILL.md is not loaded: its frontmatter has no description"],
    );
    check("x/SKILL.md", "Just text\n", &[], &["has no description"]);
    let malformed = "x/SKILL.md:3: the skill is not loaded: ";
    check("x/SKILL.md", "---\nname: x\n description: a\n---\n", &[], &[malformed]);
    for text in ["a: b", "'it's'", "@reviewer", "%d files"] {
        let unquoted = format!("---\nname: x\ndescription: {text}\n---\n");
        check("x/SKILL.md", &unquoted, &["x User x/SKILL.md"], &[]);
    }
    let twice = "x/SKILL.md:4: the skill is not loaded: duplicate field `name`";
    check("x/SKILL.md", "---\nname: x\ndescription: d\nname: y\n---\n", &[], &[twice]);
    check("x/SKILL.md", "---\ndescription: d\n", &[], &["has no closing --- line"]);
    let endless = format!("---\ndescription: d\n#{}\n---\n", "x".repeat(40_000));
    check("x/SKILL.md", &endless, &[], &["its frontmatter has no closing --- line in the first 32 KiB"]);
    let hidden = "---\ndescription: d\ndisable-model-invocation: true\n---\n";
    check("x/SKILL.md", hidden, &["x User x/SKILL.md (hidden)"], &[]);
}

#[test]
fn other_markdown_beside_skills_is_none_and_no_problem() {
    check("notes.md", "Some notes\n", &[], &[]);
    check("notes.md", "---\ntitle: Notes\n---\n", &[], &[]);
    check("notes.md", "---\n\nafter a rule\n", &[], &[]);
    check("notes.md", TEXT, &["notes User notes.md"], &[]);
    check("notes.md", "---\n[\n---\n", &[], &["notes.md:2: the skill is not loaded: "]);
}

#[test]
fn a_huge_skill_is_listed_and_skills_without_number_are_not() {
    check("x/SKILL.md", &format!("{TEXT}{}", "x".repeat(2_000_000)), &["x User x/SKILL.md"], &[]);
    let world = World::new(&[]);
    for n in 0..=MAX_SKILLS {
        let folder = world.path(&format!("home/.pi/agent/skills/s{n:03}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), TEXT).unwrap();
    }
    let (skills, problems) = world.load(Asked::default());
    assert_eq!(skills.len(), MAX_SKILLS);
    assert_eq!(
        problems,
        owned(&[
            "skills: more than 500 found; home/.pi/agent/skills/s500/SKILL.md and others are not loaded"
        ])
    );
}
