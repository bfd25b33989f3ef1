//! Pie charts as bars.

use super::super::super::text::width;
use super::sheet::{DrawnRow, Ink};
use super::{Undrawn, label, title_rows};

const MAX_SLICES: usize = 40;
/// Columns of the longest bar.
const MAX_BAR: usize = 40;
const MIN_BAR: usize = 8;
const MAX_NAME: usize = 32;

pub(super) fn draw(settings: &str, statements: &[&str], room: usize) -> Result<Vec<DrawnRow>, Undrawn> {
    let mut words = settings;
    let shows_data = words.strip_prefix("showData").map(|rest| words = rest.trim()).is_some();
    let mut title = words.strip_prefix("title").filter(|rest| rest.is_empty() || rest.starts_with(' '));
    if title.is_none() && !words.is_empty() {
        return Err(Undrawn::Syntax);
    }
    let mut slices: Vec<(String, f64)> = Vec::new();
    for statement in statements {
        if let Some(found) = statement.strip_prefix("title ") {
            title = Some(found);
        } else if !is_description(statement) {
            let (name, value) = statement.rsplit_once(':').ok_or(Undrawn::Syntax)?;
            let value: f64 = value.trim().parse().map_err(|_| Undrawn::Syntax)?;
            if !value.is_finite() || value < 0.0 {
                return Err(Undrawn::Syntax);
            }
            let name = label::plain(name).ok_or(Undrawn::TooLarge)?.replace('\n', " ");
            slices.push((name, value));
        }
    }
    let total: f64 = slices.iter().map(|(_, value)| value).sum();
    if slices.len() > MAX_SLICES {
        return Err(Undrawn::TooLarge);
    }
    if slices.is_empty() || !(total > 0.0 && total.is_finite()) {
        return Err(Undrawn::Syntax);
    }
    let widest = slices.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let value = |value: f64| {
        let share = format!("{:5.1}%", 100.0 * value / total);
        if shows_data { format!("{share}  {value}") } else { share }
    };
    let values = slices.iter().map(|(_, amount)| width(&value(*amount))).max().unwrap_or(0);
    let least = widest + values + 4 + MIN_BAR;
    if least > room || widest > MAX_NAME {
        let least = (widest <= MAX_NAME).then_some(least);
        return Err(Undrawn::of_width(least, room));
    }
    let bar = (room - widest - values - 4).min(MAX_BAR);
    let largest = slices.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let mut rows = title_rows(title.unwrap_or_default(), room)?;
    for (name, amount) in &slices {
        let pad = " ".repeat(widest - width(name));
        let blocks = bar_of(amount / largest * bar as f64);
        let blanks = " ".repeat(bar.saturating_sub(width(&blocks)));
        rows.push(vec![
            (Ink::Text, format!("{name}{pad}  ")),
            (Ink::Line, format!("{blocks}{blanks}  ")),
            (Ink::Label, value(*amount)),
        ]);
    }
    Ok(rows)
}

fn is_description(statement: &str) -> bool {
    let (word, _) = statement.split_once(':').unwrap_or((statement, ""));
    matches!(word.trim(), "accTitle" | "accDescr")
}

/// A bar of so many cells, in steps of an eighth.
fn bar_of(cells: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (cells * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}
