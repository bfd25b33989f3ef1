//! The composer with pi's rules: what a submitted text is, and what goes with it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use ratatui::style::Style;

use crate::session::{
    Entry, EntryBody, Phase, PromptDraft, PromptTemplate, SessionMessage, SessionState, SkillBlock,
    TakenQueue, WhenBusy,
};
use crate::tui::composer::{Composer, ComposerRows, ComposerView, forget_undo, paste_ranges, set_text_with};
use crate::tui::theme::{Theme, Token};

use crate::agent::{QueueKind, QueueSlot};
use crate::ai::{Message, ThinkingLevel};

use super::super::slash::command_name;
use super::attachments::Attachments;
use super::commands;
use super::login::may_lead_to_key;

/// The editor at the bottom of the screen.
pub(super) struct PromptEditor {
    pub(super) composer: Composer,
    /// Images that the text names.
    pub(super) attachments: Attachments,
    /// The place of the queued message that is being edited.
    edited: Option<EditedPlace>,
    /// The tickets of messages that were taken back into the editor.
    tickets: Vec<u64>,
    /// Prompts for the arrow keys, oldest first: of earlier processes, of this one, and of the
    /// session.
    recalled: Vec<String>,
    typed: Vec<String>,
    of_session: Vec<String>,
    /// Prompts that are not yet kept for later sessions.
    unkept: Vec<String>,
}

/// Where a queued message was before it was taken into the editor.
#[derive(Debug)]
struct EditedPlace {
    kind: QueueKind,
    /// The message before it.
    after: Option<QueueSlot>,
    /// Whether the editor was cleared: what is typed then is another message, unless undo brings
    /// this one back.
    is_cleared: bool,
}

/// What Enter does with a text: [`classify`] decides it for the border and for Enter alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Submission {
    /// A slash command of the table, with its arguments.
    Command(String),
    /// `!command`, or `!!command` which the model does not see.
    Bash {
        command: String,
        exclude_from_context: bool,
    },
    /// Nothing: the text stays in the editor, and the user is told why.
    Refused(Refused),
    Prompt(PromptDraft),
    /// The call of a skill that does not exist. The session refuses it and names those that are near.
    MissingSkill(PromptDraft),
    /// Nothing was typed, and messages wait.
    DeliverQueue,
    Nothing,
}

/// Why a text is neither run nor sent. Lines are without the slash.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refused {
    Unknown {
        line: String,
    },
    /// It begins with a space.
    Space,
    TakesNoArguments {
        line: String,
    },
    /// An argument is missing or of no use.
    WrongArguments {
        line: String,
        why: String,
    },
    /// The agent works.
    Working {
        line: String,
    },
    /// Another `!` command runs.
    CommandRuns,
    /// There is nothing behind the `!`.
    NoBashCommand,
}

impl Submission {
    /// Whether it leaves the editor.
    fn is_taken(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::DeliverQueue | Self::Nothing)
    }
}

impl PromptEditor {
    pub(super) fn new() -> Self {
        Self {
            composer: Composer::new(),
            attachments: Attachments::default(),
            edited: None,
            tickets: Vec::new(),
            recalled: Vec::new(),
            typed: Vec::new(),
            of_session: Vec::new(),
            unkept: Vec::new(),
        }
    }

    /// Whether a `!` command is being typed: what [`classify`] takes for one.
    pub(super) fn is_bash(&self) -> bool {
        bash_of(self.submitted().trim_start()).is_some()
    }

    /// The text that Enter submits, as far as it decides what Enter does: of one with a large paste, the
    /// beginning, because this is read for each frame.
    pub(super) fn submitted(&self) -> String {
        const LIMIT_BYTES: usize = 16 << 10;
        self.composer.expanded_start(LIMIT_BYTES)
    }

