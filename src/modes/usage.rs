//! The output of `pi usage`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use crate::session::{UsageReport, UsageSum};
use crate::util::paths;

use super::output::write_out;
use super::table::table;

/// Prints a report over `days`; paths are shown with `~` for `home`.
pub fn show_usage(report: &UsageReport, days: u64, home: Option<&Path>, json: bool) -> ExitCode {
    if json {
        let text = serde_json::to_string_pretty(report).unwrap_or_default();
        write_out(&(text + "\n"));
        return ExitCode::SUCCESS;
    }
    if report.total.requests == 0 {
        let unit = if days == 1 { "day" } else { "days" };
        write_out(&format!("No requests in the last {days} {unit}.\n"));
        return ExitCode::SUCCESS;
    }
    let project = |path: &str| match path {
        "" => "(unknown)".to_owned(),
        path => paths::display(Path::new(path), home),
    };
    let parts = [
        section("day (UTC)", report.by_day.iter().rev(), str::to_owned),
        section("model", by_cost(&report.by_model), str::to_owned),
        section("project", by_cost(&report.by_project), project),
        totals(report),
    ];
    write_out(&parts.join("\n"));
    ExitCode::SUCCESS
}

fn by_cost(sums: &BTreeMap<String, UsageSum>) -> impl Iterator<Item = (&String, &UsageSum)> {
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.cost_usd.total_cmp(&a.cost_usd).then(b.tokens().cmp(&a.tokens())));
    sums.into_iter()
}

fn section<'a>(
    name: &str,
    sums: impl Iterator<Item = (&'a String, &'a UsageSum)>,
    shown: impl Fn(&str) -> String,
) -> String {
    let header = [name, "requests", "input", "cached", "output", "cost"].map(str::to_owned).to_vec();
    let rows = sums.map(|(key, sum)| {
        let input = sum.input.saturating_add(sum.cache_write);
        let cost = if sum.plan_requests == sum.requests { "plan".to_owned() } else { usd(sum.cost_usd) };
        let counts = [sum.requests, input, sum.cache_read, sum.output].map(|count| count.to_string());
        [vec![shown(key)], counts.to_vec(), vec![cost]].concat()
    });
    table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

fn totals(report: &UsageReport) -> String {
    let total = &report.total;
    let mut lines = vec![format!("Total: {}, {}", counted(total.requests), usd(total.cost_usd))];
    if total.plan_requests > 0 {
        lines.push(format!("On flat-rate plans, without a price: {}", counted(total.plan_requests)));
    }
    if let Some(hit) = total.cache_hit().filter(|hit| *hit > 0.0) {
        let savings = usd(total.cache_savings_usd);
        lines.push(format!("Cache: {:.0} % of the input tokens, saving {savings}", hit * 100.0));
    }
    if let (Some(dollars), Some(tokens)) = (report.burn_usd_per_hour, report.burn_tokens_per_hour) {
        lines.push(format!("Rate: {} and {tokens:.0} tokens per hour of work", usd(dollars)));
    }
    lines.join("\n") + "\n"
}

fn counted(requests: u64) -> String {
    if requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") }
}

/// Dollars with four digits below a cent, otherwise two.
fn usd(dollars: f64) -> String {
    let sign = if dollars < 0.0 { "-" } else { "" };
    let amount = dollars.abs();
    if amount > 0.0 && amount < 0.01 { format!("{sign}${amount:.4}") } else { format!("{sign}${amount:.2}") }
}
