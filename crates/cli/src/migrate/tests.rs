use super::*;

fn progress(done: u64, total: u64) -> MigrationProgress {
    let mut progress = MigrationProgress::default();
    (progress.done, progress.total) = (done, total);
    progress
}

#[test]
fn the_line_has_a_bar_the_rate_and_the_time_left() {
    let spent = Duration::from_secs(20);
    assert_eq!(
        line(
            "robots.example.com  v1beta1 -> v1",
            progress(4_812, 10_000),
            spent
        ),
        "   robots.example.com  v1beta1 -> v1   [=========>          ] 4,812 of 10,000   241/s   22 s left"
    );
    assert_eq!(
        line("r", progress(0, 0), Duration::ZERO),
        "   r   [====================] 0 of 0   0/s   0 s left"
    );
    assert!(line("r", progress(3, 3), spent).contains("[====================] 3 of 3"));
}

#[test]
fn a_file_gets_few_whole_lines_and_a_terminal_one_line() {
    let start = Instant::now();
    let mut file = Lines::new("r".into(), false, start);
    assert_eq!(
        file.next(progress(1, 9), start + Duration::from_secs(1)),
        None
    );
    let text = file
        .next(progress(2, 9), start + Duration::from_secs(10))
        .unwrap();
    assert!(
        text.starts_with("   r") && text.ends_with(" s left\n"),
        "{text:?}"
    );
    assert_eq!(
        file.next(progress(3, 9), start + Duration::from_secs(11)),
        None
    );
    assert!(
        file.next(progress(9, 9), start + Duration::from_secs(11))
            .is_some()
    );
    assert_eq!(file.end(), "");

    let mut terminal = Lines::new("r".into(), true, start);
    assert_eq!(terminal.end(), "");
    let text = terminal
        .next(progress(1, 9), start + Duration::from_secs(1))
        .unwrap();
    assert!(
        text.starts_with("\r   r") && text.ends_with("\x1b[K"),
        "{text:?}"
    );
    assert_eq!(terminal.end(), "\n");
}

#[test]
fn numbers_have_commas() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(thousands(number), text);
    }
}
