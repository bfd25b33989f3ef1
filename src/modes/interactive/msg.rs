//! The effects of the app, and their results.
//!
//! [`ScreenEffect`]s concern the terminal and the loop that owns it; `terminal.rs`
//! and the loop perform them. [`WorldEffect`]s concern session, files and network;
//! `effects.rs` performs them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::QueueSlot;
use crate::ai::Model;
use crate::session::{PromptDraft, SecretReport, SessionCommand, TakenQueue};
use crate::tui::keymap::Keymap;
use crate::tui::term::{Control, StartOver};

use super::super::trace::CallFilter;
use super::clipboard::{AttachDone, AttachEffect};
use super::completion::{FileRequest, FoundFiles, ProviderChoice};
use super::export::ExportRequest;
use super::login::{LoginDone, LoginEffect};
use super::overlays::ReadTrace;
use super::pictures::PictureRequest;
use super::prompt_history::{HistoryDone, HistoryEffect};
use super::reports::{ReportDone, ReportEffect};
use super::sections::{ReadDone, ReadEffect, Reader};
use super::session_picker::{SessionsDone, SessionsEffect};
use super::share::{ShareDone, ShareEffect};
use super::theme_files::{ListedTheme, OwnTheme};
use super::tree::{TreeDone, TreeEffect};

/// An effect outside the app.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    Screen(ScreenEffect),
    World(WorldEffect),
}

/// An effect on the terminal, or on the loop that owns it.
#[derive(Debug, PartialEq)]
pub(super) enum ScreenEffect {
    Copy(String),
    /// Copies to the clipboard of the terminal.
    CopyByTerminal(String),
    /// A notification, or progress in the task bar.
    Control(Control),
    SetTitle(String),
    /// Opens the text in the user's editor; answers with [`EffectDone::Edited`].
    OpenEditor(String),
    Suspend,
    /// Applies the theme and links of the settings, or the theme that a list shows.
    FollowLooks,
    /// The same, unless the theme's file, which has changed, cannot be used.
    FollowThemeFile,
    /// Shows a transcript that was replaced, below the old one.
    StartOver(StartOver),
    /// Clears screen and scrollback and writes the transcript again.
    Replay,
    /// Writes what is on the screen to a file; answers with [`EffectDone::Notice`].
    ReportScreen,
    Quit,
}

/// An effect on the session, on files or on services.
#[derive(Debug, PartialEq)]
pub(super) enum WorldEffect {
    Session(SessionCommand),
    /// Takes the queue back; answers with [`EffectDone::QueueTaken`].
    TakeQueue,
    /// Takes one message out of the queue; answers with [`EffectDone::QueueTaken`].
    TakeQueued {
        slot: QueueSlot,
        /// The message before it in its queue.
        after: Option<QueueSlot>,
    },
    /// Takes back messages that an earlier process left queued; answers with
    /// [`EffectDone::LeftOver`].
    TakeLeftOver,
    /// Finds out what a report says; answers with [`EffectDone::Report`].
    Report(ReportEffect),
    /// Reads the trace of the session in this file; answers with [`EffectDone::Trace`].
    ReadTrace {
        path: PathBuf,
        filter: CallFilter,
    },
    /// Something about the list of sessions; answers with [`EffectDone::Sessions`].
    Sessions(SessionsEffect),
    /// Reads `models.json` again and queries the servers on this machine; answers with
    /// [`EffectDone::Models`].
    RefreshModels {
        /// Also queries services that list their models, which needs a key and the network.
        with_services: bool,
    },
    /// Reads all themes; answers with [`EffectDone::OwnThemes`] and [`EffectDone::Problems`].
    CheckThemes,
    /// Lists the themes whose names begin like this; answers with [`EffectDone::Themes`].
    ListThemes(String),
    /// Reads the repository's head; answers with [`EffectDone::Branch`].
    ReadBranch,
    /// Reports changes of this file, the head of a repository, as [`EffectDone::HeadChanged`].
    WatchHead(Option<PathBuf>),
    /// Reloads the user's files; answers with [`EffectDone::Reloaded`].
    Reload,
    /// An effect of keys and accounts; answers with [`EffectDone::Login`].
    Login(LoginEffect),
    /// Reads entries for the pager or fullscreen; answers with [`EffectDone::Read`].
    Read(Reader, ReadEffect),
    /// Unpacks images for the terminal; answers with [`EffectDone::PictureMade`].
    Pictures(Vec<PictureRequest>),
    /// Something about the tree of the session; answers with [`EffectDone::Tree`].
    Tree(TreeEffect),
    /// Writes the session to a file; answers with [`EffectDone::SecretsFound`] if it contains
    /// secrets that nobody decided about.
    Export(ExportRequest),
    /// A step of `/share`; answers with [`EffectDone::Share`].
    Share(ShareEffect),
    /// Checks that a file is a session; answers with [`EffectDone::Importable`] or
    /// [`EffectDone::CommandFailed`].
    CheckImport {
        path: PathBuf,
        line: String,
    },
    /// Finds files for completion; answers with [`EffectDone::Files`].
    FindFiles(FileRequest),
    /// Reads the clipboard or dropped files; answers with [`EffectDone::Attached`].
    Attach(AttachEffect),
    /// Something about prompts of earlier sessions; answers with [`EffectDone::History`].
    History(HistoryEffect),
}

