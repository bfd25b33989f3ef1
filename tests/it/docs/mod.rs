//! README and docs describe the program.
//!
//! Parts between `<!-- generated: NAME -->` and `<!-- end -->` come from the
//! program's tables, or from its screen. Where one is out of date its test fails;
//! `PI_BLESS=1 cargo bless` writes it anew. The rest is checked for what a
//! machine can see: links, paths, names of tests and flags, examples.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod screens;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, ArgGroup, Command, Id};
use pi::ai::{COMPAT_FIELDS, Catalog, ContentBlock, VENDORS};
use pi::cli::{CHAPTERS, IGNORED};
use pi::config::{Env, InProject, ROWS, Settings, sign_in_offer};
use pi::modes::{
    ACP_COMMANDS, ACP_METHODS, EXIT_CODES, RPC_COMMANDS, commands_markdown, keybindings_markdown,
    screen_reader_commands_markdown,
};
use pi::tools::{BUILTINS, BashConfig, ImageLimits, ToolsConfig, builtins};
use pi::tui::theme::{Kind, TABLE};
use ratatui::layout::Size;
use serde_json::{Map, Value, json};

use crate::support::pty::{Pty, TestHome};
use crate::support::rpc_client::RpcClient;

/// Compares the part `name` of a file with its expected content, or updates it.
#[track_caller]
pub(crate) fn assert_generated(file: &str, name: &str, expected: &str) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- generated: {name} -->\n");
    let start = text.find(&begin).unwrap_or_else(|| panic!("{file} has no part {name}")) + begin.len();
    let len = text[start..].find("<!-- end -->").unwrap_or_else(|| panic!("{file}: {name} does not end"));
    let expected = format!("\n{}\n\n", expected.trim_end());
    if text[start..start + len] == expected {
        return;
    }
    if Env::process().is_set("PI_BLESS") {
        let blessed = [&text[..start], &expected, &text[start + len..]].concat();
        return fs::write(path, blessed).unwrap();
    }
    let found = &text[start..start + len];
    panic!(
        "{name} in {file} is out of date; PI_BLESS=1 cargo bless writes it anew\n\
         --- in the file\n{found}\n--- generated\n{expected}"
    );
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every page: its path from the root, and its text.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().unwrap()));
    let docs = docs.filter(|name| name.ends_with(".md"));
    let names = ["README.md", "CHANGELOG.md"].map(str::to_owned).into_iter().chain(docs);
    names.map(|name| (name.clone(), fs::read_to_string(root().join(name)).unwrap())).collect()
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn table(header: &[&str], rows: impl Iterator<Item = String>) -> String {
    let rule: String = header.iter().map(|_| "|---").collect();
    format!("{}{rule}|\n{}", row(header), rows.collect::<String>())
}

#[test]
fn chapters_are_listed_in_order() {
    let list = |folder: &str| {
        let rows = CHAPTERS.iter().map(|page| {
            let link = format!("[{}]({folder}{}.md)", page.title(), page.name);
            row(&[&link, page.about])
        });
        table(&["page", "contents"], rows)
    };
    assert_generated("docs/README.md", "chapters", &list(""));
    assert_generated("README.md", "chapters", &list("docs/"));
    let readme = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for (page, _) in pages().iter().filter(|(page, _)| page.starts_with("docs/") && page != "docs/README.md")
    {
        let name = page.trim_start_matches("docs/");
        assert!(readme.contains(&format!("]({name})")), "{page} is no chapter of src/cli/docs.rs");
    }
}

#[test]
fn every_chapter_begins_with_an_example() {
    for page in CHAPTERS.iter().filter(|page| page.name != "glossary") {
        let has_example = page.text.lines().take(8).any(|line| line.starts_with("```"));
        assert!(has_example, "docs/{}.md", page.name);
    }
}

/// The table of commands is written by hand, because it has links.
#[test]
fn every_command_is_in_the_table_of_commands() {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    for command in pi::cli::command().get_subcommands() {
        let row = format!("\n| `pi {}` | ", command.get_name());
        assert!(page.contains(&row), "docs/cli.md has no row for pi {}", command.get_name());
    }
}

