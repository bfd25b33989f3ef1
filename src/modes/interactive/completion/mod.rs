//! Completion of slash commands, including those of prompt templates and skills.

use crate::session::{PromptTemplate, ResourceOrigin, Skill};
use crate::tui::text::{Ellipsis, Row, Run, sanitize_line, truncate, width};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::fuzzy_rank;

use super::commands::{self, Command};

/// Maximum number of suggestions.
const MAX_ROWS: usize = 6;

/// Maximum width of the name column, in cells.
const MAX_NAME_CELLS: usize = 40;

/// Suggestions for the command being typed; none are shown when it is empty.
#[derive(Default)]
pub(super) struct Completion {
    matches: Vec<Suggestion>,
    selected: usize,
    /// The typed part of the name.
    typed: String,
    /// Whether the user selected it with the arrow keys.
    is_chosen: bool,
    /// The text for which the user closed the list; it stays closed until the text changes.
    dismissed: Option<String>,
}

/// A name that can follow the slash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suggestion {
    name: String,
    /// The arguments; empty if there are none.
    args: String,
    help: String,
}

/// What the user's and the project's files add to the commands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Callable<'a> {
    pub(super) templates: &'a [PromptTemplate],
    pub(super) skills: &'a [Skill],
}

impl Completion {
    /// Follows the editor's text. `callable` are offered beside the commands.
    pub(super) fn update(&mut self, text: &str, callable: Callable<'_>) {
        if self.dismissed.as_deref() == Some(text) {
            return;
        }
        self.dismissed = None;
        let typed = text.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace));
        let matches = match typed {
            None => Vec::new(),
            Some(name) => ranked(name, callable),
        };
        if !matches.iter().map(|one| &one.name).eq(self.matches.iter().map(|one| &one.name)) {
            self.selected = 0;
            self.is_chosen = false;
        }
        self.typed = typed.unwrap_or_default().to_owned();
        self.matches = matches;
    }

    pub(super) fn is_open(&self) -> bool {
        !self.matches.is_empty()
    }

    pub(super) fn dismiss(&mut self, text: &str) {
        self.matches.clear();
        self.dismissed = Some(text.to_owned());
    }

    pub(super) fn select_next(&mut self) {
        self.selected = (self.selected + 1) % self.matches.len().max(1);
        self.is_chosen = true;
    }

    pub(super) fn select_previous(&mut self) {
        let n = self.matches.len().max(1);
        self.selected = (self.selected + n - 1) % n;
        self.is_chosen = true;
    }

    /// Whether the selected command ends something and was neither selected nor typed
    /// by half, so that Enter may mean something else.
    pub(super) fn is_surprising(&self) -> bool {
        self.matches.get(self.selected).is_some_and(|one| {
            let is_typed = one.name.starts_with(&self.typed) && self.typed.len() * 2 >= one.name.len();
            commands::ENDING.contains(&one.name.as_str()) && !self.is_chosen && !is_typed
        })
    }

    /// The selected command, as text for the editor; a space follows if it takes
    /// arguments.
    pub(super) fn accept(&mut self) -> Option<String> {
        let suggestion = self.matches.get(self.selected)?;
        let blank = if suggestion.args.is_empty() { "" } else { " " };
        let text = format!("/{}{blank}", suggestion.name);
        self.dismiss(&text);
        Some(text)
    }

    pub(super) fn rows(&self, columns: u16, theme: &Theme) -> Vec<Row> {
        let first = self.selected.saturating_sub(MAX_ROWS - 1);
        let usages = self.matches.iter().map(Suggestion::usage);
        let name_width = usages.map(|usage| width(&usage)).max().unwrap_or_default().min(MAX_NAME_CELLS);
        let shown = self.matches.iter().enumerate().skip(first).take(MAX_ROWS);
        let mut rows: Vec<Row> = shown
            .map(|(suggestion_idx, suggestion)| {
                let (arrow, style) = if suggestion_idx == self.selected {
                    ("→ ", theme.style(Token::Accent))
                } else {
                    ("  ", theme.style(Token::Text))
                };
                let usage = suggestion.usage();
                let gap = " ".repeat(name_width.saturating_sub(width(&usage)));
                let name = format!("{arrow}{usage}{gap}");
                let room = usize::from(columns).saturating_sub(width(&name) + 2);
                let help = truncate(&suggestion.help, room, Ellipsis::One).into_owned();
                let mut row = Row::from_runs([
                    Run::new(name, style),
                    Run::new(format!("  {help}"), theme.style(Token::Muted)),
                ]);
                row.clip(columns);
                row
            })
            .collect();
        if self.matches.len() > MAX_ROWS {
            let count = format!("  ({}/{})", self.selected + 1, self.matches.len());
            rows.push(Row::styled(count, theme.style(Token::Dim)));
        }
        rows
    }
}

impl Suggestion {
    fn command(command: &Command) -> Self {
        Self { name: command.name.to_owned(), args: command.args.to_owned(), help: command.help.to_owned() }
    }

    fn template(template: &PromptTemplate) -> Self {
        let help = format!("{} {}", tag(template.origin), sanitize_line(&template.description));
        let args = sanitize_line(&template.argument_hint).into_owned();
        Self { name: sanitize_line(&template.name).into_owned(), args, help }
    }

    fn skill(skill: &Skill) -> Self {
        let help = format!("{} {}", tag(skill.origin), sanitize_line(&skill.description));
        let name = format!("skill:{}", sanitize_line(&skill.name));
        Self { name, args: "[TEXT]".to_owned(), help }
    }

    fn usage(&self) -> String {
        format!("/{} {}", self.name, self.args).trim_end().to_owned()
    }
}

