//! Pictures of the transcript, on their way to the terminal.
//!
//! A cell that is drawn for the first time asks for its picture ([`PictureGallery`]); a thread
//! unpacks the image, makes it as small as its cells and puts it in the store that the screens
//! draw from. Until then the cell can still change, so that its rows do not leave the screen
//! without their picture.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ai::{ContentBlock, Image, Message, ToolResultMessage, UserContent};
use crate::config::{Env, PictureProtocol, Settings};
use crate::tui::term::{PictureState, PictureStore, TerminalAnswers, picture_strips};
use crate::tui::text::{PictureFormat, PictureId, PictureKey, PictureSize};
use crate::util::image;

use super::app::App;
use super::appearance::in_tmux;
use super::effects::Effects;
use super::msg::{EffectDone, WorldEffect};
use super::terminal_env;

/// Pixels of a cell where the terminal does not say.
const USUAL_CELL: (u16, u16) = (10, 20);
/// A picture is at most that high.
const MAX_ROWS: u16 = 24;

/// How cells show pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PictureView {
    /// Width and height of a cell in pixels.
    pub(crate) cell: (u16, u16),
    pub(crate) max_columns: u16,
    pub(crate) format: PictureFormat,
    pub(crate) gallery: PictureGallery,
}

impl PictureView {
    /// An image of `pixels` in at most `columns`.
    pub(crate) fn key(&self, id: PictureId, pixels: (u32, u32), columns: u16) -> PictureKey {
        let most = PictureSize { columns: self.max_columns.min(columns), rows: MAX_ROWS };
        let size = PictureSize::fit(pixels, self.cell, most);
        PictureKey { id, size, cell: self.cell, format: self.format }
    }

    /// Asks for a picture; without a source, of an image that is in the store.
    pub(crate) fn want(&self, key: PictureKey, source: Option<PictureSource>) {
        let most = PictureSize { columns: self.max_columns.max(key.size.columns), rows: MAX_ROWS };
        let store = self.gallery.store.clone();
        store.expect(key);
        let mut wanted = self.gallery.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.push(PictureRequest { key, most: pixels(most, self.cell), source, store });
    }
}

/// The pictures that cells asked for since the last frame, and those that are there; its copies
/// are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct PictureGallery {
    wanted: Arc<Mutex<Vec<PictureRequest>>>,
    pub(crate) store: PictureStore,
}

impl PartialEq for PictureGallery {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.wanted, &other.wanted)
    }
}

impl Eq for PictureGallery {}

