use super::*;

fn row(error: Option<&str>) -> Row {
    Row {
        kind: "Robot".into(),
        namespace: Some("default".into()),
        name: "robot-one".into(),
        ready: "2/2".into(),
        status: "DeploymentRollout".into(),
        last: Some(LastReconcile {
            age: Duration::from_millis(12),
            duration: Duration::from_micros(3140),
            cause: "Deployment robot-one changed".into(),
            error: error.map(str::to_owned),
        }),
    }
}

#[test]
fn the_table_has_a_line_for_each_object() {
    let want = "
   KIND   NAME       READY  STATUS             LAST RECONCILE
   Robot  robot-one  2/2    DeploymentRollout  12 ms ago, 3.1 ms, because Deployment robot-one changed
";
    assert_eq!(table(&[row(None)]), want);
}

#[test]
fn an_error_is_shown() {
    assert!(table(&[row(Some("no disk"))]).contains("3.1 ms, error: no disk, because"));
    assert!(change(&row(Some("no disk"))).contains("error: no disk"));
}

#[test]
fn durations_have_a_readable_unit() {
    let check = |ms, want: &str| assert_eq!(human(Duration::from_millis(ms)), want);
    check(3, "3.0 ms");
    check(250, "250 ms");
    check(12_000, "12 s");
    check(600_000, "10 min");
}

#[test]
fn objects_of_several_namespaces_show_their_namespace() {
    let mut other = row(None);
    other.namespace = Some("shop".into());
    let text = table(&[row(None), other.clone()]);
    assert!(text.contains("default    Robot  robot-one") && text.contains("shop       Robot"));
    assert_ne!(other.object(), row(None).object());
}

#[test]
fn a_long_table_is_cut() {
    let text = fit(&table(&vec![row(None); 40]));
    assert_eq!(text.lines().count(), LINES_MAX);
    assert!(text.ends_with("   ... and 27 more\n"), "{text}");
    let short = table(&vec![row(None); 14]);
    assert_eq!(fit(&short), short);
}

/// Text from objects and errors stays in its line and does not act on the terminal.
#[test]
fn control_characters_in_texts_are_escaped() {
    let mut odd = row(Some("first\nsecond\u{1b}[2J"));
    odd.status = "a\tb\r".into();
    let text = table(std::slice::from_ref(&odd));
    assert_eq!(text.lines().count(), 3, "{text:?}");
    assert!(
        !text.replace('\n', "").contains(char::is_control),
        "{text:?}"
    );
    assert!(!change(&odd).contains(char::is_control));
}
