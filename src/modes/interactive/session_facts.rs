//! `/session`: what is known about the session, and what it cost.

use std::path::Path;
use std::sync::Arc;

use crate::ai::{Cost, Quota};
use crate::session::{
    CacheWarmth, Services, SessionState, Totals, UsageRecord, UsageReport, UsageSum, WarmingCosts,
    WarmingStatus, read_quotas, read_usage, usage_since,
};
use crate::util::clock::Zone;
use crate::util::counted;
use crate::util::paths;

use super::super::usage::{misses_line, quota_line, rate_line, savings_line, usd};
use super::effects::Effects;
use super::footer::tokens_short;
use super::msg::EffectDone;
use super::reports::{ReportDone, ReportKind};

/// Models that are listed; the others are summed up.
const MAX_MODELS: usize = 4;

impl Effects {
    /// Reads what the session and the day cost; answers with [`EffectDone::Report`].
    pub(super) fn describe_session(&self) {
        let (state, done) = (self.link.handle().state(), self.done.clone());
        let (services, root) = (Arc::clone(&self.services), self.sessions.root.clone());
        tokio::task::spawn_blocking(move || {
            let markdown = session_report(&services, &root, &state);
            let kind = ReportKind::Session;
            drop(done.send(EffectDone::Report(ReportDone::Report { kind, markdown, chapters: Vec::new() })));
        });
    }
}

/// Everything about a session, as Markdown; `root` is the folder of all sessions. Blocks.
pub(in super::super) fn session_report(services: &Services, root: &Path, state: &SessionState) -> String {
    let (now_ms, zone) = (services.clock.now_ms(), services.clock.zone());
    let catalog = services.catalog.get();
    let rates = |record: &UsageRecord| -> Option<Cost> {
        catalog.get(&record.provider, &record.model).map(|model| model.cost.clone())
    };
    let path = state.path.as_deref().filter(|_| state.on_disk);
    let records = path.and_then(|path| read_usage(path).ok()).unwrap_or_default();
    let today = usage_since(root, zone.day_start(now_ms, 0));
    let mut usage = SessionUsage {
        last_turn: records.last().map(|record| record.turn.clone()).unwrap_or_default(),
        session: UsageReport::of(&records, &zone, rates),
        today: UsageReport::of(&today, &zone, rates),
        quota: read_quotas(&services.dirs, &services.quotas).remove(&state.model.provider),
    };
    if path.is_none() {
        usage.session.total = without_file(&state.totals);
    }
    describe(state, &usage, now_ms, &zone, services.dirs.home.as_deref())
}

/// What is known of a session that is not saved.
fn without_file(totals: &Totals) -> UsageSum {
    let requests = totals.n_assistant as u64;
    let plan_requests = if totals.on_plan && totals.cost_usd == 0.0 { requests } else { 0 };
    UsageSum {
        requests,
        plan_requests,
        input: totals.input,
        output: totals.output,
        cache_read: totals.cache_read,
        cache_write: totals.cache_write,
        cost_usd: totals.cost_usd,
        ..UsageSum::default()
    }
}

/// What was read about costs.
struct SessionUsage {
    session: UsageReport,
    last_turn: String,
    /// All sessions.
    today: UsageReport,
    quota: Option<Quota>,
}

