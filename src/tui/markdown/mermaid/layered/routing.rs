//! The lines of a gap: where they leave the ranks above and below, and in which order they turn.

use std::collections::HashMap;

use super::super::sheet::Stroke;
use super::place::settle;
use super::{LineEnd, Ranks, Spacing, to_i64};

/// A net with positions: where its lines leave the ranks above and below.
#[derive(Debug)]
pub(super) struct RoutedNet {
    pub(super) uppers: Vec<(i64, LineEnd)>,
    pub(super) lowers: Vec<(i64, LineEnd)>,
    pub(super) stroke: Stroke,
}

impl RoutedNet {
    fn columns(&self) -> impl Iterator<Item = i64> {
        self.uppers.iter().chain(&self.lowers).map(|(column, _)| *column)
    }

    pub(super) fn span(&self) -> (i64, i64) {
        (self.columns().min().unwrap_or(0), self.columns().max().unwrap_or(0))
    }

    pub(super) fn is_straight(&self) -> bool {
        let (first, last) = self.span();
        first == last
    }
}

/// The nets of a gap with their ports: above near the middle of what is below, then below near
/// the ports above, so that lines are straight where they can be.
pub(super) fn routed_nets(ranks: &Ranks, gap: usize, spacing: Spacing) -> Vec<RoutedNet> {
    let (steps, nets) = (&ranks.gaps[gap], &ranks.nets[gap]);
    let mut routed: Vec<RoutedNet> = nets
        .iter()
        .map(|net| {
            let ends = |is_upper: bool| {
                net.ends(steps, is_upper).into_iter().map(|line_end| (middle(ranks, line_end), line_end))
            };
            RoutedNet {
                uppers: ends(true).collect(),
                lowers: ends(false).collect(),
                stroke: steps[net.steps[0]].stroke,
            }
        })
        .collect();
    for is_upper in [true, false] {
        // Per vertex: net, end of the net, and where it would be straight.
        let mut ports: HashMap<usize, Vec<(usize, usize, f64)>> = HashMap::new();
        for (net, routed_net) in routed.iter().enumerate() {
            let (own, other) = if is_upper {
                (&routed_net.uppers, &routed_net.lowers)
            } else {
                (&routed_net.lowers, &routed_net.uppers)
            };
            for (end, (middle, line_end)) in own.iter().enumerate() {
                let sum: i64 = other.iter().map(|(column, _)| column).sum();
                let wanted = match (own.len(), other.len()) {
                    (1, 1) => sum as f64,
                    (1, n_others) => sum as f64 / n_others as f64,
                    (_, _) => other.first().map_or(*middle, |(column, _)| *column) as f64,
                };
                ports.entry(line_end.item).or_default().push((net, end, wanted));
            }
        }
        for (vertex_idx, mut ports) in ports {
            let vertex = &ranks.vertices[vertex_idx];
            if vertex.has_ports || vertex.is_line() {
                continue;
            }
            let edge = i64::from(vertex.cross >= 3);
            let (least, most) = (vertex.start() + edge, vertex.start() + to_i64(vertex.cross) - 1 - edge);
            ports.sort_by(|a, b| a.2.total_cmp(&b.2));
            let wanted: Vec<f64> = match ports.as_slice() {
                [(net, _, wanted)] => {
                    let is_single = routed[*net].uppers.len() == 1 && routed[*net].lowers.len() == 1;
                    let is_near = is_single && *wanted >= least as f64 && *wanted <= most as f64;
                    vec![if is_near { *wanted } else { vertex.center as f64 }]
                }
                ports => ports.iter().map(|port| port.2.clamp(least as f64, most as f64)).collect(),
            };
            let gaps = vec![to_i64(spacing.ports); wanted.len().saturating_sub(1)];
            let columns = settle(&wanted, &vec![1.0; wanted.len()], &gaps, Some((least, most)));
            for ((net, end, _), column) in ports.into_iter().zip(columns) {
                let own = if is_upper { &mut routed[net].uppers } else { &mut routed[net].lowers };
                own[end].0 = column;
            }
        }
    }
    routed
}

/// Where a line leaves a vertex, if it has no ports to choose.
fn middle(ranks: &Ranks, line_end: LineEnd) -> i64 {
    let vertex = &ranks.vertices[line_end.item];
    line_end.port.map_or(vertex.center, |port| vertex.start() + to_i64(port))
}

/// A track for each net: those of the same track do not meet, and where one ends above another
/// begins in the same column, it turns off first. `None` if no order does that.
pub(super) fn tracks(routed: &[RoutedNet]) -> Option<Vec<usize>> {
    let bent: Vec<usize> =
        (0..routed.len()).filter(|routed_net| !routed[*routed_net].is_straight()).collect();
    let mut from_above: HashMap<i64, usize> = HashMap::new();
    for &routed_net in &bent {
        from_above.extend(routed[routed_net].uppers.iter().map(|(column, _)| (*column, routed_net)));
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); routed.len()];
    let mut n_before = vec![0_usize; routed.len()];
    for &routed_net in &bent {
        for (column, _) in &routed[routed_net].lowers {
            if let Some(&first) = from_above.get(column).filter(|first| **first != routed_net) {
                after[first].push(routed_net);
                n_before[routed_net] += 1;
            }
        }
    }
    // Of lines to the right, the rightmost turns first: then they do not cross.
    let priority = |routed_net: usize| {
        let mean = |ends: &[(i64, LineEnd)]| {
            ends.iter().map(|(column, _)| column).sum::<i64>() / to_i64(ends.len().max(1))
        };
        let (upper, lower) = (mean(&routed[routed_net].uppers), mean(&routed[routed_net].lowers));
        if lower >= upper { (0, -upper) } else { (1, upper) }
    };
    let mut tracks = vec![0; routed.len()];
    let mut done: Vec<usize> = Vec::new();
    let mut ready: Vec<usize> =
        bent.iter().copied().filter(|routed_net| n_before[*routed_net] == 0).collect();
    while let Some(at) = (0..ready.len()).min_by_key(|at| priority(ready[*at])) {
        let routed_net = ready.swap_remove(at);
        let (first, last) = routed[routed_net].span();
        let meets = |other: &&usize| {
            let (other_first, other_last) = routed[**other].span();
            first <= other_last + 1 && other_first <= last + 1
        };
        tracks[routed_net] = done.iter().filter(meets).map(|other| tracks[*other] + 1).max().unwrap_or(0);
        done.push(routed_net);
        for &next in &after[routed_net] {
            n_before[next] -= 1;
            if n_before[next] == 0 {
                ready.push(next);
            }
        }
    }
    (done.len() == bent.len()).then_some(tracks)
}
