//! The pictures on one screen: what the terminal has of them, and what is still to be drawn.
//!
//! A terminal keeps pictures by number for each of its two screens, and forgets those of the
//! alternate screen whenever a program enters it. So each screen gets what its rows show when
//! they show it.

use std::collections::HashMap;
use std::io;

use ratatui::layout::{Position, Size};

use super::super::text::{PictureId, PictureSize, RowPicture};
use super::cell_grid::CellGrid;
use super::frame_bytes::FrameBytes;
use super::picture_codec::kitty;
use super::picture_store::{PictureState, PictureStore};

/// The pictures of a canvas.
#[derive(Debug, Default)]
pub(super) struct ScreenPictures {
    pub(super) store: Option<PictureStore>,
    /// The pictures that the terminal has by number, with the size of their placeholders.
    pub(super) placed: HashMap<PictureId, PictureSize>,
    /// Whether pictures that are drawn over the text wait for [`Self::draw_all`], because rows of
    /// this screen are drawn again whenever they move.
    pub(super) wait_for_rest: bool,
    /// Whether rows with such pictures changed since this was asked.
    pub(super) have_moved: bool,
}

impl ScreenPictures {
    /// Writes the pictures that rows of `grid` miss, as far as they are there.
    pub(super) fn draw(&mut self, grid: &mut CellGrid, size: Size, out: &mut FrameBytes) -> io::Result<()> {
        self.write(grid, size, !self.wait_for_rest, out)
    }

    /// The same, also for those that wait.
    pub(super) fn draw_all(
        &mut self,
        grid: &mut CellGrid,
        size: Size,
        out: &mut FrameBytes,
    ) -> io::Result<()> {
        self.write(grid, size, true, out)
    }

    /// Whether [`Self::draw_all`] would write something.
    pub(super) fn are_waiting(&self, grid: &CellGrid, size: Size) -> bool {
        let Some(store) = self.store.as_ref().filter(|_| self.wait_for_rest) else { return false };
        let is_ready = |picture: RowPicture| {
            !picture.key.format.has_placeholders() && store.state(&picture.key) == PictureState::Ready
        };
        (0..last_row(size)).filter_map(|y| grid.missing_picture(y)).any(is_ready)
    }

    fn write(
        &mut self,
        grid: &mut CellGrid,
        size: Size,
        with_strips: bool,
        out: &mut FrameBytes,
    ) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        for y in 0..size.height {
            let Some(picture) = grid.missing_picture(y) else { continue };
            if picture.key.format.has_placeholders() {
                let key = picture.key;
                let has_size = self.placed.get(&key.id).copied();
                let is_placed = has_size == Some(key.size);
                let png = if has_size.is_none() { store.image(key.id) } else { None };
                if !is_placed && (has_size.is_some() || png.is_some()) {
                    out.push(kitty(key, png.as_deref()));
                    self.placed.insert(key.id, key.size);
                }
                if is_placed || self.placed.contains_key(&key.id) {
                    grid.set_picture_drawn(y);
                }
            } else if with_strips && y < last_row(size) && store.state(&picture.key) == PictureState::Ready {
                if let Some(strip) = store.strip(&picture.key, picture.row) {
                    write_strip(grid, y, picture, &strip, out)?;
                }
                // One that cannot be read is not tried again.
                grid.set_picture_drawn(y);
            }
        }
        Ok(())
    }
}

/// The row that no strip is drawn on: some terminals scroll after a picture on the last row.
pub(super) fn last_row(size: Size) -> u16 {
    size.height.saturating_sub(1)
}

fn write_strip(
    grid: &CellGrid,
    y: u16,
    picture: RowPicture,
    strip: &[u8],
    out: &mut FrameBytes,
) -> io::Result<()> {
    if picture.row == 0 {
        // The label must not be seen through the picture.
        let blanks = grid.blanks(picture.column, y, picture.key.size.columns);
        let cells: Vec<_> = (picture.column..).zip(&blanks).map(|(x, cell)| (x, y, cell)).collect();
        out.draw(&cells)?;
    }
    out.draw_picture(Position::new(picture.column, y), strip)
}
