//! Lists whose items are chosen by their numbers.

use std::path::PathBuf;

use crate::config::Row as Setting;
use crate::session::{IfBusy, PromptDraft, Question, QuestionId, Secrets, SessionCommand, WhenBusy};
use crate::util::visible::spell_out;

use super::super::export::{ABOUT_SHARING, FileExport};
use super::narrator::on_one_line;
use super::settings::typed_change;

/// Items that are read out; a part of a name narrows a longer list.
const MAX_SHOWN: usize = 20;

/// A list that waits for a number.
#[derive(Debug)]
pub(super) struct Menu {
    title: String,
    items: Vec<MenuItem>,
    /// Without a default, an empty line cancels.
    default: Option<usize>,
    question: Option<QuestionId>,
    /// A setting whose value is typed.
    typed: Option<&'static Setting>,
}

#[derive(Debug, Clone)]
pub(super) struct MenuItem {
    label: String,
    /// Read after the label; searched if no label matches.
    detail: String,
    /// Whether it is in force.
    is_current: bool,
    outcome: Outcome,
}

/// What an item does.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Command(SessionCommand),
    /// Everything stays as it is.
    Nothing,
    /// Asks for the value of a setting.
    Setting(&'static Setting),
    Export(FileExport),
    /// Uploads the session.
    Share(Secrets),
}

impl MenuItem {
    pub(super) fn new(label: impl Into<String>, outcome: Outcome) -> Self {
        Self { label: label.into(), detail: String::new(), is_current: false, outcome }
    }

    pub(super) fn command(label: impl Into<String>, command: SessionCommand) -> Self {
        Self::new(label, Outcome::Command(command))
    }

    pub(super) fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    pub(super) fn current(self, is_current: bool) -> Self {
        Self { is_current, ..self }
    }
}

/// What a line chose.
#[derive(Debug)]
pub(super) enum Choice {
    Outcome(Box<Outcome>),
    Cancelled,
    /// Several items: the list of those.
    Narrowed(Menu),
    /// No item: the list as it was, and why.
    Nothing(Menu, String),
}

impl Menu {
    pub(super) fn new(title: impl Into<String>, items: Vec<MenuItem>) -> Self {
        Self { title: title.into(), items, default: None, question: None, typed: None }
    }

    /// A question of pi itself, whose first answer is that of an empty line.
    pub(super) fn asking(title: impl Into<String>, items: Vec<MenuItem>) -> Self {
        Self { default: Some(0), ..Self::new(title, items) }
    }

    /// Asks for the value of a setting.
    pub(super) fn of_value(title: impl Into<String>, setting: &'static Setting) -> Self {
        Self { typed: Some(setting), ..Self::new(title, Vec::new()) }
    }

    /// Asks before `command` cancels what runs.
    pub(super) fn cancel_work(mut command: SessionCommand) -> Self {
        if let Some(if_busy) = command.if_busy_mut() {
            *if_busy = IfBusy::Cancel;
        }
        let proceed = match &command {
            SessionCommand::New { .. } => "Cancel the work and start a new session",
            _ => "Cancel the work and continue there",
        };
        Self::asking(
            "The agent or a command is still working, and this cancels it. Finished work is kept, and queued \
             messages are read out to you.",
            vec![MenuItem::new("Keep working", Outcome::Nothing), MenuItem::command(proceed, command)],
        )
    }

    /// Asks before the session in a file takes the place of this one.
    pub(super) fn import(path: PathBuf) -> Self {
        let import = SessionCommand::Import { path, if_busy: IfBusy::Refuse };
        Self::asking(
            "pi copies the file to your sessions and continues with the copy. This session is kept.",
            vec![
                MenuItem::new("Stay in this session", Outcome::Nothing),
                MenuItem::command("Import and continue there", import),
            ],
        )
    }

