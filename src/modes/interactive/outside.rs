//! The times in which another program has the terminal: the shell, or the user's editor.

use std::io;
use std::process::ExitCode;

use super::external_editor::{Edited, EditorCommand, ExternalEditor};
use super::msg::{EffectDone, WorldEffect};
use super::terminal::{Stop, Suspended};
use super::{Interactive, TERMINAL_GONE};
use crate::session::NoticeLevel;
use crate::util::os;

const NO_SHELL: &str = "pi cannot be suspended here: no shell started it that could bring it back.";

/// A program that has the terminal for a while.
pub(super) enum Outside {
    Shell(Stop),
    /// An editor, with a text.
    Editor(String),
    /// It had the terminal while this process was stopped without being asked to.
    Continued,
}

/// Lends the terminal, and continues with what was done in the meantime.
pub(super) async fn go(interactive: &mut Interactive, outside: Outside) {
    let code = match outside {
        Outside::Shell(stop) => suspend(interactive, stop).await,
        Outside::Editor(text) => Ok(edit(interactive, &text).await),
        Outside::Continued => come_back(interactive).await,
    };
    interactive.exit = interactive.exit.or(match code {
        Ok(code) => code.map(ExitCode::from),
        Err(_) => Some(ExitCode::from(TERMINAL_GONE)),
    });
    interactive.frames.request();
}

fn prepare(interactive: &mut Interactive) {
    interactive.settle_size();
    // Nothing is stored while another program has the terminal.
    interactive.save_draft();
}

/// Remembers that the continuation which is reported next is this one, and reads what the user may have
/// changed elsewhere.
fn on_resumed(interactive: &mut Interactive) {
    interactive.effects.start(WorldEffect::ReadBranch);
    interactive.set_time();
    interactive.terminal.resumed_at = Some(interactive.app.now);
}

/// Takes the terminal back from whoever had it. Returns the exit code if pi must end.
async fn come_back(interactive: &mut Interactive) -> io::Result<Option<u8>> {
    if let Some(code) = interactive.terminal.ended_in_background().await {
        return Ok(Some(code));
    }
    interactive.set_time();
    interactive.terminal.take_back(&mut interactive.app)?;
    interactive.effects.start(WorldEffect::ReadBranch);
    Ok(None)
}

/// Stops until the shell continues pi. Returns the exit code if pi must end.
async fn suspend(interactive: &mut Interactive, stop: Stop) -> io::Result<Option<u8>> {
    if !os::can_stop_job() {
        interactive.app.transcript.notice(NoticeLevel::Warning, NO_SHELL);
        return Ok(None);
    }
    prepare(interactive);
    let suspended = interactive.terminal.suspend(&mut interactive.app, stop).await?;
    on_resumed(interactive);
    match suspended {
        Suspended::Resumed => Ok(None),
        Suspended::NotStopped(error) => {
            interactive.app.fail(&error);
            Ok(None)
        }
        Suspended::Ending(code) => Ok(Some(code)),
    }
}

/// Lets the user edit `text`. Returns the exit code if pi must end.
async fn edit(interactive: &mut Interactive, text: &str) -> Option<u8> {
    let settings = &interactive.app.session.settings.values;
    let command = match EditorCommand::of(settings, &interactive.effects.env) {
        Ok(command) => command.line,
        Err(problem) => {
            interactive.on_effect_done(EffectDone::Edited(Err(problem)));
            return None;
        }
    };
    prepare(interactive);
    let Interactive { app, terminal, .. } = &mut *interactive;
    let edited = terminal.lend_to(app, || ExternalEditor::start(text, &command)).await;
    on_resumed(interactive);
    let (text, code) = match edited {
        Edited::Text(text) => (Some(Ok(text)), None),
        Edited::Failed(error) => (Some(Err(error)), None),
        Edited::Ending { code, saved } => (saved.map(Ok), Some(code)),
    };
    if let Some(text) = text {
        interactive.on_effect_done(EffectDone::Edited(text));
    }
    code
}