/// The crates that the examples of the library name can be copied from its page.
#[test]
fn the_page_of_the_library_lists_what_its_programs_need() {
    let page = fs::read_to_string(root().join("docs/library.md")).unwrap();
    let listed = blocks(&page, "toml").concat();
    for example in ["custom_tool", "custom_provider", "front_end", "steering", "read_session", "two_sessions"]
    {
        let text = fs::read_to_string(root().join(format!("examples/{example}.rs"))).unwrap();
        for needed in ["pi", "tokio", "anyhow", "futures_util", "serde_json", "tokio_util", "tempfile"] {
            if text.contains(&format!("{needed}::")) {
                let name = if needed == "serde_json" { needed.to_owned() } else { needed.replace('_', "-") };
                assert!(listed.contains(&format!("\n{name} = ")), "examples/{example}.rs needs {name}");
            }
        }
        let known = ["crate", "std", "pi", "futures_util", "serde_json", "tokio_util"];
        let used = text.lines().filter_map(|line| line.strip_prefix("use ")?.split("::").next());
        used.for_each(|name| assert!(known.contains(&name), "examples/{example}.rs uses {name}"));
    }
}

#[test]
fn flags_are_listed() {
    let command = built();
    let mut groups: Vec<&str> = Vec::new();
    for arg in command.get_arguments() {
        let group = arg.get_help_heading().unwrap_or("General");
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut text = String::new();
    for group in groups {
        let of_group = |arg: &&Arg| arg.get_help_heading().unwrap_or("General") == group;
        let rows = command.get_arguments().filter(of_group).map(|arg| {
            let help = arg.get_help().unwrap().to_string();
            row(&[&format!("`{}`", usage(arg)), &help])
        });
        let rows = table(&["argument", "what it does"], rows);
        text.push_str(&["### ", group, "\n\n", &rows, "\n"].concat());
    }
    assert_generated("docs/cli.md", "flags", &text);
}

#[test]
fn commands_of_rpc_mode_are_listed() {
    let rows = RPC_COMMANDS.iter().map(|command| {
        let codes = |names: &str| {
            names.split(", ").filter(|name| !name.is_empty()).map(code).collect::<Vec<_>>().join(", ")
        };
        row(&[&code(command.name), &codes(command.fields), &codes(command.data), command.help])
    });
    let header = ["command", "fields", "data", "what it does"];
    assert_generated("docs/rpc.md", "rpc commands", &table(&header, rows));
}

#[test]
fn methods_and_commands_of_acp_are_listed() {
    let rows = ACP_METHODS.iter().map(|method| row(&[&code(method.name), method.help]));
    assert_generated("docs/acp.md", "acp methods", &table(&["method", "what it does"], rows));
    let rows = ACP_COMMANDS.iter().map(|command| {
        let hint = command.hint.to_uppercase();
        let usage = if hint.is_empty() { String::new() } else { format!(" [{hint}]") };
        row(&[&code(&format!("/{}{usage}", command.name)), command.help])
    });
    assert_generated("docs/acp.md", "acp commands", &table(&["command", "what it does"], rows));
}

#[test]
fn flags_without_effect_are_listed() {
    let rows = IGNORED.iter().map(|flag| {
        let value = if flag.takes_value { " VALUE" } else { "" };
        let forms = [flag.short, flag.long].into_iter().filter(|form| !form.is_empty());
        let forms: Vec<&str> = forms.collect();
        row(&[&code(&format!("{}{value}", forms.join(", "))), flag.why])
    });
    assert_generated("docs/cli.md", "accepted", &table(&["flag", "why it has no effect"], rows));
}

#[test]
fn imports_and_exports_are_listed() {
    let mut text = String::new();
    let pi = built();
    for name in ["import", "export"] {
        let command = pi.find_subcommand(name).unwrap();
        text.push_str(&["### pi ", name, "\n\n"].concat());
        let rows = command.get_arguments().map(|arg| {
            let usage = if arg.is_positional() {
                let name = arg.get_id().as_str().to_uppercase();
                if arg.is_required_set() { name } else { format!("[{name}]") }
            } else {
                usage(arg)
            };
            row(&[&code(&usage), &arg.get_help().unwrap().to_string()])
        });
        text.push_str(&table(&["argument", "what it does"], rows));
        text.push('\n');
    }
    assert_generated("docs/import-export.md", "transfer", &text);
}

#[test]
fn session_list_arguments_are_listed() {
    let pi = built();
    let command = pi.find_subcommand("sessions").unwrap();
    let rows = command.get_arguments();
    let rows = rows.map(|arg| row(&[&code(&usage(arg)), &arg.get_help().unwrap().to_string()]));
    let text = table(&["argument", "what it does"], rows);
    assert_generated("docs/sessions.md", "session-list", &text);
}

/// The command line with what is derived from it, such as `--help` of sub-commands.
fn built() -> Command {
    let mut command = pi::cli::command();
    command.build();
    command
}

/// A flag with its forms and its value.
fn usage(arg: &Arg) -> String {
    let mut forms = Vec::new();
    forms.extend(arg.get_short().map(|short| format!("-{short}")));
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    forms.extend(longs.iter().map(|long| format!("--{long}")));
    let mut usage = forms.join(", ");
    if arg.get_action().takes_values() {
        let n_required = arg.get_num_args().map_or(1, |count| count.min_values());
        let values = arg
            .get_value_names()
            .unwrap()
            .iter()
            .enumerate()
            .map(|(idx, name)| if idx < n_required { name.to_string() } else { format!("[{name}]") });
        let value = values.collect::<Vec<_>>().join(" ");
        let value = if arg.is_positional() { format!("[{value}]…") } else { format!(" {value}") };
        usage.push_str(&value);
    }
    usage
}

#[test]
fn sub_commands_are_listed() {
    let pi = pi::cli::command();
    let auth = pi.find_subcommand("auth").unwrap();
    let rows = auth.get_subcommands().map(|command| {
        // Of the arguments of such a group, one is needed.
        let groups = command.get_groups().filter(|group| group.is_required_set());
        let needed: Vec<&Id> = groups.flat_map(ArgGroup::get_args).collect();
        let (choices, others): (Vec<_>, Vec<_>) =
            command.get_arguments().partition(|arg| needed.contains(&arg.get_id()));
        let choices: Vec<String> = choices.into_iter().map(usage).collect();
        let choices = (!choices.is_empty()).then(|| format!("({})", choices.join(" | ")));
        let others = others.into_iter().map(|arg| match arg.get_long() {
            Some(_) => format!("[{}]", usage(arg)),
            None if arg.is_required_set() => arg.get_id().to_string().to_uppercase(),
            None => format!("[{}]", arg.get_id().to_string().to_uppercase()),
        });
        let arguments: Vec<String> = choices.into_iter().chain(others).collect();
        let usage = ["pi auth", command.get_name(), &arguments.join(" ")].join(" ");
        row(&[&code(usage.trim()), &command.get_about().unwrap().to_string()])
    });
    assert_generated("docs/cli.md", "auth", &table(&["command", "what it does"], rows));
}

#[test]
fn exit_codes_are_listed() {
    let rows = EXIT_CODES.iter().map(|(code, help)| row(&[&code.to_string(), help]));
    assert_generated("docs/cli.md", "exit-codes", &table(&["exit code", "what it means"], rows));
}

#[test]
fn settings_are_listed() {
    let rows = ROWS.iter().map(|setting| {
        let default = if setting.default == "null" { "none".to_owned() } else { code(setting.default) };
        let mut notes = Vec::new();
        if setting.in_project == InProject::Ignored {
            notes.push("only in your own file");
        }
        if setting.at_start {
            notes.push("from the next start on");
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let help = [setting.help, &notes].concat();
        row(&[&code(setting.key), &help, &setting.kind.describe(), &default])
    });
    let text = table(&["key", "what it does", "value", "default"], rows);
    assert_generated("docs/settings.md", "settings", &text);
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[test]
fn keys_and_commands_are_listed() {
    assert_generated("docs/keybindings.md", "keys", &keybindings_markdown());
    assert_generated("docs/commands.md", "commands", &commands_markdown());
    assert_generated("docs/commands.md", "screen-reader commands", &screen_reader_commands_markdown());
}

#[test]
fn vendors_are_listed() {
    let catalog = Catalog::builtin();
    let rows = VENDORS.iter().map(|vendor| {
        let mut keys: Vec<String> = vendor.env_keys.iter().map(|key| code(key.name)).collect();
        keys.extend(sign_in_offer(vendor.id).map(|_| code(&format!("/login {}", vendor.id))));
        let models = || catalog.models_of(vendor.id).iter();
        let template = catalog.provider(vendor.id).unwrap().template.iter();
        let apis: BTreeSet<String> = models().chain(template).map(|model| code(model.api.as_str())).collect();
        let apis: Vec<String> = apis.into_iter().collect();
        let n_models =
            vendor.default_model.map_or("its own list".to_owned(), |_| models().count().to_string());
        let default = vendor.default_model.map_or("none".to_owned(), code);
        row(&[&code(vendor.id), vendor.name, &keys.join(" or "), &default, &n_models, &apis.join(", ")])
    });
    let header = ["provider", "name", "key in", "default model", "models", "APIs"];
    assert_generated("docs/providers.md", "vendors", &table(&header, rows));
}

#[test]
fn compat_fields_are_listed() {
    let rows = COMPAT_FIELDS.iter().map(|field| {
        let apis: Vec<String> = field.apis.iter().map(|api| code(api)).collect();
        let value = field.kind.describe().replace('"', "`");
        row(&[&code(field.name), field.help, &value, field.default, &apis.join(", ")])
    });
    let header = ["field", "meaning", "value", "default", "API"];
    assert_generated("docs/models.md", "compat", &table(&header, rows));
}

#[test]
fn theme_tokens_are_listed() {
    let rows = TABLE.iter().map(|token| {
        let kind = match token.kind {
            Kind::Foreground => "text",
            Kind::Background => "background",
        };
        let fallback = token.fallback.map_or_else(|| "none".to_owned(), |token| code(token.row().name));
        row(&[&code(token.name), token.help.trim_end_matches('.'), kind, &fallback])
    });
    let text = table(&["token", "what it colours", "colours the", "when left out"], rows);
    assert_generated("docs/themes.md", "tokens", &text);
}

#[test]
fn tools_are_listed() {
    let bash = BashConfig::new(PathBuf::from("/"));
    let tools = builtins(&ToolsConfig { home: None, images: ImageLimits::default(), bash });
    let mut text = String::new();
    for (builtin, tool) in BUILTINS.iter().zip(&tools) {
        let spec = tool.spec();
        let active = if builtin.default_active { "On" } else { "Off" };
        text.push_str(
            &["### ", &spec.name, "\n\n", active, " by default. ", &spec.description, "\n\n"].concat(),
        );
        let required = spec.parameters["required"].as_array().unwrap();
        let rows = spec.parameters["properties"].as_object().unwrap().iter().map(|(name, property)| {
            let needed = if required.contains(&Value::from(name.as_str())) { "yes" } else { "no" };
            row(&[&code(name), needed, property["description"].as_str().unwrap()])
        });
        text.push_str(&table(&["argument", "required", "description"], rows));
        text.push('\n');
    }
    assert_generated("docs/tools.md", "tools", &text);
}

#[test]
fn the_readme_opens_with_the_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let opening: Vec<&str> = readme.lines().filter(|line| !line.trim().is_empty()).take(5).collect();
    assert_eq!(opening[0], "# pi");
    assert_eq!(opening[1], "```sh");
    assert!(opening[2].starts_with("cargo run --release"), "{}", opening[2]);
    assert!(opening[3].starts_with("cargo test"), "{}", opening[3]);
    assert_eq!(opening[4], "```");
}

/// What a screen shows, with durations that depend on no machine.
fn without_durations(shown: &str) -> String {
    let mut parts = shown.split("Took ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("Took 0.0");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    text
}

#[test]
fn the_quickstart_shows_the_screens_of_the_program() {
    let home = TestHome::new();
    // Below home, so that the screen shows no path of this machine.
    let project = home.home().join("hello");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("hello.py"), "name = \"world\"\nprint(f\"hello {name}\")\n").unwrap();
    let size = Size { width: 80, height: 24 };
    let pty = Pty::start_in(&home, &project, size, &[], &[("PI_DEMO_INSTANT", "1")]);
    let shown =
        |rows: &[String]| format!("```text\n{}\n```", without_durations(rows.join("\n").trim_matches('\n')));

    let prompt = "replace hello with goodbye in hello.py";
    pty.wait_idle();
    pty.keys(prompt);
    let rows = pty.wait_text(prompt);
    assert_generated("docs/quickstart.md", "first screen", &shown(&rows));

    pty.keys("\r");
    pty.wait_text("Done:");
    pty.wait_idle();
    pty.keys("!cat hello.py\r");
    pty.wait("the end of the command", |rows| {
        let has = |text: &str| rows.iter().any(|row| row.contains(text));
        has(" print(f\"goodbye {name}\")") && has("$ cat hello.py") && !has("to stop)")
    });
    // Rows that left the screen are in the terminal's scrollback.
    let rows: Vec<String> = pty.everything().into_iter().skip_while(|row| row.trim() != prompt).collect();
    assert_generated("docs/quickstart.md", "second screen", &shown(&rows));
}

#[test]
fn links_lead_somewhere() {
    for (page, text) in pages() {
        for (_, rest) in text.match_indices("](").map(|(at, found)| (at, &text[at + found.len()..])) {
            let target = rest.split(')').next().unwrap();
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.starts_with("https://") {
                continue;
            }
            let folder = root().join(&page).parent().unwrap().to_owned();
            assert!(folder.join(file).exists(), "{page} links to {target}, which does not exist");
        }
    }
}

/// The text between backticks, line by line.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn paths_and_tests_that_pages_name_exist() {
    let functions = functions();
    for (page, text) in pages() {
        for span in code_spans(&text) {
            let of_the_repository =
                ["src/", "tests/", "docs/", "benches/", "examples/", "themes/", ".ci/", ".cargo/"];
            if of_the_repository.iter().any(|start| span.starts_with(start))
                && !span.contains(['<', '*', '{'])
            {
                assert!(root().join(span).exists(), "{page} names {span}, which does not exist");
            }
            let name = span.rsplit("::").next().unwrap();
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_name && name.matches('_').count() >= 3 {
                let is_known = functions.contains(name)
                    || RPC_COMMANDS.iter().any(|row| row.name == name)
                    || is_event(name);
                assert!(is_known, "{page} names {span}, which is no function");
            }
        }
    }
}

/// Whether JSON mode writes events of this type.
fn is_event(name: &str) -> bool {
    let variant: String = name
        .split('_')
        .map(|word| {
            word.chars()
                .next()
                .unwrap_or_default()
                .to_uppercase()
                .chain(word.chars().skip(1))
                .collect::<String>()
        })
        .collect();
    let events = fs::read_to_string(root().join("src/modes/wire/events.rs")).unwrap();
    let (_, variants) = events.split_once("enum WireEvent<'a> {").unwrap();
    variants.lines().take_while(|line| *line != "}").any(|line| {
        line.strip_prefix("    ")
            .and_then(|line| line.strip_prefix(variant.as_str()))
            .is_some_and(|rest| rest.starts_with([' ', ',', '(']))
    })
}

#[test]
fn events_of_json_mode_are_described() {
    let page = fs::read_to_string(root().join("docs/json.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let names: Vec<String> = rows
        .flat_map(|(names, _)| {
            names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect::<Vec<_>>()
        })
        .filter(|name| name != "type")
        .collect();
    assert!(names.len() > 15);
    for name in names {
        assert!(is_event(&name), "{name}");
    }
}

/// The names of all functions of the code and its tests.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![root().join("src"), root().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let found = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
                names.extend(found.map(str::to_owned));
            }
        }
    }
    names
}

