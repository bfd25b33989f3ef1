//! Commands that read or write something about the session: `/session`, `/context`, `/doctor`, `/copy`, `/export`,
//! `/share`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::session::{Reply, Secrets, SessionCommand};
use crate::util::paths;
use crate::util::worker;

use super::super::export::{ExportFormat, Exported, FileExport, GistShare, ShareStep, SharedPage};
use super::super::interactive::{context_lines, copy_beside_terminal, doctor_lines, session_report};
use super::menu::Menu;
use super::spoken::read_out;
use super::{Next, Talk, say};

/// Reads what is known about the session, and what it cost.
pub(super) fn session(talk: &mut Talk, _: &str) -> Next {
    let (state, services) = (talk.handle.state(), Arc::clone(&talk.start.services));
    let root = talk.start.sessions_root.clone();
    in_background("session", move || read_out(&session_report(&services, &root, &state)))
}

/// Reads what the model gets with the next request.
pub(super) fn context(talk: &mut Talk, _: &str) -> Next {
    let (answer, home) =
        (talk.handle.post(SessionCommand::DescribeContext), talk.start.services.dirs.home.clone());
    tokio::spawn(async move {
        match answer.await {
            Ok(Reply::ContextReport(report)) => say(&context_lines(&report, home.as_deref())),
            Ok(_) => {}
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    Next::GoOn
}

/// Reads what to change about files, providers and programs.
pub(super) fn doctor(talk: &mut Talk, _: &str) -> Next {
    let (state, services) = (talk.handle.state(), Arc::clone(&talk.start.services));
    let (env, root) = (talk.start.env.clone(), talk.start.sessions_root.clone());
    in_background("doctor", move || doctor_lines(&env, &services, &root, &state))
}

/// Copies the last answer.
pub(super) fn copy(talk: &mut Talk, _: &str) -> Next {
    let answer = talk.narrator.last_answer().to_owned();
    if answer.is_empty() {
        say(&["There is no answer to copy yet.".to_owned()]);
        return Next::GoOn;
    }
    let (env, clipboard) = (talk.start.env.clone(), talk.clipboard.clone());
    in_background("copy", move || {
        vec![match copy_beside_terminal(&env, &clipboard, &answer) {
            Ok(()) => "Copied the last answer.".to_owned(),
            Err(error) => format!("Error: not copied: {error}"),
        }]
    })
}

/// Writes the session to a file.
pub(super) fn export(talk: &mut Talk, args: &str) -> Next {
    let state = talk.handle.state();
    let path = (!args.is_empty()).then(|| path_argument(talk, args));
    if path.as_deref().is_some_and(|path| ExportFormat::of_file(path).is_none()) {
        say(&["Error: end the name of the file in .html, .md or .jsonl: /export FILE".to_owned()]);
        return Next::GoOn;
    }
    write(talk, FileExport::new(&state.id, path));
    Next::GoOn
}

/// Writes a file, or asks about secrets first.
pub(super) fn write(talk: &Talk, export: FileExport) {
    let (handle, menus) = (talk.handle.clone(), talk.menus.clone());
    let (state, home) = (handle.state(), talk.start.services.dirs.home.clone());
    // Sent here and not in the task, so that commands keep their order.
    let answer = handle.post(SessionCommand::ReadTree);
    tokio::spawn(async move {
        let tree = match answer.await {
            Ok(Reply::Tree(tree)) => tree,
            Ok(_) => return,
            Err(error) => return say(&[format!("Error: {error}")]),
        };
        match export.write(&handle, (&state, tree), home.as_deref()).await {
            Ok(Exported::Written(text)) => say(&[text]),
            Ok(Exported::Found(found)) => drop(menus.send(Menu::secrets(&found.lines(), &export))),
            Ok(Exported::Reported) => {}
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
}

/// A step of `/share`. Dropping it cancels it and removes the page.
pub(super) struct Sharing(JoinHandle<()>, #[expect(dead_code, reason = "it is dropped")] SharedPage);

impl Sharing {
    pub(super) fn is_going_on(&self) -> bool {
        !self.0.is_finished()
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Looks for an account and for secrets, then asks.
pub(super) fn share(talk: &mut Talk) -> Next {
    say(&["Looking for secrets, and for your account in gh.".to_owned()]);
    share_step(talk, None);
    Next::GoOn
}

/// Uploads the session.
pub(super) fn upload(talk: &mut Talk, secrets: Secrets) {
    say(&["Uploading. ctrl+c cancels.".to_owned()]);
    share_step(talk, Some(secrets));
}

fn share_step(talk: &mut Talk, secrets: Option<Secrets>) {
    let (menus, env, state) = (talk.menus.clone(), talk.start.env.clone(), talk.handle.state());
    // Sent here and not in the task, so that commands keep their order.
    let answer = talk.handle.post(SessionCommand::ReadTree);
    let page = SharedPage::default();
    let share = GistShare::new(&state.id, &env, &page);
    let step = async move { share?.step(&state, answer, secrets).await };
    let task = tokio::spawn(async move {
        match step.await {
            Ok(ShareStep::Checked(found)) => drop(menus.send(Menu::share(&found.lines()))),
            Ok(ShareStep::Uploaded(gist)) => say(&gist.lines()),
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    talk.sharing = Some(Sharing(task, page));
}

/// Asks before a session file is copied to the others.
pub(super) fn import(talk: &mut Talk, args: &str) -> Next {
    if args.is_empty() {
        say(&["Error: name the session file: /import FILE".to_owned()]);
        return Next::GoOn;
    }
    let (path, menus) = (path_argument(talk, args), talk.menus.clone());
    tokio::spawn(async move {
        let check = {
            let path = path.clone();
            move || crate::session::check_import(&path).map_err(|error| error.to_string())
        };
        match worker::run("import", check).await.map_err(|error| error.to_string()).flatten() {
            Ok(()) => drop(menus.send(Menu::import(path))),
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    Next::GoOn
}

/// A path as the user typed it, in quotes or not.
fn path_argument(talk: &Talk, args: &str) -> PathBuf {
    let within = |quote: char| args.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let path = within('"').or_else(|| within('\'')).unwrap_or(args);
    talk.handle.state().cwd.join(paths::expand_home(path, talk.start.services.dirs.home.as_deref()))
}

/// Says what `work` finds, which may wait for the disk or another program.
fn in_background(name: &'static str, work: impl FnOnce() -> Vec<String> + Send + 'static) -> Next {
    tokio::spawn(async move {
        match worker::run(name, work).await {
            Ok(lines) => say(&lines),
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    Next::GoOn
}
