//! The clipboard of this machine, and files dropped on the terminal: read and made fit to send.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use crate::ai::{Extra, Image};
use crate::config::Env;
use crate::tui::composer::{insert_image, replace_by_image};
use crate::tui::term::Control;
use crate::util::image::{ImageLimits, ImageProblem, prepare_image, sniff_mime};
use crate::util::os;
use crate::util::worker;

use super::app::App;
use super::appearance::{in_screen, in_tmux};
use super::attachments::{DroppedFile, dropped_images};
use super::clipboard_content::{self, EMPTY, Held, can_read};
use super::clipboard_owner::ClipboardOwner;
use super::clipboard_program::run;
use super::effects::{Effects, has_clipboard};
use super::msg::{Effect, EffectDone, WorldEffect};

/// Something to read for the prompt.
#[derive(Debug, PartialEq)]
pub(super) enum AttachEffect {
    /// Reads the clipboard; answers with [`AttachDone::Image`] or [`AttachDone::Text`].
    Clipboard,
    /// Reads files that were dropped; answers with [`AttachDone::Dropped`].
    Files(Vec<DroppedFile>),
}

/// What was read.
#[derive(Debug)]
pub(super) enum AttachDone {
    Image(Image),
    /// Files or text, to be inserted like a paste.
    Text(String),
    /// The images among the dropped files, each with its path as it was pasted.
    Dropped(Vec<(String, Image)>),
}

/// Puts what was read into the prompt.
pub(super) fn on_done(app: &mut App, done: AttachDone, out: &mut Vec<Effect>) {
    match done {
        AttachDone::Image(image) => {
            let number = app.input.prompt.attachments.add(image);
            insert_image(&mut app.input.prompt.composer, number);
        }
        AttachDone::Text(text) => paste(app, &text, out),
        AttachDone::Dropped(images) => {
            for (text, image) in images {
                let number = app.input.prompt.attachments.add(image);
                // The user may have changed the path in the meantime; then it stays a path.
                if !replace_by_image(&mut app.input.prompt.composer, &text, number) {
                    app.input.prompt.attachments.withdraw(number);
                }
            }
        }
    }
}

/// Inserts pasted text. Paths of images are read, and become images if they are some.
pub(super) fn paste(app: &mut App, text: &str, out: &mut Vec<Effect>) {
    app.input.on_paste(text);
    let dropped =
        if app.input.prompt.is_bash() { Vec::new() } else { dropped_images(text, app.home.as_deref()) };
    if !dropped.is_empty() {
        out.push(AttachEffect::Files(dropped).into());
    }
}

impl From<AttachEffect> for Effect {
    fn from(effect: AttachEffect) -> Self {
        Self::World(WorldEffect::Attach(effect))
    }
}

impl Effects {
    pub(super) fn attach(&self, effect: AttachEffect) {
        let auto_resize = self.link.handle().state().settings.values.images_auto_resize;
        let limits = ImageLimits { auto_resize, ..ImageLimits::default() };
        let (env, done, is_here) = (self.env.clone(), self.done.clone(), can_read(&self.env));
        tokio::spawn(async move {
            // On a thread of its own: the owner of the clipboard, or a disk, may not answer.
            let result = match effect {
                AttachEffect::Clipboard if !is_here => {
                    Err("no clipboard over ssh, in tmux or without a display; paste the path of an image"
                        .to_owned())
                }
                AttachEffect::Clipboard => worker::run("clipboard", move || from_clipboard(&env, &limits))
                    .await
                    .unwrap_or_else(|error| Err(error.to_string())),
                AttachEffect::Files(files) => {
                    let read = worker::run("dropped files", move || read_images(files, &limits)).await;
                    let DroppedImages { images, problem } = read.unwrap_or_default();
                    if let Some(problem) = problem {
                        drop(done.send(EffectDone::Hint(problem)));
                    }
                    Ok(AttachDone::Dropped(images))
                }
            };
            drop(done.send(match result {
                Ok(read) => EffectDone::Attached(read),
                Err(problem) => EffectDone::Hint(problem),
            }));
        });
    }
}

impl Effects {
    /// Copies with tmux's own command, which passes the text on to the clipboard of its terminal;
    /// answers with [`EffectDone::NotCopied`] if that fails. By default, tmux ignores programs
    /// that use OSC 52.
    pub(super) fn copy_in_tmux(&self, text: String) {
        let done = self.done.clone();
        tokio::spawn(async move {
            let copied = worker::run("copy", move || match run("tmux", TMUX_COPY, &text, COPY_LIMIT) {
                Ok(_) => None,
                Err(_) => Some(text),
            });
            if let Ok(Some(text)) = copied.await {
                drop(done.send(EffectDone::NotCopied(text)));
            }
        });
    }
}

/// Copies without the terminal: to this machine's clipboard, or with tmux's own command. Blocks.
///
/// # Errors
/// If there is neither, or it fails.
pub(in super::super) fn copy_beside_terminal(
    env: &Env,
    clipboard: &ClipboardOwner<arboard::Clipboard>,
    text: &str,
) -> Result<(), String> {
    if in_tmux(env) {
        return run("tmux", TMUX_COPY, text, COPY_LIMIT).map(drop).map_err(|error| error.to_string());
    }
    if !has_clipboard(env) {
        return Err("there is no clipboard over ssh or without a display".to_owned());
    }
    clipboard.copy(text)
}

/// Shown after a copy through OSC 52, which terminals do not confirm.
pub(super) const COPIED_BY_TERMINAL: &str = "copied through the terminal, if it supports that";

