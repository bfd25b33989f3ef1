//! `/tree` and `/fork`: places of the session to continue from, as lists.

use std::collections::HashSet;

use crate::ai::Message;
use crate::session::{
    EntryBody, EntryKind, IfBusy, LeftBranch, Reply, SessionCommand, SessionMessage, SessionTree, SkillBlock,
};
use crate::util::worker;

use super::menu::{Menu, MenuItem};
use super::narrator::{begun, on_one_line};
use super::{Next, Talk, say};

/// Characters of a message that are looked at.
const MAX_READ_CHARS: usize = 1_000;
/// Grapheme clusters of a message in a list.
const MAX_NAME_CLUSTERS: usize = 80;

/// Lists the messages of the user, and the ends of other branches, to continue from.
pub(super) fn tree(talk: &mut Talk, _: &str) -> Next {
    list(talk, |tree| {
        let mut items: Vec<MenuItem> = prompts(tree).into_iter().map(|idx| before(tree, idx)).collect();
        items.extend(other_ends(tree).into_iter().map(|idx| end(tree, idx)));
        ("Continue in this session from before a message of yours, the latest first:", items)
    })
}

/// Lists the messages of the user, to continue from in a new session.
pub(super) fn fork(talk: &mut Talk, _: &str) -> Next {
    list(talk, |tree| {
        let item = |idx: usize| {
            let target = tree.entry(idx).id.clone();
            MenuItem::command(text(tree, idx), SessionCommand::Fork { target, if_busy: IfBusy::Refuse })
        };
        let items = prompts(tree).into_iter().map(item).collect();
        ("Continue in a new session from before a message of yours, the latest first:", items)
    })
}

/// Shows a list that is made of the tree.
fn list(
    talk: &Talk,
    items: impl FnOnce(&SessionTree) -> (&'static str, Vec<MenuItem>) + Send + 'static,
) -> Next {
    let (answer, menus) = (talk.handle.post(SessionCommand::ReadTree), talk.menus.clone());
    tokio::spawn(async move {
        let tree = match answer.await {
            Ok(Reply::Tree(tree)) => tree,
            Ok(_) => return,
            Err(error) => return say(&[format!("Error: {error}")]),
        };
        // It waits for the disk.
        match worker::run("tree", move || items(&tree)).await {
            Ok((_, items)) if items.is_empty() => {
                say(&["There is no message of yours in this session yet.".to_owned()]);
            }
            Ok((title, items)) => drop(menus.send(Menu::new(title, items))),
            Err(error) => say(&[format!("Error: {error}")]),
        }
    });
    Next::GoOn
}

/// The messages of the user on the active branch, the latest first.
fn prompts(tree: &SessionTree) -> Vec<usize> {
    let is_prompt = |idx: &usize| tree.entry(*idx).kind == EntryKind::User;
    tree.path(tree.leaf()).into_iter().rev().filter(is_prompt).collect()
}

/// The last entries of the other branches, the latest first.
fn other_ends(tree: &SessionTree) -> Vec<usize> {
    let is_message = |kind| matches!(kind, EntryKind::User | EntryKind::Assistant | EntryKind::ToolResult);
    let mut continued: HashSet<usize> = tree.path(tree.leaf()).into_iter().collect();
    let mut ends = Vec::new();
    // Entries follow their parents in the file.
    for idx in (0..tree.len()).rev().filter(|idx| is_message(tree.entry(*idx).kind)) {
        if !continued.contains(&idx) {
            ends.push(idx);
            continued.extend(tree.path(Some(idx)));
        }
    }
    ends
}

/// The place before a message, which is taken back.
fn before(tree: &SessionTree, idx: usize) -> MenuItem {
    MenuItem::command(text(tree, idx), navigate(tree, idx))
}

/// The end of a branch, named by its last message of the user.
fn end(tree: &SessionTree, idx: usize) -> MenuItem {
    let is_prompt = |idx: &usize| tree.entry(*idx).kind == EntryKind::User;
    let last = tree.path(Some(idx)).into_iter().rev().find(is_prompt);
    let name = last.map_or_else(String::new, |last| format!(" after: {}", text(tree, last)));
    MenuItem::command(format!("The end of another branch{name}"), navigate(tree, idx))
}

fn navigate(tree: &SessionTree, idx: usize) -> SessionCommand {
    let target = tree.entry(idx).id.clone();
    SessionCommand::Navigate { target, summary: LeftBranch::Leave, if_busy: IfBusy::Refuse }
}

/// The beginning of a message as the user typed it. Blocks.
fn text(tree: &SessionTree, idx: usize) -> String {
    let Some(entry) = tree.read(idx) else { return "a message that cannot be read".to_owned() };
    let typed = match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(user) => SkillBlock::parse(&user.content.text()).map(|block| block.command()),
            _ => None,
        },
        _ => None,
    };
    let text = typed.unwrap_or_else(|| entry.body.preview(MAX_READ_CHARS));
    begun(&on_one_line(&text), MAX_NAME_CLUSTERS)
}
