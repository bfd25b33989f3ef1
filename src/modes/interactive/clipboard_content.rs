//! What the clipboard of this machine holds, through the programs and interfaces there are.
//!
//! All of them block, for a limited time each.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Env;
use crate::util::image::png_of_rgba;
use crate::util::os;

use super::appearance::in_tmux;
use super::clipboard_program::{ProgramProblem, run};
use super::effects::has_clipboard;
use super::terminal_env;

/// The content of a clipboard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    Files(Vec<PathBuf>),
    /// An image file.
    Image(Vec<u8>),
    Text(String),
}

pub(super) const EMPTY: &str = "the clipboard is empty";

/// How long a program may take to name what the clipboard holds, which needs its owner.
const LIST_LIMIT: Duration = Duration::from_secs(3);

/// How long a program may take to hand it over.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// How long PowerShell may take, which starts slowly.
const POWERSHELL_LIMIT: Duration = Duration::from_secs(10);

/// Prints the text in Android's clipboard; a program of the app Termux:API.
const TERMUX_PASTE: &str = "termux-clipboard-get";

/// Whether the clipboard can be read here. In WSL the one of Windows can, without a display.
pub(super) fn can_read(env: &Env) -> bool {
    has_clipboard(env) || is_wsl(env) && !terminal_env::is_remote(env) && !in_tmux(env)
}

/// Reads the clipboard: files before an image before text.
///
/// # Errors
/// Why there is nothing.
pub(super) fn read(env: &Env) -> Result<Held, String> {
    if env.is_set("TERMUX_VERSION") {
        return read_termux(TERMUX_PASTE);
    }
    read_display(&ClipboardPrograms::system(), env, read_native)
}

/// The names of the programs.
struct ClipboardPrograms {
    wl_paste: String,
    xclip: String,
    powershell: String,
    wslpath: String,
}

impl ClipboardPrograms {
    fn system() -> Self {
        Self {
            wl_paste: "wl-paste".to_owned(),
            xclip: "xclip".to_owned(),
            powershell: "powershell.exe".to_owned(),
            wslpath: "wslpath".to_owned(),
        }
    }
}

/// Asks one source after the other, `native` last, until one has something. The first problem of
/// a source that is there is the one to report.
fn read_display(
    programs: &ClipboardPrograms,
    env: &Env,
    native: impl FnOnce() -> Result<Held, String>,
) -> Result<Held, String> {
    let mut problem = None;
    let wayland = env.is_set("WAYLAND_DISPLAY").then(|| PasteProgram::wayland(&programs.wl_paste));
    let x11 = env.is_set("DISPLAY").then(|| PasteProgram::x11(&programs.xclip));
    for selection in [wayland, x11].into_iter().flatten() {
        match selection.read() {
            Ok(Some(held)) => return Ok(held),
            Ok(None) | Err(ProgramProblem::Missing(_) | ProgramProblem::Failed(_)) => {}
            Err(other) => drop(problem.get_or_insert(other)),
        }
    }
    if is_wsl(env) {
        match windows_image(programs) {
            Ok(Some(image)) => return Ok(Held::Image(image)),
            Ok(None) | Err(ProgramProblem::Missing(_) | ProgramProblem::Failed(_)) => {}
            Err(other) => drop(problem.get_or_insert(other)),
        }
    }
    if let Some(problem) = problem {
        return Err(format!("cannot read the clipboard: {problem}"));
    }
    native().map_err(|error| {
        let lacks_program = env.is_set("WAYLAND_DISPLAY") && env.find_program(&programs.wl_paste).is_none();
        match lacks_program && error != EMPTY {
            true => "install wl-clipboard to paste images from the Wayland clipboard".to_owned(),
            false => error,
        }
    })
}

/// Whether this is Linux inside of Windows.
fn is_wsl(env: &Env) -> bool {
    env.is_set("WSL_DISTRO_NAME") || env.is_set("WSLENV")
}

/// A program that prints a clipboard, and how it is asked.
struct PasteProgram<'a> {
    program: &'a str,
    list: &'static [&'static str],
    of_type: &'static [&'static str],
    text: &'static [&'static str],
}

impl<'a> PasteProgram<'a> {
    fn wayland(program: &'a str) -> Self {
        Self { program, list: &["--list-types"], of_type: &["--type"], text: &["--no-newline"] }
    }

    fn x11(program: &'a str) -> Self {
        Self {
            program,
            list: &["-selection", "clipboard", "-t", "TARGETS", "-o"],
            of_type: &["-selection", "clipboard", "-o", "-t"],
            text: &["-selection", "clipboard", "-o"],
        }
    }