    /// What becomes of the text; removes it from the editor unless it stays there. `is_provider` knows the names
    /// that `/login` and `/logout` know.
    pub(super) fn take(&mut self, session: &SessionState, is_provider: impl Fn(&str) -> bool) -> Submission {
        let (text, pastes) = (self.composer.expanded_text(), paste_ranges(&self.composer));
        let sent_range = sent_range(&text);
        let before = sent_range.start;
        let trimmed = &text[sent_range];
        let mut submission = classify(trimmed, session);
        if !submission.is_taken() {
            return submission;
        }
        self.composer.take();
        self.edited = None;
        if key_of(&submission, is_provider).is_none() {
            self.composer.add_to_history(trimmed);
            self.typed.push(trimmed.to_owned());
            self.of_session.push(trimmed.to_owned());
            self.unkept.push(trimmed.to_owned());
        }
        if let Submission::Prompt(prompt) | Submission::MissingSkill(prompt) = &mut submission {
            let sent = self.attachments.prompt(&prompt.text);
            let has_pastes = sent.text == trimmed;
            let pastes = if has_pastes { moved_back(pastes, before, trimmed.len()) } else { Vec::new() };
            *prompt = PromptDraft { pastes, ..sent };
        }
        // Undo brings nothing back from here on, so the numbers begin at 1 again.
        self.attachments.clear();
        submission
    }

    /// Whether nothing is in the editor.
    pub(super) fn is_blank(&self) -> bool {
        self.composer.is_empty()
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

    /// Empties the editor; undo brings the text back.
    pub(super) fn clear(&mut self) {
        self.composer.set_text("");
        if let Some(edited) = &mut self.edited {
            edited.is_cleared = true;
        }
    }

    /// Replaces the text by another one.
    pub(super) fn set_text(&mut self, text: &str) {
        self.composer.set_text(text);
        self.edited = None;
    }

    /// Called after a change of the text.
    pub(super) fn on_change(&mut self, is_undo: bool) {
        let is_empty = self.composer.is_empty();
        match &mut self.edited {
            Some(edited) if is_undo && !is_empty => edited.is_cleared = false,
            Some(edited) if edited.is_cleared && !is_empty => self.edited = None,
            Some(_) | None => {}
        }
    }

    /// When Enter delivers a prompt if the agent works: a queued message that was edited goes back to
    /// its place. The border and Enter both ask this.
    pub(super) fn when_busy(&self, session: &SessionState) -> WhenBusy {
        let edited = self.edited.as_ref().filter(|edited| !edited.is_cleared);
        let Some(EditedPlace { kind, after, .. }) = edited.filter(|_| session.phase != Phase::Idle) else {
            return WhenBusy::Steer;
        };
        let queue = match kind {
            QueueKind::Steering => &session.queue.steering,
            QueueKind::FollowUp => &session.queue.follow_up,
        };
        // Messages leave at the front, and others may have the same text. Once the message before it was
        // delivered, it is the next one.
        let before = after.as_ref().and_then(|after| {
            let up_to_there = &queue[..queue.len().min(after.index + 1)];
            up_to_there.iter().rposition(|text| *text == after.text)
        });
        WhenBusy::At { kind: *kind, index: before.map_or(0, |before| before + 1) }
    }

    /// The contents of the editor, for the session to store, and the tickets of the messages
    /// it contains or contained. What may be a key is left out; `is_provider` is as for [`Self::take`].
    pub(super) fn draft(
        &self,
        templates: &[PromptTemplate],
        is_provider: impl Fn(&str) -> bool,
    ) -> (PromptDraft, Vec<u64>) {
        let text = self.composer.expanded_text();
        let draft = self.attachments.prompt(without_key(&text, templates, is_provider));
        // The ranges are those of the text as it is.
        let pastes = if draft.text == text { paste_ranges(&self.composer) } else { Vec::new() };
        (PromptDraft { pastes, ..draft }, self.tickets.clone())
    }

    /// Forgets all tickets: a session that was opened again counts from the first one.
    pub(super) fn forget_tickets(&mut self) {
        self.tickets.clear();
    }

    /// The prompts and commands that were submitted since the last call.
    pub(super) fn take_new_history(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unkept)
    }

    /// Sets the prompts of earlier sessions, oldest first; those of this session follow.
    pub(super) fn recall(&mut self, texts: Vec<String>) {
        self.recalled = texts;
        self.fill_history();
    }

