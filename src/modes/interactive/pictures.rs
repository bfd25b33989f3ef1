//! Pictures of the transcript, on their way to the terminal.
//!
//! A cell that is drawn for the first time asks for its picture ([`PictureQueue`]); a thread
//! unpacks the image and makes it as small as its cells; then the terminal gets it, and the
//! bytes leave memory. The placeholders of the cell may be on the screen before that.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ai::{ContentBlock, Image, Message, ToolResultMessage, UserContent};
use crate::config::{Env, PictureProtocol, Settings};
use crate::tui::term::Control;
use crate::tui::widgets::{PictureId, PictureSize};
use crate::util::image;

use super::app::App;
use super::appearance::in_tmux;
use super::effects::Effects;
use super::msg::{Effect, EffectDone, ScreenEffect, WorldEffect};

/// Pixels of a cell where the terminal does not say.
const USUAL_CELL: (u16, u16) = (10, 20);

/// How cells show pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PictureView {
    /// Width and height of a cell in pixels.
    pub(crate) cell: (u16, u16),
    pub(crate) max_columns: u16,
    pub(crate) queue: PictureQueue,
}

/// The pictures that cells asked for since the last frame; its copies are one queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct PictureQueue(Arc<Mutex<Vec<PictureRequest>>>);

impl PartialEq for PictureQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PictureQueue {}

impl PictureQueue {
    pub(crate) fn push(&self, request: PictureRequest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    pub(crate) fn take(&self) -> Vec<PictureRequest> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A picture that the terminal is to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PictureRequest {
    pub(crate) id: PictureId,
    pub(crate) size: PictureSize,
    pub(crate) cell: (u16, u16),
    /// `None` if the terminal has it already.
    pub(crate) source: Option<PictureSource>,
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

/// Pictures for one of the two screens, which keep their pictures apart.
#[derive(Debug, PartialEq)]
pub(super) struct PicturesEffect {
    requests: Vec<PictureRequest>,
    in_pager: bool,
}

/// They are ready to be sent.
#[derive(Debug)]
pub(super) struct PicturesDone {
    controls: Vec<Control>,
    in_pager: bool,
}

/// How pictures are shown; `None` if they are lines of text.
pub(super) fn view(env: &Env, settings: &Settings, before: Option<&PictureView>) -> Option<PictureView> {
    // The number of a picture is a colour.
    let has_colors = env.get("NO_COLOR").is_none_or(|value| value.is_empty());
    let is_shown = settings.show_images
        && has_colors
        && match settings.picture_protocol {
            PictureProtocol::Auto => has_placeholders(env),
            PictureProtocol::Kitty => true,
            PictureProtocol::Off => false,
        };
    is_shown.then(|| PictureView {
        cell: cell_size().unwrap_or(USUAL_CELL),
        max_columns: settings.image_width_cells,
        queue: before.map(|before| before.queue.clone()).unwrap_or_default(),
    })
}

/// Width and height of a cell in pixels; `None` if the terminal does not say.
fn cell_size() -> Option<(u16, u16)> {
    let size = crossterm::terminal::window_size().ok()?;
    let cell = (size.width.checked_div(size.columns)?, size.height.checked_div(size.rows)?);
    (cell.0 > 0 && cell.1 > 0).then_some(cell)
}

/// Whether this terminal shows pictures by placeholders. Others that know the rest of the
/// protocol answer its questions as if they did, so only names tell.
pub(super) fn has_placeholders(env: &Env) -> bool {
    let term = env.get("TERM").unwrap_or_default();
    let program = env.get("TERM_PROGRAM").unwrap_or_default();
    let is_within = in_tmux(env) || env.is_set("STY") || env.is_set("ZELLIJ");
    !is_within && (matches!(term.as_str(), "xterm-kitty" | "xterm-ghostty") || program == "ghostty")
}

/// The pictures that the last frame asked for, if any.
pub(super) fn take_wanted(app: &mut App) -> Option<WorldEffect> {
    let requests = app.transcript.view().pictures.as_ref()?.queue.take();
    let in_pager = app.pager.is_some();
    (!requests.is_empty()).then_some(WorldEffect::Pictures(PicturesEffect { requests, in_pager }))
}

/// Sends pictures to the screen they are for.
pub(super) fn on_done(app: &mut App, done: PicturesDone, out: &mut Vec<Effect>) {
    let PicturesDone { controls, in_pager } = done;
    match (in_pager, app.pager.is_some()) {
        // The rows are gone.
        (true, false) => {}
        (false, true) => app.pictures_waiting.extend(controls),
        (true, true) | (false, false) => {
            out.extend(controls.into_iter().map(|control| ScreenEffect::Control(control).into()));
        }
    }
}

/// Pictures of the main screen that were ready while another screen was shown.
pub(super) fn take_waiting(app: &mut App) -> Vec<Control> {
    if app.pager.is_some() { Vec::new() } else { std::mem::take(&mut app.pictures_waiting) }
}

impl Effects {
    pub(super) fn start_pictures(&self, effect: PicturesEffect) {
        let (done, in_tmux) = (self.done.clone(), in_tmux(&self.env));
        tokio::task::spawn_blocking(move || {
            let PicturesEffect { requests, in_pager } = effect;
            let controls = requests.into_iter().filter_map(|request| picture(request, in_tmux)).collect();
            drop(done.send(EffectDone::Pictures(PicturesDone { controls, in_pager })));
        });
    }
}

/// `None` for an image that cannot be read; its place stays blank.
fn picture(request: PictureRequest, in_tmux: bool) -> Option<Control> {
    let PictureRequest { id, size, cell, source } = request;
    let png = match source {
        None => None,
        Some(source) => {
            let most =
                (u32::from(size.columns) * u32::from(cell.0), u32::from(size.rows) * u32::from(cell.1));
            Some(image::thumbnail_png(&source.image()?.data, most)?)
        }
    };
    let (id, columns, rows) = (id.get(), size.columns, size.rows);
    Some(Control::Picture { id, columns, rows, png, in_tmux })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_with_placeholders_show_pictures_unless_set_otherwise() {
        let check = |env: &[(&str, &str)], settings: &[(&str, &str)], expected: bool| {
            let values = settings.iter().map(|(key, value)| {
                let (terminal, key) = key.split_once('.').unwrap();
                (
                    terminal.to_owned(),
                    serde_json::json!({ key: serde_json::from_str::<serde_json::Value>(value).unwrap() }),
                )
            });
            let settings = Settings::read(&values.collect()).0;
            let view = view(&Env::of(env), &settings, None);
            assert_eq!(view.is_some(), expected, "{env:?} {settings:?}");
        };
        check(&[("TERM", "xterm-kitty")], &[], true);
        check(&[("TERM", "xterm-ghostty")], &[], true);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], &[], true);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], &[], false);
        check(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux")], &[], false);
        check(&[("TERM", "xterm-kitty"), ("ZELLIJ", "0")], &[], false);
        check(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")], &[], false);
        check(&[], &[("terminal.images", "\"kitty\"")], true);
        check(&[("TERM", "xterm-kitty")], &[("terminal.images", "\"off\"")], false);
        check(&[("TERM", "xterm-kitty")], &[("terminal.showImages", "false")], false);
    }
}
