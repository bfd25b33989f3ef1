//! The bindings of the toolkit itself, and the names older files use.

/// The context of a binding. The same key may have different meanings in different
/// contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// Anywhere the editor has the focus.
    App,
    Editor,
    /// Lists, pickers and confirmations.
    Select,
    /// The transcript on the alternate screen.
    Fullscreen,
    Search,
    /// Selecting in the transcript with the keyboard.
    Selection,
    /// A long text: the transcript, a report, the trace.
    Pager,
    /// Prompts of earlier sessions.
    History,
    Sessions,
    Models,
    Tree,
    /// The trace of a session.
    Trace,
}

/// Systems whose terminals reserve some of the usual keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Unix,
    Windows,
    /// Linux inside Windows: the terminal is Windows', everything else is Linux.
    Wsl,
}

/// A rebindable key, as code, help and documentation see it.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub id: &'static str,
    pub context: Context,
    /// Separated by spaces; may be empty.
    pub keys: &'static str,
    /// Replaces `keys` on Windows.
    pub windows: Option<&'static str>,
    /// Replaces `keys` under WSL.
    pub wsl: Option<&'static str>,
    /// One line, imperative, no full stop.
    pub help: &'static str,
}

impl Binding {
    pub const fn new(id: &'static str, context: Context, keys: &'static str, help: &'static str) -> Self {
        Self { id, context, keys, windows: None, wsl: None, help }
    }

    #[must_use]
    pub const fn on_windows(self, keys: &'static str) -> Self {
        Self { windows: Some(keys), ..self }
    }

    #[must_use]
    pub const fn on_wsl(self, keys: &'static str) -> Self {
        Self { wsl: Some(keys), ..self }
    }

    /// The default keys on a platform, separated by spaces.
    pub fn keys_on(&self, platform: Platform) -> &'static str {
        match platform {
            Platform::Unix => self.keys,
            Platform::Windows => self.windows.unwrap_or(self.keys),
            Platform::Wsl => self.wsl.unwrap_or(self.keys),
        }
    }
}

