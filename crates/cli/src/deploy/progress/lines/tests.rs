use super::*;

#[test]
fn a_long_step_shows_its_time() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut lines = Lines::new(start);
    assert_eq!(lines.print("crd a", true, start), "crd a\n");
    assert_eq!(lines.tick(start), "");
    assert_eq!(lines.tick(at(1)), "   waiting        1 s");
    assert_eq!(lines.tick(at(2)), "\r\x1b[K   waiting        2 s");
    assert_eq!(lines.print("crd b", true, at(3)), "\r\x1b[Kcrd b\n");
    assert_eq!(lines.tick(at(3)), "");
    assert_eq!(lines.print("rollout 0/2", false, at(3)), "rollout 0/2");
    assert_eq!(lines.tick(at(5)), "\r\x1b[Krollout 0/2, waiting for 2 s");
    assert_eq!(
        lines.print("rollout 2/2", true, at(6)),
        "\r\x1b[Krollout 2/2\n"
    );
    assert_eq!(lines.end(), "");
}

#[test]
fn an_error_begins_on_a_line_of_its_own() {
    let start = Instant::now();
    let later = start + Duration::from_secs(7);
    let mut lines = Lines::new(start);
    lines.tick(later);
    assert_eq!(lines.end(), "\r\x1b[K");
    lines.print("rollout 0/2", false, later);
    lines.tick(later + Duration::from_secs(7));
    assert_eq!(lines.end(), "\r\x1b[Krollout 0/2\n");
    assert_eq!(lines.end(), "");
}