    /// Sets the history to the user's prompts and commands among `entries`, replacing that of
    /// an earlier session.
    pub(super) fn set_history(&mut self, entries: &[Arc<Entry>]) {
        self.of_session = entries.iter().filter_map(|entry| typed_text(&entry.body)).collect();
        self.fill_history();
    }

    /// Of texts that were sent several times, only the last one counts.
    fn fill_history(&mut self) {
        let mut seen = HashSet::new();
        let newest_first = self.recalled.iter().chain(&self.typed).chain(&self.of_session).rev();
        let once: Vec<&str> =
            newest_first.map(|text| text.trim()).filter(|text| seen.insert(*text)).collect();
        self.composer.set_history(once.into_iter().rev());
    }

    /// Takes queued messages into the editor, of which the first was behind `after`. Returns whether Enter puts
    /// them back there: not if something else is in the editor.
    pub(super) fn edit_queued(&mut self, taken: TakenQueue, after: Option<QueueSlot>) -> bool {
        let kind = if taken.steering.is_empty() { QueueKind::FollowUp } else { QueueKind::Steering };
        let was_blank = self.is_blank();
        self.restore(taken);
        if was_blank && !self.is_blank() {
            self.edited = Some(EditedPlace { kind, after, is_cleared: false });
        }
        self.edited.is_some()
    }

    /// Inserts queued messages before the editor's contents.
    pub(super) fn restore(&mut self, mut taken: TakenQueue) {
        self.tickets.extend(Some(taken.ticket).filter(|ticket| *ticket > 0));
        // The session was reopened while its draft was in the editor.
        let current = self.composer.expanded_text();
        let n_images = self.attachments.count(&current);
        taken.draft.take_if(|draft| current.contains(draft.text.trim()) && draft.images.len() <= n_images);
        self.prepend(taken.into_prompts());
    }

    /// Inserts prompts before the editor's contents.
    pub(super) fn prepend(&mut self, prompts: Vec<PromptDraft>) {
        if prompts.is_empty() {
            return;
        }
        self.edited = None;
        let mut joined = PromptDraft::default();
        for prompt in prompts {
            join(&mut joined, self.attachments.adopt(prompt));
        }
        join(&mut joined, self.composer.expanded_text().as_str().into());
        set_text_with(&mut self.composer, &joined.text, &joined.pastes, self.attachments.numbers());
        // They are nowhere else now, and what was in the editor is still there.
        forget_undo(&mut self.composer);
    }

    /// Replaces the text with what an editor made of it.
    pub(super) fn set_edited(&mut self, text: &str) {
        set_text_with(&mut self.composer, text, &[], self.attachments.numbers());
    }

    /// Draws the editor; its border says what `enter` will do.
    pub(super) fn render(
        &mut self,
        width: u16,
        max_rows: u16,
        theme: &Theme,
        session: &SessionState,
        enter: String,
    ) -> ComposerRows {
        let text = self.composer.text();
        let missing = match self.attachments.n_missing(&text) {
            0 => String::new(),
            1 => "1 image is not attached".to_owned(),
            n => format!("{n} images are not attached"),
        };
        let images = match self.attachments.count(&text) {
            0 => String::new(),
            n if session.settings.values.sampling.block_images => {
                format!("the setting images.blockImages is on: {n} attached, none is sent")
            }
            n if !session.model.reads_images() => {
                format!("{} does not see images: {n} attached", session.model.id)
            }
            1 => "1 image attached".to_owned(),
            n => format!("{n} images attached"),
        };
        let enter =
            if self.composer.is_jumping() { "type a character to jump to it".to_owned() } else { enter };
        // What has no room is left out from the end.
        let parts = [enter, images, missing];
        let label: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let label = label.join(" · ");
        let border = if self.is_bash() {
            theme.style(Token::BashMode)
        } else {
            thinking_style(theme, session.thinking)
        };
        let padding = session.settings.values.layout.editor_padding;
        let view = ComposerView { width, max_rows, padding, theme, border, label: &label, placeholder: "" };
        self.composer.render(&view)
    }
}