/// The rows of the editor and of lists.
pub const BINDINGS: &[Binding] = &[
    Binding::new(
        "tui.editor.cursorUp",
        Context::Editor,
        "up",
        "Move up; on the first row: previous history entry",
    ),
    Binding::new(
        "tui.editor.cursorDown",
        Context::Editor,
        "down",
        "Move down; on the last row: next history entry",
    ),
    Binding::new("tui.editor.historyPrevious", Context::Editor, "", "Previous history entry"),
    Binding::new("tui.editor.historyNext", Context::Editor, "", "Next history entry"),
    Binding::new("tui.editor.cursorLeft", Context::Editor, "left ctrl+b", "Move left"),
    Binding::new("tui.editor.cursorRight", Context::Editor, "right ctrl+f", "Move right"),
    Binding::new(
        "tui.editor.cursorWordLeft",
        Context::Editor,
        "alt+left ctrl+left alt+b",
        "Move one word left",
    ),
    Binding::new(
        "tui.editor.cursorWordRight",
        Context::Editor,
        "alt+right ctrl+right alt+f",
        "Move one word right",
    ),
    Binding::new(
        "tui.editor.cursorLineStart",
        Context::Editor,
        "home ctrl+a",
        "Move to the start of the line",
    ),
    Binding::new("tui.editor.cursorLineEnd", Context::Editor, "end ctrl+e", "Move to the end of the line"),
    Binding::new(
        "tui.editor.jumpForward",
        Context::Editor,
        "ctrl+]",
        "Type a character to jump forward to it",
    ),
    Binding::new(
        "tui.editor.jumpBackward",
        Context::Editor,
        "ctrl+alt+]",
        "Type a character to jump back to it",
    ),
    Binding::new("tui.editor.pageUp", Context::Editor, "pageUp ctrl+pageUp", "Move up a page"),
    Binding::new("tui.editor.pageDown", Context::Editor, "pageDown ctrl+pageDown", "Move down a page"),
    Binding::new(
        "tui.editor.deleteCharBackward",
        Context::Editor,
        "backspace shift+backspace ctrl+h",
        "Delete the character before the cursor",
    ),
    Binding::new(
        "tui.editor.deleteCharForward",
        Context::Editor,
        "delete shift+delete ctrl+d",
        "Delete the character after the cursor",
    ),
    Binding::new(
        "tui.editor.deleteWordBackward",
        Context::Editor,
        "ctrl+w alt+backspace",
        "Delete the word before the cursor",
    ),
    Binding::new(
        "tui.editor.deleteWordForward",
        Context::Editor,
        "alt+d alt+delete",
        "Delete the word after the cursor",
    ),
    Binding::new(
        "tui.editor.deleteToLineStart",
        Context::Editor,
        "ctrl+u",
        "Delete to the start of the line",
    ),
    Binding::new("tui.editor.deleteToLineEnd", Context::Editor, "ctrl+k", "Delete to the end of the line"),
    Binding::new("tui.editor.yank", Context::Editor, "ctrl+y", "Paste the last deleted text"),
    Binding::new(
        "tui.editor.yankPop",
        Context::Editor,
        "alt+y",
        "Replace the pasted text with an earlier deletion",
    ),
    Binding::new("tui.editor.undo", Context::Editor, "ctrl+-", "Undo").on_windows("ctrl+z").on_wsl("alt+z"),
    Binding::new("tui.editor.redo", Context::Editor, "ctrl+alt+-", "Redo")
        .on_windows("ctrl+shift+z")
        .on_wsl("alt+shift+z"),
    Binding::new(
        "tui.editor.expandPaste",
        Context::Editor,
        "alt+e",
        "Show the text of the paste marker at or before the cursor",
    ),
    Binding::new("tui.input.newLine", Context::Editor, "shift+enter ctrl+j", "Insert a line break"),
    Binding::new("tui.input.submit", Context::Editor, "enter", "Send"),
    Binding::new("tui.input.tab", Context::Editor, "tab", "Complete"),
    Binding::new("tui.input.copy", Context::Editor, "ctrl+c", "Copy the selection"),
    Binding::new("tui.select.up", Context::Select, "up", "Previous item"),
    Binding::new("tui.select.down", Context::Select, "down", "Next item"),
    Binding::new("tui.select.pageUp", Context::Select, "pageUp", "Previous page"),
    Binding::new("tui.select.pageDown", Context::Select, "pageDown", "Next page"),
    Binding::new("tui.select.confirm", Context::Select, "enter", "Choose"),
    Binding::new("tui.select.cancel", Context::Select, "escape ctrl+c", "Cancel"),
    Binding::new("tui.altScreen.lineUp", Context::Fullscreen, "", "Scroll up"),
    Binding::new("tui.altScreen.lineDown", Context::Fullscreen, "", "Scroll down"),
    Binding::new("tui.altScreen.pageUp", Context::Fullscreen, "pageUp", "Scroll up a page"),
    Binding::new("tui.altScreen.pageDown", Context::Fullscreen, "pageDown", "Scroll down a page"),
    Binding::new("tui.altScreen.halfPageUp", Context::Fullscreen, "", "Scroll up half a page"),
    Binding::new("tui.altScreen.halfPageDown", Context::Fullscreen, "", "Scroll down half a page"),
    Binding::new(
        "tui.altScreen.previousPrompt",
        Context::Fullscreen,
        "ctrl+up ctrl+shift+up",
        "Go to the previous prompt",
    )
    .on_windows("ctrl+up")
    .on_wsl("ctrl+up"),
    Binding::new(
        "tui.altScreen.nextPrompt",
        Context::Fullscreen,
        "ctrl+down ctrl+shift+down",
        "Go to the next prompt",
    )
    .on_windows("ctrl+down")
    .on_wsl("ctrl+down"),
    Binding::new("tui.altScreen.search", Context::Fullscreen, "ctrl+shift+f alt+/", "Search")
        .on_windows("ctrl+f alt+/")
        .on_wsl("ctrl+f alt+/"),
    Binding::new("tui.altScreen.searchNext", Context::Search, "enter ctrl+g down", "Go to the next match"),
    Binding::new(
        "tui.altScreen.searchPrevious",
        Context::Search,
        "shift+enter ctrl+shift+g up",
        "Go to the previous match",
    ),
    Binding::new("tui.altScreen.searchClose", Context::Search, "escape", "Close the search"),
    Binding::new("tui.altScreen.select", Context::Fullscreen, "alt+s", "Select text with the keyboard"),
    Binding::new("tui.altScreen.top", Context::Fullscreen, "ctrl+home", "Go to the start"),
    Binding::new("tui.altScreen.bottom", Context::Fullscreen, "ctrl+end", "Go to the end"),
    Binding::new("tui.pager.close", Context::Pager, "q", "Close the pager"),
    Binding::new("tui.pager.search", Context::Pager, "/ ctrl+f", "Search in the text"),
    Binding::new("tui.pager.nextMatch", Context::Pager, "n", "Show the next match"),
    Binding::new("tui.pager.previousMatch", Context::Pager, "shift+n", "Show the previous match"),
    Binding::new("tui.pager.lineUp", Context::Pager, "k", "Scroll up a row"),
    Binding::new("tui.pager.lineDown", Context::Pager, "j", "Scroll down a row"),
    Binding::new("tui.pager.pageUp", Context::Pager, "b", "Show the page above"),
    Binding::new("tui.pager.pageDown", Context::Pager, "space", "Show the page below"),
    Binding::new("tui.pager.halfPageUp", Context::Pager, "ctrl+u", "Show half a page above"),
    Binding::new("tui.pager.halfPageDown", Context::Pager, "ctrl+d", "Show half a page below"),
    Binding::new("tui.pager.top", Context::Pager, "g home", "Show the start of the text"),
    Binding::new("tui.pager.bottom", Context::Pager, "shift+g end", "Show the end of the text"),
    Binding::new("tui.selection.start", Context::Selection, "space", "Start the selection at the cursor"),
    Binding::new("tui.selection.lines", Context::Selection, "v shift+v", "Select whole lines"),
    Binding::new("tui.selection.copy", Context::Selection, "enter y", "Copy the selection"),
    Binding::new("tui.selection.cancel", Context::Selection, "escape ctrl+c", "Stop selecting"),
    Binding::new("tui.selection.left", Context::Selection, "left h", "Move the cursor left"),
    Binding::new("tui.selection.right", Context::Selection, "right l", "Move the cursor right"),
    Binding::new("tui.selection.up", Context::Selection, "up k", "Move the cursor up"),
    Binding::new("tui.selection.down", Context::Selection, "down j", "Move the cursor down"),
    Binding::new("tui.selection.wordLeft", Context::Selection, "b", "Move the cursor one word left"),
    Binding::new("tui.selection.wordRight", Context::Selection, "w", "Move the cursor one word right"),
    Binding::new(
        "tui.selection.lineStart",
        Context::Selection,
        "home 0 ^",
        "Move the cursor to the start of the row",
    ),
    Binding::new(
        "tui.selection.lineEnd",
        Context::Selection,
        "end $",
        "Move the cursor to the end of the row",
    ),
];