    /// `None` if the clipboard is empty.
    fn read(&self) -> Result<Option<Held>, ProgramProblem> {
        let list = run(self.program, self.list, "", LIST_LIMIT)?;
        let list = String::from_utf8_lossy(&list);
        let has = |kind: &str| list.lines().any(|one| one.trim() == kind);
        if has("text/uri-list") {
            let files = files_of(&String::from_utf8_lossy(&self.read_type("text/uri-list")?));
            if !files.is_empty() {
                return Ok(Some(Held::Files(files)));
            }
        }
        const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
        if let Some(kind) = IMAGES.into_iter().find(|kind| has(kind)) {
            let image = self.read_type(kind)?;
            return Ok((!image.is_empty()).then_some(Held::Image(image)));
        }
        let text = run(self.program, self.text, "", READ_LIMIT)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((!text.is_empty()).then_some(Held::Text(text)))
    }

    fn read_type(&self, kind: &str) -> Result<Vec<u8>, ProgramProblem> {
        let arguments: Vec<&str> = self.of_type.iter().copied().chain([kind]).collect();
        run(self.program, &arguments, "", READ_LIMIT)
    }
}

/// The image in the clipboard of Windows, which PowerShell stores in a file; `None` if there is
/// none.
fn windows_image(programs: &ClipboardPrograms) -> Result<Option<Vec<u8>>, ProgramProblem> {
    let failed = || ProgramProblem::Failed(programs.powershell.clone());
    let folder = tempfile::Builder::new().prefix("pi-clipboard-").tempdir().map_err(|_| failed())?;
    let file = folder.path().join("image.png");
    let shown = file.to_str().ok_or_else(failed)?;
    let path = run(&programs.wslpath, &["-w", shown], "", LIST_LIMIT)?;
    let script = save_image_script(String::from_utf8_lossy(&path).trim());
    let arguments = ["-NoProfile", "-Command", &script];
    let answer = run(&programs.powershell, &arguments, "", POWERSHELL_LIMIT)?;
    if String::from_utf8_lossy(&answer).trim() != "ok" {
        return Ok(None);
    }
    read_small(&file).map(Some).ok_or_else(failed)
}

/// Saves the image in the clipboard to `path`, and prints `ok` if there was one.
fn save_image_script(path: &str) -> String {
    let path = path.replace('\'', "''");
    format!(
        "$path = '{path}'; \
         Add-Type -AssemblyName System.Windows.Forms; \
         Add-Type -AssemblyName System.Drawing; \
         $image = [System.Windows.Forms.Clipboard]::GetImage(); \
         if ($image) {{ $image.Save($path, [System.Drawing.Imaging.ImageFormat]::Png); Write-Output 'ok' }} \
         else {{ Write-Output 'empty' }}"
    )
}

fn read_small(path: &Path) -> Option<Vec<u8>> {
    const MAX_BYTES: u64 = 64 << 20;
    let is_small = os::open_regular(path).ok()?.metadata().ok()?.len() <= MAX_BYTES;
    is_small.then(|| fs::read(path).ok()).flatten()
}

