//! The order within ranks, with few crossings.

use super::Ranks;

/// Sweeps over all ranks. More find little.
const SWEEPS: usize = 10;

/// Vertices per rank: in the order of a depth-first search from the first items, then sorted by the mean
/// place of their neighbours, rank by rank, as long as that avoids crossings.
pub(super) fn order(ranks: &Ranks) -> Vec<Vec<usize>> {
    let (above, below) = neighbours(ranks);
    let mut order = depth_first(ranks, &below);
    let mut best = (crossings(ranks, &order), order.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let n_ranks = order.len();
        for step in 1..n_ranks {
            if sweep % 2 == 0 {
                sort(&mut order, step, step - 1, &above);
            } else {
                sort(&mut order, n_ranks - 1 - step, n_ranks - step, &below);
            }
        }
        let n_crossings = crossings(ranks, &order);
        if n_crossings < best.0 {
            best = (n_crossings, order.clone());
        }
    }
    best.1
}

fn neighbours(ranks: &Ranks) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let n_vertices = ranks.vertices.len();
    let (mut above, mut below) = (vec![Vec::new(); n_vertices], vec![Vec::new(); n_vertices]);
    for step in ranks.gaps.iter().flatten() {
        below[step.upper.item].push(step.lower.item);
        above[step.lower.item].push(step.upper.item);
    }
    (above, below)
}

fn depth_first(ranks: &Ranks, below: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut order = vec![Vec::new(); ranks.gaps.len() + 1];
    let mut is_seen = vec![false; ranks.vertices.len()];
    let mut starts: Vec<usize> = (0..ranks.vertices.len()).collect();
    starts.sort_by_key(|vertex| ranks.vertices[*vertex].rank);
    for start in starts {
        let mut open = vec![start];
        while let Some(vertex) = open.pop() {
            if std::mem::replace(&mut is_seen[vertex], true) {
                continue;
            }
            order[ranks.vertices[vertex].rank].push(vertex);
            open.extend(below[vertex].iter().rev().filter(|next| !is_seen[**next]));
        }
    }
    order
}

fn sort(order: &mut [Vec<usize>], rank: usize, fixed: usize, neighbours: &[Vec<usize>]) {
    let places = places(&order[fixed], neighbours.len());
    let mut keyed: Vec<(f64, usize)> = order[rank]
        .iter()
        .enumerate()
        .map(|(own, &vertex)| {
            let near = &neighbours[vertex];
            let sum: usize = near.iter().map(|&next| places[next]).sum();
            let mean = if near.is_empty() { own as f64 } else { sum as f64 / near.len() as f64 };
            (mean, vertex)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    order[rank] = keyed.into_iter().map(|(_, vertex)| vertex).collect();
}

fn places(rank: &[usize], n_vertices: usize) -> Vec<usize> {
    let mut places = vec![0; n_vertices];
    for (place, &vertex) in rank.iter().enumerate() {
        places[vertex] = place;
    }
    places
}

/// Pairs of steps that cross, counted with a tree of sums.
fn crossings(ranks: &Ranks, order: &[Vec<usize>]) -> usize {
    let mut place = vec![0; ranks.vertices.len()];
    for rank in order {
        for (at, &vertex) in rank.iter().enumerate() {
            place[vertex] = at;
        }
    }
    let mut n_crossings = 0;
    for (gap_idx, gap) in ranks.gaps.iter().enumerate() {
        let mut pairs: Vec<(usize, usize)> =
            gap.iter().map(|step| (place[step.upper.item], place[step.lower.item])).collect();
        pairs.sort_unstable();
        let mut sums = vec![0_usize; order[gap_idx + 1].len() + 1];
        for (n_before, &(_, lower)) in pairs.iter().enumerate() {
            let mut at = lower + 1;
            let mut n_not_right = 0;
            while at > 0 {
                n_not_right += sums[at];
                at &= at - 1;
            }
            n_crossings += n_before - n_not_right;
            at = lower + 1;
            while at < sums.len() {
                sums[at] += 1;
                at += at & at.wrapping_neg();
            }
        }
    }
    n_crossings
}