/// Adds a prompt at the end, after a blank line.
fn join(joined: &mut PromptDraft, prompt: PromptDraft) {
    if prompt.text.trim().is_empty() {
        return;
    }
    if !joined.text.is_empty() {
        joined.text.push_str("\n\n");
    }
    let start = joined.text.len();
    joined.text.push_str(&prompt.text);
    joined.pastes.extend(prompt.pastes.into_iter().map(|range| range.start + start..range.end + start));
}

/// The ranges in a text that begins `before` bytes later and has `len` bytes.
fn moved_back(ranges: Vec<Range<usize>>, before: usize, len: usize) -> Vec<Range<usize>> {
    let moved = |at: usize| at.saturating_sub(before).min(len);
    let moved = ranges.into_iter().map(|range| moved(range.start)..moved(range.end));
    moved.filter(|range| !range.is_empty()).collect()
}

/// What the user typed for this entry.
fn typed_text(body: &EntryBody) -> Option<String> {
    let EntryBody::Message { message, .. } = body else { return None };
    match message {
        SessionMessage::Model(message) => {
            let Message::User(user) = &**message else { return None };
            let text = user.content.text();
            Some(SkillBlock::parse(&text).map_or_else(|| text.trim().to_owned(), |block| block.command()))
        }
        SessionMessage::BashExecution(execution) => {
            let mark = if execution.exclude_from_context == Some(true) { "!!" } else { "!" };
            Some(format!("{mark}{}", execution.command))
        }
        SessionMessage::Unknown(_) => None,
    }
}

/// The text up to what may be a key behind `/login` or `/logout`, which may be misspelt, but not as a template
/// is called.
fn without_key<'t>(
    text: &'t str,
    templates: &[PromptTemplate],
    is_provider: impl Fn(&str) -> bool,
) -> &'t str {
    let Some(line) = text.trim_start().strip_prefix('/').map(str::trim_start) else { return text };
    let name = commands::name_of(line);
    let argument = line.strip_prefix(name).unwrap_or_default();
    let is_template = templates.iter().any(|template| template.name == name);
    if is_template || !may_lead_to_key(name, argument.trim(), is_provider) {
        return text;
    }
    text.strip_suffix(argument).unwrap_or(text)
}

/// What the user typed after `/login` or `/logout`, if it may be a key, which does not belong there.
pub(super) fn key_of(submission: &Submission, is_provider: impl Fn(&str) -> bool) -> Option<&str> {
    let Submission::Command(line) = submission else { return None };
    let (command, argument) = commands::find(line)?;
    may_lead_to_key(command.name, argument, is_provider).then_some(argument)
}

/// The part of `text` that is sent: without blanks around it. The indentation of the first line
/// stays where it has a meaning, before more lines or as a tab, except before a command.
fn sent_range(text: &str) -> Range<usize> {
    let end = text.trim_end().len();
    let trimmed = text[..end].trim_start();
    let start = end - trimmed.len();
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let has_meaning = trimmed.contains('\n') || text[line_start..start].starts_with('\t');
    let is_command = trimmed.starts_with(['/', '!']);
    if has_meaning && !is_command { line_start..end } else { start..end }
}

/// What follows the marks of a `!` command, and whether it is hidden from the model; `None` if `trimmed`, which
/// begins with no blank, is none.
fn bash_of(trimmed: &str) -> Option<(&str, bool)> {
    let rest = trimmed.strip_prefix('!')?;
    Some(rest.strip_prefix('!').map_or((rest, false), |hidden| (hidden, true)))
}

/// What Enter does with a text in the present state of the session.
pub(super) fn classify(trimmed: &str, session: &SessionState) -> Submission {
    if trimmed.is_empty() {
        let waits = session.phase != Phase::Idle && !session.queue.is_empty();
        return if waits { Submission::DeliverQueue } else { Submission::Nothing };
    }
    if let Some((command, exclude_from_context)) = bash_of(trimmed) {
        let command = command.trim().to_owned();
        return match (command.is_empty(), &session.user_command) {
            (true, _) => Submission::Refused(Refused::NoBashCommand),
            (false, Some(_)) => Submission::Refused(Refused::CommandRuns),
            (false, None) => Submission::Bash { command, exclude_from_context },
        };
    }
    if let Some(line) = trimmed.strip_prefix('/')
        && let Some(submission) = classify_command(line, session)
    {
        return submission;
    }
    match session.missing_skill(trimmed) {
        Some(_) => Submission::MissingSkill(trimmed.into()),
        None => Submission::Prompt(trimmed.into()),
    }
}

