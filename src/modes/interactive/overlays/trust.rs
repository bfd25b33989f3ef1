//! The dialog that asks whether to trust a project.

use std::path::Path;

use crate::session::{ProjectState, TrustChoice};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::wrap_plain;
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints, ListState, ListStep};

use super::super::super::trust::TrustQuestion;
use super::dialog::Dialog;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

/// A dialog about one folder.
pub(in super::super) struct TrustDialog {
    title: String,
    about: Vec<String>,
    options: Vec<(TrustChoice, String)>,
    list: ListState,
    /// Whether it is still undecided; closing it is a decision too.
    is_open: bool,
}

impl TrustDialog {
    /// Asks about `cwd`; paths are shown with `~` for `home`.
    pub(in super::super) fn new(project: &ProjectState, cwd: &Path, home: Option<&Path>) -> Self {
        let TrustQuestion { title, about, options, is_open } = TrustQuestion::new(project, cwd, home);
        Self { title, about, options, list: ListState::default(), is_open }
    }
}

impl Overlay for TrustDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match self.list.on_key(key, keymap, self.options.len()) {
            ListStep::Moved | ListStep::Ignored => {}
            ListStep::Confirmed => {
                if let Some((choice, _)) = self.options.get(self.list.selected()) {
                    return OverlayStep::CloseWith(DialogOutcome::TrustChosen(*choice));
                }
            }
            ListStep::Cancelled if self.is_open => {
                return OverlayStep::CloseWith(DialogOutcome::TrustChosen(TrustChoice::NotNow));
            }
            ListStep::Cancelled => return OverlayStep::Close,
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let muted = cx.theme.style(Token::Muted);
        let body = self.about.iter().flat_map(|line| wrap_plain(line, cx.width.max(1), muted)).collect();
        let labels: Vec<&str> = self.options.iter().map(|(_, label)| label.as_str()).collect();
        let hints = Hints::confirm("choose").cancel(if self.is_open { "not now" } else { "leave" });
        let dialog = Dialog { title: &self.title, body, field: None, note: None, hints };
        dialog.render_choices((&mut self.list, &labels), cx)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::config::Trust;
    use crate::session::OutsideLink;
    use crate::tui::keymap::{BINDINGS, Platform};

    use super::super::tests::draw;
    use super::*;

    fn dialog(protected: &[&str]) -> TrustDialog {
        let protected: Vec<PathBuf> = protected.iter().map(PathBuf::from).collect();
        let project =
            ProjectState { trust: Trust::Undecided, protected: protected.into(), ..ProjectState::default() };
        TrustDialog::new(&project, Path::new("/home/me/proj"), Some(Path::new("/home/me")))
    }

    fn shown(dialog: &mut TrustDialog, width: u16, max_rows: u16) -> String {
        let (rows, _) = draw(dialog, width, max_rows);
        assert!(rows.len() <= usize::from(max_rows.max(1)));
        rows.iter().map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    fn press(dialog: &mut TrustDialog, codes: &[KeyCode]) -> Option<TrustChoice> {
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let mut chosen = None;
        for &code in codes {
            let key = InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
            if let OverlayStep::CloseWith(DialogOutcome::TrustChosen(choice)) = dialog.handle(&key, &keymap) {
                chosen = Some(choice);
            }
        }
        chosen
    }

    #[test]
    fn it_names_the_folder_and_what_is_in_it() {
        let mut dialog =
            dialog(&["/home/me/proj/.pi/skills", "/home/me/proj/.pi/\u{1b}[2Jx", "/home/me/.agents/skills"]);
        insta::assert_snapshot!(shown(&mut dialog, 60, 20), @"
        ────────────────────────────────────────────────────────────
        Do you trust ~/proj?
        It contains .pi/skills, .pi/<U+001B>[2Jx, ~/.agents/skills.
        A project's skills, templates, settings and system prompts
        tell the model what to do on your machine. Trust them only
        if you know who wrote them.
        → Not now
          Trust this folder
          Trust parent folder (~)
          Trust it until pi exits
          Don't trust
        enter: choose · escape: not now
        ");
        insta::assert_snapshot!(shown(&mut dialog, 30, 8), @"
        ──────────────────────────────
        Do you trust ~/proj?
        → Not now
          Trust this folder
          Trust parent folder (~)
          Trust it until pi exits
          Don't trust
        escape: not now
        ");
    }

    #[test]
    fn a_link_out_of_the_project_is_shown_with_its_target() {
        let link =
            OutsideLink { path: "/home/me/proj/AGENTS.md".into(), target: "/home/me/.ssh/\u{202e}id".into() };
        let project =
            ProjectState { trust: Trust::Undecided, links: [link].into(), ..ProjectState::default() };
        let mut dialog = TrustDialog::new(&project, Path::new("/home/me/proj"), Some(Path::new("/home/me")));
        let shown = shown(&mut dialog, 100, 20);
        assert!(
            shown.contains("It contains AGENTS.md (a link to ~/.ssh/<U+202E>id, outside the project)."),
            "{shown}"
        );
    }

    #[test]
    fn every_key_leads_to_its_choice() {
        let check = |codes: &[KeyCode], expected| {
            assert_eq!(press(&mut dialog(&["/home/me/proj/.pi/skills"]), codes), expected, "{codes:?}");
        };
        let down = |n: usize| [vec![KeyCode::Down; n], vec![KeyCode::Enter]].concat();
        // Typed before the user could see the dialog.
        check(
            &[KeyCode::Char('f'), KeyCode::Char('i'), KeyCode::Char('x'), KeyCode::Enter],
            Some(TrustChoice::NotNow),
        );
        check(&down(1), Some(TrustChoice::Folder));
        check(&down(2), Some(TrustChoice::Parent));
        check(&down(3), Some(TrustChoice::Session));
        check(&[KeyCode::Up, KeyCode::Enter], Some(TrustChoice::No));
        check(&[KeyCode::Down, KeyCode::Esc], Some(TrustChoice::NotNow));
        check(&[KeyCode::Char('y'), KeyCode::Tab], None);
    }

    #[test]
    fn to_look_at_a_decision_does_not_change_it() {
        for (trust, now) in
            [(Trust::Trusted, "It is currently trusted."), (Trust::Refused, "It is currently not trusted.")]
        {
            let protected = [PathBuf::from("/p/.pi/skills")];
            let project = ProjectState { trust, protected: protected.into(), ..ProjectState::default() };
            let mut dialog = TrustDialog::new(&project, Path::new("/p"), None);
            assert!(shown(&mut dialog, 60, 20).contains(now));
            assert_eq!(press(&mut dialog, &[KeyCode::Esc]), None);
        }
    }

    #[test]
    fn any_size_is_survived() {
        let mut dialog = dialog(&["/home/me/proj/.pi/skills"; 12]);
        for width in 0..9 {
            for max_rows in 0..12 {
                shown(&mut dialog, width, max_rows);
            }
        }
    }
}