/// The clipboard through the system's own interface.
fn read_native() -> Result<Held, String> {
    let mut clipboard = arboard::Clipboard::new().map_err(|error| error.to_string())?;
    if let Ok(files) = clipboard.get().file_list()
        && !files.is_empty()
    {
        return Ok(Held::Files(files));
    }
    if let Ok(image) = clipboard.get_image() {
        let size = (u32::try_from(image.width), u32::try_from(image.height));
        if let (Ok(width), Ok(height)) = size
            && let Some(png) = png_of_rgba(width, height, image.bytes.into_owned())
        {
            return Ok(Held::Image(png));
        }
    }
    match clipboard.get_text() {
        Ok(text) => Ok(Held::Text(text)),
        Err(arboard::Error::ContentNotAvailable) => Err(EMPTY.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The clipboard of Android, as `program` prints it: text only.
fn read_termux(program: &str) -> Result<Held, String> {
    let text = run(program, &[], "", READ_LIMIT).map_err(|_| {
        format!("{program} failed; install the app Termux:API and run: pkg install termux-api")
    })?;
    Ok(Held::Text(String::from_utf8_lossy(&text).into_owned()))
}

/// The files of a list of addresses.
pub(super) fn files_of(list: &str) -> Vec<PathBuf> {
    let addresses = list.lines().filter_map(|line| line.trim().strip_prefix("file://"));
    let decoded = addresses.map(|path| percent_encoding::percent_decode_str(path).decode_utf8_lossy());
    decoded.map(|path| PathBuf::from(path.into_owned())).collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[(&str, &str)] = &[("WAYLAND_DISPLAY", "wayland-0"), ("DISPLAY", ":0")];
    const WSL: &[(&str, &str)] =
        &[("WSL_DISTRO_NAME", "Ubuntu"), ("WAYLAND_DISPLAY", "wayland-0"), ("DISPLAY", ":0")];

    /// ClipboardPrograms in a directory of their own; those without a script do not exist.
    struct Bench {
        folder: tempfile::TempDir,
    }

    impl Bench {
        fn new(scripts: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, script) in scripts {
                // Written by another process: a file that a thread of this one has open to write
                // cannot be run.
                let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"";
                let mut shell = std::process::Command::new("sh");
                let status =
                    shell.args(["-c", write, "sh"]).arg(folder.path().join(name)).arg(script).status();
                assert!(status.unwrap().success());
            }
            Self { folder }
        }

        fn read(&self, env: &[(&str, &str)], native: Result<Held, String>) -> Result<Held, String> {
            let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
            let programs = ClipboardPrograms {
                wl_paste: path("wl-paste"),
                xclip: path("xclip"),
                powershell: path("powershell.exe"),
                wslpath: path("wslpath"),
            };
            read_display(&programs, &Env::of(env), || native)
        }
    }

    fn unreachable() -> Result<Held, String> {
        Err("X11 server connection timed out".to_owned())
    }

    #[test]
    fn image_of_windows_is_read_in_wsl_with_nothing_installed() {
        let save = "printf '%s' \"$3\" | sed \"s/^.path = '\\([^']*\\)'.*/\\1/\" > \"$0.path\"; \
                    printf png > \"$(cat \"$0.path\")\"; echo ok";
        let bench = Bench::new(&[("powershell.exe", save), ("wslpath", "printf '%s\\n' \"$2\"")]);
        assert_eq!(bench.read(WSL, unreachable()), Ok(Held::Image(b"png".to_vec())));
        let empty = Bench::new(&[("powershell.exe", "echo empty"), ("wslpath", "echo x")]);
        let text = || Ok(Held::Text("t".to_owned()));
        assert_eq!(empty.read(WSL, text()), text());
        // Elsewhere PowerShell is not asked.
        assert_eq!(bench.read(&[("DISPLAY", ":0")], text()), text());
    }

    #[test]
    fn first_source_with_content_wins() {
        let wl_paste = "case \"$*\" in --list-types) echo image/png;; '--type image/png') printf a;; esac";
        let xclip = "case \"$*\" in *TARGETS*) echo image/jpeg;; *image/jpeg) printf b;; esac";
        let both = Bench::new(&[("wl-paste", wl_paste), ("xclip", xclip)]);
        assert_eq!(both.read(BOTH, unreachable()), Ok(Held::Image(b"a".to_vec())));
        let xclip_alone = Bench::new(&[("wl-paste", "exit 1"), ("xclip", xclip)]);
        assert_eq!(xclip_alone.read(BOTH, unreachable()), Ok(Held::Image(b"b".to_vec())));
        let text =
            Bench::new(&[("wl-paste", "case \"$1\" in --list-types) echo text/plain;; *) printf t;; esac")]);
        assert_eq!(text.read(BOTH, unreachable()), Ok(Held::Text("t".to_owned())));
    }

    #[test]
    fn missing_program_of_wayland_is_named() {
        let none = Bench::new(&[]);
        let expected = "install wl-clipboard to paste images from the Wayland clipboard";
        assert_eq!(none.read(BOTH, unreachable()), Err(expected.to_owned()));
        assert_eq!(none.read(BOTH, Err(EMPTY.to_owned())), Err(EMPTY.to_owned()));
        assert_eq!(none.read(&[("DISPLAY", ":0")], unreachable()), unreachable());
    }

    #[test]
    fn program_that_prints_without_end_is_told() {
        let endless =
            Bench::new(&[("wl-paste", "case \"$1\" in --list-types) echo image/png;; *) exec yes;; esac")]);
        let problem = endless.read(BOTH, unreachable()).unwrap_err();
        assert!(
            problem.starts_with("cannot read the clipboard: ")
                && problem.ends_with("printed more than 64 MB")
        );
    }

    #[test]
    fn clipboard_of_windows_needs_no_display() {
        assert!(can_read(&Env::of(&[("WSL_DISTRO_NAME", "Ubuntu")])));
        assert!(!can_read(&Env::of(&[("WSL_DISTRO_NAME", "Ubuntu"), ("SSH_CONNECTION", "x")])));
        assert_eq!(can_read(&Env::of(&[])), cfg!(target_os = "macos"));
    }

    #[test]
    fn path_is_quoted_for_powershell() {
        let script = save_image_script("\\\\wsl$\\it's\\image.png");
        assert!(script.starts_with("$path = '\\\\wsl$\\it''s\\image.png'; "), "{script}");
    }

    #[test]
    fn clipboard_of_android_is_read_by_a_program_that_may_be_missing() {
        let held = read_termux("pwd");
        assert_eq!(held.map(|held| matches!(held, Held::Text(text) if !text.is_empty())), Ok(true));
        let missing = read_termux("no-such-program-of-termux").unwrap_err();
        assert!(missing.contains("pkg install termux-api"), "{missing}");
    }
}
