//! Sums over tool calls.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::store::EntryId;
use super::message::{Trace, TracedCall};

/// The calls of one tool. Durations are in milliseconds, over calls with a known duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStats {
    /// The tool.
    pub name: String,
    /// Calls with and without results.
    pub calls: usize,
    /// Calls whose result is an error.
    pub failures: usize,
    /// Calls without a result.
    pub unfinished: usize,
    /// The mean duration.
    pub mean_ms: Option<u64>,
    /// The median duration.
    pub p50_ms: Option<u64>,
    /// The duration that 95 of 100 calls stay below.
    pub p95_ms: Option<u64>,
    /// The longest duration.
    pub max_ms: Option<u64>,
    /// Size of all results.
    pub n_bytes: u64,
}

/// A call with its position in the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallOf<'a> {
    /// Id of the prompt's entry.
    pub message_id: &'a EntryId,
    /// Counts steps from 0 within the message.
    pub iteration: usize,
    /// The call.
    pub call: &'a TracedCall,
}

impl Trace {
    /// All calls, oldest first.
    pub fn calls(&self) -> impl Iterator<Item = CallOf<'_>> {
        self.messages.iter().flat_map(|message| {
            message.steps.iter().flat_map(|step| {
                let (message_id, iteration) = (&message.id, step.iteration);
                step.calls.iter().map(move |call| CallOf { message_id, iteration, call })
            })
        })
    }

    /// The calls whose result is an error, newest first.
    pub fn failed_calls(&self) -> Vec<CallOf<'_>> {
        let failed = |found: &CallOf<'_>| found.call.result.as_ref().is_some_and(|result| !result.success);
        let mut calls: Vec<CallOf<'_>> = self.calls().filter(failed).collect();
        calls.reverse();
        calls
    }

    /// The calls with a known duration, slowest first.
    pub fn slowest_calls(&self) -> Vec<CallOf<'_>> {
        let mut calls: Vec<CallOf<'_>> =
            self.calls().filter(|found| found.call.duration_ms.is_some()).collect();
        calls.sort_by_key(|found| std::cmp::Reverse(found.call.duration_ms));
        calls
    }

    /// Statistics of every tool that was called, by name.
    pub fn tool_stats(&self) -> Vec<ToolStats> {
        let mut by_name: BTreeMap<&str, Vec<&TracedCall>> = BTreeMap::new();
        for found in self.calls() {
            by_name.entry(&found.call.name).or_default().push(found.call);
        }
        by_name.into_iter().map(|(name, calls)| stats_of(name, &calls)).collect()
    }
}

fn stats_of(name: &str, calls: &[&TracedCall]) -> ToolStats {
    let mut durations: Vec<u64> = calls.iter().filter_map(|call| call.duration_ms).collect();
    durations.sort_unstable();
    let results = || calls.iter().filter_map(|call| call.result.as_ref());
    let n = durations.len() as u64;
    ToolStats {
        name: name.to_owned(),
        calls: calls.len(),
        failures: results().filter(|result| !result.success).count(),
        unfinished: calls.iter().filter(|call| call.result.is_none()).count(),
        mean_ms: durations.iter().fold(0, |sum: u64, ms| sum.saturating_add(*ms)).checked_div(n),
        p50_ms: percentile(&durations, 50),
        p95_ms: percentile(&durations, 95),
        max_ms: durations.last().copied(),
        n_bytes: results().map(|result| result.n_bytes).sum(),
    }
}

/// The nearest-rank percentile of ascending values; `None` without values.
fn percentile(ascending: &[u64], percent: usize) -> Option<u64> {
    let rank = (ascending.len() * percent).div_ceil(100).max(1);
    ascending.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(
            [50, 95, 100].map(|percent| percentile(&hundred, percent)),
            [Some(50), Some(95), Some(100)]
        );
        assert_eq!([50, 95].map(|percent| percentile(&[7], percent)), [Some(7), Some(7)]);
        assert_eq!(percentile(&[1, 9], 50), Some(1));
        assert_eq!(percentile(&[], 50), None);
    }
}
