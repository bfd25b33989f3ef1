//! Pictures among rows: which picture, how large, and which part of it a row shows.

/// The longest side of a picture in cells: there is no placeholder for more.
const MOST_CELLS: u16 = 297;

/// The number of an image, from 1 to 2²⁴ - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureId(u32);

impl PictureId {
    /// The number for an image with this hash: the same image has the same number in a later
    /// run too, whose rows may be in the same scrollback.
    pub fn of_hash(hash: u64) -> Self {
        // The remainder is below 2²⁴ - 1.
        Self(u32::try_from(hash % 0xff_ffff).unwrap_or_default() + 1)
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

/// The size of a picture on the screen, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureSize {
    pub columns: u16,
    pub rows: u16,
}

impl PictureSize {
    /// The size of a picture of `pixels` on cells of `cell` pixels (width, height), at most
    /// `most`. It keeps its proportions and is not enlarged.
    pub fn fit(pixels: (u32, u32), cell: (u16, u16), most: Self) -> Self {
        let columns = f64::from(pixels.0.max(1)) / f64::from(cell.0.max(1));
        let rows = f64::from(pixels.1.max(1)) / f64::from(cell.1.max(1));
        let most = Self { columns: most.columns.clamp(1, MOST_CELLS), rows: most.rows.clamp(1, MOST_CELLS) };
        let scale = (f64::from(most.columns) / columns).min(f64::from(most.rows) / rows).min(1.0);
        // The casts saturate.
        let cells = |natural: f64, most: u16| ((natural * scale).ceil() as u16).clamp(1, most);
        Self { columns: cells(columns, most.columns), rows: cells(rows, most.rows) }
    }
}

/// How a terminal shows pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PictureFormat {
    /// By number, where the text has placeholders for it (kitty graphics protocol).
    Kitty,
    /// The same, passed through tmux to the terminal around it.
    KittyInTmux,
    /// Drawn at the cursor (iTerm2's OSC 1337).
    Iterm,
    /// Drawn at the cursor, in 256 colours.
    Sixel,
}

impl PictureFormat {
    /// Whether characters of the text show the picture, so that the terminal needs it only once.
    /// Otherwise every row of the picture is drawn over its cells.
    pub fn has_placeholders(self) -> bool {
        match self {
            Self::Kitty | Self::KittyInTmux => true,
            Self::Iterm | Self::Sixel => false,
        }
    }
}

/// A picture as a terminal gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureKey {
    pub id: PictureId,
    pub size: PictureSize,
    /// Width and height of a cell in pixels.
    pub cell: (u16, u16),
    pub format: PictureFormat,
}

/// The part of a picture that one row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPicture {
    pub key: PictureKey,
    /// Number of the picture's row, from 0.
    pub row: u16,
    /// The column that it begins in.
    pub column: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_keep_their_proportions_within_the_limits() {
        let check = |pixels, most: (u16, u16), expected: (u16, u16)| {
            let size = PictureSize::fit(pixels, (10, 20), PictureSize { columns: most.0, rows: most.1 });
            assert_eq!((size.columns, size.rows), expected, "{pixels:?}");
        };
        check((100, 100), (60, 24), (10, 5));
        check((101, 101), (60, 24), (11, 6));
        check((6_000, 2_000), (60, 24), (60, 10));
        check((1_170, 2_532), (60, 24), (23, 24));
        check((1, 1), (60, 24), (1, 1));
        check((0, 0), (0, 0), (1, 1));
        check((u32::MAX, 1), (60, 24), (60, 1));
        check((u32::MAX, u32::MAX), (u16::MAX, u16::MAX), (297, 149));
    }
}