    /// Offers the prompt that was drafted for a new session.
    pub(super) fn drafted(prompt: &PromptDraft) -> Self {
        let send = SessionCommand::Prompt { prompt: prompt.clone(), when_busy: WhenBusy::Steer };
        let text = spell_out(&prompt.text, Some(" ")).0;
        Self::new(
            format!("This is a new session, and its first prompt is drafted:\n{text}"),
            vec![
                MenuItem::command("Send it", send),
                MenuItem::new("Leave it, to type another one", Outcome::Nothing),
            ],
        )
    }

    /// Asks what becomes of secrets, which `found` names, in a file.
    pub(super) fn secrets(found: &[String], export: &FileExport) -> Self {
        let about = "Parts of the session look like secrets. Everybody who gets the file can read them.";
        let with = |secrets| Outcome::Export(FileExport { secrets: Some(secrets), ..export.clone() });
        Self::asking(
            [about].into_iter().chain(found.iter().map(String::as_str)).collect::<Vec<_>>().join("\n"),
            vec![
                MenuItem::new("Don't export", Outcome::Nothing),
                MenuItem::new("Mask them and export", with(Secrets::Mask)),
                MenuItem::new("Export with the secrets", with(Secrets::Keep)),
            ],
        )
    }

    /// Asks before the session, with secrets that `found` names, is uploaded.
    pub(super) fn share(found: &[String]) -> Self {
        let mut lines = vec![ABOUT_SHARING];
        let items: &[_] = if found.is_empty() {
            &[("Share it", Secrets::Keep)]
        } else {
            lines.push("Parts of it look like secrets:");
            &[("Mask the secrets and share it", Secrets::Mask), ("Share it with the secrets", Secrets::Keep)]
        };
        lines.extend(found.iter().map(String::as_str));
        let items = items.iter().map(|(label, secrets)| MenuItem::new(*label, Outcome::Share(*secrets)));
        let leave = MenuItem::new("Don't share", Outcome::Nothing);
        Self::asking(lines.join("\n"), [leave].into_iter().chain(items).collect())
    }

    pub(super) fn of_question(question: &Question) -> Self {
        let answer = |(option, label): (usize, &String)| {
            MenuItem::command(on_one_line(label), SessionCommand::Answer { id: question.id, option })
        };
        Self {
            title: format!("Blocked, pi asks: {}", spell_out(&question.text, Some(" ")).0),
            items: question.options.iter().enumerate().map(answer).collect(),
            default: Some(question.default),
            question: Some(question.id),
            typed: None,
        }
    }

    /// Whether it has the answers to a question of the session.
    pub(super) fn is_question(&self) -> bool {
        self.question.is_some()
    }

    /// Whether it is the list of this question.
    pub(super) fn asks(&self, id: QuestionId) -> bool {
        self.question == Some(id)
    }

