use super::*;

fn row(error: Option<&str>) -> Row {
    Row {
        kind: "Robot".into(),
        namespace: Some("default".into()),
        name: "robot-one".into(),
        ready: "2/2".into(),
        status: "DeploymentRollout".into(),
        last: Some(LastReconcile {
            duration: Duration::from_micros(3140),
            cause: "Deployment robot-one changed".into(),
            error: error.map(str::to_owned),
        }),
    }
}

#[test]
fn a_line_has_the_status_and_the_last_reconcile() {
    assert_eq!(
        change(&row(None)),
        "Robot robot-one  2/2  DeploymentRollout   reconciled in 3.1 ms, because Deployment robot-one changed"
    );
    assert!(change(&row(Some("no disk"))).contains("3.1 ms, error: no disk, because"));
}

/// Text from objects and errors stays in its line and does not act on the terminal.
#[test]
fn control_characters_in_texts_are_escaped() {
    let mut odd = row(Some("first\nsecond\u{1b}[2J"));
    odd.status = "a\tb\r".into();
    assert!(!change(&odd).contains(char::is_control));
}

#[test]
fn old_messages_are_dropped() {
    let mut view = View::new("op");
    for number in 0..MESSAGES_MAX + 5 {
        view.keep(number.to_string());
    }
    assert_eq!(view.messages.len(), MESSAGES_MAX);
    assert_eq!(view.messages.front().unwrap(), "5");
}
