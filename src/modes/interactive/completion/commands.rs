//! Suggestions of slash commands, including those of prompt templates and skills.

use crate::session::{PromptTemplate, ResourceOrigin, Skill};
use crate::tui::text::sanitize_line;
use crate::tui::widgets::fuzzy_rank;

use super::super::commands::{self, Command};
use super::arguments::argument_of;
use super::{Insertion, Suggestion};

/// A name that can follow the slash.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    suggestion: Suggestion,
}

/// What the user's and the project's files add to the commands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Callable<'a> {
    pub(super) templates: &'a [PromptTemplate],
    pub(super) skills: &'a [Skill],
}

/// Names that begin with the typed text in either case, then those that contain its letters.
/// Commands come before templates and skills, so that none of these can displace one.
pub(super) fn suggest(typed: &str, callable: Callable<'_>) -> Vec<Suggestion> {
    // A command hides a template of the same name.
    let templates = callable.templates.iter().filter(|template| !commands::is_command(&template.name));
    // A name that contains a space cannot be typed.
    let skills = callable.skills.iter().filter(|skill| !skill.name.contains(char::is_whitespace));
    let lower = typed.to_lowercase();
    let begins = |one: &Named| {
        let name = one.name.to_lowercase();
        name.starts_with(&lower) || name.strip_prefix("skill:").is_some_and(|name| name.starts_with(&lower))
    };
    let files = templates.map(of_template).chain(skills.map(of_skill));
    let all = commands::all().map(of_command).chain(files);
    let (mut matches, rest): (Vec<_>, Vec<_>) = all.partition(begins);
    let best = fuzzy_rank(typed, rest.iter().map(|one| one.name.as_str()));
    matches.extend(best.into_iter().filter_map(|idx| rest.get(idx).cloned()));
    matches.into_iter().map(|one| one.suggestion).collect()
}

/// Whether Enter would run a command that ends something although hardly any of its name was
/// typed.
pub(super) fn is_surprising(suggestion: &Suggestion, typed: &str) -> bool {
    let name = suggestion.insertion.text.trim_start_matches('/').trim_end();
    let is_typed = name.starts_with(typed) && typed.len() * 2 >= name.len();
    commands::ENDING.contains(&name) && !is_typed
}

fn of_command(command: &Command) -> Named {
    named(command.name.to_owned(), command.args, command.help.to_owned())
}

fn of_template(template: &PromptTemplate) -> Named {
    let help = format!("{} {}", tag(template.origin), sanitize_line(&template.description));
    let args = sanitize_line(&template.argument_hint);
    named(sanitize_line(&template.name).into_owned(), &args, help)
}

fn of_skill(skill: &Skill) -> Named {
    let help = format!("{} {}", tag(skill.origin), sanitize_line(&skill.description));
    named(format!("skill:{}", sanitize_line(&skill.name)), "[TEXT]", help)
}

fn tag(origin: ResourceOrigin) -> &'static str {
    match origin {
        ResourceOrigin::User => "[u]",
        ResourceOrigin::Project => "[p]",
        ResourceOrigin::CommandLine => "[t]",
    }
}

/// A space follows a command that takes arguments.
fn named(name: String, args: &str, help: String) -> Named {
    let label = format!("/{name} {args}").trim_end().to_owned();
    let text = if args.is_empty() { format!("/{name}") } else { format!("/{name} ") };
    let insertion = Insertion { text, goes_on: argument_of(&name).is_some() };
    Named { name, suggestion: Suggestion { label, help, insertion } }
}
