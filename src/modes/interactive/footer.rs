//! The two lines at the bottom: directory, usage and model.

use std::path::Path;
use std::sync::Arc;

use crate::ai::{Quota, QuotaWindow, ThinkingLevel};
use crate::session::{SessionState, Totals};
use crate::tui::text::{Ellipsis, Row, Run, sanitize_line, truncate, visible_name, width};
use crate::tui::theme::{Theme, Token};
use crate::util::paths;

/// Follows the use of the window if conversations are compacted automatically.
const AUTO: &str = " (auto)";

/// Data in the footer that is not part of the session.
#[derive(Debug, Clone, Default)]
pub(super) struct Footer {
    pub(super) branch: Option<String>,
    drawn: Option<Drawn>,
}

/// The rows of the last frame, and what they were made of.
#[derive(Debug, Clone)]
struct Drawn {
    session: Arc<SessionState>,
    branch: Option<String>,
    limits: Option<Limits>,
    columns: u16,
    /// See [`Theme::generation`].
    theme: u64,
    rows: Vec<Row>,
}

/// A text about limits, with a colour if one is nearly used up.
type Limits = (String, Option<Token>);

impl Footer {
    pub(super) fn rows(
        &mut self,
        session: &Arc<SessionState>,
        home: Option<&Path>,
        now_ms: u64,
        columns: u16,
        theme: &Theme,
    ) -> Vec<Row> {
        let limits = session.quota.as_deref().and_then(|quota| limits(quota, now_ms));
        // While an answer arrives, nothing of it changes from frame to frame.
        if let Some(drawn) = &self.drawn
            && Arc::ptr_eq(&drawn.session, session)
            && (&drawn.branch, &drawn.limits) == (&self.branch, &limits)
            && (drawn.columns, drawn.theme) == (columns, theme.generation())
        {
            return drawn.rows.clone();
        }
        let rows = self.draw(session, home, limits.clone(), columns, theme);
        let (session, branch, theme) = (Arc::clone(session), self.branch.clone(), theme.generation());
        self.drawn = Some(Drawn { session, branch, limits, columns, theme, rows: rows.clone() });
        rows
    }

    fn draw(
        &self,
        session: &SessionState,
        home: Option<&Path>,
        limits: Option<Limits>,
        columns: u16,
        theme: &Theme,
    ) -> Vec<Row> {
        let columns = usize::from(columns);
        let dim = theme.style(Token::Dim);
        let place = self.place(session, home);
        let first = Row::styled(truncate(&place, columns, Ellipsis::One).into_owned(), dim);

        let mut left = totals(&session.totals, session);
        let (context, context_token) = context(session);
        let context_style = context_token.map_or(dim, |token| theme.style(token));
        if !left.is_empty() {
            left.push(' ');
        }
        let mut row = Row::from_runs([Run::new(left, dim), Run::new(context, context_style)]);
        let limits = limits.map(|(text, token)| (format!(" {text}"), token));
        let beside = limits.as_ref().map_or(0, |(text, _)| width(text)) + 2 + width(&model(session, true));
        // Of everything it is needed least.
        if session.settings.values.compaction.enabled && row.width() + width(AUTO) + beside <= columns {
            row.push(Run::new(AUTO, context_style));
        }
        if let Some((text, token)) = limits {
            // What the user has to know now needs no room left over.
            if token.is_some() || row.width() + width(&text) + 2 + width(&model(session, false)) <= columns {
                row.push(Run::new(text, token.map_or(dim, |token| theme.style(token))));
            }
        }
        let used = row.width();
        let right = [model(session, true), model(session, false)];
        let fits = right.iter().find(|text| used + 2 + width(text) <= columns);
        let room = columns.saturating_sub(used + 2);
        let right = match fits {
            Some(text) => text.clone(),
            None if room >= 4 => truncate(&right[1], room, Ellipsis::One).into_owned(),
            None => String::new(),
        };
        let gap = columns.saturating_sub(used + width(&right));
        if !right.is_empty() {
            row.push(Run::new(" ".repeat(gap), dim));
            row.push(Run::new(right, dim));
        }
        row.clip(u16::try_from(columns).unwrap_or(u16::MAX));
        vec![first, row]
    }

    /// Directory, branch and name.
    fn place(&self, session: &SessionState, home: Option<&Path>) -> String {
        let mut text = paths::display(&session.cwd, home);
        if let Some(branch) = &self.branch {
            text.push_str(&[" (", branch, ")"].concat());
        }
        if let Some(name) = &session.name {
            text.push_str(" • ");
            text.push_str(name);
        }
        visible_name(&text).into_owned()
    }
}

/// Tokens and cost; parts that are zero are left out.
fn totals(totals: &Totals, session: &SessionState) -> String {
    let mut parts = Vec::new();
    for (sign, tokens) in
        [("↑", totals.input), ("↓", totals.output), ("R", totals.cache_read), ("W", totals.cache_write)]
    {
        if tokens > 0 {
            parts.push(format!("{sign}{}", tokens_short(tokens)));
        }
    }
    if let Some(hit) = session.context.cache_hit {
        parts.push(format!("CH{:.1}%", hit * 100.0));
    }
    match (totals.cost_usd > 0.0, totals.on_plan) {
        (true, _) => parts.push(format!("${:.3}", totals.cost_usd)),
        (false, true) => parts.push("plan".to_owned()),
        (false, false) => {}
    }
    parts.join(" ")
}

