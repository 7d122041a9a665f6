use super::*;

#[test]
fn the_store_ends_equal_to_the_server() {
    check(0..1000);
}

/// Seeds that once found something.
#[test]
fn what_was_found_stays_mended() {
    for seed in [9_966, 54_317, 57_501, 63_997, 75_549] {
        check(seed..seed + 1);
    }
}

/// The simulation would be worth nothing if it could not fail.
#[test]
fn what_is_done_wrong_is_found() {
    use store::Fault::*;
    // Rare ones are looked for where they are known to be, so that this takes seconds.
    let found = |fault: Fault, word: &str| {
        let first = match fault {
            Fault::Overlay(UnselectedIsGone) => 3000,
            _ => 0,
        };
        let mut failures = (first..first + 1000).filter_map(|seed| run(seed, fault).err());
        let found = failures.any(|failure| failure.contains(word));
        assert!(found, "{fault:?} is not found");
    };
    let overlay = |fault, word| found(Fault::Overlay(fault), word);
    overlay(NoFloor, "a ghost");
    overlay(NoUid, "a ghost");
    overlay(WritesNotHeld, "then read");
    overlay(OldResponses, "differs");
    overlay(StaleLists, "then read");
    overlay(AnyListWins, "a ghost");
    overlay(NoListWins, "but read None");
    overlay(ListsSweepWrites, "then read None");
    overlay(UnselectedIsGone, "a ghost");
    overlay(SplitForgets, "a ghost");
    overlay(EndedStays, "a ghost");
    found(Fault::TerminatingIsGone, "then read None");
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
