//! Edits of what stands for something else: pastes, images, a backslash before Enter.

use std::ops::Range;

use super::editor::Composer;
use super::markers::image_label;
use super::model::Place;

/// Replaces the marker at the cursor, or else the last one before it, with its pasted text, as
/// one undo step. `false` if there is none.
pub(super) fn expand_paste(composer: &mut Composer) -> bool {
    let cursor = composer.model.cursor();
    let found = (0..=cursor.line).rev().find_map(|line| {
        let byte = if line == cursor.line { cursor.byte } else { usize::MAX };
        let (range, content) = composer.markers.paste_before(composer.model.line(line), byte)?;
        Some((line, range, content.to_owned()))
    });
    let Some((line, range, content)) = found else { return false };
    replace(composer, line, range, &content);
    true
}

/// Replaces a backslash directly before the cursor with a line break; `false` if there is
/// none. Enter tries this first, for terminals that cannot report Shift+Enter.
pub fn backslash_to_new_line(composer: &mut Composer) -> bool {
    let has_backslash = composer.before_cursor().ends_with('\\');
    if has_backslash {
        composer.replace_before_cursor(1, "\n");
    }
    has_backslash
}

/// Inserts the marker of an image, apart from the words beside it, as one undo step.
pub fn insert_image(composer: &mut Composer, number: usize) {
    composer.markers.add_image(number);
    let is_apart = composer.before_cursor().chars().next_back().is_none_or(char::is_whitespace);
    let gap = if is_apart { "" } else { " " };
    composer.replace_before_cursor(0, &format!("{gap}{} ", image_label(number)));
}

/// Replaces the last occurrence of `text` on one line by the marker of an image, as one undo
/// step. `false` if it is not there any more.
pub fn replace_by_image(composer: &mut Composer, text: &str, number: usize) -> bool {
    let lines = composer.model.lines().iter().enumerate().rev();
    let found = lines.filter(|_| !text.is_empty()).find_map(|(line, all)| Some((line, all.rfind(text)?)));
    let Some((line, start)) = found else { return false };
    composer.markers.add_image(number);
    let cursor = composer.model.cursor();
    let is_at_end = composer.model.line(line).len() == start + text.len();
    let label = format!("{}{}", image_label(number), if is_at_end { " " } else { "" });
    replace(composer, line, start..start + text.len(), &label);
    // The cursor stays at its text.
    let end = Place::new(line, start + text.len());
    if cursor.line != line || cursor < end {
        composer.model.go_to(cursor);
    } else {
        composer.model.go_to(Place::new(line, cursor.byte - text.len() + label.len()));
    }
    true
}

/// Replaces the text, as one undo step. Texts that were pasted become markers again, and so do
/// the ranges `pastes`, if they are in order; `images` are the numbers of its images.
pub fn set_text_with(
    composer: &mut Composer,
    text: &str,
    pastes: &[Range<usize>],
    images: impl IntoIterator<Item = usize>,
) {
    images.into_iter().for_each(|number| composer.markers.add_image(number));
    let mut folded = String::new();
    let mut done = 0;
    for range in pastes {
        let Some(before) = text.get(done..range.start) else { continue };
        let Some(content) = text.get(range.clone()) else { continue };
        folded.push_str(before);
        let label = composer.markers.add(content).map(str::to_owned);
        folded.push_str(label.as_deref().unwrap_or(content));
        done = range.end;
    }
    folded.push_str(&text[done..]);
    let folded = composer.markers.collapse(&folded);
    composer.set_text(&folded);
}

/// Keeps the text for good: nothing that led to it is undone.
pub fn forget_undo(composer: &mut Composer) {
    composer.model.forget_undo();
}

/// Where the pasted texts are in the expanded text.
pub fn paste_ranges(composer: &Composer) -> Vec<Range<usize>> {
    composer.markers.expanded_ranges(&composer.text())
}

fn replace(composer: &mut Composer, line: usize, range: Range<usize>, with: &str) {
    composer.model.begin();
    composer.model.remove(Place::new(line, range.start), Place::new(line, range.end));
    composer.model.insert(with);
    composer.edited();
}

#[cfg(test)]
mod tests {
    use super::super::editor::EditorAction;
    use super::*;

    #[test]
    fn image_stands_apart_and_is_one_unit() {
        let mut composer = Composer::new();
        composer.insert("see");
        insert_image(&mut composer, 1);
        composer.insert("this");
        assert_eq!(composer.text(), "see [image #1] this");
        for _ in 0..6 {
            composer.handle(EditorAction::CursorLeft);
        }
        composer.handle(EditorAction::DeleteCharForward);
        assert_eq!(composer.text(), "see  this");
        composer.handle(EditorAction::Undo);
        assert_eq!(composer.text(), "see [image #1] this");
    }

    #[test]
    fn dropped_path_becomes_an_image_while_the_user_types_on() {
        let mut composer = Composer::new();
        composer.insert("see ");
        composer.paste("/tmp/a b.png");
        composer.insert(" and tell");
        assert!(replace_by_image(&mut composer, "/tmp/a b.png", 3));
        assert_eq!(composer.text(), "see [image #3] and tell");
        composer.insert("!");
        assert_eq!(composer.text(), "see [image #3] and tell!");
        assert!(!replace_by_image(&mut composer, "/tmp/a b.png", 4));
        composer.handle(EditorAction::Undo);
        composer.handle(EditorAction::Undo);
        assert_eq!(composer.text(), "see /tmp/a b.png and tell");
    }

    #[test]
    fn pastes_are_folded_where_they_were() {
        let big = "line\n".repeat(12);
        let mut composer = Composer::new();
        composer.insert("é ");
        composer.paste(&big);
        composer.insert(" and ");
        composer.paste(&big);
        let (text, folded, ranges) = (composer.expanded_text(), composer.text(), paste_ranges(&composer));
        let mut other = Composer::new();
        set_text_with(&mut other, &text, &ranges, [1]);
        assert_eq!((other.text(), other.expanded_text()), (folded, text.clone()));
        // Ranges that belong to another text are no reason to lose anything.
        let reversed = Range { start: 50, end: 3 };
        let wrong = [1..2, reversed, 4..4, 9_000..9_001, 5..40];
        set_text_with(&mut other, &text, &wrong, []);
        assert_eq!(other.expanded_text(), text);
    }
}
