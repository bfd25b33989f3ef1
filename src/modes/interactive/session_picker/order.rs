//! Which sessions are shown, and in which order.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsStr;

use crate::session::SessionSummary;

/// The order of sessions without a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SortBy {
    /// Forks below the session they were made from.
    #[default]
    Threaded,
    Recent,
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Index among the sessions, or among the hits of a search.
    pub(super) at: usize,
    /// How many sessions above it are its ancestors.
    pub(super) depth: usize,
}

/// The places of the sessions for which `is_shown` holds, the latest first. A thread is as
/// recent as the latest session in it.
pub(super) fn order(
    sessions: &[SessionSummary],
    sort: SortBy,
    is_shown: impl Fn(&SessionSummary) -> bool,
) -> Vec<Place> {
    let mut shown: Vec<usize> = (0..sessions.len()).filter(|at| is_shown(&sessions[*at])).collect();
    shown.sort_by_key(|at| Reverse(sessions[*at].modified_ms));
    if sort == SortBy::Recent {
        return shown.into_iter().map(|at| Place { at, depth: 0 }).collect();
    }
    let by_path: HashMap<&OsStr, usize> =
        shown.iter().map(|at| (sessions[*at].path.as_os_str(), *at)).collect();
    let parent =
        |at: usize| sessions[at].parent.as_deref().and_then(|path| by_path.get(path.as_os_str())).copied();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for at in &shown {
        children.entry(parent(*at)).or_default().push(*at);
    }
    let latest = latest_in_threads(sessions, &shown, &parent);
    for siblings in children.values_mut() {
        siblings.sort_by_key(|at| Reverse(latest[at]));
    }
    let mut places = Vec::with_capacity(shown.len());
    let mut stack: Vec<Place> = Vec::new();
    let push = |stack: &mut Vec<Place>, of: Option<usize>, depth| {
        let siblings = children.get(&of).into_iter().flatten().rev();
        stack.extend(siblings.map(|at| Place { at: *at, depth }));
    };
    push(&mut stack, None, 0);
    while let Some(place) = stack.pop() {
        places.push(place);
        push(&mut stack, Some(place.at), place.depth + 1);
    }
    // Sessions that name each other as parents have no first one.
    if places.len() < shown.len() {
        let placed: std::collections::HashSet<usize> = places.iter().map(|place| place.at).collect();
        places.extend(shown.iter().filter(|at| !placed.contains(at)).map(|at| Place { at: *at, depth: 0 }));
    }
    places
}

/// For each session, the time of the latest one at or below it.
fn latest_in_threads(
    sessions: &[SessionSummary],
    shown: &[usize],
    parent: &impl Fn(usize) -> Option<usize>,
) -> HashMap<usize, u64> {
    let mut latest: HashMap<usize, u64> = shown.iter().map(|at| (*at, sessions[*at].modified_ms)).collect();
    for at in shown {
        let modified = sessions[*at].modified_ms;
        let mut above = parent(*at);
        // Sessions are ordered by time, so an ancestor that is as recent has been reached before.
        while let Some(ancestor) = above {
            match latest.get_mut(&ancestor) {
                Some(known) if *known < modified => *known = modified,
                _ => break,
            }
            above = parent(ancestor);
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions named after letters, each with its parent and its time.
    fn check(sort: SortBy, sessions: &[(&str, &str, u64)], expected: &[&str]) {
        let sessions: Vec<SessionSummary> = sessions
            .iter()
            .map(|(id, parent, time)| super::super::tests::session(id, parent, *time))
            .collect();
        let places = order(&sessions, sort, |_| true);
        let shown =
            places.iter().map(|place| format!("{}{}", "-".repeat(place.depth), sessions[place.at].id));
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn forks_stand_below_their_parent_and_make_it_recent() {
        let sessions =
            [("a", "", 1), ("b", "", 5), ("c", "a", 2), ("d", "c", 9), ("e", "a", 3), ("f", "gone", 4)];
        check(SortBy::Threaded, &sessions, &["a", "-c", "--d", "-e", "b", "f"]);
        check(SortBy::Recent, &sessions, &["d", "b", "f", "e", "c", "a"]);
    }

    #[test]
    fn sessions_that_are_each_others_parents_are_shown_once() {
        check(
            SortBy::Threaded,
            &[("a", "b", 1), ("b", "a", 2), ("c", "c", 3), ("d", "", 0)],
            &["d", "c", "b", "a"],
        );
    }
}
