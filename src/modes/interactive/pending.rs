//! Queued messages, shown between the transcript and the editor.

use crate::session::QueueView;
use crate::tui::text::{Ellipsis, Row, truncate, visible_line, width as width_of};
use crate::tui::theme::{Theme, Token};

/// Maximum number of queued messages shown.
const MAX_SHOWN: usize = 5;

/// What waits, on one row for small screens; `None` if nothing does.
pub(super) fn summary(queue: &QueueView, dequeue_key: &str, width: u16, theme: &Theme) -> Option<Row> {
    let counted = |n: usize, kind: &str| (n > 0).then(|| format!("{n} {kind}"));
    let kinds = [counted(queue.steering.len(), "steering"), counted(queue.follow_up.len(), "follow-up")];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    if kinds.is_empty() {
        return None;
    }
    let take_back = if dequeue_key.is_empty() { String::new() } else { format!(" · {dequeue_key} to edit") };
    let text = format!(" Queued: {}{take_back}", kinds.join(", "));
    let text = truncate(&text, usize::from(width), Ellipsis::One).into_owned();
    Some(Row::styled(text, theme.style(Token::Dim)))
}

/// One dim row per message, then how to get them back. Empty if the queue is.
pub(super) fn rows(queue: &QueueView, dequeue_key: &str, width: u16, theme: &Theme) -> Vec<Row> {
    let columns = usize::from(width);
    let dim = theme.style(Token::Dim);
    let steering = queue.steering.iter().map(|text| ("Steering", text));
    let follow_up = queue.follow_up.iter().map(|text| ("Follow-up", text));
    let queued: Vec<_> = steering.chain(follow_up).collect();
    if queued.is_empty() {
        return Vec::new();
    }
    let row = |text: String| Row::styled(truncate(&text, columns, Ellipsis::One).into_owned(), dim);
    let mut rows: Vec<Row> = queued
        .iter()
        .take(MAX_SHOWN)
        .map(|(kind, text)| {
            let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            row(format!(" {kind}: {}", visible_line(&one_line)))
        })
        .collect();
    if queued.len() > MAX_SHOWN {
        rows.push(row(format!(" … and {} more", queued.len() - MAX_SHOWN)));
    }
    let take_back = |text: &str| {
        if dequeue_key.is_empty() { String::new() } else { format!("{dequeue_key}{text} · ") }
    };
    let (edit, change) = match queued.len() {
        1 => (" to edit it", "change or remove it"),
        _ => (" to edit them", "change, reorder or remove one"),
    };
    let texts = [
        format!(" ↳ {}/queue to {change}", take_back(edit)),
        format!(" ↳ {}/queue to change", take_back(edit)),
        format!(" ↳ {}/queue", take_back(" to edit")),
        format!(" ↳ {}/queue", take_back("")),
    ];
    let fits = texts.iter().find(|text| width_of(text) <= columns).or(texts.last());
    rows.extend(fits.cloned().map(row));
    rows
}
