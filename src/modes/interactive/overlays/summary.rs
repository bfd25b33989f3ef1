//! Editing a summary before it takes the place of the beginning of the conversation.

use std::sync::Arc;

use crossterm::event::KeyEvent;

use crate::session::{SessionCommand, SessionState, SummaryDecision, SummaryDraft};
use crate::tui::composer::{Composer, ComposerView, EditorAction, backslash_to_new_line};
use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{sanitize_line, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints, ListState, ListStep};
use crate::util::grouped;

use super::super::msg::{Effect, ScreenEffect};
use super::dialog::Dialog;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

const TITLE: &str = "Summary";
const LEAVE_TITLE: &str = "Leave the summary?";
/// The answers of the question that Escape asks; the first, which is selected, changes
/// nothing.
const LEAVE: [&str; 3] = [
    "Keep editing",
    "Decide later; /compact --edit shows it again",
    "Drop it; the conversation stays as it is",
];
/// Rows around the text, without those of the keys: border, title, about, the borders of the editor.
const FIXED_ROWS: u16 = 5;

/// A summary in an editor. Enter accepts it.
pub(in super::super) struct SummaryReview {
    draft: Arc<SummaryDraft>,
    composer: Composer,
    /// The text that the session has stored.
    stored: String,
    /// The answers while the dialog asks how to leave.
    leaving: Option<ListState>,
}

impl SummaryReview {
    pub(in super::super) fn new(draft: &Arc<SummaryDraft>) -> Self {
        let mut composer = Composer::new();
        composer.set_text(&draft.text);
        Self { draft: Arc::clone(draft), composer, stored: draft.text.clone(), leaving: None }
    }

    fn text(&self) -> String {
        self.composer.expanded_text()
    }

    /// Replaces the text, which was edited elsewhere.
    pub(in super::super) fn set_text(&mut self, text: &str) {
        self.composer.set_text(text);
    }

    /// The command that stores the text, if it changed since the last call.
    pub(in super::super) fn take_change(&mut self) -> Option<SessionCommand> {
        let text = self.text();
        if text == self.stored {
            return None;
        }
        self.stored.clone_from(&text);
        Some(SessionCommand::DecideSummary { decision: SummaryDecision::Save { text } })
    }

    fn close(&self, decision: SummaryDecision) -> OverlayStep {
        OverlayStep::close_with(SessionCommand::DecideSummary { decision })
    }

    fn leave_key(&mut self, key: &KeyEvent, keymap: &Keymap) -> OverlayStep {
        let Some(list) = &mut self.leaving else { return OverlayStep::Stay };
        match (list.on_key(key, keymap, LEAVE.len()), list.selected()) {
            (ListStep::Moved | ListStep::Ignored, _) => {}
            (ListStep::Confirmed, 1) => return self.close(SummaryDecision::Later { text: self.text() }),
            (ListStep::Confirmed, 2) => return self.close(SummaryDecision::Drop),
            (ListStep::Cancelled | ListStep::Confirmed, _) => self.leaving = None,
        }
        OverlayStep::Stay
    }

    /// What the summary replaces and what it cost.
    fn about(&self) -> String {
        let draft = &self.draft;
        let messages = if draft.n_replaced == 1 { "message" } else { "messages" };
        let mut about = format!(
            "Replaces {} {messages} of a conversation of {} tokens; they stay in /tree.",
            grouped(draft.n_replaced as u64),
            grouped(draft.tokens_before)
        );
        if draft.usage.cost.total > 0.0 {
            about = format!("{about} {} wrote it for ${:.4}.", draft.model, draft.usage.cost.total);
        }
        sanitize_line(&about).into_owned()
    }
}

impl Overlay for SummaryReview {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let key = match input {
            InputEvent::Paste(text) if self.leaving.is_none() => {
                self.composer.paste(text);
                return OverlayStep::Stay;
            }
            InputEvent::Key(key) => key,
            _ => return OverlayStep::Stay,
        };
        if self.leaving.is_some() {
            return self.leave_key(key, keymap);
        }
        if keymap.is("app.editor.external", key) {
            return OverlayStep::StayWith(DialogOutcome::Effect(Effect::from(ScreenEffect::OpenEditor(
                self.text(),
            ))));
        }
        match keymap.lookup(Context::Editor, key) {
            Some("tui.input.submit") => {
                if !backslash_to_new_line(&mut self.composer) {
                    return self.close(SummaryDecision::Accept { text: self.text() });
                }
            }
            Some(id) => {
                if let Some(action) = EditorAction::from_id(id) {
                    self.composer.handle(action);
                }
            }
            None if keymap.is("tui.select.cancel", key) && self.composer.is_jumping() => {
                self.composer.cancel_jump();
            }
            None if keymap.is("tui.select.cancel", key) => self.leaving = Some(ListState::default()),
            None => {
                if let Some(char) = Chord::typed(key) {
                    self.composer.insert(char.encode_utf8(&mut [0; 4]));
                }
            }
        }
        OverlayStep::Stay
    }

    /// Another front end may have decided, or another session may have been opened.
    fn session_changed(&mut self, session: &SessionState) -> bool {
        let draft = session.summary_draft.as_ref();
        draft.is_some_and(|draft| draft.first_kept_entry_id == self.draft.first_kept_entry_id)
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let columns = width.max(1);
        if let Some(list) = &mut self.leaving {
            let hints = Hints::confirm("choose").cancel("keep editing");
            let dialog = Dialog { title: LEAVE_TITLE, body: Vec::new(), field: None, note: None, hints };
            return dialog.render_choices((list, &LEAVE), cx);
        }
        let mut about = wrap_plain(&self.about(), columns, theme.style(Token::Muted));
        // On small screens the summary needs the room.
        about.truncate(usize::from(max_rows / 8).max(1));
        let n_about = u16::try_from(about.len()).unwrap_or(u16::MAX);
        let hints = Hints::new()
            .key("tui.input.submit", "use it")
            .cancel("leave")
            .key("tui.input.newLine", "line break")
            .key("app.editor.external", "open in your editor");
        let n_fixed = FIXED_ROWS.saturating_add(u16::try_from(hints.rows(cx).len()).unwrap_or(0));
        let drawn = self.composer.render(&ComposerView {
            width: columns,
            max_rows: max_rows.saturating_sub(n_fixed.saturating_add(n_about)).max(1),
            padding: 0,
            theme,
            border: theme.style(Token::Border),
            label: if self.composer.is_jumping() { "type a character to jump to it" } else { "" },
            placeholder: "an empty summary cannot be used",
        });
        let (row, column) = drawn.cursor;
        let mut body = about;
        body.extend(drawn.rows);
        let (rows, _) = Dialog { title: TITLE, body, field: None, note: None, hints }.render(cx);
        // Border and title of the dialog come first.
        let row = 2 + n_about + row;
        let cursor = (usize::from(row) < rows.len()).then_some((row, column));
        (rows, cursor)
    }
}
