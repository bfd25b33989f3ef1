//! `pi docs`: the pages of `docs`, which are part of the program.
//!
//! TABLE: the chapters, in the order of the book; `docs/README.md` and the README list
//! them. The demo model answers questions about pi from the same pages.

use std::process::ExitCode;

use crate::modes;
use crate::util::manual::{self, Page};
use crate::util::nearest::nearest;

use super::reference::{Suggested, pages};

/// The arguments of `pi docs`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DocsArgs {
    /// Page to print; without it, all pages are listed
    #[arg(value_name = "PAGE", conflicts_with = "search", value_parser = Suggested(pages), hide_possible_values = true)]
    page: Option<String>,

    /// Print the sections that fit these words best
    #[arg(long, value_name = "WORDS", num_args = 1..)]
    search: Option<Vec<String>>,
}

macro_rules! chapters {
    ($($name:literal $about:literal)*) => {
        &[$(Page { name: $name, about: $about, text: include_str!(concat!("../../docs/", $name, ".md")) }),*]
    };
}

/// The chapters for users.
pub const CHAPTERS: &[Page] = chapters! {
    "quickstart" "the first session, step by step"
    "usage" "prompts, steering, sessions, single questions"
    "prompt" "completion, pastes, images, earlier prompts"
    "cli" "flags, commands and exit codes"
    "providers" "the built-in providers and their keys"
    "models" "choosing models, `models.json`, thinking"
    "sessions" "finding and continuing sessions, and the session file"
    "compaction" "summaries of long conversations, pins and handoffs"
    "trace" "steps, tool calls, tokens, costs and limits"
    "export" "sessions as web pages, Markdown, session files and trajectories"
    "import-export" "conversations from and to the formats of OpenAI, Anthropic and Google"
    "settings" "`settings.json`"
    "keybindings" "keys, and how to change them"
    "commands" "slash commands"
    "tools" "the model's tools and their limits"
    "themes" "themes and their colour tokens"
    "skills" "instructions that the model reads when it needs them"
    "templates" "prompts that you call as `/NAME`"
    "terminals" "scrollback, resizing, and what differs between terminals"
    "fullscreen" "the alternate screen: scrolling, selecting, copying and searching"
    "security" "what pi may do, trust, keys, and how to contain it"
    "json" "`--mode json`: events for other programs"
    "rpc" "`--mode rpc`: pi as a part of another program"
    "acp" "`pi acp`: pi in Zed, JetBrains, Neovim and other editors"
    "library" "the crate: sessions, tools and providers in your own program"
    "ci" "benchmarks, containers and GitHub Actions"
    "glossary" "terms"
};

/// Most sections that `--search` prints.
const MAX_SECTIONS: usize = 5;

/// Prints the list of pages, a page, or sections.
///
/// # Errors
/// If there is no such page, or no section has the words.
pub(super) fn run(args: &DocsArgs) -> anyhow::Result<ExitCode> {
    let text = match (&args.page, &args.search) {
        (Some(name), _) => manual::without_comments(page(name)?.text),
        (None, Some(words)) => search(&words.join(" "))?,
        (None, None) => list(),
    };
    modes::say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn page(name: &str) -> anyhow::Result<&'static Page> {
    let bare = name.trim_start_matches("docs/").trim_end_matches(".md").to_lowercase();
    let found = CHAPTERS.iter().find(|page| page.name == bare || page.title().to_lowercase() == bare);
    found.ok_or_else(|| {
        let names: Vec<&str> = CHAPTERS.iter().map(|page| page.name).collect();
        let tip = nearest(&bare, &names).map_or_else(String::new, |name| format!("did you mean {name}? "));
        anyhow::anyhow!("there is no page \"{name}\"; {tip}pi docs lists the pages")
    })
}

fn list() -> String {
    let width = CHAPTERS.iter().map(|page| page.name.len()).max().unwrap_or_default();
    let mut text: String = CHAPTERS
        .iter()
        .map(|page| format!("{:width$}  {}\n", page.name, page.about.replace('`', "")))
        .collect();
    text.push_str("\npi docs PAGE prints a page, pi docs --search WORDS the sections that fit.");
    text
}

fn search(words: &str) -> anyhow::Result<String> {
    let found = manual::find(CHAPTERS, words, MAX_SECTIONS);
    if found.is_empty() {
        anyhow::bail!("no section has these words; pi docs lists the pages");
    }
    let sections = found.iter().map(|section| {
        let text = manual::without_comments(section.text);
        format!("## {} (pi docs {})\n\n{}", section.heading, section.page.name, text.trim())
    });
    Ok(sections.collect::<Vec<_>>().join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_titles_and_are_found_by_name_file_and_title() {
        for chapter in CHAPTERS {
            assert!(chapter.text.starts_with("# "), "{}", chapter.name);
            for name in [chapter.name, &format!("docs/{}.md", chapter.name), chapter.title()] {
                assert_eq!(page(name).unwrap().name, chapter.name);
            }
        }
        let error = page("setings").unwrap_err().to_string();
        assert_eq!(error, "there is no page \"setings\"; did you mean settings? pi docs lists the pages");
    }

    #[test]
    fn questions_of_users_find_their_page() {
        let check = |question: &str, expected: &str| {
            let found: Vec<&str> =
                manual::find(CHAPTERS, question, 3).iter().map(|section| section.page.name).collect();
            assert!(found.contains(&expected), "{question}: {found:?}");
        };
        check("How do I change the theme?", "themes");
        check("where are sessions stored?", "sessions");
        check("how can I steer the agent", "usage");
        check("rebind a key", "keybindings");
        check("what does compaction do", "compaction");
        check("write a skill", "skills");
        check("limit the cost", "trace");
        check("use pi in Zed", "acp");
        check("which exit codes are there", "cli");
        check("add my own server", "models");
        check("github actions", "ci");
        check("is my key safe", "security");
    }
}
