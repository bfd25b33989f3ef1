//! The open lists and dialogs, and the models they offer.

use std::path::Path;
use std::sync::Arc;

use crate::config::SignInStep;
use crate::session::{Question, SessionState};
use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::widgets::DialogCx;

use super::login::LoginDialog;
use super::overlays::{
    DialogOutcome, Drawn, ModelChoice, ModelScope, Models, Overlay, OverlayStep, QuestionDialog,
    SummaryReview, ThinkingLevels, TrustDialog,
};
use super::reports::ReportDone;
use super::session_picker::{SessionsDialog, SessionsDone};
use super::share::ShareDone;
use super::tree::TreeDialog;

/// A stack of dialogs: the last one has the keyboard and is shown.
pub(super) struct Dialogs {
    open: Vec<Open>,
    /// Models with a key.
    models: Vec<ModelChoice>,
}

/// A dialog; those that code outside can close or change have a variant of
/// their own.
enum Open {
    Trust(TrustDialog, AskedBy),
    Login(Box<LoginDialog>),
    Question(QuestionDialog),
    Tree(Box<TreeDialog>),
    Sessions(Box<SessionsDialog>),
    Summary(Box<SummaryReview>),
    Other(Box<dyn Overlay>),
}

/// Who opened a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedBy {
    User,
    Session,
}

impl Open {
    fn other(overlay: impl Overlay + 'static) -> Self {
        Self::Other(Box::new(overlay))
    }

    fn overlay(&mut self) -> &mut dyn Overlay {
        match self {
            Self::Trust(dialog, _) => dialog,
            Self::Login(dialog) => &mut **dialog,
            Self::Question(dialog) => dialog,
            Self::Tree(dialog) => &mut **dialog,
            Self::Sessions(dialog) => &mut **dialog,
            Self::Summary(dialog) => &mut **dialog,
            Self::Other(overlay) => &mut **overlay,
        }
    }
}

