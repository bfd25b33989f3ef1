//! The composer with pi's rules: the meaning of Enter, the label in the border.

use std::sync::Arc;

use ratatui::style::Style;

use crate::agent::SteeringDelivery;
use crate::session::{
    Entry, EntryBody, Phase, PromptDraft, SessionMessage, SessionState, SkillBlock, TakenQueue, is_urgent,
};
use crate::tui::composer::{Composer, ComposerRows, ComposerView};
use crate::tui::theme::{Theme, Token};

use crate::ai::{Image, Message, ThinkingLevel};

use super::super::slash::command_name;

/// The editor at the bottom of the screen.
pub(super) struct PromptEditor {
    pub(super) composer: Composer,
    /// Images sent with the text.
    images: Vec<Image>,
    /// The highest ticket of messages that were taken back into the editor.
    ticket: u64,
}

/// The kind of a submitted text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Submission {
    /// A slash command of the table, with its arguments.
    Command(String),
    /// `!command`, or `!!command` which the model does not see.
    Bash {
        command: String,
        exclude_from_context: bool,
    },
    /// An unknown slash command, without the slash.
    Unknown(String),
    Prompt(PromptDraft),
    Nothing,
}

impl PromptEditor {
    pub(super) fn new() -> Self {
        Self { composer: Composer::new(), images: Vec::new(), ticket: 0 }
    }

    /// Whether a `!` command is being typed.
    pub(super) fn is_bash(&self) -> bool {
        self.composer.text().starts_with('!')
    }

    /// Removes the text from the editor and classifies it. `look_up` knows what a word after
    /// a slash names.
    pub(super) fn take(&mut self, look_up: impl Fn(&str) -> SlashName) -> Submission {
        let text = self.composer.expanded_text();
        let trimmed = text.trim();
        if trimmed.is_empty() && self.images.is_empty() {
            return Submission::Nothing;
        }
        let mut submission = classify(trimmed, look_up);
        if matches!(submission, Submission::Nothing) {
            return submission;
        }
        self.composer.take();
        if !trimmed.is_empty() && !may_hold_key(&submission) {
            self.composer.add_to_history(trimmed);
        }
        if let Submission::Prompt(prompt) = &mut submission {
            prompt.images = std::mem::take(&mut self.images);
        }
        submission
    }

    /// Whether nothing is in the editor.
    pub(super) fn is_blank(&self) -> bool {
        self.composer.is_empty() && self.images.is_empty()
    }

    /// Puts a message that was taken back into the editor. A draft stays there instead, and
    /// the message goes to the history; returns false then.
    pub(super) fn take_back(&mut self, prompt: PromptDraft) -> bool {
        if self.is_blank() {
            self.prepend(vec![prompt]);
            return true;
        }
        self.composer.add_to_history(prompt.text.trim());
        false
    }

    /// Empties the editor.
    pub(super) fn clear(&mut self) {
        self.composer.take();
        self.images.clear();
    }

    /// The contents of the editor, for the session to store, and the ticket of the messages
    /// it contains.
    pub(super) fn draft(&self) -> (PromptDraft, u64) {
        let draft = PromptDraft { text: self.composer.expanded_text(), images: self.images.clone() };
        (draft, self.ticket)
    }

    /// Sets the history to the user's prompts and commands among `entries`, replacing that of
    /// an earlier session.
    pub(super) fn set_history(&mut self, entries: &[Arc<Entry>]) {
        self.composer.clear_history();
        for entry in entries {
            let EntryBody::Message { message, .. } = &entry.body else { continue };
            match message {
                SessionMessage::Model(message) => {
                    if let Message::User(user) = &**message {
                        let text = user.content.text();
                        let typed = SkillBlock::parse(&text).map(|block| block.command());
                        self.composer.add_to_history(typed.as_deref().unwrap_or(text.trim()));
                    }
                }
                SessionMessage::BashExecution(execution) => {
                    let mark = if execution.exclude_from_context == Some(true) { "!!" } else { "!" };
                    self.composer.add_to_history(&format!("{mark}{}", execution.command));
                }
                SessionMessage::Unknown(_) => {}
            }
        }
    }

    /// Inserts queued messages before the editor's contents.
    pub(super) fn restore(&mut self, mut taken: TakenQueue) {
        self.ticket = self.ticket.max(taken.ticket);
        // The session was reopened while its draft was in the editor.
        let current = self.composer.expanded_text();
        taken
            .draft
            .take_if(|draft| current.contains(draft.text.trim()) && draft.images.len() <= self.images.len());
        self.prepend(taken.into_prompts());
    }

    /// Inserts prompts before the editor's contents.
    pub(super) fn prepend(&mut self, prompts: Vec<PromptDraft>) {
        if prompts.is_empty() {
            return;
        }
        let mut parts = Vec::new();
        let mut images = Vec::new();
        for prompt in prompts {
            parts.push(prompt.text);
            images.extend(prompt.images);
        }
        parts.push(self.composer.expanded_text());
        parts.retain(|part| !part.trim().is_empty());
        self.composer.set_text(&parts.join("\n\n"));
        images.append(&mut self.images);
        self.images = images;
    }

    pub(super) fn render(
        &mut self,
        width: u16,
        max_rows: u16,
        theme: &Theme,
        session: &SessionState,
    ) -> ComposerRows {
        let images = match self.images.len() {
            0 => String::new(),
            1 => "1 image attached".to_owned(),
            n => format!("{n} images attached"),
        };
        let label = match self.label(session) {
            "" => images,
            label if images.is_empty() => label.to_owned(),
            label => format!("{images} · {label}"),
        };
        let border = if self.is_bash() {
            theme.style(Token::BashMode)
        } else {
            thinking_style(theme, session.thinking)
        };
        let view =
            ComposerView { width, max_rows, padding: 0, theme, border, label: &label, placeholder: "" };
        self.composer.render(&view)
    }

