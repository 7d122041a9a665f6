use super::*;

#[test]
fn a_long_loop_is_logged_less_and_less_often() {
    let logged = |from: u32, to: u32| (from..to).filter(|count| is_logged(*count)).count();
    assert!(is_logged(1) && is_logged(8) && is_logged(110) && is_logged(20_000));
    assert!(!is_logged(9) && !is_logged(1_110));
    assert_eq!(logged(1, 1_000), 20);
    assert_eq!(logged(1_000, 10_000), 4);
    assert_eq!(logged(10_000, 100_000), 12);
}