impl Dialogs {
    pub(super) fn new(models: Vec<ModelChoice>) -> Self {
        Self { open: Vec::new(), models }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the user opened one of them.
    pub(super) fn has_chosen(&self) -> bool {
        self.open.iter().any(|open| !matches!(open, Open::Trust(_, AskedBy::Session) | Open::Question(_)))
    }

    /// Whether the top one takes an input. One that came unasked and has no place for text leaves that to the editor.
    pub(super) fn takes(&self, input: &InputEvent, keymap: &Keymap) -> bool {
        match self.open.last() {
            None => false,
            Some(Open::Trust(_, AskedBy::Session)) => !is_text(input, keymap),
            Some(_) => true,
        }
    }

    /// Passes an input to the top dialog.
    pub(super) fn on_input(&mut self, input: &InputEvent, keymap: &Keymap) -> Option<DialogOutcome> {
        let step = self.open.last_mut()?.overlay().handle(input, keymap);
        self.finish(step)
    }

    /// Updates all of them after a change of the session; those that have nothing left to show or to
    /// decide close.
    pub(super) fn on_session_changed(&mut self, session: &SessionState) {
        self.open.retain_mut(|open| match open {
            Open::Question(dialog) => session.questions.iter().any(|question| question.id == dialog.id()),
            Open::Tree(dialog) => {
                dialog.on_session(session);
                dialog.is_of(session)
            }
            _ => open.overlay().session_changed(session),
        });
    }

    fn finish(&mut self, step: OverlayStep) -> Option<DialogOutcome> {
        match step {
            OverlayStep::Stay => None,
            OverlayStep::StayWith(outcome) => Some(outcome),
            OverlayStep::Close => {
                self.open.pop();
                None
            }
            OverlayStep::CloseWith(outcome) => {
                self.open.pop();
                Some(outcome)
            }
        }
    }

    /// Rows and cursor of the top dialog, if there is one.
    pub(super) fn render(&mut self, cx: &DialogCx<'_>) -> Option<Drawn> {
        let others_wait = self.open.len() > 1;
        let top = self.open.last_mut()?.overlay();
        if let Some(pager) = top.pager() {
            pager.set_waiting(others_wait);
        }
        Some(top.render(cx))
    }

    /// Whether the wheel scrolls the top dialog.
    pub(super) fn takes_wheel(&mut self) -> bool {
        self.open.last_mut().is_some_and(|top| top.overlay().pager().is_some())
    }

    /// The theme that an open list shows in place of that of the settings.
    pub(super) fn previewed_theme(&self) -> Option<&str> {
        self.open.iter().find_map(|open| match open {
            Open::Other(overlay) => overlay.previewed_theme(),
            Open::Trust(..)
            | Open::Login(_)
            | Open::Question(_)
            | Open::Tree(_)
            | Open::Sessions(_)
            | Open::Summary(_) => None,
        })
    }

    /// Closes all.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    // Models.

    /// Models with a key.
    pub(super) fn models(&self) -> &[ModelChoice] {
        &self.models
    }

    /// Whether `reference` selects exactly one of the models.
    pub(super) fn has_model(&self, reference: &str) -> bool {
        self.models.iter().any(|choice| choice.is_named(reference))
    }

    /// Replaces the models, also in open dialogs.
    pub(super) fn on_models(&mut self, models: Vec<ModelChoice>) {
        if models == self.models {
            return;
        }
        self.models = models;
        for open in &mut self.open {
            open.overlay().models_changed(&self.models);
        }
    }

    /// Opens the list of models, filtered by `query`.
    pub(super) fn open_models(&mut self, session: &SessionState, query: &str) {
        self.open.push(Open::other(Models::new(&self.models, session, query)));
    }

    pub(super) fn open_scope(&mut self, session: &SessionState) {
        self.open.push(Open::other(ModelScope::new(&self.models, session)));
    }

    /// `Err` if there is nothing to choose, with the reason.
    pub(super) fn open_thinking(&mut self, session: &SessionState) -> Result<(), String> {
        let model = &session.model;
        if model.thinking_levels().len() < 2 {
            return Err(format!("{} has no thinking levels", model.id));
        }
        self.open.push(Open::other(ThinkingLevels::new(session)));
        Ok(())
    }

    // Sessions.

    /// Shows the list of sessions, in place of one that is open.
    pub(super) fn open_sessions(&mut self, dialog: SessionsDialog) {
        self.open.retain(|open| !matches!(open, Open::Sessions(_)));
        self.open.push(Open::Sessions(Box::new(dialog)));
    }

    /// Hands what was read or found to the list of sessions, if it is still open.
    pub(super) fn on_sessions(&mut self, done: SessionsDone) {
        let list = self.open.iter_mut().find_map(|open| match open {
            Open::Sessions(dialog) => Some(dialog),
            _ => None,
        });
        if let Some(dialog) = list {
            dialog.on_done(done);
        }
    }

    /// Hands what a report says to it, if it is still open.
    pub(super) fn on_report(&mut self, done: ReportDone) {
        let mut left = Some(done);
        for open in self.open.iter_mut().rev() {
            left = left.and_then(|done| open.overlay().on_report(done));
        }
    }

    /// Shows a dialog that needs nothing of the others.
    pub(super) fn show(&mut self, dialog: impl Overlay + 'static) {
        self.open.push(Open::other(dialog));
    }

    // A summary.

    /// Shows a summary to edit, in place of one that is open.
    pub(super) fn open_summary(&mut self, review: SummaryReview) {
        self.open.retain(|open| !matches!(open, Open::Summary(_)));
        put(&mut self.open, Open::Summary(Box::new(review)));
    }

    /// The summary that is being edited.
    pub(super) fn summary(&mut self) -> Option<&mut SummaryReview> {
        self.open.iter_mut().find_map(|open| match open {
            Open::Summary(review) => Some(&mut **review),
            _ => None,
        })
    }

    /// Shows a tree, in place of one that is open.
    pub(super) fn open_tree(&mut self, dialog: TreeDialog) {
        self.open.retain(|open| !matches!(open, Open::Tree(_)));
        self.open.push(Open::Tree(Box::new(dialog)));
    }

    /// The tree, if it is still open.
    pub(super) fn tree(&mut self) -> Option<&mut TreeDialog> {
        self.open.iter_mut().find_map(|open| match open {
            Open::Tree(dialog) => Some(&mut **dialog),
            _ => None,
        })
    }

    /// Asks whether to trust the session's folder, replacing an earlier question.
    /// Paths are shown with `~` for `home`.
    pub(super) fn open_trust(&mut self, by: AskedBy, session: &SessionState, home: Option<&Path>) {
        self.close_trust();
        put(&mut self.open, Open::Trust(TrustDialog::new(&session.project, &session.cwd, home), by));
    }

    /// Withdraws the question about trust.
    pub(super) fn close_trust(&mut self) {
        self.open.retain(|open| !matches!(open, Open::Trust(..)));
    }

    /// Asks a question of the session.
    pub(super) fn open_question(&mut self, question: &Arc<Question>) {
        put(&mut self.open, Open::Question(QuestionDialog::new(Arc::clone(question))));
    }

    // Sharing.

    /// Hands the result of a step to the dialog that waits for it, if it is still open.
    pub(super) fn on_share(&mut self, done: &ShareDone) {
        self.open.retain_mut(|open| open.overlay().on_share(done));
    }

    // Logging in.

    pub(super) fn open_login(&mut self, dialog: LoginDialog) {
        self.open.push(Open::Login(Box::new(dialog)));
    }

    pub(super) fn on_sign_in_step(&mut self, step: &SignInStep) {
        let signing_in = self.open.iter_mut().find_map(|open| match open {
            Open::Login(dialog) if dialog.is_signing_in() => Some(dialog),
            _ => None,
        });
        if let Some(dialog) = signing_in {
            dialog.on_sign_in_step(step);
        }
    }

    /// Closes a dialog whose sign-in has ended.
    pub(super) fn close_sign_in(&mut self) {
        self.open.retain(|open| !matches!(open, Open::Login(dialog) if dialog.is_signing_in()));
    }
}

/// Whether an input is text and no key of a list.
fn is_text(input: &InputEvent, keymap: &Keymap) -> bool {
    match input {
        InputEvent::Key(key) => Chord::typed(key).is_some() && keymap.lookup(Context::Select, key).is_none(),
        InputEvent::Paste(_) => true,
        _ => false,
    }
}

/// Puts a dialog that nobody asked for above the others, but below a text that is being read: the
/// next key would scroll the text, and must not decide. The text reports that something waits.
fn put(dialogs: &mut Vec<Open>, dialog: Open) {
    let is_read = dialogs.last_mut().is_some_and(|top| top.overlay().pager().is_some());
    let at = dialogs.len() - usize::from(is_read);
    dialogs.insert(at, dialog);
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::ai::{Model, ScopedModel, ThinkingLevel};
    use crate::config::{KeySource, ProviderKeys, Secret};
    use crate::session::{IfBusy, QuestionId, QuestionKind, SessionCommand};
    use crate::tui::keymap::{BINDINGS, Platform};
    use crate::tui::theme::{Appearance, ColorDepth, Theme};

    use super::super::keybindings::default_keymap;
    use super::super::login::{LoginEffect, LoginProvider, Purpose};
    use super::super::overlays::Confirmation;
    use super::*;

    fn press(dialogs: &mut Dialogs, code: KeyCode) -> Option<DialogOutcome> {
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        dialogs.on_input(&InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)), &keymap)
    }

    /// A provider without a sign-in, which needs only a key.
    fn provider(id: &str) -> LoginProvider {
        let (id, name, source) = (id.to_owned(), id.to_uppercase(), KeySource::Stored);
        let keys = ProviderKeys { id, name, source, is_stored: true, is_known: true };
        LoginProvider { keys, offer: None, asks_for_client_id: false }
    }

    #[test]
    fn a_login_leads_from_the_list_to_the_key_and_closes() {
        let mut dialogs = Dialogs::new(vec![]);
        let providers = vec![provider("acme"), provider("umbrella")];
        dialogs.open_login(LoginDialog::new(Purpose::Login, providers));
        assert_eq!(press(&mut dialogs, KeyCode::Down), None);
        assert_eq!(press(&mut dialogs, KeyCode::Enter), None);
        assert!(dialogs.is_open(), "it asks for the key");
        press(&mut dialogs, KeyCode::Char('k'));
        let provider = "umbrella".to_owned();
        let save = LoginEffect::SaveKey { provider, key: Secret::typed("k") };
        assert_eq!(press(&mut dialogs, KeyCode::Enter), Some(DialogOutcome::Effect(save.into())));
        assert!(!dialogs.is_open());
    }

    #[test]
    fn a_logout_asks_only_for_the_provider() {
        let mut dialogs = Dialogs::new(vec![]);
        dialogs.open_login(LoginDialog::new(Purpose::Logout, vec![provider("acme")]));
        let forget = LoginEffect::Forget("acme".to_owned());
        assert_eq!(press(&mut dialogs, KeyCode::Enter), Some(DialogOutcome::Effect(forget.into())));
        assert!(!dialogs.is_open());
    }

    #[test]
    fn a_failed_sign_in_closes_no_other_stage() {
        let mut dialogs = Dialogs::new(vec![]);
        let (dialog, outcome) = LoginDialog::for_provider(provider("acme"));
        assert_eq!(outcome, None);
        dialogs.open_login(dialog);
        dialogs.close_sign_in();
        assert!(dialogs.is_open(), "the key is still being typed");
    }

    fn call_question() -> (Arc<Question>, SessionState) {
        let call = serde_json::json!({"id": "a", "name": "bash", "arguments": {"command": "ls"}});
        let call = Arc::new(serde_json::from_value(call).unwrap());
        let question = Arc::new(Question {
            id: QuestionId::new(7),
            kind: QuestionKind::ToolCall(call),
            text: "Run ls?\nIt lists files.".to_owned(),
            options: vec!["Allow".to_owned(), "Don't allow".to_owned()],
            default: 1,
        });
        let mut session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
        session.questions = [Arc::clone(&question)].into();
        (question, session)
    }

    #[test]
    fn question_about_a_call_sends_the_chosen_option_and_closes() {
        let check = |codes: &[KeyCode], option: usize| {
            let mut dialogs = Dialogs::new(vec![]);
            let (question, _) = call_question();
            dialogs.open_question(&question);
            let outcomes = codes.iter().filter_map(|&code| press(&mut dialogs, code));
            let answer = SessionCommand::Answer { id: question.id, option };
            assert_eq!(outcomes.last(), Some(DialogOutcome::session(answer)), "{codes:?}");
            assert!(!dialogs.is_open());
        };
        check(&[KeyCode::Enter], 1);
        check(&[KeyCode::Esc], 1);
        check(&[KeyCode::Up, KeyCode::Enter], 0);
        check(&[KeyCode::Up, KeyCode::Esc], 1);
    }

    #[test]
    fn models_that_are_found_are_also_in_a_list_under_a_question() {
        let mut dialogs = Dialogs::new(vec![]);
        let (question, session) = call_question();
        dialogs.open_models(&session, "");
        dialogs.open_question(&question);
        let found = Model { id: "found".to_owned(), provider: "acme".to_owned(), ..Model::default() };
        dialogs.on_models(ModelChoice::of(&[Arc::new(found)]));
        press(&mut dialogs, KeyCode::Enter);
        let chosen = press(&mut dialogs, KeyCode::Enter);
        assert!(format!("{chosen:?}").contains("acme/found"), "{chosen:?}");
    }

    /// What a list shows at 60 columns.
    fn shown(dialogs: &mut Dialogs) -> String {
        let keymap = default_keymap();
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let cx = DialogCx { width: 60, max_rows: 20, theme: &theme, keymap: &keymap };
        let (rows, _) = dialogs.render(&cx).unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
        rows.join("\n")
    }

    #[test]
    fn marks_follow_a_model_and_level_that_another_front_end_chose() {
        let model = |id: &str| Model {
            id: id.to_owned(),
            provider: "acme".to_owned(),
            reasoning: true,
            ..Model::default()
        };
        let models = [Arc::new(model("one")), Arc::new(model("two"))];
        let mut session = SessionState::of(&models[0], Path::new("/"));
        let mut dialogs = Dialogs::new(ModelChoice::of(&models));
        dialogs.open_models(&session, "");
        press(&mut dialogs, KeyCode::Down);
        let before = shown(&mut dialogs);
        assert!(before.contains("  ✓ one") && before.contains("→   two"), "{before}");
        let (question, asks) = call_question();
        dialogs.open_question(&question);
        session.questions = asks.questions;
        session.model = Arc::clone(&models[1]);
        dialogs.on_session_changed(&session);
        press(&mut dialogs, KeyCode::Enter);
        let after = shown(&mut dialogs);
        assert!(after.contains("    one") && after.contains("→ ✓ two"), "{after}");
        session.scope =
            [ScopedModel { model: Arc::clone(&models[1]), thinking: None, pattern: models[1].id.clone() }]
                .into();
        dialogs.on_session_changed(&session);
        assert!(shown(&mut dialogs).contains("all or scoped"), "{}", shown(&mut dialogs));
        dialogs.clear();

        dialogs.open_thinking(&session).unwrap();
        assert!(shown(&mut dialogs).contains("→ ✓ off"), "{}", shown(&mut dialogs));
        session.thinking = ThinkingLevel::High;
        dialogs.on_session_changed(&session);
        let shown = shown(&mut dialogs);
        assert!(shown.contains("→   off") && shown.contains("  ✓ high"), "{shown}");
        session.model = Arc::new(Model::default());
        dialogs.on_session_changed(&session);
        assert!(!dialogs.is_open(), "the model has no levels");
    }

    #[test]
    fn text_is_left_to_the_editor_while_a_question_that_came_unasked_has_no_place_for_it() {
        let keymap = default_keymap();
        let pressed = |code| InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
        let (letter, enter) = (pressed(KeyCode::Char('f')), pressed(KeyCode::Enter));
        let pasted = InputEvent::Paste("text".to_owned());
        let session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
        let mut dialogs = Dialogs::new(vec![]);
        assert!(!dialogs.takes(&enter, &keymap));
        for (by, takes_text) in [(AskedBy::Session, false), (AskedBy::User, true)] {
            dialogs.open_trust(by, &session, None);
            let taken = [&letter, &pasted, &enter].map(|input| dialogs.takes(input, &keymap));
            assert_eq!(taken, [takes_text, takes_text, true], "{by:?}");
        }
    }

    #[test]
    fn withdrawn_question_closes_under_other_dialogs_too() {
        let mut dialogs = Dialogs::new(vec![]);
        let (question, mut session) = call_question();
        dialogs.open_question(&question);
        dialogs.show(Confirmation::cancel_work(SessionCommand::New { if_busy: IfBusy::Refuse }));
        dialogs.on_session_changed(&session);
        assert_eq!(dialogs.open.len(), 2);
        session.questions = [].into();
        dialogs.on_session_changed(&session);
        press(&mut dialogs, KeyCode::Esc);
        assert!(!dialogs.is_open());
    }

    #[test]
    fn a_new_session_is_started_only_when_that_is_confirmed() {
        let check = |codes: &[KeyCode], expected: Option<DialogOutcome>| {
            let mut dialogs = Dialogs::new(vec![]);
            dialogs.show(Confirmation::cancel_work(SessionCommand::New { if_busy: IfBusy::Refuse }));
            let outcomes = codes.iter().filter_map(|&code| press(&mut dialogs, code));
            assert_eq!(outcomes.last(), expected, "{codes:?}");
            assert!(!dialogs.is_open());
        };
        check(&[KeyCode::Enter], None);
        check(&[KeyCode::Esc], None);
        check(
            &[KeyCode::Down, KeyCode::Enter],
            Some(DialogOutcome::session(SessionCommand::New { if_busy: IfBusy::Cancel })),
        );
    }
}