/// The result of an effect.
#[derive(Debug)]
pub(super) enum EffectDone {
    Trace(Box<ReadTrace>),
    QueueTaken {
        taken: TakenQueue,
        /// The message before them in their queue.
        after: Option<QueueSlot>,
    },
    LeftOver(TakenQueue),
    Sessions(SessionsDone),
    Models {
        /// Models with a key.
        models: Vec<Arc<Model>>,
        providers: Vec<ProviderChoice>,
        /// The servers found on this machine, with the number of models of
        /// each.
        found: Vec<(&'static str, usize)>,
        /// Problems in `models.json`.
        problems: Vec<String>,
    },
    Branch {
        cwd: PathBuf,
        /// The branch, or the short hash of a detached head; `None` outside a repository.
        branch: Option<String>,
        /// The file that changes with it.
        head: Option<PathBuf>,
    },
    /// The text from the editor; `Err` if there is none, with the reason.
    Edited(Result<String, String>),
    /// The files were reloaded.
    Reloaded {
        /// Problems with `keybindings.json`, one line each.
        problems: Vec<String>,
        /// `None` if that file cannot be parsed.
        keymap: Option<Keymap>,
    },
    /// A prompt the session rejected, and why.
    Refused {
        prompt: PromptDraft,
        /// `None` if the session itself has ended.
        error: Option<String>,
    },
    Login(LoginDone),
    Tree(TreeDone),
    Read(Reader, ReadDone),
    /// A picture came, or will not come.
    PictureMade,
    Files(FoundFiles),
    History(HistoryDone),
    /// Problems in files of the user, one line each.
    Problems(Vec<String>),
    /// The file of the theme in use.
    ThemeChanged,
    /// The head of the repository.
    HeadChanged,
    /// The themes in files.
    OwnThemes(Vec<OwnTheme>),
    /// All themes, and what was asked for.
    Themes {
        themes: Vec<ListedTheme>,
        query: String,
    },
    Attached(AttachDone),
    /// Nothing was written yet.
    SecretsFound {
        request: ExportRequest,
        found: SecretReport,
    },
    Share(ShareDone),
    /// A notice for the transcript, such as about a file that was written.
    Notice(String),
    /// A command that would cancel running work; the user decides.
    Busy(SessionCommand),
    Report(ReportDone),
    Failed(String),
    /// A command could do nothing; its line returns to the editor.
    CommandFailed {
        /// Without the slash.
        line: String,
        error: String,
    },
    /// The file is a session.
    Importable(PathBuf),
    /// A hint in the status line.
    Hint(String),
    /// tmux tells no keys apart, with what there is to do about it.
    TmuxHidesKeys {
        notice: Option<String>,
    },
    /// A text that tmux did not take for the clipboard.
    NotCopied(String),
}

impl Effect {
    /// Sends a command to the session.
    pub(super) fn session(command: SessionCommand) -> Self {
        Self::World(WorldEffect::Session(command))
    }
}

impl From<ScreenEffect> for Effect {
    fn from(effect: ScreenEffect) -> Self {
        Self::Screen(effect)
    }
}

impl From<WorldEffect> for Effect {
    fn from(effect: WorldEffect) -> Self {
        Self::World(effect)
    }
}

impl From<LoginEffect> for Effect {
    fn from(effect: LoginEffect) -> Self {
        Self::World(WorldEffect::Login(effect))
    }
}

impl From<TreeEffect> for Effect {
    fn from(effect: TreeEffect) -> Self {
        Self::World(WorldEffect::Tree(effect))
    }
}

impl From<SessionsEffect> for WorldEffect {
    fn from(effect: SessionsEffect) -> Self {
        Self::Sessions(effect)
    }
}

impl From<SessionsEffect> for Effect {
    fn from(effect: SessionsEffect) -> Self {
        Self::World(effect.into())
    }
}
