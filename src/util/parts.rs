//! Divides work among threads.

use std::sync::OnceLock;
use std::thread;

/// More threads than this would wait for memory.
const MAX_THREADS: usize = 4;

/// How many threads to use for work of `size`, if each should have at least `per_thread`.
pub fn threads_for(size: usize, per_thread: usize) -> usize {
    let n_wanted = (size / per_thread.max(1)).min(MAX_THREADS);
    // Asking for the number of cores reads several files.
    static CORES: OnceLock<usize> = OnceLock::new();
    if n_wanted < 2 {
        return 1;
    }
    n_wanted.min(*CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from)))
}

/// The results of `work` for consecutive parts of `items`, one after the other. The parts
/// have about the same `weight`, and each is done by a thread of its own.
pub fn in_parts<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    weight: &(impl Fn(&T) -> usize + Sync),
    work: &(impl Fn(&[T]) -> Vec<R> + Sync),
) -> Vec<R> {
    let (here, elsewhere) = items.split_at(share(items, n_threads, weight));
    if elsewhere.is_empty() {
        return work(here);
    }
    thread::scope(|scope| {
        let rest = thread::Builder::new()
            .name("part".to_owned())
            .spawn_scoped(scope, || in_parts(elsewhere, n_threads - 1, weight, work));
        let mut results = work(here);
        // If there was no thread, or it panicked, this one does its part.
        let rest = rest.ok().and_then(|rest| rest.join().ok());
        results.extend(rest.unwrap_or_else(|| work(elsewhere)));
        results
    })
}

/// The results of two works that are done at the same time, the first on a thread of its own.
pub fn both<A: Send, B>(elsewhere: &(impl Fn() -> A + Sync), here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let other = thread::Builder::new().name("part".to_owned()).spawn_scoped(scope, elsewhere);
        let here = here();
        // If there was no thread, or it panicked, this one does its work.
        let other = other.ok().and_then(|other| other.join().ok());
        (other.unwrap_or_else(elsewhere), here)
    })
}

/// The number of leading `items` that have a share of the whole weight.
fn share<T>(items: &[T], n_shares: usize, weight: impl Fn(&T) -> usize) -> usize {
    if n_shares < 2 {
        return items.len();
    }
    let wanted = items.iter().map(&weight).sum::<usize>() / n_shares;
    let mut sum = 0;
    let within = items.iter().take_while(|item| {
        sum += weight(item);
        sum <= wanted
    });
    within.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_works_are_done_at_the_same_time_and_a_panic_does_no_harm() {
        let meeting = std::sync::Barrier::new(2);
        let meet = || meeting.wait().is_leader();
        let (there, here) = both(&meet, meet);
        assert!(there != here, "both arrived");
        let here = thread::current().id();
        let panics_elsewhere = || assert_eq!(thread::current().id(), here, "on purpose");
        assert_eq!(both(&panics_elsewhere, || 2), ((), 2));
    }

    #[test]
    fn results_keep_the_order_however_many_threads_there_are() {
        for n_threads in 1..=6 {
            for n in [0_usize, 1, 2, 3, 40] {
                let items: Vec<usize> = (0..n).map(|at| at * at % 13).collect();
                let double = |items: &[usize]| items.iter().map(|item| item * 2).collect::<Vec<_>>();
                let results = in_parts(&items, n_threads, &|item| *item, &double);
                assert_eq!(results, double(&items), "{n_threads} threads, {n} items");
            }
        }
    }

    #[test]
    fn parts_weigh_about_the_same() {
        let sizes = std::sync::Mutex::new(Vec::new());
        let count = |items: &[usize]| {
            sizes.lock().unwrap().push(items.iter().sum::<usize>());
            Vec::<()>::new()
        };
        in_parts(&[10, 10, 10, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 30, 1], 4, &|item| *item, &count);
        let mut sizes = sizes.into_inner().unwrap();
        sizes.sort_unstable();
        assert_eq!(sizes, [10, 20, 20, 31], "no item is divided");
    }
}
