use super::copy::spliced;
use super::*;

const SOURCE: &str = "
fn is_old(version: u64, known: Option<u64>) -> bool {
    log();
    if version.is_power_of_two() {
        return !known.is_some();
    }
    known == Some(version)
}
#[cfg(test)]
mod tests {
    fn not_mutated() -> bool { 1 < 2 }
}
";

#[test]
fn every_kind_of_mutant_is_found_outside_of_tests() {
    let mutants = find("package", "file.rs", SOURCE).unwrap();
    let texts: Vec<_> = mutants.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "file.rs:2: fn is_old returns true at once",
            "file.rs:2: fn is_old returns false at once",
            "file.rs:3: log(); -> left out",
            "file.rs:4: if version.is_power_of_two() -> negated",
            "file.rs:5: !known.is_some() -> without !",
            "file.rs:7: known == Some(version) -> !=",
            "file.rs:7: Some(version) -> None",
        ]
    );
}

#[test]
fn mutants_are_chosen_by_the_seed_and_do_not_overlap() {
    let all = || find("package", "file.rs", SOURCE).unwrap();
    let chosen = choose(all(), 100, 7);
    assert_eq!(chosen, choose(all(), 100, 7));
    assert!(chosen.len() < all().len(), "some overlap");
    assert_eq!(choose(all(), 2, 7).len(), 2);
}

#[test]
fn the_mutated_source_is_valid_rust() {
    for seed in 0..20 {
        let chosen = choose(find("package", "file.rs", SOURCE).unwrap(), 100, seed);
        let text = spliced(SOURCE, chosen.iter().enumerate());
        assert!(syn::parse_file(&text).is_ok(), "{text}");
        assert!(text.contains("crate::__mutant(1)"), "{text}");
    }
}
