use super::{cargo, steps};

#[test]
fn tests_and_deny_can_be_skipped() {
    let (test, deny) = (
        cargo("test --workspace"),
        cargo("deny check bans licenses sources"),
    );
    assert!(steps(false, true).contains(&test));
    assert!(!steps(true, true).contains(&test));
    assert!(steps(true, true).contains(&deny));
    assert!(!steps(true, false).contains(&deny));
}
