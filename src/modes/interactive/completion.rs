//! Completing slash commands while they are typed.

use crate::tui::text::{Ellipsis, Row, Run, truncate, width};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::fuzzy_rank;

use super::commands::{self, Command};

/// Most rows of suggestions.
const MAX_ROWS: usize = 6;

/// Suggestions for the command being typed; none are shown when it is empty.
#[derive(Default)]
pub(super) struct Completion {
    matches: Vec<&'static Command>,
    selected: usize,
    /// The text the user closed the list for; it stays closed until that changes.
    dismissed: Option<String>,
}

impl Completion {
    /// Follows the editor's text.
    pub(super) fn update(&mut self, text: &str) {
        if self.dismissed.as_deref() == Some(text) {
            return;
        }
        self.dismissed = None;
        let typed = text.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace));
        let matches = match typed {
            None => Vec::new(),
            Some("") => commands::all().collect(),
            Some(name) => ranked(name),
        };
        if !matches.iter().map(|command| command.name).eq(self.matches.iter().map(|command| command.name)) {
            self.selected = 0;
        }
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
    }

    pub(super) fn select_previous(&mut self) {
        let n = self.matches.len().max(1);
        self.selected = (self.selected + n - 1) % n;
    }

    /// The selected command, as text for the editor; one that takes arguments is
    /// followed by a blank.
    pub(super) fn accept(&mut self) -> Option<String> {
        let command = self.matches.get(self.selected)?;
        let blank = if command.args.is_empty() { "" } else { " " };
        let text = format!("/{}{blank}", command.name);
        self.dismiss(&text);
        Some(text)
    }

    pub(super) fn rows(&self, columns: u16, theme: &Theme) -> Vec<Row> {
        let first = self.selected.saturating_sub(MAX_ROWS - 1);
        let name_width = self.matches.iter().map(|command| usage(command).len()).max().unwrap_or_default();
        let shown = self.matches.iter().enumerate().skip(first).take(MAX_ROWS);
        let mut rows: Vec<Row> = shown
            .map(|(command_idx, command)| {
                let (arrow, style) = if command_idx == self.selected {
                    ("→ ", theme.style(Token::Accent))
                } else {
                    ("  ", theme.style(Token::Text))
                };
                let name = format!("{arrow}{:<name_width$}", usage(command));
                let room = usize::from(columns).saturating_sub(width(&name) + 2);
                let help = truncate(command.help, room, Ellipsis::One).into_owned();
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

fn usage(command: &Command) -> String {
    format!("/{} {}", command.name, command.args).trim_end().to_owned()
}

/// Names that begin with what was typed, then those that contain its letters.
fn ranked(typed: &str) -> Vec<&'static Command> {
    let (mut matches, rest): (Vec<_>, Vec<_>) =
        commands::all().partition(|command| command.name.starts_with(typed));
    let names: Vec<&str> = rest.iter().map(|command| command.name).collect();
    matches.extend(
        fuzzy_rank(typed, names.iter().copied()).into_iter().filter_map(|idx| rest.get(idx).copied()),
    );
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut completion = Completion::default();
        completion.update(text);
        let names: Vec<&str> = completion.matches.iter().map(|command| command.name).collect();
        assert_eq!(&names[..expected.len().min(names.len())], expected, "{text}");
    }

    #[test]
    fn a_slash_suggests_commands_and_an_exact_name_comes_first() {
        check("/mo", &["model"]);
        check("/quit", &["quit"]);
        check("hello", &[]);
        check("/model opus", &[]);
    }

    #[test]
    fn a_dismissed_list_stays_closed_until_the_text_changes() {
        let mut completion = Completion::default();
        completion.update("/n");
        assert!(completion.is_open());
        completion.dismiss("/n");
        completion.update("/n");
        assert!(!completion.is_open());
        completion.update("/ne");
        assert!(completion.is_open());
    }

    #[test]
    fn accepting_leaves_room_for_arguments() {
        let mut completion = Completion::default();
        completion.update("/qu");
        assert_eq!(completion.accept(), Some("/quit".to_owned()));
        completion.update("/mod");
        assert_eq!(completion.accept(), Some("/model ".to_owned()));
    }
}
