//! A report over the screen, and the texts that can be read from it.

use crate::tui::keymap::Keymap;
use crate::tui::markdown::Highlighter;
use crate::tui::term::InputEvent;
use crate::tui::text::sanitize_line;
use crate::tui::widgets::{
    DialogCx, Hints, Lines, LinesText, MarkdownText, PagedText, Pager, PagerFrame, PagerOutcome, Picker,
    PickerItem, PickerOutcome, WholeText,
};

use super::super::msg::WorldEffect;
use super::super::overlays::{Drawn, Overlay, OverlayStep};
use super::{Chapter, ChapterText, OutputSource, ReportDone, ReportEffect, ReportKind};

/// A report, a list of texts, or one of these.
pub(in super::super) struct ReportDialog {
    kind: ReportKind,
    highlighter: Highlighter,
    shows_links: bool,
    report: Reading,
    chapters: Vec<Chapter>,
    list: Picker<usize>,
    stage: Stage,
}

enum Stage {
    Report,
    List,
    Chapter {
        reading: Box<Reading>,
        /// What is being read; `None` if it is there.
        awaited: Option<OutputSource>,
    },
}

/// A text with its view.
struct Reading {
    pager: Pager,
    text: Box<dyn PagedText>,
}

impl Reading {
    fn of_lines(title: &str, text: &str, kind: Lines) -> Self {
        let text = LinesText::new(WholeText::new(text), kind);
        Self { pager: Pager::new(title), text: Box::new(text) }
    }
}

impl ReportDialog {
    /// A report whose text is not known yet.
    pub(super) fn new(kind: ReportKind, highlighter: Highlighter, shows_links: bool) -> Self {
        let report = Reading::of_lines(kind.title(), "reading…", Lines::Plain);
        let list = Picker::new(kind.title(), Vec::new());
        Self { kind, highlighter, shows_links, report, chapters: Vec::new(), list, stage: Stage::Report }
    }

    /// Shows the text, and the list of texts if there is only that.
    pub(super) fn show(&mut self, markdown: &str, chapters: Vec<Chapter>) {
        let text = MarkdownText::new(markdown, self.highlighter.clone(), self.shows_links);
        self.report = Reading { pager: Pager::new(self.kind.title()), text: Box::new(text) };
        if !chapters.is_empty() {
            self.report.pager.set_hints(Hints::confirm("read a part"));
        }
        let item = |(at, chapter): (usize, &Chapter)| PickerItem::new(at, &chapter.name).note(&chapter.note);
        let items = chapters.iter().enumerate().map(item).collect();
        let back = if markdown.is_empty() { "close" } else { "back" };
        self.list = Picker::new(self.kind.title(), items).hints(Hints::confirm("read").cancel(back));
        self.chapters = chapters;
        self.stage = if self.is_list_alone() { Stage::List } else { Stage::Report };
    }

    /// Whether there is no report above the list.
    fn is_list_alone(&self) -> bool {
        self.kind == ReportKind::Outputs && !self.chapters.is_empty()
    }

    fn open_chapter(&mut self, at: usize) -> OverlayStep {
        let Some(chapter) = self.chapters.get(at) else { return OverlayStep::Stay };
        let title = sanitize_line(&chapter.name);
        match &chapter.text {
            ChapterText::Here(text) => {
                let reading = Box::new(Reading::of_lines(&title, text, Lines::Plain));
                self.stage = Stage::Chapter { reading, awaited: None };
                OverlayStep::Stay
            }
            ChapterText::Output(source) => {
                let reading = Box::new(Reading::of_lines(&title, "reading…", Lines::Plain));
                let effect = WorldEffect::Report(ReportEffect::Output(source.clone()));
                self.stage = Stage::Chapter { reading, awaited: Some(source.clone()) };
                OverlayStep::StayWith(effect.into())
            }
        }
    }

    fn on_list(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.list.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Chosen(at) => self.open_chapter(at),
            PickerOutcome::Cancelled if self.is_list_alone() => OverlayStep::Close,
            PickerOutcome::Cancelled => {
                self.stage = Stage::Report;
                OverlayStep::Stay
            }
        }
    }
}

/// Whether an input confirms.
fn confirms(input: &InputEvent, keymap: &Keymap) -> bool {
    matches!(input, InputEvent::Key(key) if keymap.is("tui.select.confirm", key))
}

impl Overlay for ReportDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let Reading { pager, text } = match &mut self.stage {
            Stage::List => return self.on_list(input, keymap),
            Stage::Report => &mut self.report,
            Stage::Chapter { reading, .. } => reading,
        };
        let outcome = pager.handle(input, keymap, &mut **text);
        match (&self.stage, outcome) {
            (_, PagerOutcome::Pending) => {}
            (Stage::Report, PagerOutcome::Closed) => return OverlayStep::Close,
            (_, PagerOutcome::Closed) => self.stage = Stage::List,
            (Stage::Report, PagerOutcome::Ignored) if confirms(input, keymap) => {
                if self.chapters.is_empty() {
                    return OverlayStep::Close;
                }
                self.stage = Stage::List;
            }
            (_, PagerOutcome::Ignored) => {}
        }
        OverlayStep::Stay
    }

    fn on_report(&mut self, done: ReportDone) -> Option<ReportDone> {
        match (done, &mut self.stage) {
            (ReportDone::Report { kind, markdown, chapters }, _) if kind == self.kind => {
                self.show(&markdown, chapters);
                None
            }
            (ReportDone::Chapter { source, lines }, Stage::Chapter { reading, awaited })
                if *awaited == Some(source.clone()) =>
            {
                reading.text = Box::new(LinesText::new(WholeText::new(lines), Lines::Output));
                *awaited = None;
                None
            }
            (done, _) => Some(done),
        }
    }

    fn pager(&mut self) -> Option<&mut Pager> {
        match &mut self.stage {
            Stage::Report => Some(&mut self.report.pager),
            Stage::Chapter { reading, .. } => Some(&mut reading.pager),
            Stage::List => None,
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let Reading { pager, text } = match &mut self.stage {
            Stage::List => {
                let drawn = self.list.render(cx);
                return (drawn.rows, drawn.cursor);
            }
            Stage::Report => &mut self.report,
            Stage::Chapter { reading, .. } => reading,
        };
        pager.render(&mut **text, PagerFrame::Overlay, cx)
    }
}
