use super::*;

#[test]
fn the_store_ends_equal_to_the_server() {
    check(0..1000);
}

/// Seeds that once found a bug.
#[test]
fn seeds_of_fixed_bugs_pass() {
    for seed in [9_966, 54_317, 57_501, 63_997, 75_549] {
        check(seed..seed + 1);
    }
}

/// Proves that the simulation finds injected faults.
#[test]
fn injected_faults_are_found() {
    use store::Fault::*;
    // Rare faults are tested with seeds that are known to find them, so that this takes seconds.
    let found = |fault: Fault, word: &str| {
        let first = match fault {
            Fault::Overlay(UnselectedIsGone) => 3000,
            Fault::Overlay(SplitForgets) => 2000,
            _ => 0,
        };
        let mut failures = (first..first + 1000).filter_map(|seed| run(seed, fault).err());
        let found = failures.any(|failure| failure.contains(word));
        assert!(found, "{fault:?} is not found");
    };
    let overlay = |fault, word| found(Fault::Overlay(fault), word);
    overlay(NoFloor, "own request has deleted");
    overlay(NoUid, "own request has deleted");
    overlay(WritesNotHeld, "then read");
    overlay(OldResponses, "differs");
    overlay(StaleLists, "then read");
    overlay(AnyListWins, "own request has deleted");
    overlay(NoListWins, "but read None");
    overlay(ListsSweepWrites, "then read None");
    overlay(UnselectedIsGone, "own request has deleted");
    overlay(SplitForgets, "own request has deleted");
    overlay(EndedStays, "own request has deleted");
    found(Fault::TerminatingIsGone, "then read None");
}

/// Entry point of `cargo xtask simulate`, which sets the number of seeds and the first seed.
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