#[test]
fn flags_that_pages_name_exist() {
    let pi = built();
    let inner = pi.get_subcommands().flat_map(Command::get_subcommands).flat_map(Command::get_arguments);
    let of_commands = pi.get_subcommands().flat_map(Command::get_arguments);
    let arguments: Vec<&Arg> = pi.get_arguments().chain(of_commands).chain(inner).collect();
    let mut known: BTreeSet<&str> = arguments.iter().filter_map(|arg| arg.get_long()).collect();
    known.extend(arguments.iter().filter_map(|arg| arg.get_visible_aliases()).flatten());
    known.extend(IGNORED.iter().map(|flag| flag.long.trim_start_matches('-')));
    // Slash commands have options, too.
    let commands = pi::modes::commands_markdown();
    let options = commands.lines().filter_map(|line| line.split('`').nth(1)?.split("[--").nth(1));
    known.extend(options.filter_map(|option| option.split(']').next()));
    for (page, text) in pages() {
        // Other programs have flags of their own.
        for line in text.lines().filter(|line| {
            !["cargo ", "git ", "docker ", "rustup ", "apk ", "harbor ", "gh gist "]
                .iter()
                .any(|name| line.contains(name))
        }) {
            for (at, _) in line.match_indices("--") {
                let is_start = line[..at].chars().next_back().is_none_or(|c| " `(|".contains(c));
                let name: String =
                    line[at + 2..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
                if is_start && name.len() > 1 && !name.starts_with('-') {
                    assert!(known.contains(name.as_str()), "{page} names --{name}, which does not exist");
                }
            }
        }
    }
}

#[test]
fn commands_in_examples_are_accepted() {
    let mut n_checked = 0;
    for (page, text) in pages() {
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            for words in commands_of_pi(line) {
                let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
                arguments[0] = "pi".into();
                let parsed = pi::cli::parse(arguments);
                assert!(parsed.is_ok(), "{page}: {line}\n{}", parsed.unwrap_err());
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 50, "{n_checked}");
}

/// The command lines of pi in a line of a shell, as words.
fn commands_of_pi(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.push(c),
            ('"' | '\'', None) => quote = Some(c),
            // The rest is a comment.
            ('#', None) if word.is_empty() => break,
            (' ' | '|' | ';', None) => {
                if !word.is_empty() {
                    commands.last_mut().unwrap().push(std::mem::take(&mut word));
                }
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (c, None) => word.push(c),
        }
    }
    for command in &mut commands {
        // Redirections, and variables before the command.
        if let Some(at) = command.iter().position(|word| word.starts_with(['<', '>']) || word == "2>&1") {
            command.truncate(at);
        }
        let n_variables =
            command.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
        command.drain(..n_variables);
    }
    commands.retain(|command| command.first().is_some_and(|word| word == "pi"));
    commands
}

#[test]
fn command_lines_come_apart_as_in_a_shell() {
    let check = |line: &str, expected: &[&[&str]]| assert_eq!(commands_of_pi(line), expected, "{line}");
    check("pi -p \"a # b\"   # c", &[&["pi", "-p", "a # b"]]);
    check("git diff | pi -p 'it' > out.txt", &[&["pi", "-p", "it"]]);
    check("A=1 pi; ls", &[&["pi"]]);
    check("# pi --bogus", &[]);
    check("cargo run", &[]);
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let rest = text.split(&fence).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn examples_are_accepted() {
    for (page, text) in pages() {
        for block in blocks(&text, "json") {
            let values: Map<String, Value> = serde_json::from_str(&block).unwrap();
            if values.contains_key("providers") {
                assert_eq!(Catalog::builtin().add_user_models(&block), Ok(()), "{page}:\n{block}");
            } else if page == "docs/rpc.md" {
                check_rpc_line(&values);
            } else if page == "docs/acp.md" {
                let Value::Object(servers) = &values["agent_servers"] else { panic!("{block}") };
                assert!(servers.values().all(|server| server["args"][0] == "acp"), "{block}");
            } else if page == "docs/sessions.md" {
                let content: ContentBlock = serde_json::from_str(&block).unwrap();
                assert!(content.is_image(), "{page}:\n{block}");
                assert_eq!(serde_json::to_value(&content).unwrap(), Value::from(values), "{page}:\n{block}");
            } else if page == "docs/keybindings.md" {
                let known = keybindings_markdown();
                for id in values.keys() {
                    assert!(known.contains(&code(id)), "{page}: {id}");
                }
            } else {
                let (_, problems) = Settings::read(&values);
                assert_eq!(problems, [], "{page}:\n{block}");
                let known = |key: &str| {
                    ROWS.iter().any(|row| row.key == key || row.key.starts_with(&format!("{key}.")))
                };
                assert!(values.keys().all(|key| known(key)), "{page}:\n{block}");
            }
        }
    }
}

/// The skill and the template on their pages become commands, without a warning.
#[test]
fn skills_and_templates_of_the_pages_are_read() {
    let home = TestHome::new();
    let first = |page: &str| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        blocks(&text, "markdown").remove(0)
    };
    for (path, text) in [
        ("skills/release/SKILL.md", first("docs/skills.md")),
        ("prompts/review.md", first("docs/templates.md")),
    ] {
        let path = home.agent().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut client = RpcClient::start(&home, &["--mode", "rpc", "--model", "demo/pi"]);
    let answer = client.request(json!({ "type": "get_commands" }), "c");
    let commands = answer["data"]["commands"].as_array().unwrap();
    let known: Vec<(&str, &str)> = commands
        .iter()
        .map(|command| (command["name"].as_str().unwrap(), command["description"].as_str().unwrap()))
        .collect();
    let release = "Makes a release of this project. Use it when asked to release, tag or publish.";
    for expected in [("review", "Reviews a change"), ("skill:release", release)] {
        assert!(known.contains(&expected), "{known:?}");
    }
    let (_, _, told) = client.finish();
    assert!(!told.contains("SKILL.md") && !told.contains("review.md"), "{told}");
}

/// Slash commands in the texts that show what is typed exist.
#[test]
fn slash_commands_in_examples_exist() {
    let mut n_checked = 0;
    for (page, text) in pages().iter().filter(|(page, _)| page.starts_with("docs/")) {
        for line in blocks(text, "text").iter().flat_map(|block| block.lines()) {
            let Some(typed) = line.strip_prefix('/') else { continue };
            let name: String = typed.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            assert!(pi::modes::is_command(&name), "{page}: {line}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 5, "{n_checked}");
}

/// A command has its fields; a line of pi has one of the types it writes.
#[track_caller]
fn check_rpc_line(line: &Map<String, Value>) {
    let kind = line["type"].as_str().unwrap();
    let Some(command) = RPC_COMMANDS.iter().find(|row| row.name == kind) else {
        let others = ["response", "extension_ui_request", "extension_ui_response", "bash_execution_update"];
        assert!(others.contains(&kind), "{line:?}");
        return;
    };
    let fields: Vec<&str> = command.fields.split(", ").map(|field| field.trim_end_matches('?')).collect();
    for name in line.keys().filter(|name| !["id", "type"].contains(&name.as_str())) {
        assert!(fields.contains(&name.as_str()), "{name} in {line:?}");
    }
}

#[test]
fn every_kind_of_line_in_session_files_is_described() {
    let page = fs::read_to_string(root().join("docs/sessions.md")).unwrap();
    let mut kinds: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in fs::read_dir(root().join("tests/fixtures/sessions")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for line in fs::read_to_string(&path).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let names = [&line["type"], &line["message"]["role"]].map(Value::as_str);
                kinds.extend(names.into_iter().flatten().map(|name| (name.to_owned(), path.clone())));
            }
        }
    }
    assert!(kinds.len() > 8, "{kinds:?}");
    for (kind, path) in kinds {
        assert!(page.contains(&code(&kind)), "{kind} of {} is not described", path.display());
    }
}

#[test]
fn pages_are_finished_and_of_no_machine() {
    for (page, text) in pages() {
        for word in ["TODO", "FIXME", "TBD", "/home/", "/Users/", "/tmp/", "/work/", "/root/"] {
            assert!(!text.contains(word), "{page} contains {word}");
        }
        for (line_idx, line) in text.lines().enumerate() {
            assert_eq!(line.trim_end(), line, "{page}:{}: blanks at the end", line_idx + 1);
        }
    }
}
