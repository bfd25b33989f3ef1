//! A sign-in in progress: the address, the code, and the progress.

use crate::config::{Secret, SignInStep};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{LinkTarget, Row, Run, Wrap, sanitize_line, wrap_plain};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::{DialogCx, Field, Hints};

use super::super::overlays::{Dialog, Drawn, Overlay, OverlayStep};
use super::LoginMsg;

/// The dialog of a sign-in. Closing it cancels the sign-in.
pub(super) struct SignInDialog {
    title: String,
    phase: Phase,
    note: Option<(String, Token)>,
}

enum Phase {
    /// The service has not returned the address yet.
    Starting,
    /// The address the browser ends at can be pasted.
    Browser {
        url: String,
        pasted: Field,
    },
    Device {
        url: String,
        code: String,
    },
}

impl SignInDialog {
    pub(super) fn new(name: &str) -> Self {
        let note = Some(("contacting the provider…".to_owned(), Token::Muted));
        Self { title: name.to_owned(), phase: Phase::Starting, note }
    }

    /// Shows a step of the sign-in.
    pub(super) fn on_step(&mut self, step: &SignInStep) {
        match step {
            SignInStep::Browser { url } => {
                let starting = matches!(self.phase, Phase::Starting);
                self.phase = Phase::Browser { url: url.clone(), pasted: Field::hidden() };
                // A problem reported before the address stays.
                if starting && self.note.as_ref().is_some_and(|(_, token)| *token == Token::Muted) {
                    self.note = None;
                }
            }
            SignInStep::Device { url, code } => {
                self.phase = Phase::Device { url: url.clone(), code: code.clone() };
                self.note = Some(("waiting for you to enter the code…".to_owned(), Token::Muted));
            }
            SignInStep::Progress(text) => self.note = Some((text.clone(), Token::Muted)),
            SignInStep::Problem(text) => self.note = Some((text.clone(), Token::Warning)),
        }
    }

    fn confirm(&mut self) -> OverlayStep<LoginMsg> {
        match &mut self.phase {
            Phase::Starting => OverlayStep::Stay,
            Phase::Browser { pasted, .. } if !pasted.is_empty() => {
                let text = Secret::typed(pasted.text());
                pasted.clear();
                self.note = None;
                OverlayStep::StayWith(LoginMsg::Pasted(text))
            }
            Phase::Browser { url, .. } | Phase::Device { url, .. } => {
                OverlayStep::StayWith(LoginMsg::Open(url.clone()))
            }
        }
    }

    fn copy(&mut self) -> OverlayStep<LoginMsg> {
        let (text, what) = match &self.phase {
            Phase::Starting => return OverlayStep::Stay,
            Phase::Browser { url, .. } => (url.clone(), "the address"),
            Phase::Device { code, .. } => (code.clone(), "the code"),
        };
        self.note = Some((format!("copied {what}"), Token::Muted));
        OverlayStep::StayWith(LoginMsg::Copy(text))
    }

    fn body(&self, width: u16, theme: &Theme) -> Vec<Row> {
        let text = |text: &str| wrap_plain(text, width, theme.style(Token::Text));
        match &self.phase {
            Phase::Starting => Vec::new(),
            Phase::Browser { url, .. } => {
                let mut rows = text("Open this address in your browser:");
                rows.extend(address(url, width, theme));
                rows.extend(text("If the browser is on another machine, paste the address it ends at:"));
                rows
            }
            Phase::Device { url, code } => {
                let mut rows = text("Open this address in any browser and enter the code:");
                rows.extend(address(url, width, theme));
                rows.extend(wrap_plain(code, width, theme.style(Token::Accent)));
                rows
            }
        }
    }
}

/// An address on as many rows as needed, each a link to it.
fn address(url: &str, width: u16, theme: &Theme) -> Vec<Row> {
    let (text, style) = (sanitize_line(url).into_owned(), theme.style(Token::MdLink));
    let run = match LinkTarget::new(url) {
        Some(link) => Run::linked(text, style, link),
        None => Run::new(text, style),
    };
    Wrap::new(width).runs(&[run])
}