/// The current id in `known` for an id of pi 0.58 or earlier, whose ids lack their
/// first parts.
pub fn renamed_id<'a>(old: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const RENAMED: [(&str, &str); 30] = [
        ("selectUp", "tui.select.up"),
        ("selectDown", "tui.select.down"),
        ("selectPageUp", "tui.select.pageUp"),
        ("selectPageDown", "tui.select.pageDown"),
        ("selectConfirm", "tui.select.confirm"),
        ("selectCancel", "tui.select.cancel"),
        ("cycleThinkingLevel", "app.thinking.cycle"),
        ("toggleThinking", "app.thinking.toggle"),
        ("cycleModelForward", "app.model.cycleForward"),
        ("cycleModelBackward", "app.model.cycleBackward"),
        ("selectModel", "app.model.select"),
        ("expandTools", "app.tools.expand"),
        ("externalEditor", "app.editor.external"),
        ("followUp", "app.message.followUp"),
        ("dequeue", "app.message.dequeue"),
        ("pasteImage", "app.clipboard.pasteImage"),
        ("newSession", "app.session.new"),
        ("tree", "app.session.tree"),
        ("fork", "app.session.fork"),
        ("resume", "app.session.resume"),
        ("toggleSessionNamedFilter", "app.session.toggleNamedFilter"),
        ("toggleSessionPath", "app.session.togglePath"),
        ("toggleSessionSort", "app.session.toggleSort"),
        ("renameSession", "app.session.rename"),
        ("deleteSession", "app.session.delete"),
        ("deleteSessionNoninvasive", "app.session.deleteNoninvasive"),
        ("treeFoldOrUp", "app.tree.foldOrUp"),
        ("treeUnfoldOrDown", "app.tree.unfoldOrDown"),
        ("treeEditLabel", "app.tree.editLabel"),
        ("treeToggleLabelTimestamp", "app.tree.toggleLabelTimestamp"),
    ];
    if old.contains('.') {
        return None;
    }
    let renamed = RENAMED.iter().find(|(from, _)| *from == old).map(|(_, to)| *to);
    known.into_iter().find(|id| {
        Some(*id) == renamed
            || ["tui.editor.", "tui.input.", "app."].iter().any(|prefix| id.strip_prefix(prefix) == Some(old))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::composer::EditorAction;
    use super::*;

    #[test]
    fn every_editor_row_is_an_action_of_the_editor() {
        let outside = ["tui.input.submit", "tui.input.tab", "tui.input.copy"];
        for row in BINDINGS.iter().filter(|row| row.context == Context::Editor) {
            assert_eq!(EditorAction::from_id(row.id).is_none(), outside.contains(&row.id), "{}", row.id);
        }
    }

    #[test]
    fn old_ids_find_their_new_ones() {
        let known = || BINDINGS.iter().map(|row| row.id);
        for (old, new) in [
            ("cursorUp", Some("tui.editor.cursorUp")),
            ("submit", Some("tui.input.submit")),
            ("selectCancel", Some("tui.select.cancel")),
            ("selectPageDown", Some("tui.select.pageDown")),
            ("tui.editor.cursorUp", None),
            ("nothing", None),
        ] {
            assert_eq!(renamed_id(old, known()), new, "{old}");
        }
    }
}