fn tag(origin: ResourceOrigin) -> &'static str {
    match origin {
        ResourceOrigin::User => "[u]",
        ResourceOrigin::Project => "[p]",
        ResourceOrigin::CommandLine => "[t]",
    }
}

/// Names that begin with the typed text, then those that contain its letters.
/// Commands come before templates and skills, so that none of these can displace one.
fn ranked(typed: &str, callable: Callable<'_>) -> Vec<Suggestion> {
    // A command hides a template of the same name.
    let templates = callable.templates.iter().filter(|template| !commands::is_command(&template.name));
    // A name that contains a space cannot be typed.
    let skills = callable.skills.iter().filter(|skill| !skill.name.contains(char::is_whitespace));
    let begins = |one: &Suggestion| {
        one.name.starts_with(typed)
            || one.name.strip_prefix("skill:").is_some_and(|name| name.starts_with(typed))
    };
    let files = templates.map(Suggestion::template).chain(skills.map(Suggestion::skill));
    let all = commands::all().map(Suggestion::command).chain(files);
    let (mut matches, rest): (Vec<_>, Vec<_>) = all.partition(begins);
    let best = fuzzy_rank(typed, rest.iter().map(|one| one.name.as_str()));
    matches.extend(best.into_iter().filter_map(|idx| rest.get(idx).cloned()));
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str) -> Skill {
        let description = "Does\u{1b}[2J it".to_owned();
        let path = "/s/SKILL.md".into();
        Skill { name: name.to_owned(), description, path, origin: ResourceOrigin::Project, is_listed: true }
    }

    fn of_skills(skills: &[Skill]) -> Callable<'_> {
        Callable { skills, ..Callable::default() }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut completion = Completion::default();
        completion.update(text, of_skills(&[skill("quit"), skill("model-cards"), skill("a b")]));
        let names: Vec<&str> = completion.matches.iter().map(|one| one.name.as_str()).collect();
        assert!(names.starts_with(expected) && names.is_empty() == expected.is_empty(), "{text}: {names:?}");
    }

    #[test]
    fn a_slash_suggests_commands_and_an_exact_name_comes_first() {
        check("/mo", &["model", "skill:model-cards"]);
        check("/quit", &["quit", "skill:quit"]);
        check("/skill:q", &["skill:quit"]);
        check("/cards", &["skill:model-cards"]);
        check("hello", &[]);
        check("/model opus", &[]);
    }

    #[test]
    fn nothing_that_ends_something_is_run_by_surprise() {
        let mut texts: Vec<String> = ('a'..='z').map(|c| format!("/{c}")).collect();
        texts.push("/".to_owned());
        for text in texts {
            let mut completion = Completion::default();
            completion.update(&text, Callable::default());
            let first = completion.matches.first().map(|one| one.name.clone()).unwrap_or_default();
            let ends = commands::ENDING.contains(&first.as_str());
            assert!(!ends || completion.is_surprising(), "{text} and Enter runs /{first}");
        }
        let surprises = |text: &str| {
            let mut completion = Completion::default();
            completion.update(text, Callable::default());
            completion.is_surprising()
        };
        assert!(!surprises("/") && !surprises("/ne") && !surprises("/quit") && !surprises("/mod"));
        let mut completion = Completion::default();
        completion.update("/", Callable::default());
        while completion.matches[completion.selected].name != "new" {
            completion.select_next();
        }
        assert!(!completion.is_surprising(), "it was chosen");
    }

    #[test]
    fn a_dismissed_list_stays_closed_until_the_text_changes() {
        let mut completion = Completion::default();
        completion.update("/n", Callable::default());
        assert!(completion.is_open());
        completion.dismiss("/n");
        completion.update("/n", Callable::default());
        assert!(!completion.is_open());
        completion.update("/ne", Callable::default());
        assert!(completion.is_open());
    }

    #[test]
    fn accepting_leaves_room_for_arguments() {
        let mut completion = Completion::default();
        completion.update("/qui", Callable::default());
        assert_eq!(completion.accept(), Some("/quit".to_owned()));
        completion.update("/mod", Callable::default());
        assert_eq!(completion.accept(), Some("/model ".to_owned()));
        let mut completion = Completion::default();
        completion.update("/skill:mo", of_skills(&[skill("model-cards")]));
        assert_eq!(completion.accept(), Some("/skill:model-cards ".to_owned()));
    }

    #[test]
    fn skills_are_told_apart() {
        let theme =
            Theme::builtin("dark", crate::tui::theme::Appearance::Dark, crate::tui::theme::ColorDepth::True);
        let mut completion = Completion::default();
        completion.update("/skill:", of_skills(&[skill("pdf")]));
        let rows: Vec<String> = completion.rows(60, &theme.unwrap()).iter().map(Row::text).collect();
        assert_eq!(
            rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>(),
            ["→ /skill:pdf [TEXT]  [p] Does it"]
        );
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
        let templates = [template("model", ""), template("modest", ""), template("review", "<file> [focus]")];
        let callable = Callable { templates: &templates, ..Callable::default() };
        let theme =
            Theme::builtin("dark", crate::tui::theme::Appearance::Dark, crate::tui::theme::ColorDepth::True);
        let mut completion = Completion::default();
        completion.update("/rev", callable);
        let rows: Vec<String> = completion.rows(60, &theme.unwrap()).iter().map(Row::text).collect();
        assert_eq!(rows[0].trim_end(), "→ /review <file> [focus]  [u] Reviews it");
        assert_eq!(completion.accept(), Some("/review ".to_owned()));
        completion.update("/mod", callable);
        let names: Vec<&str> = completion.matches.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "model").count(), 1);
        assert!(names.starts_with(&["model", "modest"]), "{names:?}");
    }
}
