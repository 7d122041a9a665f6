use super::*;

#[test]
fn the_store_ends_equal_to_the_server() {
    check(0..1000);
}

/// Seeds that once found something.
#[test]
fn what_was_found_stays_mended() {
    for seed in [64_906, 69_150, 98_037] {
        check(seed..seed + 1);
    }
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