    /// The list, a line per item.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.title.clone()];
        let numbered = || (1..).zip(&self.items);
        let marked = |(number, item): (usize, &MenuItem)| {
            let mark = if item.is_current { ", the current one" } else { "" };
            let detail = if item.detail.is_empty() { String::new() } else { format!(", {}", item.detail) };
            format!("{number}. {}{mark}{detail}", item.label)
        };
        lines.extend(numbered().take(MAX_SHOWN).map(marked));
        if self.items.len() > MAX_SHOWN {
            let current = numbered().skip(MAX_SHOWN).find(|(_, item)| item.is_current);
            let current = current.map(|item| format!(", among them {}", marked(item)));
            lines.push(format!("And {} more{}.", self.items.len() - MAX_SHOWN, current.unwrap_or_default()));
        }
        lines.push(self.instruction());
        lines
    }

    /// The same after a wrong name in the command `/{command}`, in few lines.
    pub(super) fn short_lines(&self, command: &str) -> Vec<String> {
        if self.items.len() <= MAX_SHOWN {
            return self.lines();
        }
        let count = format!("There are {}; /{command} reads the first {MAX_SHOWN}.", self.items.len());
        vec![count, self.instruction()]
    }

    /// How to choose.
    pub(super) fn instruction(&self) -> String {
        match self.default.and_then(|default| self.items.get(default)) {
            Some(item) => format!("Type a number. An empty line means: {}", item.label),
            None if self.typed.is_some() => {
                "Type the value, or the word default. An empty line cancels.".to_owned()
            }
            None => "Type a number or part of a name. An empty line cancels.".to_owned(),
        }
    }

    /// What a line chooses: a number, an item whose label it is, or part of several labels.
    pub(super) fn choose(mut self, text: &str) -> Choice {
        let text = text.trim();
        if text.is_empty() {
            return match self.default.and_then(|default| self.items.get(default)) {
                Some(item) => Choice::Outcome(Box::new(item.outcome.clone())),
                None => Choice::Cancelled,
            };
        }
        if let Some(setting) = self.typed {
            return match typed_change(setting, text) {
                Ok(command) => Choice::Outcome(Box::new(Outcome::Command(command))),
                Err(why) => Choice::Nothing(self, format!("Error: {why}.")),
            };
        }
        if let Ok(number) = text.parse::<usize>() {
            return match number.checked_sub(1).and_then(|index| self.items.get(index)) {
                Some(item) => Choice::Outcome(Box::new(item.outcome.clone())),
                None => {
                    let why = format!("There is no number {number}; type 1 to {}.", self.items.len());
                    Choice::Nothing(self, why)
                }
            };
        }
        let mut matching = self.matching(&text.to_lowercase());
        match matching.as_slice() {
            [] => {
                let why = format!("Nothing is called “{}”.", on_one_line(text));
                Choice::Nothing(self, why)
            }
            [_] => matching.pop().map_or(Choice::Cancelled, |only| Choice::Outcome(Box::new(only.outcome))),
            // Numbers of a question must not change.
            _ if self.default.is_some() => Choice::Nothing(self, "Several answers match.".to_owned()),
            _ => {
                self.items = matching;
                Choice::Narrowed(self)
            }
        }
    }

    /// The item of this name, or those that a part of one means.
    fn matching(&self, wanted: &str) -> Vec<MenuItem> {
        let find = |matches: &dyn Fn(&MenuItem) -> bool| -> Vec<MenuItem> {
            self.items.iter().filter(|item| matches(item)).cloned().collect()
        };
        let mut exact = find(&|item| item.label.to_lowercase() == wanted);
        exact.truncate(1);
        let mut found =
            if exact.is_empty() { find(&|item| item.label.to_lowercase().contains(wanted)) } else { exact };
        if found.is_empty() {
            found = find(&|item| item.detail.to_lowercase().contains(wanted));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(labels: &[&str]) -> Menu {
        let item = |label: &&str| {
            let command = SessionCommand::SetName { name: (*label).to_owned() };
            MenuItem::command(*label, command).current(*label == "sonnet")
        };
        Menu::new("Which one?", labels.iter().map(item).collect())
    }

    /// The command that a line chooses; `None` if everything stays as it is.
    #[track_caller]
    fn chosen(menu: Menu, text: &str) -> Option<SessionCommand> {
        let Choice::Outcome(outcome) = menu.choose(text) else { panic!("{text:?} chooses nothing") };
        match *outcome {
            Outcome::Command(command) => Some(command),
            Outcome::Nothing => None,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let chosen = match menu(&["opus", "sonnet", "so-fast"]).choose(text) {
            Choice::Outcome(outcome) => match *outcome {
                Outcome::Command(SessionCommand::SetName { name }) => name,
                other => format!("{other:?}"),
            },
            Choice::Cancelled => "cancelled".to_owned(),
            Choice::Narrowed(menu) => menu.lines().join("\n"),
            Choice::Nothing(_, why) => why,
        };
        assert_eq!(chosen, expected, "{text:?}");
    }

    #[test]
    fn number_or_name_chooses_and_part_of_a_name_narrows() {
        check("2", "sonnet");
        check(" OPUS ", "opus");
        check(
            "so",
            "Which one?\n1. sonnet, the current one\n2. so-fast\nType a number or part of a name. An empty line cancels.",
        );
        check("4", "There is no number 4; type 1 to 3.");
        check("0", "There is no number 0; type 1 to 3.");
        check("x", "Nothing is called “x”.");
        check("", "cancelled");
    }

    #[test]
    fn a_whole_name_is_chosen_although_it_is_part_of_another() {
        let expected = SessionCommand::SetName { name: "high".to_owned() };
        assert_eq!(chosen(menu(&["xhigh", "high"]), "High"), Some(expected));
    }

    #[test]
    fn long_lists_are_not_read_after_a_wrong_name() {
        let instruction = "Type a number or part of a name. An empty line cancels.";
        let short = ["Which one?", "1. a", "2. b", instruction];
        assert_eq!(menu(&["a", "b"]).short_lines("model"), short);
        let long = ["There are 21; /model reads the first 20.", instruction];
        assert_eq!(menu(&["a"; 21]).short_lines("model"), long);
    }

    #[test]
    fn a_list_tells_which_item_is_current_wherever_it_is() {
        let labels: Vec<&str> = std::iter::repeat_n("a", 22).chain(["sonnet", "b"]).collect();
        let lines = menu(&labels).lines();
        assert_eq!(lines[21], "And 4 more, among them 23. sonnet, the current one.");
        assert_eq!(menu(&["sonnet", "a"]).lines()[1..3], ["1. sonnet, the current one", "2. a"]);
    }

    #[test]
    fn a_detail_is_read_and_finds_an_item_that_no_label_names() {
        let item = |label: &str, detail: &str| MenuItem::new(label, Outcome::Nothing).detail(detail);
        let menu = || Menu::new("Which one?", vec![item("a", "of b"), item("b", "of a"), item("c", "rare")]);
        assert_eq!(menu().lines()[1], "1. a, of b");
        assert!(matches!(menu().choose("b"), Choice::Outcome(_)));
        assert!(matches!(menu().choose("rare"), Choice::Outcome(_)));
        assert!(matches!(menu().choose("of"), Choice::Narrowed(_)));
    }

    #[test]
    fn an_empty_line_keeps_the_agent_working() {
        let menu = || Menu::cancel_work(SessionCommand::New { if_busy: IfBusy::Refuse });
        assert_eq!(
            menu().lines()[1..],
            [
                "1. Keep working",
                "2. Cancel the work and start a new session",
                "Type a number. An empty line means: Keep working"
            ]
        );
        assert_eq!(chosen(menu(), ""), None);
        assert_eq!(chosen(menu(), "2"), Some(SessionCommand::New { if_busy: IfBusy::Cancel }));
    }

    #[test]
    fn question_shows_what_cannot_be_seen() {
        let question = Question {
            id: QuestionId::new(3),
            kind: crate::session::QuestionKind::Trust,
            text: "Trust /a\u{202e}b?\nReally?\u{7}".to_owned(),
            options: vec!["Yes,\u{200b}\nit is".to_owned()],
            default: 0,
        };
        let lines = Menu::of_question(&question).lines();
        assert_eq!(lines[0], "Blocked, pi asks: Trust /a<U+202E>b?\nReally?<U+0007>");
        assert_eq!(lines[1], "1. Yes,<U+200B> it is");
    }

    #[test]
    fn empty_line_gives_the_default_answer_of_a_question() {
        let question = Question {
            id: QuestionId::new(3),
            kind: crate::session::QuestionKind::Trust,
            text: "Trust this?".to_owned(),
            options: vec!["Yes".to_owned(), "No".to_owned()],
            default: 1,
        };
        let menu = Menu::of_question(&question);
        assert!(menu.asks(QuestionId::new(3)) && !menu.asks(QuestionId::new(4)));
        assert_eq!(
            menu.lines(),
            ["Blocked, pi asks: Trust this?", "1. Yes", "2. No", "Type a number. An empty line means: No"]
        );
        let expected = SessionCommand::Answer { id: QuestionId::new(3), option: 1 };
        assert_eq!(chosen(menu, ""), Some(expected));
    }
}
