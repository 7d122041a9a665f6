use super::*;

#[test]
fn each_object_has_one_owner_and_soon_another() {
    check(0..1000);
}

/// Checks that the simulation fails for each simulated bug.
#[test]
fn simulated_bugs_are_found() {
    let found = |bug: Bug, word: &str| {
        let mut failures = (0..500).filter_map(|seed| run(seed, bug).err());
        let found = failures.any(|failure| failure.contains(word));
        assert!(found, "{bug:?} is not found");
    };
    found(Bug::TakesWithoutRemoving, "two owners");
    found(Bug::ExpiresEarly, "two owners");
    found(Bug::GivesBusySlots, "run in the cell");
    found(Bug::SameIncarnation, "two owners");
    found(Bug::NoHints, "no owner");
    found(Bug::NeverTakes, "no owner");
    found(Bug::NoSlotFence, "leaves while");
    found(Bug::TermEqualsLease, "two owners");
    found(Bug::BadClocks, "two owners");
    found(Bug::ListsCountForever, "two owners");
    found(Bug::CreatesAtOnce, "two owners");
    found(Bug::NoDrainLimit, "no owner");
    found(Bug::LateWatches, "no owner");
}

/// Checks that the runs contain enough writes and changes of the ring to be useful.
#[test]
fn the_runs_contain_many_writes_and_changes() {
    let runs = (0..50).map(|seed| run(seed, Bug::None).unwrap());
    let (writes, changes) = runs.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    assert!(writes > 20_000 && changes > 1000, "{writes} {changes}");
}

/// Entry point of `cargo xtask simulate`, which sets the first seed and the number of seeds.
#[test]
#[ignore = "takes minutes"]
fn many() {
    crate::simulate::many_seeds(check);
}
