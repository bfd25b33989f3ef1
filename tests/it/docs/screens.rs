//! The pictures in `docs/screens` show what the program draws.
//!
//! `PI_BLESS=1 cargo bless` draws them anew, from the real program with the demo model, in
//! a terminal with 24-bit colours, in the dark and in the light theme.

use std::fs;

use pi::config::Env;
use ratatui::layout::Size;
use serde_json::json;

use super::root;
use crate::support::pty::{Pty, TestHome};
use crate::support::svg::{self, Palette};

/// A picture: what is typed, and when the screen is as it should be.
struct Scene {
    name: &'static str,
    label: &'static str,
    size: Size,
    play: fn(&Pty),
}

const SCENES: &[Scene] = &[
    Scene {
        name: "edit",
        label: "pi changes a file and shows the difference; below it, a command of the user with its output",
        size: Size { width: 92, height: 32 },
        play: |pty| {
            ask(pty, "replace hello with goodbye in hello.py", "Done:");
            pty.keys("!cat hello.py\r");
            pty.wait("the end of the command", |rows| {
                let has = |text: &str| rows.iter().any(|row| row.contains(text));
                has(" print(f\"goodbye {name}\")") && has("$ cat hello.py") && !has("to stop)")
            });
            pty.keys("search for goodbye");
            pty.wait_text("search for goodbye");
        },
    },
    Scene {
        name: "markdown",
        label: "an answer with headings, lists, highlighted code, a table and text in several scripts",
        size: Size { width: 100, height: 78 },
        play: |pty| ask(pty, "a long answer", "That is all there is."),
    },
    Scene {
        name: "tree",
        label: "the tree of a session: prompts, answers and tool calls, from each of which it can continue",
        size: Size { width: 92, height: 26 },
        play: |pty| {
            ask(pty, "read hello.py", "A real model would");
            ask(pty, "replace hello with goodbye in hello.py", "Done:");
            pty.keys("/tree\r");
            pty.wait_text("type: search");
        },
    },
    Scene {
        name: "settings",
        label: "the settings with their values, filtered by a search",
        size: Size { width: 92, height: 26 },
        play: |pty| {
            pty.keys("/settings\r");
            pty.wait_text("Settings");
            pty.keys("compaction.");
            pty.wait("the found settings", |rows| {
                let has = |text: &str| rows.iter().any(|row| row.contains(text));
                has("compaction.enabled") && !has("defaultModel")
            });
        },
    },
];

/// Sends a prompt to the demo model, and waits for the end of its answer.
fn ask(pty: &Pty, prompt: &str, end: &str) {
    pty.wait_idle();
    pty.keys(prompt);
    pty.wait_text(prompt);
    pty.keys("\r");
    pty.wait_text(end);
    pty.wait_idle();
}

fn draw(scene: &Scene, theme: &str, palette: &Palette) -> String {
    let home = TestHome::new().settings(&json!({ "theme": theme }));
    let project = home.home().join("hello");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("hello.py"), "name = \"world\"\nprint(f\"hello {name}\")\n").unwrap();
    let env = [("PI_DEMO_INSTANT", "1"), ("COLORTERM", "truecolor")];
    let pty = Pty::start_in(&home, &project, scene.size, &[], &env);
    pty.wait_idle();
    (scene.play)(&pty);
    let label = format!("{} ({theme} theme)", scene.label);
    super::without_durations(&pty.picture(|screen| svg::svg(screen, 0..used(screen), palette, &label)))
}

/// The rows of the screen up to the last with text.
fn used(screen: &vt100::Screen) -> u16 {
    let (_, columns) = screen.size();
    let rows: Vec<String> = screen.rows(0, columns.get()).collect();
    let last = rows.iter().rposition(|row| !row.trim().is_empty()).unwrap_or_default();
    u16::try_from(last + 1).unwrap()
}

#[test]
fn pictures_show_what_the_program_draws() {
    let folder = root().join("docs/screens");
    let is_blessing = Env::process().is_set("PI_BLESS");
    let mut known = Vec::new();
    for scene in SCENES {
        for (theme, palette) in [("dark", &svg::DARK), ("light", &svg::LIGHT)] {
            let name = format!("{}-{theme}.svg", scene.name);
            let (path, drawn) = (folder.join(&name), draw(scene, theme, palette));
            if is_blessing {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, drawn).unwrap();
            } else {
                let stored = fs::read_to_string(&path).unwrap_or_default();
                assert!(
                    stored == drawn,
                    "docs/screens/{name} shows another screen; PI_BLESS=1 cargo bless draws it anew\n{drawn}"
                );
            }
            known.push(name);
        }
    }
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "docs/screens/{name} is no scene");
    }
}

#[test]
fn pictures_on_pages_exist_in_both_themes() {
    let mut n_shown = 0;
    for (page, text) in super::pages() {
        let shown = text.split(['"', '(', ')']).filter(|part| part.ends_with(".svg"));
        for picture in shown {
            let folder = root().join(&page).parent().unwrap().to_owned();
            let other = picture.replace("-dark.", "-light.");
            assert!(folder.join(picture).exists() && folder.join(other).exists(), "{page} shows {picture}");
            n_shown += 1;
        }
    }
    assert!(n_shown >= SCENES.len());
}

#[test]
fn a_picture_keeps_columns_and_colours() {
    let mut parser =
        vt100::Parser::new(std::num::NonZeroU16::new(2).unwrap(), std::num::NonZeroU16::new(12).unwrap(), 0);
    parser.process("a<b 日本 x\r\n\x1b[1;31;44m├──┤\x1b[0m \x1b[38;2;1;2;3mz".as_bytes());
    let drawn = svg::svg(parser.screen(), 0..2, &svg::DARK, "\"two\" rows");
    let rows: Vec<&str> = drawn.lines().skip_while(|line| !line.starts_with("<g")).collect();
    let (_, rows) = rows.split_first().unwrap();
    insta::assert_snapshot!(rows[4..].join("\n"), @r##"
    <rect x="0.0" y="18" width="33.6" height="18.3" fill="#61afef"/>
    <path d="M4.2 18V36M29.4 18V36M4.2 27H29.4" fill="none" stroke="#e06c75"/>
    <text x="42.0" y="31.5" textLength="8.4" fill="#010203">z</text>
    </g>
    </svg>
    "##);
    let starts: Vec<&str> = rows[..4].iter().map(|row| row.split(" y=").next().unwrap()).collect();
    assert_eq!(starts, [r#"<text x="0.0""#, r#"<text x="33.6""#, r#"<text x="50.4""#, r#"<text x="75.6""#]);
}
