use super::*;

#[test]
fn there_is_one_leader_at_most_and_soon_one() {
    check(0..1000);
}

/// The simulation would be worth nothing if it could not fail.
#[test]
fn what_is_done_wrong_is_found() {
    let found = |fault: Fault, word: &str| {
        let seeds = 0..2000;
        let mut failures = seeds.filter_map(|seed| run(seed, fault).err());
        let found = failures.any(|failure| failure.contains(word));
        assert!(found, "{fault:?} is not found");
    };
    found(Fault::DeadlineFromAnswer, "overlap");
    found(Fault::TermOfLease, "overlap");
    found(Fault::BadClocks, "overlap");
    found(Fault::NoFence, "after its deadline");
    found(Fault::NoLastCheck, "after its deadline");
    found(Fault::NoTerms, "after its deadline");
    found(Fault::Dies, "nobody leads");
}

/// What happens in the runs, lest they be idle.
#[test]
fn there_is_much_to_see() {
    let runs = (0..100).map(|seed| run(seed, Fault::None).unwrap());
    let (terms, writes) = runs.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    assert!(terms > 500 && writes > 10_000, "{terms} {writes}");
}

/// For `cargo xtask simulate`, which says how many and from where.
#[test]
#[ignore = "takes minutes"]
fn many() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let first = number("OPKIT_SIMULATE_FIRST", 0);
    let seeds = number("OPKIT_SIMULATE_SEEDS", 100_000);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let share = seeds.div_ceil(threads);
    std::thread::scope(|scope| {
        let each = (0..threads).map(|thread| {
            let begin = first + thread * share;
            let end = (begin + share).min(first + seeds);
            scope.spawn(move || check(begin..end))
        });
        let each: Vec<_> = each.collect();
        for thread in each {
            thread.join().unwrap();
        }
    });
}
