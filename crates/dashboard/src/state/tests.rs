use super::*;

fn snapshot() -> Snapshot {
    let robot = |name| ObjectRow::new("Robot", Some("default"), name, "2/2", "Rollout");
    Snapshot {
        objects: vec![robot("one"), robot("six"), robot("two")],
        ..Snapshot::default()
    }
}

fn selected(dashboard: &Dashboard, snapshot: &Snapshot) -> String {
    let objects = dashboard.objects(snapshot);
    let name = objects.get(dashboard.position(&objects));
    name.map(|object| object.name.clone()).unwrap_or_default()
}

#[test]
fn the_selected_object_stays_selected() {
    let (mut dashboard, mut snapshot) = (Dashboard::new(), snapshot());
    assert_eq!(selected(&dashboard, &snapshot), "one");
    dashboard.press(Key::Down, &snapshot);
    assert_eq!(selected(&dashboard, &snapshot), "six");
    let new = ObjectRow::new("Robot", Some("default"), "a", "-", "-");
    snapshot.objects.insert(0, new);
    assert_eq!(selected(&dashboard, &snapshot), "six");
    for _ in 0..9 {
        dashboard.press(Key::Down, &snapshot);
    }
    assert_eq!(selected(&dashboard, &snapshot), "two");
    for _ in 0..9 {
        dashboard.press(Key::Up, &snapshot);
    }
    assert_eq!(selected(&dashboard, &snapshot), "a");
    // Without the selected object, the first one is shown.
    snapshot.objects.remove(0);
    assert_eq!(selected(&dashboard, &snapshot), "one");
}

#[test]
fn keys_go_into_the_filter_until_enter() {
    let (mut dashboard, snapshot) = (Dashboard::new(), snapshot());
    for key in [
        Key::Char('/'),
        Key::Char('q'),
        Key::Backspace,
        Key::Char('T'),
    ] {
        assert_eq!(dashboard.press(key, &snapshot), None);
    }
    dashboard.press(Key::Char('w'), &snapshot);
    dashboard.press(Key::Enter, &snapshot);
    assert_eq!(dashboard.objects(&snapshot).len(), 1);
    assert_eq!(selected(&dashboard, &snapshot), "two");
    dashboard.press(Key::Escape, &snapshot);
    assert_eq!(dashboard.objects(&snapshot).len(), 3);
    assert_eq!(
        dashboard.press(Key::Char('q'), &snapshot),
        Some(Request::Quit)
    );
}

#[test]
fn ctrl_c_quits_at_any_time() {
    let (mut dashboard, snapshot) = (Dashboard::new(), snapshot());
    dashboard.press(Key::Char('/'), &snapshot);
    assert_eq!(
        dashboard.press(Key::Interrupt, &snapshot),
        Some(Request::Quit)
    );
}

#[test]
fn tabs_go_round() {
    let (mut dashboard, snapshot) = (Dashboard::new(), snapshot());
    dashboard.press(Key::BackTab, &snapshot);
    assert_eq!(dashboard.tab, Tab::Build);
    dashboard.press(Key::Tab, &snapshot);
    assert_eq!(dashboard.tab, Tab::Log);
    assert_eq!(
        dashboard.press(Key::Char('b'), &snapshot),
        Some(Request::Build)
    );
    assert_eq!(dashboard.tab, Tab::Build);
}
