//! `/share`: a dialog that checks, asks, and waits for the upload.

use tokio_util::sync::CancellationToken;

use crate::session::{SecretReport, Secrets, SessionCommand};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints, ListState};

use super::super::export::{ABOUT_SHARING, Gist, GistShare, SHARING_CANCELLED, ShareStep, SharedPage};
use super::app::App;
use super::effects::Effects;
use super::msg::{Effect, EffectDone, WorldEffect};
use super::overlays::{Confirmation, Dialog, DialogOutcome, Drawn, Overlay, OverlayStep};

/// A step of sharing; each answers with [`EffectDone::Share`].
#[derive(Debug, PartialEq)]
pub(super) enum ShareEffect {
    /// Looks for secrets and for an account; sends nothing.
    Check,
    Upload(Secrets),
    /// Ends the step that is going on.
    Cancel,
}

/// The result of a step.
#[derive(Debug)]
pub(super) enum ShareDone {
    /// It can be shared; the user decides.
    Checked(SecretReport),
    Shared(Gist),
    Failed(String),
    /// The upload was cancelled.
    Cancelled,
}

impl From<ShareEffect> for Effect {
    fn from(effect: ShareEffect) -> Self {
        Self::World(WorldEffect::Share(effect))
    }
}

/// The stages of `/share`.
pub(super) enum ShareDialog {
    Waiting(&'static str),
    Question(Confirmation),
}

/// Begins with the checks.
pub(super) fn open(app: &mut App, out: &mut Vec<Effect>) {
    app.dialogs.show(ShareDialog::Waiting("looking for secrets, and for your account in gh…"));
    out.push(ShareEffect::Check.into());
}

/// Shows the result of a step.
pub(super) fn on_done(app: &mut App, done: ShareDone) {
    app.dialogs.on_share(&done);
    match done {
        ShareDone::Checked(_) => {}
        // Unlike a notice, it is replaced by nothing, and its addresses are links.
        ShareDone::Shared(gist) => app.transcript.text(&gist.markdown()),
        ShareDone::Failed(error) => app.refuse_command("share", &error),
        ShareDone::Cancelled => app.tell(SHARING_CANCELLED),
    }
}

fn question(found: &SecretReport) -> Confirmation {
    let with = |secrets| Some(DialogOutcome::Effect(ShareEffect::Upload(secrets).into()));
    let (about, proceed) = if found.is_empty() {
        (ABOUT_SHARING.to_owned(), vec![("Share it", with(Secrets::Keep))])
    } else {
        let lines = found.lines().join("\n");
        let about = format!("{ABOUT_SHARING} Parts of it look like secrets:\n\n{lines}");
        (
            about,
            vec![
                ("Mask the secrets and share it", with(Secrets::Mask)),
                ("Share it with the secrets", with(Secrets::Keep)),
            ],
        )
    };
    let list = ListState::default();
    Confirmation { title: "Share this session?", about: about.into(), leave: "Don't share", proceed, list }
}

impl Overlay for ShareDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self {
            Self::Waiting(_) => {
                let InputEvent::Key(key) = input else { return OverlayStep::Stay };
                match keymap.lookup(Context::Select, key) {
                    Some("tui.select.cancel") => {
                        OverlayStep::CloseWith(DialogOutcome::Effect(ShareEffect::Cancel.into()))
                    }
                    _ => OverlayStep::Stay,
                }
            }
            Self::Question(question) => match question.handle(input, keymap) {
                OverlayStep::CloseWith(upload) => {
                    *self = Self::Waiting("gh uploads the page…");
                    OverlayStep::StayWith(upload)
                }
                other => other,
            },
        }
    }

    fn on_share(&mut self, done: &ShareDone) -> bool {
        match done {
            ShareDone::Checked(found) => *self = Self::Question(question(found)),
            ShareDone::Shared(_) | ShareDone::Failed(_) => return false,
            // That was another dialog.
            ShareDone::Cancelled => {}
        }
        true
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        match self {
            Self::Waiting(what) => {
                let note = Some((*what, Token::Muted));
                let hints = Hints::new().cancel("cancel");
                Dialog { title: "Share this session", body: Vec::new(), field: None, note, hints }.render(cx)
            }
            Self::Question(question) => question.render(cx),
        }
    }
}

impl Effects {
    /// Starts a step in place of the one that is going on, or ends that.
    pub(super) fn start_share(&mut self, effect: ShareEffect) {
        let secrets = match effect {
            ShareEffect::Check => None,
            ShareEffect::Upload(secrets) => Some(secrets),
            ShareEffect::Cancel => return self.sharing = None,
        };
        let (handle, done, env) = (self.link.handle().clone(), self.done.clone(), self.env.clone());
        let state = handle.state();
        // Sent here and not in the task, so that commands keep their order.
        let answer = handle.post(SessionCommand::ReadTree);
        let (cancel, page) = (CancellationToken::new(), SharedPage::default());
        let (cancelled, share) = (cancel.clone(), GistShare::new(&state.id, &env, &page));
        let step = async move { share?.step(&state, answer, secrets).await };
        tokio::spawn(async move {
            let ended = match cancelled.run_until_cancelled(step).await {
                Some(Ok(ShareStep::Checked(found))) => ShareDone::Checked(found),
                Some(Ok(ShareStep::Uploaded(gist))) => ShareDone::Shared(gist),
                Some(Err(error)) => ShareDone::Failed(error),
                None if secrets.is_some() => ShareDone::Cancelled,
                None => return,
            };
            drop(done.send(EffectDone::Share(ended)));
        });
        self.sharing = Some((cancel.drop_guard(), page));
    }
}
