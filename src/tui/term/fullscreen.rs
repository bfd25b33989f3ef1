//! The fullscreen window: the whole alternate screen, without scrollback.
//!
//! The caller decides which rows are on it; the window writes only the cells that
//! differ from the last frame. Nothing it writes reaches the scrollback: it never
//! scrolls. Whoever switches the terminal to the alternate screen creates the window
//! afterwards.

use std::borrow::Cow;
use std::io::{self, Write};

use ratatui::layout::{Position, Size};

use super::super::text::Row;
use super::canvas::{Abilities, Canvas, Erasing, LostPictures};
use super::cell_grid::narrow;
use super::picture_store::PictureStore;

/// A window of the size of the screen. `W` is the terminal, or an emulator in tests.
#[derive(Debug)]
pub struct FullscreenWindow<W> {
    canvas: Canvas<W>,
    /// Whether the screen may show something else than the window knows.
    is_stale: bool,
}

impl<W: Write> FullscreenWindow<W> {
    /// A window on a screen of unknown contents.
    pub fn new(sink: W, size: Size) -> Self {
        let mut canvas = Canvas::new(sink, size, Position::new(0, 0));
        canvas.let_pictures_wait();
        Self { canvas, is_stale: true }
    }

    /// Where the pictures of rows are; without it they are not drawn.
    pub fn set_pictures(&mut self, store: PictureStore) {
        self.canvas.set_pictures(store);
    }

    /// How cells are written; by default without links.
    pub fn set_abilities(&mut self, abilities: Abilities) {
        self.canvas.set_abilities(abilities);
    }

    pub fn size(&self) -> Size {
        self.canvas.size()
    }

    /// The cells; for its pictures, which wait until rows no longer move.
    pub fn canvas_mut(&mut self) -> &mut Canvas<W> {
        &mut self.canvas
    }

    pub fn sink_mut(&mut self) -> &mut W {
        self.canvas.sink_mut()
    }

    pub fn sink(&self) -> &W {
        self.canvas.sink()
    }

    /// Adopts a new size; the next frame draws everything.
    pub fn resize(&mut self, size: Size) {
        self.canvas.set_size(size);
        self.is_stale = true;
    }

    /// Draws everything with the next frame, because another program used the screen.
    pub fn resume(&mut self) {
        self.canvas.forget_pictures(LostPictures::Numbered);
        self.repaint();
    }

    /// Draws everything with the next frame, because the looks changed.
    pub fn repaint(&mut self) {
        self.canvas.forget();
        self.is_stale = true;
    }

    /// Shows `rows` from the first screen row on, and blank rows below them, with at most one
    /// write. `cursor` is where the terminal's cursor is; `None` hides it.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn draw<'r>(
        &mut self,
        rows: impl IntoIterator<Item = Cow<'r, Row>>,
        cursor: Option<Position>,
    ) -> io::Result<()> {
        let size = self.size();
        if std::mem::take(&mut self.is_stale) {
            self.canvas.erase_from_row(0, Erasing::InPlace)?;
        }
        let mut rows: Vec<Cow<'r, Row>> = rows.into_iter().take(usize::from(size.height)).collect();
        rows.resize_with(usize::from(size.height), Cow::default);
        let last = narrow(rows.len()).saturating_sub(1);
        self.canvas.show((0..size.height).zip(rows))?;
        let at = cursor.unwrap_or(Position::new(0, last));
        let at = Position::new(at.x.min(size.width - 1), at.y.min(size.height - 1));
        self.canvas.place_cursor(at, cursor.is_some())?;
        self.canvas.flush()
    }
}