impl PictureGallery {
    pub(crate) fn take_wanted(&self) -> Vec<PictureRequest> {
        std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A picture to be made. If it is dropped before, the picture has failed.
#[derive(Debug, PartialEq)]
pub(crate) struct PictureRequest {
    pub(crate) key: PictureKey,
    /// Most pixels that a picture of this image may ever need.
    most: (u32, u32),
    /// `None` if the store has the image.
    pub(crate) source: Option<PictureSource>,
    store: PictureStore,
}

impl Drop for PictureRequest {
    fn drop(&mut self) {
        if self.store.state(&self.key) == PictureState::Awaited {
            self.store.fail(self.key);
        }
    }
}

impl PictureRequest {
    /// Puts the picture into the store; an image that cannot be read has none. Computes for a
    /// long time.
    pub(crate) fn make(self) {
        let png = match &self.source {
            None => self.store.image(self.key.id),
            Some(source) => source.image().and_then(|image| image::thumbnail_png(&image.data, self.most)),
        };
        let Some(png) = png else { return };
        if self.source.is_some() && self.store.put_image(self.key.id, &png).is_err() {
            return;
        }
        if self.key.format.has_placeholders() {
            return;
        }
        let strips = image::pixels_of_png(&png, pixels(self.key.size, self.key.cell))
            .and_then(|pixels| picture_strips(self.key, &pixels));
        if let Some(strips) = strips {
            // On failure it is dropped, and has failed.
            drop(self.store.put_strips(self.key, &strips));
        }
    }
}

/// The pixels of so many cells.
fn pixels(size: PictureSize, cell: (u16, u16)) -> (u32, u32) {
    (u32::from(size.columns) * u32::from(cell.0), u32::from(size.rows) * u32::from(cell.1))
}

/// Where the bytes of an image are: a message, and the number of the block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PictureSource {
    Result(Arc<ToolResultMessage>, usize),
    Prompt(Arc<Message>, usize),
}

impl PictureSource {
    fn image(&self) -> Option<&Image> {
        let block = match self {
            Self::Result(result, index) => result.content.get(*index)?,
            Self::Prompt(message, index) => match &**message {
                Message::User(user) => match &user.content {
                    UserContent::Blocks(blocks) => blocks.get(*index)?,
                    UserContent::Text(_) => return None,
                },
                Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => return None,
            },
        };
        match block {
            ContentBlock::Image(image) => Some(image),
            ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => None,
        }
    }
}

/// How pictures are shown; `None` if they are lines of text.
pub(super) fn view(
    env: &Env,
    settings: &Settings,
    answers: &TerminalAnswers,
    gallery: &PictureGallery,
) -> Option<PictureView> {
    let format = format(env, settings, answers)?;
    let cell = answers.cell_pixels.or_else(cell_size);
    // Sixels are drawn pixel by pixel.
    let cell = if format == PictureFormat::Sixel { cell? } else { cell.unwrap_or(USUAL_CELL) };
    Some(PictureView { cell, max_columns: settings.image_width_cells, format, gallery: gallery.clone() })
}

/// The format in which this terminal gets pictures; `None` if it gets none.
pub(super) fn format(env: &Env, settings: &Settings, answers: &TerminalAnswers) -> Option<PictureFormat> {
    let kitty = if in_tmux(env) { PictureFormat::KittyInTmux } else { PictureFormat::Kitty };
    let format = match terminal_env::picture_protocol(env, settings) {
        PictureProtocol::Auto => detected(env, answers)?,
        PictureProtocol::Kitty => kitty,
        PictureProtocol::Iterm => PictureFormat::Iterm,
        PictureProtocol::Sixel => PictureFormat::Sixel,
        PictureProtocol::Off => return None,
    };
    // The number of a picture is a colour.
    let has_colors = env.get("NO_COLOR").is_none_or(|value| value.is_empty());
    let is_shown = settings.show_images && (has_colors || !format.has_placeholders());
    is_shown.then_some(format)
}

/// What the terminal is known to show, by its own name and answers, and by the environment where
/// it gave none.
fn detected(env: &Env, answers: &TerminalAnswers) -> Option<PictureFormat> {
    // They keep their own copy of the screen, which has no pictures.
    if in_tmux(env) || env.is_set("STY") || env.is_set("ZELLIJ") {
        return None;
    }
    let version = answers.version.as_deref().unwrap_or_default().to_lowercase();
    let is_named = |name: &str| version.starts_with(name);
    let term = env.get("TERM").unwrap_or_default();
    let program = env.get("TERM_PROGRAM").or_else(|| env.get("LC_TERMINAL")).unwrap_or_default();
    // Others that know the rest of the protocol answer its questions as if they had placeholders.
    if is_named("kitty") && !has_placeholders(&version) {
        return None;
    }
    if is_named("kitty") || is_named("ghostty") {
        return (answers.has_graphics != Some(false)).then_some(PictureFormat::Kitty);
    }
    if is_named("iterm2") || is_named("wezterm") {
        return Some(PictureFormat::Iterm);
    }
    if is_named("konsole") {
        // Its sixels stay when text is written over them.
        return None;
    }
    let is_nameless = version.is_empty();
    match (term.as_str(), program.as_str()) {
        ("xterm-kitty" | "xterm-ghostty", _) | (_, "ghostty") if is_nameless => Some(PictureFormat::Kitty),
        (_, "iTerm.app" | "iTerm2" | "WezTerm") if is_nameless => Some(PictureFormat::Iterm),
        _ => answers.has_sixel.then_some(PictureFormat::Sixel),
    }
}

/// Whether this version of kitty, `kitty(0.26.5)`, has placeholders for images. Earlier ones show them as
/// characters without a glyph.
fn has_placeholders(version: &str) -> bool {
    const FIRST: (u32, u32) = (0, 28);
    let mut numbers = version.trim_start_matches("kitty(").split(['.', ')']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= FIRST,
        _ => true,
    }
}

/// The size of cells after a change of the screen's size, where the terminal does not tell it.
/// Some terminals count their border too, so that one pixel more or less means nothing.
pub(super) fn changed_cell(pictures: &PictureView, answers: &TerminalAnswers) -> Option<(u16, u16)> {
    let cell = cell_size().filter(|_| answers.cell_pixels.is_none())?;
    let before = pictures.cell;
    (cell.0.abs_diff(before.0) > 1 || cell.1.abs_diff(before.1) > 1).then_some(cell)
}

/// Width and height of a cell in pixels; `None` if the system does not know.
pub(super) fn cell_size() -> Option<(u16, u16)> {
    let size = crossterm::terminal::window_size().ok()?;
    let cell = (size.width.checked_div(size.columns)?, size.height.checked_div(size.rows)?);
    (cell.0 > 0 && cell.1 > 0).then_some(cell)
}

/// The pictures that the last frame asked for, if any.
pub(super) fn take_wanted(app: &mut App) -> Option<WorldEffect> {
    let requests = app.transcript.view().pictures.as_ref()?.gallery.take_wanted();
    (!requests.is_empty()).then_some(WorldEffect::Pictures(requests))
}

impl Effects {
    /// Answers with [`EffectDone::PictureMade`] for each.
    pub(super) fn start_pictures(&self, requests: Vec<PictureRequest>) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            for request in requests {
                request.make();
                drop(done.send(EffectDone::PictureMade));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_shown_where_the_terminal_is_known_to_show_them_or_as_set() {
        let check = |env: &[(&str, &str)],
                     said: &str,
                     settings: &[(&str, &str)],
                     expected: Option<PictureFormat>| {
            let values = settings.iter().map(|(key, value)| {
                let (terminal, key) = key.split_once('.').unwrap();
                (
                    terminal.to_owned(),
                    serde_json::json!({ key: serde_json::from_str::<serde_json::Value>(value).unwrap() }),
                )
            });
            let settings = Settings::read(&values.collect()).0;
            let answers = TerminalAnswers::read(said.as_bytes());
            assert_eq!(format(&Env::of(env), &settings, &answers), expected, "{env:?} {said:?} {settings:?}");
        };
        let (kitty, iterm, sixel) =
            (Some(PictureFormat::Kitty), Some(PictureFormat::Iterm), Some(PictureFormat::Sixel));
        // Without answers, the environment decides.
        check(&[("TERM", "xterm-kitty")], "", &[], kitty);
        check(&[("TERM", "xterm-ghostty")], "", &[], kitty);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], "", &[], kitty);
        check(&[("TERM_PROGRAM", "iTerm.app")], "", &[], iterm);
        check(&[("LC_TERMINAL", "iTerm2"), ("SSH_TTY", "/dev/pts/1")], "", &[], iterm);
        check(&[("TERM_PROGRAM", "WezTerm")], "", &[], iterm);
        check(&[("TERM", "xterm-256color")], "", &[], None);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], "\x1b[?1;2c", &[], None);
        // By its answers, also over ssh.
        check(&[("TERM", "xterm-256color")], "\x1bP>|kitty(0.40.1)\x1b\\\x1b[?62;c", &[], kitty);
        check(
            &[("TERM", "xterm-kitty")],
            "\x1bP>|kitty(0.26.5)\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;c",
            &[],
            None,
        );
        check(
            &[("TERM", "xterm-kitty")],
            "\x1bP>|kitty(0.28.0)\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;c",
            &[],
            kitty,
        );
        check(&[("TERM", "xterm-kitty")], "\x1bP>|kitty(1.0)\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;c", &[], kitty);
        check(&[], "\x1bP>|ghostty 1.2.0\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;22;52c", &[], kitty);
        check(&[], "\x1bP>|ghostty 1.2.0\x1b\\\x1b_Gi=31;EINVAL:off\x1b\\\x1b[?62;22;52c", &[], None);
        check(&[], "\x1bP>|iTerm2 3.5.11\x1b\\\x1b[?64;1;2;4;6c", &[], iterm);
        check(&[], "\x1bP>|WezTerm 20240203\x1b\\\x1b[?65;4;6;18;22c", &[], iterm);
        check(&[("TERM", "foot")], "\x1bP>|foot(1.20.2)\x1b\\\x1b[?62;4;22;28;52c", &[], sixel);
        check(&[], "\x1bP>|XTerm(390)\x1b\\\x1b[?63;1;2;4;6;9;15;22c", &[], sixel);
        check(&[], "\x1bP>|XTerm(390)\x1b\\\x1b[?64;1;2;6;9;15;22c", &[], None);
        check(&[], "\x1bP>|Konsole 24.02.0\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;1;4c", &[], None);
        // Within others that have a copy of the screen.
        check(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux")], "", &[], None);
        check(&[("TMUX", "/tmp/tmux")], "\x1bP>|tmux 3.5\x1b\\\x1b[?1;2;4c", &[], None);
        check(&[("TERM", "xterm-kitty"), ("ZELLIJ", "0")], "", &[], None);
        check(&[("TERM", "screen"), ("STY", "1"), ("LC_TERMINAL", "iTerm2")], "", &[], None);
        // As set.
        check(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")], "", &[], None);
        check(&[("TERM_PROGRAM", "WezTerm"), ("NO_COLOR", "1")], "", &[], iterm);
        check(&[], "", &[("terminal.images", "\"kitty\"")], kitty);
        check(&[("TMUX", "1")], "", &[("terminal.images", "\"kitty\"")], Some(PictureFormat::KittyInTmux));
        check(&[], "", &[("terminal.images", "\"iterm2\"")], iterm);
        check(&[("ZELLIJ", "0")], "", &[("terminal.images", "\"sixel\"")], sixel);
        check(&[("TERM", "xterm-kitty")], "", &[("terminal.images", "\"off\"")], None);
        check(&[("TERM", "xterm-kitty")], "", &[("terminal.showImages", "false")], None);
    }

    #[test]
    fn a_request_that_nobody_fulfils_fails_its_picture() {
        let gallery = PictureGallery::default();
        let format = PictureFormat::Sixel;
        let view = PictureView { cell: (10, 20), max_columns: 60, format, gallery: gallery.clone() };
        let key = view.key(PictureId::of_hash(1), (30, 30), 80);
        view.want(key, None);
        assert_eq!(gallery.store.state(&key), PictureState::Awaited);
        drop(gallery.take_wanted());
        assert_eq!(gallery.store.state(&key), PictureState::Failed);
    }
}
