//! Lists whose items are chosen by their numbers.

use crate::session::{Question, QuestionId, SessionCommand};
use crate::util::visible::spell_out;

use super::narrator::on_one_line;

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
}

#[derive(Debug, Clone)]
pub(super) struct MenuItem {
    pub(super) label: String,
    /// Whether it is in force.
    pub(super) is_current: bool,
    pub(super) command: SessionCommand,
}

/// What a line chose.
#[derive(Debug)]
pub(super) enum Choice {
    Command(Box<SessionCommand>),
    Cancelled,
    /// Several items: the list of those.
    Narrowed(Menu),
    /// No item: the list as it was, and why.
    Nothing(Menu, String),
}

impl Menu {
    pub(super) fn new(title: impl Into<String>, items: Vec<MenuItem>) -> Self {
        Self { title: title.into(), items, default: None, question: None }
    }

    pub(super) fn of_question(question: &Question) -> Self {
        let answer = |(option, label): (usize, &String)| MenuItem {
            label: on_one_line(label),
            is_current: false,
            command: SessionCommand::Answer { id: question.id, option },
        };
        Self {
            title: format!("Blocked, pi asks: {}", spell_out(&question.text, Some(" ")).0),
            items: question.options.iter().enumerate().map(answer).collect(),
            default: Some(question.default),
            question: Some(question.id),
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
            format!("{number}. {}{mark}", item.label)
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
            None => "Type a number or part of a name. An empty line cancels.".to_owned(),
        }
    }

    /// What a line chooses: a number, an item whose label it is, or part of several labels.
    pub(super) fn choose(mut self, text: &str) -> Choice {
        let text = text.trim();
        if text.is_empty() {
            return match self.default.and_then(|default| self.items.get(default)) {
                Some(item) => Choice::Command(Box::new(item.command.clone())),
                None => Choice::Cancelled,
            };
        }
        if let Ok(number) = text.parse::<usize>() {
            return match number.checked_sub(1).and_then(|index| self.items.get(index)) {
                Some(item) => Choice::Command(Box::new(item.command.clone())),
                None => {
                    let why = format!("There is no number {number}; type 1 to {}.", self.items.len());
                    Choice::Nothing(self, why)
                }
            };
        }
        let wanted = text.to_lowercase();
        let labels = || self.items.iter().map(|item| item.label.to_lowercase()).enumerate();
        let exact = labels().find(|(_, label)| *label == wanted);
        let matching: Vec<usize> = match exact {
            Some((index, _)) => vec![index],
            None => labels().filter(|(_, label)| label.contains(&wanted)).map(|(index, _)| index).collect(),
        };
        let mut matching: Vec<MenuItem> =
            matching.iter().filter_map(|index| self.items.get(*index)).cloned().collect();
        match matching.as_slice() {
            [] => {
                let why = format!("Nothing is called “{}”.", on_one_line(text));
                Choice::Nothing(self, why)
            }
            [_] => matching.pop().map_or(Choice::Cancelled, |only| Choice::Command(Box::new(only.command))),
            // Numbers of a question must not change.
            _ if self.question.is_some() => Choice::Nothing(self, "Several answers match.".to_owned()),
            _ => {
                self.items = matching;
                Choice::Narrowed(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(labels: &[&str]) -> Menu {
        let item = |label: &&str| MenuItem {
            label: (*label).to_owned(),
            is_current: *label == "sonnet",
            command: SessionCommand::SetName { name: (*label).to_owned() },
        };
        Menu::new("Which one?", labels.iter().map(item).collect())
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let chosen = match menu(&["opus", "sonnet", "so-fast"]).choose(text) {
            Choice::Command(command) => match *command {
                SessionCommand::SetName { name } => name,
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
        let chosen = menu(&["xhigh", "high"]).choose("High");
        let Choice::Command(command) = chosen else { panic!("{chosen:?}") };
        assert_eq!(*command, SessionCommand::SetName { name: "high".to_owned() });
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
        let Choice::Command(command) = menu.choose("") else { panic!("it has a default") };
        assert_eq!(*command, SessionCommand::Answer { id: QuestionId::new(3), option: 1 });
    }
}
