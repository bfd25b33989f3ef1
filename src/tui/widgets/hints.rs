//! The keys of a dialog, as its last rows.

use std::borrow::Cow;

use ratatui::style::Style;

use super::super::keymap::Keymap;
use super::super::text::{Row, width, wrap_plain};
use super::super::theme::Token;
use super::DialogCx;

const SEPARATOR: &str = " · ";

/// The actions that lead out of a list, dialog or pager.
const WAYS_OUT: [&str; 2] = ["tui.select.cancel", "tui.pager.close"];

/// What keys do, in the order of importance. The names of the keys come from the keymap when
/// the rows are drawn, so they are those of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints(Vec<Hint>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hint {
    keys: Keys,
    text: Cow<'static, str>,
    /// Whether the keys do something with the selected item.
    is_of_item: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Keys {
    /// Ids of actions that one text describes together.
    Bound(Vec<&'static str>),
    /// Keys that cannot be remapped.
    Fixed(&'static str),
}

impl Hints {
    pub fn new() -> Self {
        Self::default()
    }

    /// The key of confirming, in lists for the selected item.
    pub fn confirm(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new().key("tui.select.confirm", text).of_item()
    }

    /// Makes the last hint one about the selected item.
    #[must_use]
    pub fn of_item(mut self) -> Self {
        if let Some(hint) = self.0.last_mut() {
            hint.is_of_item = true;
        }
        self
    }

    /// Those of a list in which nothing is selected.
    #[must_use]
    pub fn without_item(&self) -> Self {
        Self(self.0.iter().filter(|hint| !hint.is_of_item).cloned().collect())
    }

    /// Adds the key of cancelling.
    #[must_use]
    pub fn cancel(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.key("tui.select.cancel", text)
    }

    /// Adds the key of the action `id`. It is left out while the action has no key.
    #[must_use]
    pub fn key(self, id: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        self.keys(&[id], text)
    }

    /// Adds the keys of several actions, such as up and down.
    #[must_use]
    pub fn keys(mut self, ids: &[&'static str], text: impl Into<Cow<'static, str>>) -> Self {
        self.push(Keys::Bound(ids.to_vec()), text);
        self
    }

    /// Adds other hints.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Adds a key that is the same for everyone.
    #[must_use]
    pub fn fixed(mut self, keys: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        self.push(Keys::Fixed(keys), text);
        self
    }

    fn push(&mut self, keys: Keys, text: impl Into<Cow<'static, str>>) {
        self.0.push(Hint { keys, text: text.into(), is_of_item: false });
    }

    /// The hints of actions that have keys.
    fn texts(&self, keymap: &Keymap) -> Vec<HintText> {
        let bound = |hint: &Hint| match &hint.keys {
            Keys::Bound(ids) => ids.clone(),
            Keys::Fixed(_) => Vec::new(),
        };
        let shown: Vec<&str> = self.0.iter().flat_map(bound).collect();
        let text = |hint: &Hint| {
            let keys = match &hint.keys {
                Keys::Fixed(keys) => (*keys).to_owned(),
                Keys::Bound(ids) => {
                    let keys: Vec<String> = ids.iter().map(|id| keymap.hint_among(id, &shown)).collect();
                    keys.into_iter().filter(|key| !key.is_empty()).collect::<Vec<_>>().join("/")
                }
            };
            let is_way_out = bound(hint).iter().any(|id| WAYS_OUT.contains(id));
            (!keys.is_empty()).then(|| HintText { text: format!("{keys}: {}", hint.text), is_way_out })
        };
        self.0.iter().filter_map(text).collect()
    }

    /// The hints in at most a third of the rows there are, broken between two hints. What does
    /// not fit is left out, from the end, except the way out.
    pub fn rows(&self, cx: &DialogCx<'_>) -> Vec<Row> {
        self.rows_at_most(usize::MAX, cx)
    }

    /// The same in at most `max_rows` rows too, of which there is at least one.
    pub fn rows_at_most(&self, max_rows: usize, cx: &DialogCx<'_>) -> Vec<Row> {
        let max_rows = max_rows.min(usize::from(cx.max_rows / 3)).max(1);
        let mut texts = self.texts(cx.keymap);
        let mut lines = lines(&texts, cx.width);
        while lines.len() > max_rows && texts.len() > 1 {
            let last = texts.iter().rposition(|hint| !hint.is_way_out).unwrap_or(texts.len() - 1);
            texts.remove(last);
            lines = self::lines(&texts, cx.width);
        }
        lines.truncate(max_rows);
        lines.into_iter().map(|line| Row::styled(line, cx.theme.style(Token::Dim))).collect()
    }
}

/// A hint with the keys of the user.
struct HintText {
    text: String,
    is_way_out: bool,
}

/// Lines of hints that fit the width.
fn lines(hints: &[HintText], width_cells: u16) -> Vec<String> {
    let width_cells = width_cells.max(1);
    let mut lines: Vec<String> = Vec::new();
    for HintText { text, .. } in hints {
        let fits =
            |line: &&mut String| width(line) + width(SEPARATOR) + width(text) <= usize::from(width_cells);
        if let Some(line) = lines.last_mut().filter(fits) {
            line.push_str(SEPARATOR);
            line.push_str(text);
        } else {
            // One that is wider than the screen is broken like text.
            let rows = wrap_plain(text, width_cells, Style::new());
            lines.extend(rows.iter().map(|row| row.text().trim_end().to_owned()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::keymap::{BINDINGS, Platform};
    use super::super::super::theme::{Appearance, ColorDepth, Theme};
    use super::*;

    #[track_caller]
    fn check(overrides: &serde_json::Value, width: u16, max_rows: u16, expected: &[&str]) {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let mut keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let hints = Hints::confirm("choose")
            .keys(&["tui.select.up", "tui.select.down"], "move")
            .fixed("type", "search")
            .cancel("close");
        let cx = DialogCx { width, max_rows, theme: &theme, keymap: &keymap };
        let rows: Vec<String> = hints.rows(&cx).iter().map(Row::text).collect();
        assert_eq!(rows, expected, "{width}");
    }

    #[test]
    fn keys_are_those_of_the_user_and_actions_without_a_key_are_left_out() {
        check(&json!({}), 80, 9, &["enter: choose · up/down: move · type: search · escape: close"]);
        let mine =
            json!({"tui.select.confirm": "ctrl+y", "tui.select.up": [], "tui.select.cancel": ["f10", "f9"]});
        check(&mine, 80, 9, &["ctrl+y: choose · down: move · type: search · f10: close"]);
        let none = json!({"tui.select.up": [], "tui.select.down": []});
        check(&none, 80, 9, &["enter: choose · type: search · escape: close"]);
    }

    #[test]
    fn what_concerns_an_item_is_left_out_where_none_is_selected() {
        let hints = Hints::confirm("choose").key("app.models.save", "save").of_item().cancel("close");
        assert_eq!(hints.without_item(), Hints::new().cancel("close"));
    }

    #[test]
    fn narrow_screens_break_between_hints_keep_the_way_out_and_leave_room_for_the_list() {
        let lines = ["enter: choose", "up/down: move", "type: search", "escape: close"];
        check(&json!({}), 20, 12, &lines);
        check(&json!({}), 20, 9, &[lines[0], lines[1], lines[3]]);
        check(&json!({}), 20, 6, &[lines[0], lines[3]]);
        check(&json!({}), 20, 3, &lines[3..]);
        check(&json!({}), 10, 9, &["escape:", "close"]);
        check(
            &json!({}),
            10,
            30,
            &["enter:", "choose", "up/down:", "move", "type:", "search", "escape:", "close"],
        );
        check(&json!({}), 30, 9, &["enter: choose · up/down: move", "type: search · escape: close"]);
    }
}
