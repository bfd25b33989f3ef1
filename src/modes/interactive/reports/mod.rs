//! Reports: texts that commands show over the screen, to scroll and to search.
//!
//! `dialog` shows them; `outputs` finds what tools and commands printed, which is in the session or in
//! files. What a report says is the business of `session_facts`, `context_facts`, `doctor` and
//! `reference`.

mod dialog;
mod outputs;

use std::sync::Arc;

use crate::session::SessionTree;

use super::super::changelog;
use super::app::App;
use super::effects::Effects;
use super::msg::{Effect, EffectDone, WorldEffect};
use super::reference;

pub(super) use dialog::ReportDialog;
#[cfg(test)]
pub(super) use outputs::report as outputs_of;

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportKind {
    Hotkeys,
    Changelog,
    Session,
    Context,
    Doctor,
    /// What tools and commands printed.
    Outputs,
}

impl ReportKind {
    fn title(self) -> &'static str {
        match self {
            Self::Hotkeys => "Keys and commands",
            Self::Changelog => "What changed in pi",
            Self::Session => "Session",
            Self::Context => "Context of the next request",
            Self::Doctor => "Terminal, files and providers",
            Self::Outputs => "Complete output of tools and commands",
        }
    }
}

/// Something to find out.
#[derive(Debug, PartialEq)]
pub(super) enum ReportEffect {
    /// Reads what the session cost.
    Session,
    /// Estimates the parts of the next request.
    Context,
    /// Examines terminal, files and providers.
    Doctor,
    /// Lists what tools and commands printed.
    Outputs,
    /// Reads all of an output.
    Output(OutputSource),
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum ReportDone {
    /// Markdown, and the texts it is about.
    Report { kind: ReportKind, markdown: String, chapters: Vec<Chapter> },
    /// Lines of a chapter.
    Chapter { source: OutputSource, lines: String },
}

/// A text that can be read from a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chapter {
    pub(super) name: String,
    /// What it differs in from others, such as its size.
    pub(super) note: String,
    pub(super) text: ChapterText,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChapterText {
    Here(Arc<str>),
    Output(OutputSource),
}

/// An entry whose output can be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OutputSource {
    tree: SessionTree,
    entry: usize,
}

/// Shows a report; its text follows when it is known.
pub(super) fn open(app: &mut App, kind: ReportKind, out: &mut Vec<Effect>) {
    let (highlighter, links) = (app.transcript.highlighter().clone(), app.transcript.view().links);
    let mut dialog = ReportDialog::new(kind, highlighter, links);
    let effect = match kind {
        ReportKind::Hotkeys => {
            dialog.show(&reference::hotkeys(&app.keymap), Vec::new());
            None
        }
        ReportKind::Changelog => {
            dialog.show(&changelog::whole(), Vec::new());
            None
        }
        ReportKind::Session => Some(ReportEffect::Session),
        ReportKind::Context => Some(ReportEffect::Context),
        ReportKind::Doctor => Some(ReportEffect::Doctor),
        ReportKind::Outputs => Some(ReportEffect::Outputs),
    };
    app.dialogs.show(dialog);
    out.extend(effect.map(|effect| WorldEffect::Report(effect).into()));
}

impl Effects {
    /// Answers with [`EffectDone::Report`].
    pub(super) fn start_report(&self, effect: ReportEffect) {
        match effect {
            ReportEffect::Session => self.describe_session(),
            ReportEffect::Context => self.describe_context(),
            ReportEffect::Doctor => self.examine(),
            ReportEffect::Outputs => self.list_outputs(),
            ReportEffect::Output(source) => {
                let done = self.done.clone();
                tokio::task::spawn_blocking(move || {
                    let lines = outputs::read(&source);
                    drop(done.send(EffectDone::Report(ReportDone::Chapter { source, lines })));
                });
            }
        }
    }
}
