//! `pi docs`: the pages of `docs`, which are part of the program.
//!
//! TABLE: the chapters, in the order of the book; `docs/README.md` and the README list
//! them. The demo model answers questions about pi from the same pages.

use std::process::ExitCode;

use crate::modes::{self, UsageError};
use crate::util::embedded::embedded_text;
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
        &[$(Page { name: $name, about: $about, text: embedded_text!(concat!("../../docs/", $name, ".md")) }),*]
    };
}

/// The chapters for users.
pub const CHAPTERS: &[Page] = chapters! {
    "quickstart" "the first session, step by step"
    "usage" "prompts, steering, sessions, single questions"
    "questions" "short answers to common questions"
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

/// The page with the proof of what the others claim. Searches leave it out: its rows mention
/// everything.
pub(super) const EVIDENCE: Page = Page {
    name: "evidence",
    about: "every claim, with the command that proves it and its results",
    text: embedded_text!("../../docs/evidence.md"),
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
    let mut pages = CHAPTERS.iter().chain([&EVIDENCE]);
    let found = pages.find(|page| page.name == bare || page.title().to_lowercase() == bare);
    found.ok_or_else(|| {
        let names: Vec<&str> = CHAPTERS.iter().chain([&EVIDENCE]).map(|page| page.name).collect();
        let tip = nearest(&bare, &names).map_or_else(String::new, |name| format!("did you mean {name}? "));
        anyhow::Error::from(UsageError(format!("there is no page \"{name}\"; {tip}pi docs lists the pages")))
    })
}

fn list() -> String {
    let width = CHAPTERS.iter().map(|page| page.name.len()).max().unwrap_or_default();
    let mut text: String = CHAPTERS
        .iter()
        .chain([&EVIDENCE])
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
        for chapter in CHAPTERS.iter().chain([&EVIDENCE]) {
            assert!(chapter.text.starts_with("# "), "{}", chapter.name);
            for name in [chapter.name, &format!("docs/{}.md", chapter.name), chapter.title()] {
                assert_eq!(page(name).unwrap().name, chapter.name);
            }
        }
        let error = page("setings").unwrap_err().to_string();
        assert_eq!(error, "there is no page \"setings\"; did you mean settings? pi docs lists the pages");
    }

    /// A question, the page with its answer, and the beginning of the heading there.
    const ASKED: &[(&str, &str, &str)] = &[
        ("how do I set my API key", "questions", "How do I set my API key?"),
        ("how do I save my api key", "questions", "How do I set my API key?"),
        ("where are my sessions stored", "questions", "Where are my session files"),
        ("where do sessions live", "questions", "Where are my session files"),
        ("where are session files?", "sessions", "Session files"),
        ("how are sessions saved?", "questions", "Where are my session files"),
        ("how do I resume a session", "questions", "How do I resume"),
        ("how can I continue yesterday's session", "questions", "How do I resume"),
        ("how do I add Ollama", "questions", "How do I add Ollama"),
        ("use a proxy", "questions", "How do I use a proxy?"),
        ("does pi work behind a proxy?", "questions", "How do I use a proxy?"),
        ("how do I quit", "questions", "How do I quit"),
        ("how do I exit pi", "questions", "How do I quit"),
        ("telemetry", "questions", "Does pi send telemetry?"),
        ("does pi support MCP", "questions", "Does pi support MCP"),
        ("is there an MCP server support", "questions", "Does pi support MCP"),
        ("what does exit code 3 mean", "questions", "What does the exit code mean"),
        ("which exit codes are there", "questions", "What does the exit code mean"),
        ("what is a skill and where do I put it", "questions", "What is a skill"),
        ("where do skills go", "skills", "Where skills are"),
        ("template with arguments", "questions", "How do I write a prompt template"),
        ("what are prompt templates?", "templates", "Prompt templates"),
        ("pin a message", "questions", "How do I pin a message?"),
        ("how do I pin something", "questions", "How do I pin a message?"),
        ("embed pi in Rust", "questions", "How do I embed pi"),
        ("how do I use pi as a library", "library", "Library"),
        ("undo an edit", "questions", "How do I undo an edit"),
        ("how do I undo a change", "questions", "How do I undo an edit"),
        ("what is AGENTS.md for", "questions", "What is AGENTS.md for?"),
        ("How do I change the theme?", "questions", "How do I change the theme"),
        ("how do I change the model", "questions", "How do I change the model"),
        ("how do I rebind a key", "questions", "How do I change or rebind a key?"),
        ("limit the cost", "questions", "How do I limit the cost?"),
        ("how much does a session cost", "questions", "How much does a session cost"),
        ("how do I stop the agent", "questions", "How do I stop"),
        ("how can I steer the agent", "usage", "Steering"),
        ("what does compaction do", "questions", "What does compaction do"),
        ("what is a handoff", "compaction", "Handoff"),
        ("does pi ask before it runs commands", "questions", "Does pi ask before"),
        ("use pi in Zed", "acp", "Zed"),
        ("how do I use pi in a script", "questions", "How do I use pi in a script"),
        ("how do I export a session", "questions", "How do I export"),
        ("how do I attach an image", "questions", "How do I attach"),
        ("how do I insert a line break", "questions", "How do I type or insert a line break?"),
        ("can I use my ChatGPT subscription", "questions", "How do I sign in"),
        ("does pi run on Windows?", "questions", "Does pi run on Windows"),
        ("how do I go back to an earlier message", "questions", "How do I go back"),
        (
            "what happens when the context is full",
            "questions",
            "What happens when the context window is full?",
        ),
        ("where is the settings file", "questions", "Where is the settings file"),
        ("github actions", "ci", "GitHub Actions"),
        ("is my key safe", "questions", "Are my keys"),
        ("how do I scroll up", "fullscreen", "Scrolling"),
        ("what is rpc mode", "rpc", "RPC mode"),
    ];

    #[test]
    fn questions_of_users_find_their_answer() {
        for (question, page, heading) in ASKED {
            let found = manual::answer(CHAPTERS, question);
            let found = found.map(|section| (section.page.name, section.heading)).unwrap_or_default();
            assert!(found.0 == *page && found.1.starts_with(heading), "{question}: {found:?}");
        }
    }

    #[test]
    fn questions_about_something_else_have_no_answer() {
        for question in [
            "how much does a llama weigh?",
            "what is the capital of France",
            "why is the sky blue",
            "who won the world cup",
            "how do I write a for loop in python",
            "how old is the universe",
            "why does the test fail",
            "where is the bug",
            "how does the parser work",
        ] {
            let found = manual::answer(CHAPTERS, question).map(|section| section.heading);
            assert_eq!(found, None, "{question}");
        }
    }
}
