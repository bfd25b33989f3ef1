//! The line break that the last line of a text may lack, for diffs by lines.

use std::borrow::Cow;

/// Both texts with a break after their last lines, so that a line is the same whether one follows or not.
/// Unchanged if nothing else differs.
pub fn with_last_breaks<'a>(old: &'a str, new: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    let lacks = |text: &str| !text.is_empty() && !text.ends_with('\n');
    let ended = |text: &'a str| match lacks(text) {
        true => Cow::Owned([text, "\n"].concat()),
        false => Cow::Borrowed(text),
    };
    let unchanged = (Cow::Borrowed(old), Cow::Borrowed(new));
    if !lacks(old) && !lacks(new) {
        return unchanged;
    }
    let both = (ended(old), ended(new));
    if both.0 == both.1 { unchanged } else { both }
}
