//! Positions along ranks: each vertex as near to its neighbours as the others allow.

use super::{Ranks, Spacing, Step, Vertex, to_i64};

const SWEEPS: usize = 8;

/// Numbers with the least sum of squared distances from `wanted`, each at least `gaps` after
/// the one before (pool adjacent violators).
pub(super) fn settle(wanted: &[f64], weights: &[f64], gaps: &[i64], within: Option<(i64, i64)>) -> Vec<i64> {
    struct Block {
        sum: f64,
        weight: f64,
        count: usize,
    }
    let mut offsets = Vec::with_capacity(wanted.len());
    let mut offset = 0_i64;
    for at in 0..wanted.len() {
        if at > 0 {
            offset = offset.saturating_add(gaps[at - 1]);
        }
        offsets.push(offset);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for at in 0..wanted.len() {
        let mut block =
            Block { sum: (wanted[at] - offsets[at] as f64) * weights[at], weight: weights[at], count: 1 };
        while let Some(last) = blocks.pop_if(|last| last.sum / last.weight >= block.sum / block.weight) {
            block.sum += last.sum;
            block.weight += last.weight;
            block.count += last.count;
        }
        blocks.push(block);
    }
    let mut settled = Vec::with_capacity(wanted.len());
    for block in blocks {
        let mut base = (block.sum / block.weight).round() as i64;
        if let Some((least, most)) = within {
            base = base.min(most.saturating_sub(offset)).max(least);
        }
        for _ in 0..block.count {
            settled.push(base + offsets[settled.len()]);
        }
    }
    settled
}

/// Places all vertices; the first begins at 0.
pub(super) fn place(ranks: &mut Ranks, spacing: Spacing) {
    for rank in 0..ranks.order.len() {
        let mut next = 0;
        for at in 0..ranks.order[rank].len() {
            let vertex_idx = ranks.order[rank][at];
            let gap = at.checked_sub(1).map(|before| {
                let before = &ranks.vertices[ranks.order[rank][before]];
                distance(before, &ranks.vertices[vertex_idx], spacing)
            });
            next += gap.unwrap_or(0);
            ranks.vertices[vertex_idx].center = next;
        }
    }
    let mut places = vec![0; ranks.vertices.len()];
    for order in &ranks.order {
        order.iter().enumerate().for_each(|(place, &vertex)| places[vertex] = place);
    }
    for sweep in 0..SWEEPS {
        for rank in 1..ranks.order.len() {
            settle_rank(ranks, &places, rank, (true, false), spacing);
        }
        let is_last = sweep + 1 == SWEEPS;
        for rank in (0..ranks.order.len()).rev() {
            settle_rank(ranks, &places, rank, (is_last, true), spacing);
        }
    }
    center_isolated(ranks);
    let first = ranks.vertices.iter().map(Vertex::start).min().unwrap_or(0);
    ranks.vertices.iter_mut().for_each(|vertex| vertex.center -= first);
}

/// Puts what is alone in its rank and has no neighbours in the middle of everything.
fn center_isolated(ranks: &mut Ranks) {
    let mut is_linked = vec![false; ranks.vertices.len()];
    for step in ranks.gaps.iter().flatten() {
        is_linked[step.upper.item] = true;
        is_linked[step.lower.item] = true;
    }
    let isolated: Vec<usize> = ranks
        .order
        .iter()
        .filter_map(|order| match order.as_slice() {
            [vertex] if !is_linked[*vertex] => Some(*vertex),
            _ => None,
        })
        .collect();
    let others = || (0..is_linked.len()).filter(|vertex| !isolated.contains(vertex));
    let first = others().map(|vertex| ranks.vertices[vertex].start()).min();
    let last =
        others().map(|vertex| ranks.vertices[vertex].start() + to_i64(ranks.vertices[vertex].cross)).max();
    if let (Some(first), Some(last)) = (first, last) {
        isolated.iter().for_each(|vertex| ranks.vertices[*vertex].center = (first + last) / 2);
    }
}

/// From the middle of one vertex to that of the next.
fn distance(left: &Vertex, right: &Vertex, spacing: Spacing) -> i64 {
    let between = if left.is_line() && right.is_line() { spacing.lines } else { spacing.boxes };
    to_i64(left.cross + left.after + between) - left.before_center() + right.before_center()
}

/// Settles a rank near its neighbours above, below or both. `places` has the place of each vertex in
/// its rank.
fn settle_rank(
    ranks: &mut Ranks,
    places: &[usize],
    rank: usize,
    (looks_up, looks_down): (bool, bool),
    spacing: Spacing,
) {
    let n_vertices = ranks.order[rank].len();
    let (mut sums, mut weights) = (vec![0.0; n_vertices], vec![0.0; n_vertices]);
    let mut pull = |vertex: usize, wanted: i64, weight: f64| {
        sums[places[vertex]] += wanted as f64 * weight;
        weights[places[vertex]] += weight;
    };
    let gap_above = rank.checked_sub(1).map_or(&[][..], |gap| ranks.gaps[gap].as_slice());
    let gap_below = ranks.gaps.get(rank).map_or(&[][..], Vec::as_slice);
    for step in if looks_up { gap_above } else { &[] } {
        pull(step.lower.item, ranks.end(step, true) - ranks.offset(step, false), ranks.weight(step));
    }
    for step in if looks_down { gap_below } else { &[] } {
        pull(step.upper.item, ranks.end(step, false) - ranks.offset(step, true), ranks.weight(step));
    }
    let order = &ranks.order[rank];
    let wanted: Vec<f64> =
        (0..n_vertices)
            .map(|at| {
                if weights[at] > 0.0 {
                    sums[at] / weights[at]
                } else {
                    ranks.vertices[order[at]].center as f64
                }
            })
            .collect();
    // What has no neighbours there gives way.
    weights.iter_mut().for_each(|weight| *weight = weight.max(0.1));
    let gaps: Vec<i64> = order
        .windows(2)
        .map(|pair| distance(&ranks.vertices[pair[0]], &ranks.vertices[pair[1]], spacing))
        .collect();
    let centers = settle(&wanted, &weights, &gaps, None);
    for (at, center) in centers.into_iter().enumerate() {
        let vertex = ranks.order[rank][at];
        ranks.vertices[vertex].center = center;
    }
}

impl Ranks {
    /// From the middle of a vertex to where a step leaves it.
    fn offset(&self, step: &Step, is_upper: bool) -> i64 {
        let line_end = if is_upper { step.upper } else { step.lower };
        line_end.port.map_or(0, |port| to_i64(port) - self.vertices[line_end.item].before_center())
    }

    fn end(&self, step: &Step, is_upper: bool) -> i64 {
        let line_end = if is_upper { step.upper } else { step.lower };
        self.vertices[line_end.item].center + self.offset(step, is_upper)
    }

    /// Long lines are straight before all others.
    fn weight(&self, step: &Step) -> f64 {
        let n_lines =
            [step.upper, step.lower].iter().filter(|line_end| self.vertices[line_end.item].is_line()).count();
        [1.0, 2.0, 8.0][n_lines]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_apart_and_near_what_they_want() {
        assert_eq!(settle(&[5.0, 5.0, 5.0], &[1.0; 3], &[4, 4], None), [1, 5, 9]);
        assert_eq!(settle(&[0.0, 9.0], &[1.0; 2], &[4], None), [0, 9]);
        assert_eq!(settle(&[8.0, 8.0], &[9.0, 1.0], &[2], None), [8, 10]);
        assert_eq!(settle(&[0.0, 20.0], &[1.0; 2], &[2], Some((3, 6))), [3, 6]);
    }
}
