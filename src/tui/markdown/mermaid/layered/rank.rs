//! Ranks: items after those that lead to them, with as few links backwards as a depth-first search finds.

/// Ranks from 0, and the links that lead backwards.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Ranked {
    pub(in super::super) ranks: Vec<usize>,
    pub(in super::super) is_backward: Vec<bool>,
}

/// No link may lead from an item to itself.
pub(in super::super) fn ranks(n_items: usize, links: &[(usize, usize)]) -> Ranked {
    let is_backward = backward(n_items, links);
    let ordered: Vec<(usize, usize)> =
        links.iter().zip(&is_backward).map(|(&(a, b), back)| if *back { (b, a) } else { (a, b) }).collect();
    let mut after = vec![Vec::new(); n_items];
    let mut n_before = vec![0_usize; n_items];
    for &(a, b) in &ordered {
        after[a].push(b);
        n_before[b] += 1;
    }
    let mut ranks = vec![0_usize; n_items];
    let mut ready: Vec<usize> = (0..n_items).filter(|item| n_before[*item] == 0).collect();
    let mut sorted = Vec::with_capacity(n_items);
    while let Some(item) = ready.pop() {
        sorted.push(item);
        for &next in &after[item] {
            ranks[next] = ranks[next].max(ranks[item] + 1);
            n_before[next] -= 1;
            if n_before[next] == 0 {
                ready.push(next);
            }
        }
    }
    // An item that nothing leads to is next to what it leads to.
    let mut has_before = vec![false; n_items];
    ordered.iter().for_each(|&(_, b)| has_before[b] = true);
    for &item in sorted.iter().rev() {
        let next = after[item].iter().map(|&next| ranks[next]).min();
        if let Some(next) = next.filter(|_| !has_before[item]) {
            ranks[item] = next - 1;
        }
    }
    Ranked { ranks, is_backward }
}

/// The links that close a cycle in a depth-first search from the first items.
fn backward(n_items: usize, links: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut out = vec![Vec::new(); n_items];
    let mut has_before = vec![false; n_items];
    for (link_idx, &(a, b)) in links.iter().enumerate() {
        out[a].push((link_idx, b));
        has_before[b] = true;
    }
    let mut is_backward = vec![false; links.len()];
    let mut seen = vec![Seen::No; n_items];
    let starts = (0..n_items).filter(|item| !has_before[*item]).chain(0..n_items);
    for start in starts {
        if seen[start] != Seen::No {
            continue;
        }
        seen[start] = Seen::Open;
        let mut path = vec![(start, 0)];
        while let Some((item, next)) = path.last_mut() {
            let Some(&(link_idx, to)) = out[*item].get(*next) else {
                seen[*item] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match seen[to] {
                Seen::Open => is_backward[link_idx] = true,
                Seen::Done => {}
                Seen::No => {
                    seen[to] = Seen::Open;
                    path.push((to, 0));
                }
            }
        }
    }
    is_backward
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(n_items: usize, links: &[(usize, usize)], expected: &[usize], back: &[usize]) {
        let ranked = ranks(n_items, links);
        let is_back: Vec<usize> = (0..links.len()).filter(|link| ranked.is_backward[*link]).collect();
        assert_eq!((ranked.ranks.as_slice(), is_back.as_slice()), (expected, back));
    }

    #[test]
    fn items_follow_all_that_lead_to_them() {
        check(4, &[(0, 1), (1, 2), (0, 2), (3, 2)], &[0, 1, 2, 1], &[]);
        check(2, &[], &[0, 0], &[]);
    }

    #[test]
    fn cycles_are_opened_at_their_last_link() {
        check(3, &[(0, 1), (1, 2), (2, 0)], &[0, 1, 2], &[2]);
        check(2, &[(0, 1), (1, 0)], &[0, 1], &[1]);
        check(3, &[(2, 1), (1, 0), (0, 2)], &[0, 2, 1], &[1]);
    }
}