/// What copies to the clipboard of the terminal, which may be around GNU screen.
pub(super) fn terminal_copy(env: &Env, text: String) -> Control {
    if in_screen(env) { Control::CopyAroundScreen(text) } else { Control::Copy(text) }
}

/// `-w` is for the clipboard of the terminal; tmux has it from 3.2 on.
const TMUX_COPY: &[&str] = &["load-buffer", "-w", "-"];

/// How long a program may take to copy.
const COPY_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct DroppedImages {
    images: Vec<(String, Image)>,
    /// Why the first of those that are none cannot be attached.
    problem: Option<String>,
}

/// The images among files. What is none stays a path in the prompt.
fn read_images(files: Vec<DroppedFile>, limits: &ImageLimits) -> DroppedImages {
    let mut read = DroppedImages::default();
    for DroppedFile { text, path } in files {
        // A path that is only mentioned needs no file.
        let Ok(mut file) = os::open_regular(&path) else { continue };
        let mut bytes = Vec::new();
        let fitted = file.read_to_end(&mut bytes).map_err(|error| error.to_string());
        match fitted.and_then(|_| fit(&bytes, limits)) {
            Ok(image) => read.images.push((text, image)),
            Err(problem) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                read.problem.get_or_insert_with(|| format!("{name} stays a path: {problem}"));
            }
        }
    }
    read
}

/// An image as it is sent.
fn fit(bytes: &[u8], limits: &ImageLimits) -> Result<Image, String> {
    const PNG: &[u8] = b"\x89PNG";
    if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    }
    // A damaged PNG is an image that cannot be sent.
    if sniff_mime(bytes).is_none() && !bytes.starts_with(PNG) {
        return Err("it is not an image that pi reads".to_owned());
    }
    let image = prepare_image(bytes, limits).map_err(|problem| match problem {
        ImageProblem::TooManyPixels { width, height } => {
            format!("the image has too many pixels ({width}x{height}); make a smaller copy")
        }
        ImageProblem::Unreadable | ImageProblem::TooLarge => format!("the image {problem}"),
    })?;
    Ok(Image { data: image.data, mime_type: image.mime.to_owned(), extra: Extra::new() })
}

/// What the clipboard holds: files before an image before text. Blocks.
///
/// # Errors
/// Why there is nothing to insert.
fn from_clipboard(env: &Env, limits: &ImageLimits) -> Result<AttachDone, String> {
    match clipboard_content::read(env)? {
        Held::Files(files) => {
            let quoted: Vec<String> = files.iter().map(|path| quoted(path)).collect();
            Ok(AttachDone::Text(quoted.join(" ")))
        }
        Held::Image(bytes) => Ok(AttachDone::Image(fit(&bytes, limits)?)),
        Held::Text(text) if text.is_empty() => Err(EMPTY.to_owned()),
        Held::Text(text) => Ok(AttachDone::Text(text)),
    }
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\')) {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn copy_without_terminal_or_display_says_that_there_is_no_clipboard() {
        let copied = copy_beside_terminal(&Env::of(&[]), &ClipboardOwner::default(), "x");
        if !cfg!(target_os = "macos") {
            assert_eq!(copied, Err("there is no clipboard over ssh or without a display".to_owned()));
        }
    }

    #[test]
    fn copy_passes_through_screen_unless_tmux_is_inside() {
        let copy = |env: &[(&str, &str)]| terminal_copy(&Env::of(env), "x".to_owned());
        assert_eq!(copy(&[]), Control::Copy("x".to_owned()));
        assert_eq!(copy(&[("STY", "1.pts")]), Control::CopyAroundScreen("x".to_owned()));
        assert_eq!(copy(&[("STY", "1.pts"), ("TMUX", "/tmp/x")]), Control::Copy("x".to_owned()));
    }

    #[test]
    fn dropped_file_that_is_no_image_is_named_and_stays_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let dropped = |name: &str| DroppedFile { text: name.to_owned(), path: dir.path().join(name) };
        let check = |name: &str, bytes: &[u8], expected: &str| {
            fs::write(dir.path().join(name), bytes).unwrap();
            let read = read_images(vec![dropped("gone.png"), dropped(name)], &ImageLimits::default());
            assert!(read.images.is_empty());
            assert_eq!(read.problem.unwrap(), format!("{name} stays a path: {expected}"));
        };
        check("notes.png", b"text", "it is not an image that pi reads");
        check("empty.png", b"", "the file is empty");
        let unreadable = "the image could not be converted to a supported inline image format";
        check("cut.jpg", b"\xff\xd8\xff\xe0", unreadable);
        let mut vast = b"GIF89a".to_vec();
        vast.extend([0xff; 4]);
        vast.extend(b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;");
        check("bomb.gif", &vast, "the image has too many pixels (65535x65535); make a smaller copy");
        assert!(read_images(vec![dropped("gone.png")], &ImageLimits::default()).problem.is_none());
    }

    #[test]
    fn files_of_the_clipboard_are_pasted_as_dropped_ones_would_be() {
        let files = clipboard_content::files_of(
            "# comment\r\nfile:///tmp/a%20b.png\r\nhttps://x.org/\r\nfile:///tmp/it's.png\r\n",
        );
        let pasted: Vec<String> = files.iter().map(|path| quoted(path)).collect();
        assert_eq!(pasted, ["'/tmp/a b.png'", "'/tmp/it'\\''s.png'"]);
        let dropped = dropped_images(&pasted.join(" "), None);
        assert_eq!(dropped.into_iter().map(|file| file.path).collect::<Vec<_>>(), files);
    }
}
