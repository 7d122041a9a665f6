use super::*;

#[test]
fn keeps_sixteen_and_counts_the_rest() {
    let mut reasons = Reasons::from(0);
    for n in 1..20 {
        reasons.merge(Reasons::from(n));
    }
    assert_eq!(
        reasons.iter().copied().collect::<Vec<_>>(),
        (0..16).collect::<Vec<_>>()
    );
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