/// Everything about a session, as markdown.
fn describe(
    session: &SessionState,
    usage: &SessionUsage,
    now_ms: u64,
    zone: &Zone,
    home: Option<&Path>,
) -> String {
    let totals = &session.totals;
    let file = match (&session.path, session.on_disk) {
        (None, _) => "not saved".to_owned(),
        (Some(path), true) => format!("`{}`", paths::display(path, home)),
        (Some(path), false) => format!("`{}` (appears with the first message)", paths::display(path, home)),
    };
    let mut rows = vec![
        ("Name", session.name.clone().unwrap_or_else(|| "(none)".to_owned())),
        ("Id", format!("`{}`", session.id)),
        ("File", file),
        ("Model", session.model.reference()),
        (
            "Messages",
            format!(
                "{} ({} from you, {} with {}, {})",
                totals.n_user + totals.n_assistant + totals.n_tool_results,
                totals.n_user,
                counted(totals.n_assistant as u64, "answer"),
                counted(totals.n_tool_calls as u64, "tool call"),
                counted(totals.n_tool_results as u64, "tool result")
            ),
        ),
    ];
    if !session.pinned.is_empty() {
        rows.push(("Pinned", format!("{} (see /tree)", session.pinned.len())));
    }
    if let Some(tokens) = session.context.tokens {
        let about = if session.context.is_estimate { "about " } else { "" };
        rows.push((
            "Context",
            format!("{about}{} of {}", tokens_short(tokens), tokens_short(session.context.window)),
        ));
    }
    if !session.damaged_lines.is_empty() {
        let lines: Vec<String> = session.damaged_lines.iter().map(ToString::to_string).collect();
        rows.push(("Damaged", format!("lines {} of the file could not be read", lines.join(", "))));
    }
    let report = &usage.session;
    rows.extend(savings_line(&report.total).map(|line| {
        let written = match report.total.cache_write {
            0 => String::new(),
            tokens => format!("; {} tokens written to it", tokens_short(tokens)),
        };
        ("Cache", line + &written)
    }));
    rows.extend(misses_line(&report.total).map(|line| ("Cache misses", line)));
    rows.push(("Cache warming", warming_line(session, now_ms)));
    rows.extend(rate_line(report).map(|line| ("Rate", line)));
    rows.extend(usage.quota.as_ref().map(|quota| ("Limits", quota_line(quota, now_ms, zone))));
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("- **{name}**: {value}")).collect();
    format!("{}\n\n{}", rows.join("\n"), costs(session, usage))
}

/// How the provider's cache is kept: the setting, what happens next, and what that costs.
fn warming_line(session: &SessionState, now_ms: u64) -> String {
    let CacheWarmth { status, costs } = &session.cache_warmth;
    let mode = session.settings.values.cache_warming.name();
    let status = match status {
        WarmingStatus::Unplanned => "no answer yet".to_owned(),
        WarmingStatus::Sending => "asking the provider now".to_owned(),
        WarmingStatus::Planned { at_ms } => match at_ms.saturating_sub(now_ms).div_ceil(60_000) {
            0 | 1 => "next request within a minute".to_owned(),
            minutes => format!("next request in {minutes} minutes"),
        },
        WarmingStatus::Stopped(why) => why.describe().to_owned(),
    };
    let costs = costs.map_or_else(String::new, |WarmingCosts { miss_usd, warm_usd }| {
        format!("; a miss costs {}, keeping the cache {} each time", usd(miss_usd), usd(warm_usd))
    });
    format!("{mode}: {status}{costs}")
}

