use super::*;

#[test]
fn keeps_the_first_and_the_last_and_counts_the_rest() {
    let mut reasons = Reasons::from(0);
    for n in 1..20 {
        reasons.merge(Reasons::from(n));
    }
    let expected: Vec<_> = (0..15).chain([19]).collect();
    assert_eq!(reasons.iter().copied().collect::<Vec<_>>(), expected);
    assert_eq!(reasons.more(), 4);
}

#[test]
fn merged_counts_add_up() {
    let mut all = Reasons::default();
    for n in 0..18 {
        all.merge(Reasons::from(n));
    }
    let mut other = Reasons::from(0);
    other.merge(all);
    assert_eq!((other.iter().count(), other.more()), (16, 2));
}

#[test]
fn one_reason_needs_no_memory_of_its_own() {
    let mut reasons = Reasons::from("again");
    for _ in 0..9 {
        reasons.merge(Reasons::from("again"));
    }
    assert!(reasons.others.is_none());
    assert_eq!(reasons.more(), 0);
}