    /// The effect of Enter, unless it just sends.
    fn label(&self, session: &SessionState) -> &'static str {
        let text = self.composer.text();
        if self.composer.is_jumping() {
            return "type a character to jump to it";
        }
        if text.starts_with("!!") {
            return "enter: run, hidden from the model";
        }
        if text.starts_with('!') {
            return "enter: run and show the model";
        }
        if session.phase == Phase::Idle {
            return "";
        }
        if text.trim().is_empty() {
            return if session.queue.is_empty() { "" } else { "enter: deliver queued messages now" };
        }
        if is_urgent(&text, &session.urgent_words) {
            return "enter: interrupt with this";
        }
        match session.steering_delivery {
            SteeringDelivery::Tools => "enter: steer at the next tool · alt+enter: when done",
            SteeringDelivery::Turn => "enter: steer after this turn · alt+enter: when done",
            SteeringDelivery::Now => "enter: interrupt with this · alt+enter: when done",
        }
    }
}

/// Whether the user may have typed a key after `/login PROVIDER`, where it does
/// not belong.
fn may_hold_key(submission: &Submission) -> bool {
    let Submission::Command(line) = submission else { return false };
    let mut words = line.split_whitespace();
    matches!(words.next(), Some("login" | "logout")) && words.nth(1).is_some()
}

/// What a word after a slash names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlashName {
    Command,
    /// The session replaces the call by the template's text.
    Template,
    Unknown,
}

fn classify(trimmed: &str, look_up: impl Fn(&str) -> SlashName) -> Submission {
    if let Some(rest) = trimmed.strip_prefix('!') {
        let (command, exclude_from_context) = match rest.strip_prefix('!') {
            Some(hidden) => (hidden, true),
            None => (rest, false),
        };
        let command = command.trim();
        if command.is_empty() {
            return Submission::Nothing;
        }
        return Submission::Bash { command: command.to_owned(), exclude_from_context };
    }
    if let Some(line) = trimmed.strip_prefix('/') {
        let name = line.split_whitespace().next().unwrap_or_default();
        let is_one_line = !line.contains('\n');
        match look_up(name) {
            SlashName::Command if is_one_line => return Submission::Command(line.to_owned()),
            SlashName::Unknown if line.is_empty() || command_name(trimmed).is_some() => {
                return Submission::Unknown(line.to_owned());
            }
            SlashName::Command | SlashName::Template | SlashName::Unknown => {}
        }
    }
    Submission::Prompt(trimmed.into())
}

/// The colour of a thinking level.
fn thinking_style(theme: &Theme, level: ThinkingLevel) -> Style {
    theme.style(match level {
        ThinkingLevel::Off => Token::ThinkingOff,
        ThinkingLevel::Minimal => Token::ThinkingMinimal,
        ThinkingLevel::Low => Token::ThinkingLow,
        ThinkingLevel::Medium => Token::ThinkingMedium,
        ThinkingLevel::High => Token::ThinkingHigh,
        ThinkingLevel::Xhigh => Token::ThinkingXhigh,
        ThinkingLevel::Max => Token::ThinkingMax,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_of_a_session_opened_again_is_not_doubled() {
        let mut prompt = PromptEditor::new();
        prompt.composer.set_text("half a thought, and more");
        let taken = |text: &str| TakenQueue { draft: Some(text.into()), ..TakenQueue::default() };
        prompt.restore(taken("half a thought"));
        assert_eq!(prompt.draft().0.text, "half a thought, and more");
        prompt.restore(taken("another"));
        assert_eq!(prompt.draft().0.text, "another\n\nhalf a thought, and more");
    }

    #[test]
    fn message_taken_back_does_not_replace_a_draft() {
        let mut prompt = PromptEditor::new();
        assert!(prompt.take_back("first".into()));
        assert_eq!(prompt.draft().0.text, "first");
        assert!(!prompt.take_back("second".into()));
        assert_eq!(prompt.draft().0.text, "first");
    }

    #[test]
    fn a_key_behind_login_is_not_remembered() {
        let check = |line: &str, expected: bool| {
            assert_eq!(may_hold_key(&Submission::Command(line.to_owned())), expected, "{line}");
        };
        check("login openai sk-canary", true);
        check("login openai", false);
        check("model openai/gpt a", false);
    }

    #[test]
    fn what_is_typed_decides_what_it_is() {
        let check = |text: &str, expected: Submission| {
            let look_up = |name: &str| match name {
                "model" => SlashName::Command,
                "review" => SlashName::Template,
                _ => SlashName::Unknown,
            };
            assert_eq!(classify(text, look_up), expected, "{text}");
        };
        check("hello", Submission::Prompt("hello".into()));
        check("/model opus", Submission::Command("model opus".to_owned()));
        check("/etc/hosts is odd", Submission::Prompt("/etc/hosts is odd".into()));
        check("/review it", Submission::Prompt("/review it".into()));
        check("/modle opus", Submission::Unknown("modle opus".to_owned()));
        check("/", Submission::Unknown(String::new()));
        check("/tmp/x", Submission::Prompt("/tmp/x".into()));
        check("/model\nis a word", Submission::Prompt("/model\nis a word".into()));
        let bash = |command: &str, hidden| Submission::Bash {
            command: command.to_owned(),
            exclude_from_context: hidden,
        };
        check("!ls -l", bash("ls -l", false));
        check("!! pwd", bash("pwd", true));
        check("!", Submission::Nothing);
    }
}