/// The table of tokens and dollars; periods without requests are left out.
fn costs(session: &SessionState, usage: &SessionUsage) -> String {
    let report = &usage.session;
    let empty = UsageSum::default();
    let project = session.cwd.display().to_string();
    let mut sums = vec![
        ("Last prompt".to_owned(), report.by_turn.get(&usage.last_turn).unwrap_or(&empty)),
        ("This branch".to_owned(), &report.active_branch),
        ("Other branches".to_owned(), &report.other_branches),
        ("Session".to_owned(), &report.total),
        ("Today, this directory".to_owned(), usage.today.by_project.get(&project).unwrap_or(&empty)),
        ("Today, everywhere".to_owned(), &usage.today.total),
    ];
    // Equal sums need one row.
    if report.other_branches.requests == 0 {
        sums.remove(1);
    }
    if report.by_model.len() > 1 {
        let mut models: Vec<_> = report.by_model.iter().collect();
        models.sort_by(|(_, a), (_, b)| b.cost_usd.total_cmp(&a.cost_usd).then(b.tokens().cmp(&a.tokens())));
        sums.extend(models.into_iter().take(MAX_MODELS).map(|(model, sum)| (format!("`{model}`"), sum)));
    }
    let rows: Vec<String> = (sums.iter().filter(|(_, sum)| sum.requests > 0))
        .map(|(name, sum)| {
            let input = sum.input.saturating_add(sum.cache_write);
            let counts = [input, sum.cache_read, sum.output, sum.tokens()].map(tokens_short);
            let cost = if sum.plan_requests == sum.requests { "plan".to_owned() } else { usd(sum.cost_usd) };
            format!("| {name} | {} | {} | {cost} |", sum.requests, counts.join(" | "))
        })
        .collect();
    if rows.is_empty() {
        return "No request was made yet.".to_owned();
    }
    format!(
        "| Usage | Requests | Input | Cached | Output | Total | Cost |\n|---|--:|--:|--:|--:|--:|--:|\n{}\n\n{}",
        rows.join("\n"),
        "`pi usage` adds up days, models and directories."
    )
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use crate::ai::{Millis, Model};
    use crate::session::NotWarmed;

    use super::*;

    fn record(turn: &str, model: &str, on_active_branch: bool, cost: f64) -> UsageRecord {
        UsageRecord {
            time_ms: 1_000,
            session: "s".to_owned(),
            project: "/home/me/project".to_owned(),
            entry: "e".to_owned(),
            turn: turn.to_owned(),
            on_active_branch,
            provider: "acme".to_owned(),
            model: model.to_owned(),
            usage: serde_json::from_value(json!({
                "input": 1200, "output": 800, "cacheRead": 43_000, "cacheWrite": 2100, "totalTokens": 47_100,
                "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost },
            }))
            .unwrap(),
            missed_tokens: 0,
        }
    }

    /// A session with two branches and two models.
    pub(in super::super) fn example() -> String {
        let model: Model = serde_json::from_value(json!({
            "id": "sonata-4-large", "name": "Sonata", "api": "openai-completions", "provider": "acme",
            "contextWindow": 200_000,
        }))
        .unwrap();
        let mut session = SessionState::of(&Arc::new(model), Path::new("/home/me/project"));
        session.path =
            Some("/home/me/.pi/agent/sessions/--home-me-project--/2026-11-22_01a20169.jsonl".into());
        session.on_disk = true;
        session.id = "01a20169-6a6e-7233-bf8b-759f62e0fb8b".to_owned();
        let records = [
            record("a", "sonata-4-large", false, 0.25),
            record("a", "sonata-4-large", true, 0.5),
            record("b", "mini", true, 0.0125),
        ];
        let zone = Zone::utc();
        let rates = |_: &UsageRecord| None;
        let usage = SessionUsage {
            session: UsageReport::of(&records, &zone, rates),
            last_turn: "b".to_owned(),
            today: UsageReport::of(&records, &zone, rates),
            quota: None,
        };
        describe(&session, &usage, Millis(2_000).0, &zone, Some(Path::new("/home/me")))
    }

    #[test]
    fn cache_warming_is_shown_with_mode_status_and_costs() {
        let costs = WarmingCosts { miss_usd: 0.48, warm_usd: 0.02 };
        let check = |status: WarmingStatus, costs: Option<WarmingCosts>, expected: &str| {
            let mut session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
            session.cache_warmth = CacheWarmth { status, costs };
            assert_eq!(warming_line(&session, 1_000), expected);
        };
        check(WarmingStatus::Unplanned, None, "idle: no answer yet");
        check(
            WarmingStatus::Planned { at_ms: 241_000 },
            Some(costs),
            "idle: next request in 4 minutes; a miss costs $0.48, keeping the cache $0.02 each time",
        );
        check(WarmingStatus::Planned { at_ms: 500 }, None, "idle: next request within a minute");
        check(WarmingStatus::Sending, None, "idle: asking the provider now");
        check(WarmingStatus::Stopped(NotWarmed::Plan), None, "idle: a plan pays for the requests");
    }

    #[test]
    fn a_session_that_is_not_saved_has_its_totals() {
        let totals = Totals { n_assistant: 2, input: 7, output: 5, cost_usd: 0.5, ..Totals::default() };
        let sum = without_file(&totals);
        assert_eq!((sum.requests, sum.plan_requests, sum.tokens(), sum.cost_usd), (2, 0, 12, 0.5));
        let on_plan = without_file(&Totals { on_plan: true, cost_usd: 0.0, ..totals });
        assert_eq!(on_plan.plan_requests, 2);
    }

    #[test]
    fn every_table_has_heads() {
        let text = example();
        assert!(text.contains("| Usage | Requests |") && !text.contains("| |"), "{text}");
    }
}