/// What Enter does with a text that begins with a slash, here without it; `None` for a prompt.
fn classify_command(line: &str, session: &SessionState) -> Option<Submission> {
    let name = commands::name_of(line);
    let (_, argument) = line.split_once(name).unwrap_or_default();
    // A key behind a line break is no prompt either, nor is a provider's name.
    let has_key = may_lead_to_key(name, argument.trim(), |_| false);
    let line = line.to_owned();
    if commands::is_command(name) {
        if line.contains('\n') && !has_key {
            return None;
        }
        return Some(match commands::find(&line) {
            None if line.starts_with(char::is_whitespace) => Submission::Refused(Refused::Space),
            None => Submission::Refused(Refused::TakesNoArguments { line }),
            Some((command, args)) if commands::waits_for_agent(command, args, session) => {
                Submission::Refused(Refused::Working { line })
            }
            Some((command, args)) => match commands::wrong_arguments(command, args, session) {
                Some(why) => Submission::Refused(Refused::WrongArguments { line, why }),
                None => Submission::Command(line),
            },
        });
    }
    // The session replaces the call by the template's text.
    let is_template = session.templates.iter().any(|template| template.name == name);
    let is_unknown =
        !is_template && (line.is_empty() || has_key || command_name(&format!("/{line}")).is_some());
    is_unknown.then_some(Submission::Refused(Refused::Unknown { line }))
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
    use std::path::Path;

    use crate::ai::{Extra, Image, Model};
    use crate::session::ResourceOrigin;
    use crate::tui::composer::{EditorAction, insert_image};
    use crate::tui::theme::{Appearance, ColorDepth};

    use super::*;

    fn session() -> SessionState {
        SessionState::of(&Arc::new(Model::default()), Path::new("/"))
    }

    fn no_provider(_: &str) -> bool {
        false
    }

    fn is_bedrock(name: &str) -> bool {
        name == "Amazon Bedrock"
    }

    #[test]
    fn indentation_of_the_first_line_is_sent_where_it_has_a_meaning() {
        let check = |text: &str, expected: &str| assert_eq!(&text[sent_range(text)], expected, "{text:?}");
        check("  hi  ", "hi");
        check("\n\n\tall:\n\t\tcc x\n\n", "\tall:\n\t\tcc x");
        check("    if a:\n        b", "    if a:\n        b");
        check("\ta\tb", "\ta\tb");
        check("  /model x\n", "/model x");
        check(" !ls\n", "!ls");
        check(" \n ", "");
        check("", "");
    }

    #[test]
    fn name_of_a_provider_with_a_space_stays_in_history_and_draft() {
        let mut prompt = PromptEditor::new();
        for (typed, kept) in [
            ("/login Amazon Bedrock", "/login Amazon Bedrock"),
            ("/logout Amazon Bedrock", "/logout Amazon Bedrock"),
            ("/login Amazon Bedrock KEY", "/login"),
        ] {
            prompt.composer.set_text(typed);
            assert_eq!(prompt.draft(&[], is_bedrock).0.text, kept);
            prompt.take(&session(), is_bedrock);
        }
        assert_eq!(prompt.take_new_history(), ["/login Amazon Bedrock", "/logout Amazon Bedrock"]);
    }

    #[test]
    fn draft_of_a_session_opened_again_is_not_doubled() {
        let mut prompt = PromptEditor::new();
        prompt.composer.set_text("half a thought, and more");
        let taken = |text: &str| TakenQueue { draft: Some(text.into()), ..TakenQueue::default() };
        prompt.restore(taken("half a thought"));
        assert_eq!(prompt.draft(&[], no_provider).0.text, "half a thought, and more");
        prompt.restore(taken("another"));
        assert_eq!(prompt.draft(&[], no_provider).0.text, "another\n\nhalf a thought, and more");
    }

    #[test]
    fn pastes_and_images_survive_the_queue_a_crash_and_an_editor() {
        let image = |name: &str| Image {
            data: name.to_owned(),
            mime_type: "image/png".to_owned(),
            extra: Extra::new(),
        };
        let mut prompt = PromptEditor::new();
        let number = prompt.attachments.add(image("a"));
        insert_image(&mut prompt.composer, number);
        prompt.composer.paste(&"line\n".repeat(12));
        let shown = "[image #1] [paste #1 +13 lines]";
        let (draft, _) = prompt.draft(&[], no_provider);
        assert_eq!(prompt.composer.text(), shown);

        let Submission::Prompt(sent) = prompt.take(&session(), is_bedrock) else { panic!("it is a prompt") };
        assert_eq!((sent.images.len(), sent.text.lines().count()), (1, 12));
        prompt.prepend(vec![sent.clone()]);
        // The line break at the end was not sent.
        let shown = "[image #1] [paste #1 +12 lines]";
        assert_eq!(prompt.composer.text(), shown, "from the queue");
        prompt.set_edited(&format!("see {}", sent.text));
        assert_eq!(prompt.composer.text(), format!("see {shown}"), "from an editor");

        let mut later = PromptEditor::new();
        later.prepend(vec![sent]);
        assert_eq!(later.composer.text(), shown, "after a crash in the queue");
        let mut later = PromptEditor::new();
        later.prepend(vec![draft]);
        assert_eq!(later.composer.text(), "[image #1] [paste #1 +13 lines]", "after a crash");
        later.composer.handle(EditorAction::DeleteCharBackward);
        assert_eq!(later.draft(&[], no_provider).0.images, [image("a")]);
        later.composer.set_text("no image");
        assert_eq!(later.draft(&[], no_provider).0.images, []);
        later.composer.handle(EditorAction::Undo);
        assert_eq!(later.draft(&[], no_provider).0.images, [image("a")]);
    }

    #[test]
    fn border_says_what_enter_does_before_it_counts_images() {
        let mut prompt = PromptEditor::new();
        let image = Image { data: "a".to_owned(), mime_type: "image/png".to_owned(), extra: Extra::new() };
        let number = prompt.attachments.add(image);
        insert_image(&mut prompt.composer, number);
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let model = Model { id: "m-1".to_owned(), ..Model::default() };
        let session = SessionState::of(&Arc::new(model), Path::new("/"));
        let mut border = |width, enter: &str| {
            let drawn = prompt.render(width, 10, &theme, &session, enter.to_owned());
            drawn.rows[0].text().trim_matches(['─', ' ']).to_owned()
        };
        let steer = "enter: steer at the next tool";
        let unseen = "m-1 does not see images: 1 attached";
        assert_eq!(border(80, steer), format!("{steer} · {unseen}"));
        assert_eq!(border(40, steer), steer);
        assert_eq!(border(60, ""), unseen);
        prompt.take(&session, no_provider);
        prompt.composer.handle(EditorAction::HistoryPrevious);
        let drawn = prompt.render(80, 10, &theme, &session, String::new());
        assert!(drawn.rows[0].text().starts_with("── 1 image is not attached ──"));
    }

    #[test]
    fn numbers_of_images_begin_again_with_whatever_leaves_the_editor() {
        let mut prompt = PromptEditor::new();
        let attach = |prompt: &mut PromptEditor, name: &str| {
            let (data, mime_type) = (name.to_owned(), "image/png".to_owned());
            let number = prompt.attachments.add(Image { data, mime_type, extra: Extra::new() });
            insert_image(&mut prompt.composer, number);
        };
        for typed in ["a prompt", "!true", "/model demo"] {
            attach(&mut prompt, "first");
            assert_eq!(prompt.composer.text(), "[image #1] ", "before {typed}");
            prompt.clear();
            // Undo may bring the first one back, and it stays the picture that it was.
            attach(&mut prompt, "second");
            assert_eq!(prompt.composer.text(), "[image #2] ");
            prompt.composer.handle(EditorAction::Undo);
            prompt.composer.handle(EditorAction::Undo);
            assert_eq!(prompt.draft(&[], no_provider).0.images[0].data, "first");
            prompt.composer.set_text(typed);
            prompt.take(&session(), no_provider);
            assert!(prompt.is_blank(), "{typed}");
        }
    }

    #[test]
    fn paste_at_the_beginning_decides_what_enter_does() {
        let submitted = |typed: &str, pasted: &str| {
            let mut prompt = PromptEditor::new();
            prompt.composer.set_text(typed);
            prompt.composer.paste(pasted);
            prompt.submitted()
        };
        let lines = "more\n".repeat(200_000);
        assert!(submitted("", &format!("stop, {lines}")).starts_with("stop, more"));
        assert!(submitted("", &format!("!cat\n{lines}")).starts_with("!cat\nmore"));
        assert!(submitted("see ", &lines).starts_with("see more"));
        // No more of a large one is copied for each frame.
        assert_eq!(submitted("", &lines).len(), 16 << 10);
    }

    #[test]
    fn message_taken_back_does_not_replace_a_draft() {
        let mut prompt = PromptEditor::new();
        assert!(prompt.take_back("first".into()));
        assert_eq!(prompt.draft(&[], no_provider).0.text, "first");
        assert!(!prompt.take_back("second".into()));
        assert_eq!(prompt.draft(&[], no_provider).0.text, "first");
    }

    #[test]
    fn undo_keeps_messages_that_were_taken_out_of_the_queue() {
        let mut prompt = PromptEditor::new();
        prompt.composer.set_text("a draft");
        prompt.restore(TakenQueue { steering: vec!["first".into()], ..TakenQueue::default() });
        prompt.composer.handle(EditorAction::Undo);
        assert_eq!(prompt.composer.text(), "first\n\na draft");
        prompt.clear();
        prompt.composer.handle(EditorAction::Undo);
        assert_eq!(prompt.composer.text(), "first\n\na draft");
    }

    #[test]
    fn prompts_of_earlier_sessions_come_after_those_of_this_one() {
        let mut prompt = PromptEditor::new();
        let submit = |prompt: &mut PromptEditor, text: &str| {
            prompt.composer.set_text(text);
            prompt.take(&session(), is_bedrock);
        };
        submit(&mut prompt, "here");
        submit(&mut prompt, "/login openai sk-canary");
        prompt.recall(vec!["older".to_owned(), "here".to_owned(), "old".to_owned()]);
        submit(&mut prompt, "now");
        assert_eq!(prompt.take_new_history(), ["here", "now"], "a key is not kept");
        let mut seen = Vec::new();
        while prompt.composer.handle(EditorAction::HistoryPrevious) {
            seen.push(prompt.composer.text());
        }
        assert_eq!(seen, ["now", "here", "old", "older"]);
        prompt.set_history(&[]);
        prompt.composer.handle(EditorAction::HistoryPrevious);
        assert_eq!(prompt.composer.text(), "now", "in the next session too");
    }

    #[test]
    fn a_key_behind_login_is_not_remembered() {
        let check = |line: &str, expected: bool| {
            assert_eq!(
                key_of(&Submission::Command(line.to_owned()), is_bedrock).is_some(),
                expected,
                "{line}"
            );
        };
        check("login openai sk-canary", true);
        check("login AKLT0123456789abcdef", true);
        check("login amazon-bedrock", false);
        check("login Amazon Bedrock", false);
        check("logout  Amazon Bedrock ", false);
        check("login Amazon Bedrock KEY", true);
        check("login", false);
        check("model openai/gpt a", false);
    }

    #[test]
    fn a_key_behind_login_is_not_in_the_draft() {
        let check = |typed: &str, expected: &str| {
            let mut prompt = PromptEditor::new();
            prompt.composer.set_text(typed);
            assert_eq!(prompt.draft(&[], no_provider).0.text, expected, "{typed}");
        };
        check("/login groq KEYKEYKEY123456", "/login");
        check("/logout\nKEYKEYKEY123456 ", "/logout");
        check(" / login sk-ant-api03-canary", " / login");
        check("/Login groq KEY", "/Login");
        check("/logn KEYKEYKEY123456", "/logn");
        check("/LOGUOT KEYKEYKEY123456", "/LOGUOT");
        check("/login  groq ", "/login  groq ");
        check("/logs of the last 24 hours", "/logs of the last 24 hours");
        check("/log KEYKEYKEY123456", "/log");
        check("/LOG groq sk-ant-api03-abcdefghijklmnop", "/LOG");
        check("/log of the last 24 hours", "/log of the last 24 hours");
        check("login KEYKEYKEY123456", "login KEYKEYKEY123456");
        check("/", "/");
        let mut prompt = PromptEditor::new();
        prompt.composer.set_text("/login ");
        prompt.composer.paste(&"KEY1\n".repeat(20));
        let (draft, _) = prompt.draft(&[], no_provider);
        assert_eq!((draft.text.as_str(), draft.pastes), ("/login", Vec::new()));
    }

    fn template(name: &str) -> PromptTemplate {
        PromptTemplate {
            name: name.to_owned(),
            description: String::new(),
            argument_hint: String::new(),
            path: "/p/template.md".into(),
            origin: ResourceOrigin::User,
        }
    }

    #[test]
    fn what_follows_a_template_is_in_the_draft() {
        let mut prompt = PromptEditor::new();
        let typed = "/logic of the session's recovery";
        prompt.composer.set_text(typed);
        assert_eq!(prompt.draft(&[], no_provider).0.text, "/logic");
        assert_eq!(prompt.draft(&[template("logic")], no_provider).0.text, typed);
    }

    #[test]
    fn what_is_typed_decides_what_it_is() {
        let idle = SessionState { templates: [template("review")].into(), ..session() };
        let check = |text: &str, expected: Submission| assert_eq!(classify(text, &idle), expected, "{text}");
        let refused = Submission::Refused;
        let unknown = |line: &str| refused(Refused::Unknown { line: line.to_owned() });
        check("hello", Submission::Prompt("hello".into()));
        check("/model opus", Submission::Command("model opus".to_owned()));
        check("/etc/hosts is odd", Submission::Prompt("/etc/hosts is odd".into()));
        check("/review it", Submission::Prompt("/review it".into()));
        check("/skill:review it", Submission::MissingSkill("/skill:review it".into()));
        check("/modle opus", unknown("modle opus"));
        check("/", unknown(""));
        check("/ model", refused(Refused::Space));
        check("/quit now", refused(Refused::TakesNoArguments { line: "quit now".to_owned() }));
        check("/tmp/x", Submission::Prompt("/tmp/x".into()));
        check("/model\nis a word", Submission::Prompt("/model\nis a word".into()));
        for line in ["login groq\nsk-canary-0123456789", "login\nAKLT0123456789abcdef", "logout\n\na key"] {
            check(&format!("/{line}"), Submission::Command(line.to_owned()));
        }
        check("/Login groq\na key", unknown("Login groq\na key"));
        check("/long\nis a word", Submission::Prompt("/long\nis a word".into()));
        let bash = |command: &str, hidden| Submission::Bash {
            command: command.to_owned(),
            exclude_from_context: hidden,
        };
        check("!ls -l", bash("ls -l", false));
        check("!! pwd", bash("pwd", true));
        check("!", refused(Refused::NoBashCommand));
        check("", Submission::Nothing);
    }

    #[test]
    fn bash_mode_is_what_enter_runs_whatever_blanks_come_first() {
        for text in ["!ls", " !ls", "\n !!ls", " !", "! ls", "ls !", "", " ", "/model !"] {
            let mut prompt = PromptEditor::new();
            prompt.composer.set_text(text);
            let submission = classify(text.trim(), &session());
            let is_bash =
                matches!(submission, Submission::Bash { .. } | Submission::Refused(Refused::NoBashCommand));
            assert_eq!(prompt.is_bash(), is_bash, "{text:?}");
        }
        let mut prompt = PromptEditor::new();
        prompt.composer.paste(&"!true\n".repeat(20));
        assert!(prompt.composer.text().starts_with("[paste") && prompt.is_bash());
    }
}