/// The used shares of a plan's windows, and of other limits that are nearly used up, with a
/// colour if one is. `now_ms` is in milliseconds since the Unix epoch.
fn limits(quota: &Quota, now_ms: u64) -> Option<Limits> {
    let is_low = |window: &&QuotaWindow| window.used >= 0.8;
    let shown: Vec<&QuotaWindow> = (quota.windows.iter())
        .filter(|window| !window.is_over(now_ms) && (window.is_plan || is_low(window)))
        .collect();
    let text: Vec<String> = (shown.iter())
        .map(|window| format!("{} {:.0}%", window.name.replace(' ', ""), window.used * 100.0))
        .collect();
    let highest = shown.iter().map(|window| window.used).fold(0.0, f64::max);
    let token = match highest {
        used if used >= 0.95 => Some(Token::Error),
        used if used >= 0.8 => Some(Token::Warning),
        _ => None,
    };
    (!text.is_empty()).then(|| (sanitize_line(&text.join(" ")).into_owned(), token))
}

/// The use of the window, with a colour if it is a warning.
fn context(session: &SessionState) -> (String, Option<Token>) {
    let context = session.context;
    let window = tokens_short(context.window);
    let Some(tokens) = context.tokens else {
        // No request was made yet, or the conversation was compacted.
        let share = if session.totals.n_assistant == 0 { "0.0%" } else { "?" };
        return (format!("{share}/{window}"), None);
    };
    let percent = tokens as f64 / context.window.max(1) as f64 * 100.0;
    let token = match percent {
        percent if percent > 90.0 => Some(Token::Error),
        percent if percent > 70.0 => Some(Token::Warning),
        _ => None,
    };
    let about = if context.is_estimate { "~" } else { "" };
    (format!("{about}{percent:.1}%/{window}"), token)
}

fn model(session: &SessionState, with_provider: bool) -> String {
    let model = &session.model;
    let provider = if with_provider && session.several_providers {
        format!("({}) ", model.provider)
    } else {
        String::new()
    };
    let level = match (model.reasoning, session.thinking) {
        (false, _) => String::new(),
        (true, ThinkingLevel::Off) => " • thinking off".to_owned(),
        (true, level) => format!(" • {level}"),
    };
    let id = if model.provider == crate::ai::DEMO_PROVIDER { "demo model" } else { &model.id };
    sanitize_line(&format!("{provider}{id}{level}")).into_owned()
}

/// `n`, `1.2k`, `123k`, `1.2M`, `12M`.
pub(super) fn tokens_short(tokens: u64) -> String {
    let n = tokens as f64;
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", n / 1e3),
        10_000..1_000_000 => format!("{:.0}k", n / 1e3),
        1_000_000..10_000_000 => format!("{:.1}M", n / 1e6),
        _ => format!("{:.0}M", n / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use crate::ai::Model;
    use crate::tui::theme::{Appearance, ColorDepth};

    use super::*;

    #[test]
    fn automatic_compaction_is_named_where_there_is_room_for_everything_else() {
        let model = Model { id: "mini".to_owned(), context_window: 200_000, ..Model::default() };
        let mut session = SessionState::of(&Arc::new(model), Path::new("/p"));
        Arc::make_mut(&mut session.settings).values.compaction.enabled = true;
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::None).unwrap();
        let row = |session: &SessionState, columns| {
            Footer::default().draw(session, None, None, columns, &theme)[1].text()
        };
        assert_eq!(row(&session, 22), "0.0%/200k (auto)  mini");
        assert_eq!(row(&session, 21), "0.0%/200k        mini");
        Arc::make_mut(&mut session.settings).values.compaction.enabled = false;
        assert_eq!(row(&session, 22), "0.0%/200k         mini");
    }

    #[test]
    fn token_counts_are_short() {
        let shown = [0, 999, 1_234, 12_345, 123_456, 1_234_567, 12_345_678].map(tokens_short);
        assert_eq!(shown, ["0", "999", "1.2k", "12k", "123k", "1.2M", "12M"]);
    }

    #[test]
    fn limits_of_plans_are_shown_and_others_when_they_are_low() {
        let window = |name: &str, is_plan, used| QuotaWindow {
            name: name.to_owned(),
            is_plan,
            used,
            limit: None,
            remaining: None,
            resets_ms: Some(100),
        };
        let check = |windows: Vec<QuotaWindow>, now_ms, expected: Option<(&str, Option<Token>)>| {
            let shown = limits(&Quota { seen_ms: 0, windows }, now_ms);
            assert_eq!(shown, expected.map(|(text, token)| (text.to_owned(), token)));
        };
        let plan = || vec![window("5 h", true, 0.374), window("7 d", true, 0.5)];
        check(plan(), 0, Some(("5h 37% 7d 50%", None)));
        check(plan(), 100, None);
        check(vec![window("requests", false, 0.7)], 0, None);
        check(vec![window("requests", false, 0.85)], 0, Some(("requests 85%", Some(Token::Warning))));
        check(vec![window("7 d", true, 1.02)], 0, Some(("7d 102%", Some(Token::Error))));
    }
}
