use super::*;

#[test]
fn there_is_at_most_one_leader_and_soon_one() {
    check(0..1000);
}

/// Checks that the simulation fails for each simulated bug.
#[test]
fn simulated_bugs_are_found() {
    let found = |bug: Bug, word: &str| {
        let seeds = 0..2000;
        let mut failures = seeds.filter_map(|seed| run(seed, bug).err());
        let found = failures.any(|failure| failure.contains(word));
        assert!(found, "{bug:?} is not found");
    };
    found(Bug::DeadlineFromResponse, "overlap");
    found(Bug::TermEqualsLease, "overlap");
    found(Bug::BadClocks, "overlap");
    found(Bug::NoFence, "after its deadline");
    found(Bug::NoLastCheck, "after its deadline");
    found(Bug::NoTermCheck, "after its deadline");
    found(Bug::NeverAcquiresAgain, "there is no leader");
}

/// Checks that the runs contain enough terms and writes to be useful.
#[test]
fn the_runs_contain_many_terms_and_writes() {
    let runs = (0..100).map(|seed| run(seed, Bug::None).unwrap());
    let (terms, writes) = runs.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    assert!(terms > 500 && writes > 10_000, "{terms} {writes}");
}

/// Entry point of `cargo xtask simulate`, which sets the first seed and the number of seeds.
#[test]
#[ignore = "takes minutes"]
fn many() {
    many_seeds(check);
}
