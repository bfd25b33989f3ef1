//! `pi completions` and `pi man`, made from the table of arguments.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::{PossibleValue, TypedValueParser};
use clap_complete::Shell;
use roff::{Inline, Roff, bold, roman};

use crate::ai::VENDORS;
use crate::config::{ROWS, SettingKind as Kind};
use crate::modes;
use crate::util::manual::Page;

use super::args;
use super::docs::{CHAPTERS, EVIDENCE};

/// The arguments of `pi completions`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "pi", &mut script);
    if args.shell == Shell::Bash {
        script.extend(bash_words().into_bytes());
    }
    print(script)
}

/// What the generated script for bash cannot do: it offers the values of an argument for all
/// arguments after it, and knows no `pi help`.
fn bash_words() -> String {
    let command = args::command();
    let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let values: String = ROWS
        .iter()
        .filter_map(|row| {
            let words = match row.kind {
                _ if row.key == "theme" => THEMES.join(" "),
                Kind::Bool => "true false".to_owned(),
                Kind::BoolOr(word) => format!("true false {word}"),
                Kind::Choice(words) => words.join(" "),
                _ => return None,
            };
            Some(format!("                {}) words=\"{words}\" ;;\n", row.key))
        })
        .collect();
    BASH_WORDS.replace("COMMANDS", &commands.join(" ")).replace("VALUES\n", &values)
}

/// Wraps the function `_pi` of the generated script.
const BASH_WORDS: &str = r#"
_pi_words() {
    local cur="${COMP_WORDS[COMP_CWORD]}" word words=""
    local -a given=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ ${word} == -* ]] || given+=("${word}")
    done
    if [[ ${given[0]} == help ]]; then
        [[ ${#given[@]} -eq 1 ]] && words="COMMANDS"
    elif [[ ${given[0]} == config && ${#given[@]} -ge 3 && ${cur} != -* ]]; then
        if [[ ${given[1]} == set && ${#given[@]} -eq 3 ]]; then
            case "${given[2]}" in
VALUES
            esac
        fi
    else
        _pi "$@"
        return
    fi
    COMPREPLY=( $(compgen -W "${words}" -- "${cur}") )
}

complete -F _pi_words -o bashdefault -o default pi
"#;

/// Prints the manual page.
pub(super) fn man() -> anyhow::Result<ExitCode> {
    print(manual_page().context("cannot write the manual page")?)
}

/// The generated sections, and those that the generator does not know.
fn manual_page() -> io::Result<Vec<u8>> {
    let command = args::command();
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    for section in [
        clap_mangen::Man::render_name_section,
        clap_mangen::Man::render_synopsis_section,
        clap_mangen::Man::render_description_section,
        clap_mangen::Man::render_options_section,
    ] {
        let mut part = Vec::new();
        section(&man, &mut part)?;
        // Each begins with the definitions that the title has.
        let lines = part.split_inclusive(|byte| *byte == b'\n');
        page.extend(lines.skip_while(|line| !line.starts_with(b".SH")).flatten());
    }
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        entry(&mut roff, &format!("`pi {}`", command.get_name()), &about);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in modes::EXIT_CODES {
        entry(&mut roff, &format!("`{code}`"), meaning);
    }
    for (title, heading) in [("ENVIRONMENT", "Environment"), ("FILES", "Files")] {
        roff.control("SH", [title]);
        for (term, text) in rows_under(heading) {
            entry(&mut roff, term, text);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(inlines("`pi help COMMAND` explains a command, and `pi docs` prints the documentation. Type `/hotkeys` in pi for its keys and commands."));
    page.extend(roff.to_roff().into_bytes());
    Ok(page)
}

/// Rows of the table under a heading of the page about the command line: two cells each.
fn rows_under(heading: &str) -> Vec<(&'static str, &'static str)> {
    let page = CHAPTERS.iter().find(|page| page.name == "cli");
    let sections = page.map(Page::sections).unwrap_or_default();
    let section = sections.iter().find(|section| section.heading == heading);
    let lines = section.map(|section| section.text.lines()).into_iter().flatten();
    // Below the header and its rule.
    let rows = lines.filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.trim_matches(['|', ' ']).split_once(" | ")).collect()
}

/// A term and its explanation.
fn entry(roff: &mut Roff, term: &str, text: &str) {
    roff.control("TP", []);
    roff.text(inlines(term));
    roff.text(inlines(text));
}

/// Markdown of one line: code is bold.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(idx, part)| if idx % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

fn print(bytes: Vec<u8>) -> anyhow::Result<ExitCode> {
    modes::say(String::from_utf8(bytes)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Accepts any text, and lets shells complete the values there are. An argument with it hides
/// them from the help, where they would be too many.
#[derive(Debug, Clone)]
pub(super) struct Suggested(pub(super) fn() -> Vec<PossibleValue>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// Keys of settings.
pub(super) fn setting_keys() -> Vec<PossibleValue> {
    ROWS.iter().map(|row| PossibleValue::new(row.key).help(row.help)).collect()
}

/// Ids of the providers that pi knows by itself.
pub(super) fn providers() -> Vec<PossibleValue> {
    VENDORS.iter().map(|vendor| PossibleValue::new(vendor.id)).collect()
}

/// The themes that are part of pi.
const THEMES: [&str; 3] = ["dark", "light", "system"];

/// Names for `--use-theme`.
pub(super) fn themes() -> Vec<PossibleValue> {
    THEMES.map(PossibleValue::new).to_vec()
}

/// Pages of the documentation.
pub(super) fn pages() -> Vec<PossibleValue> {
    CHAPTERS.iter().chain([&EVIDENCE]).map(|page| PossibleValue::new(page.name).help(page.about)).collect()
}