impl Overlay<LoginMsg> for SignInDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<LoginMsg> {
        if let InputEvent::Key(key) = input {
            if keymap.is("app.message.copy", key) {
                return self.copy();
            }
            match keymap.lookup(Context::Select, key) {
                Some("tui.select.cancel") => {
                    return OverlayStep::CloseWith(LoginMsg::Cancelled);
                }
                Some("tui.select.confirm") => return self.confirm(),
                _ => {}
            }
        }
        if let Phase::Browser { pasted, .. } = &mut self.phase {
            pasted.handle(input, keymap);
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let hints = match &self.phase {
            Phase::Starting => Hints::new(),
            Phase::Browser { pasted, .. } if !pasted.is_empty() => Hints::confirm("continue"),
            Phase::Browser { .. } => Hints::confirm("open the browser").key("app.message.copy", "copy it"),
            Phase::Device { .. } => {
                Hints::confirm("open the browser").key("app.message.copy", "copy the code")
            }
        };
        let dialog = Dialog {
            title: &self.title,
            body: self.body(cx.width, cx.theme),
            field: match &self.phase {
                Phase::Browser { pasted, .. } => Some(pasted),
                Phase::Starting | Phase::Device { .. } => None,
            },
            note: self.note.as_ref().map(|(text, token)| (text.as_str(), *token)),
            hints: hints.cancel("cancel"),
        };
        dialog.render(cx)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::super::actions;
    use crate::tui::keymap::{BINDINGS, Platform};

    use super::super::super::overlays::tests::{check_hints, draw};
    use super::*;

    fn screen(dialog: &mut SignInDialog, width: u16, max_rows: u16) -> String {
        let (rows, _) = draw(dialog, width, max_rows);
        assert!(rows.len() <= usize::from(max_rows.max(1)));
        let rows: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
        rows.join("\n")
    }

    fn press(dialog: &mut SignInDialog, code: KeyCode, held: KeyModifiers) -> String {
        let app = actions::bindings();
        let keymap = Keymap::new(&[BINDINGS, &app], Platform::Unix);
        format!("{:?}", dialog.handle(&InputEvent::Key(KeyEvent::new(code, held)), &keymap))
    }

    #[test]
    fn a_browser_is_told_where_to_go_and_its_last_address_can_be_pasted() {
        let mut dialog = SignInDialog::new("Sign in with ChatGPT");
        dialog.on_step(&SignInStep::Browser { url: "https://a.example/authorize?state=1".to_owned() });
        dialog.on_step(&SignInStep::Problem("port 1455 is in use".to_owned()));
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        dialog.handle(&InputEvent::Paste("http://127.0.0.1/canary\n".to_owned()), &keymap);
        insta::assert_snapshot!(screen(&mut dialog, 50, 20), @"
        ──────────────────────────────────────────────────
        Sign in with ChatGPT
        Open this address in your browser:
        https://a.example/authorize?state=1
        If the browser is on another machine, paste the
        address it ends at:
        > •••••••••••••••••••••••
        port 1455 is in use
        enter: continue · escape: cancel
        ");
        let step = press(&mut dialog, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(step, "StayWith(Pasted(Secret(…)))");
        let step = press(&mut dialog, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(step, "StayWith(Open(\"https://a.example/authorize?state=1\"))");
        let step = press(&mut dialog, KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(step, "CloseWith(Cancelled)");
    }

    #[test]
    fn a_device_code_can_be_copied() {
        let mut dialog = SignInDialog::new("Sign in with GitHub");
        let url = "https://github.com/login/device".to_owned();
        dialog.on_step(&SignInStep::Device { url, code: "ABCD-1234".to_owned() });
        insta::assert_snapshot!(screen(&mut dialog, 66, 20), @"
        ──────────────────────────────────────────────────────────────────
        Sign in with GitHub
        Open this address in any browser and enter the code:
        https://github.com/login/device
        ABCD-1234
        waiting for you to enter the code…
        enter: open the browser · ctrl+x: copy the code · escape: cancel
        ");
        let step = press(&mut dialog, KeyCode::Char('x'), KeyModifiers::CONTROL);
        assert_eq!(step, "StayWith(Copy(\"ABCD-1234\"))");
        for (width, max_rows) in [(0, 0), (1, 1), (7, 3), (200, 2)] {
            screen(&mut dialog, width, max_rows);
        }
    }

    #[test]
    fn hints_of_all_steps_name_the_keys_of_the_user() {
        let mut dialog = SignInDialog::new("Sign in");
        check_hints(&mut dialog);
        dialog.on_step(&SignInStep::Browser { url: "https://a.example".to_owned() });
        check_hints(&mut dialog);
        dialog.handle(&InputEvent::Paste("http://127.0.0.1/".to_owned()), &Keymap::new(&[], Platform::Unix));
        check_hints(&mut dialog);
        dialog.on_step(&SignInStep::Device { url: "https://a.example".to_owned(), code: "A-1".to_owned() });
        check_hints(&mut dialog);
    }
}
