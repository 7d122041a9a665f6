use std::path::Path;

use jiff::Timestamp;
use opkit_debug::{Outcome, QueuedRequest, Reconcile, WebhookCalls, Write};

use super::*;
use crate::keys::Key;
use crate::model::{Event, LogLine, ObjectRow};
use crate::state::Tab;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap()
}

fn reconcile(name: &str, number: u64, started_ms: i64, cause: &str, result: Outcome) -> Reconcile {
    Reconcile {
        controller: "robot".into(),
        kind: "Robot".into(),
        cluster: None,
        namespace: Some("default".into()),
        name: name.into(),
        number,
        causes: vec![cause.into()],
        cache_reads: 1,
        live_reads: 0,
        writes: vec![Write {
            verb: "patch".into(),
            kind: "Robot".into(),
            namespace: Some("default".into()),
            name: name.into(),
            subresource: "status".into(),
        }],
        started: at(started_ms),
        duration_seconds: 0.0031,
        result,
        hot_loop: None,
    }
}

fn snapshot() -> Snapshot {
    let robot = |name, ready, status| ObjectRow::new("Robot", Some("default"), name, ready, status);
    let failed = Outcome::Error {
        message: "cannot apply Deployment robot-six: not owned by it".into(),
        retry_seconds: Some(2.0),
    };
    Snapshot {
        now: at(1_000),
        operator: "robot-operator".into(),
        state: "running   rebuilt 4 s ago in 2.8 s".into(),
        server: "127.0.0.1:41873".into(),
        kubeconfig: "export KUBECONFIG=$PWD/.opkit/kubeconfig".into(),
        controllers: vec!["robot".into()],
        objects: vec![
            robot("robot-one", "2/2", "DeploymentRollout"),
            robot("robot-six", "-", "-"),
            robot("robot-new", "-", "-"),
        ],
        reconciles: vec![
            reconcile("robot-one", 1, 700, "created", Outcome::Ok),
            reconcile("robot-six", 1, 800, "created", failed),
            reconcile(
                "robot-one",
                2,
                985,
                "Deployment robot-one: .status.readyReplicas 1 -> 2",
                Outcome::Ok,
            ),
        ],
        queue: vec![
            QueuedRequest {
                controller: "robot".into(),
                namespace: Some("default".into()),
                name: "robot-six".into(),
                due_seconds: Some(1.8),
                failures: 1,
                ..QueuedRequest::default()
            },
            QueuedRequest {
                controller: "robot".into(),
                name: "cluster-wide".into(),
                in_work: true,
                age_seconds: 0.004,
                ..QueuedRequest::default()
            },
        ],
        webhooks: vec![WebhookCalls {
            path: "/validate-robot-opkit-dev-v1-robot".into(),
            requests: 14,
            in_flight: 0,
            mean_seconds: 0.0002,
        }],
        events: vec![Event {
            time: at(0),
            is_warning: true,
            object: "Robot robot-six".into(),
            reason: "Failed".into(),
            message: "cannot apply".into(),
            count: 3,
        }],
        log: vec![
            LogLine::parse("2026-11-18T12:04:30.5Z  INFO opkit_webhook::server: serving webhooks"),
            LogLine::parse("2026-11-18T12:04:31.5Z  WARN robot: robot-six: cannot\u{1b}[2J apply"),
            LogLine::parse("a line of another library"),
        ],
        messages: vec!["error[E0425]: cannot find value `x`\n  --> src/lib.rs:3:1".into()],
        ..Snapshot::default()
    }
}

#[track_caller]
fn check(dashboard: &Dashboard, columns: usize, lines: usize, golden: &str) {
    let screen = draw(dashboard, &snapshot(), columns, lines);
    assert_eq!(screen.lines.len(), lines);
    for line in &screen.lines {
        assert_eq!(line.width(), columns, "{:?}", line.text());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/draw/tests/golden");
    let file = file.join(golden);
    if std::env::var_os("OPKIT_BLESS").is_some() {
        std::fs::write(&file, screen.text()).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert!(
        screen.text() == expected,
        "OPKIT_BLESS=1 accepts this:\n{}",
        screen.text()
    );
}

#[test]
fn a_terminal_of_80_by_24() {
    check(&Dashboard::new(), 80, 24, "80x24.txt");
}

#[test]
fn a_terminal_of_200_by_60() {
    let mut dashboard = Dashboard::new();
    dashboard.show(Tab::Queue);
    check(&dashboard, 200, 60, "200x60.txt");
}

#[test]
fn an_explained_object_with_its_error() {
    let mut dashboard = Dashboard::new();
    dashboard.press(Key::Down, &snapshot());
    dashboard.press(Key::Enter, &snapshot());
    check(&dashboard, 80, 24, "explained.txt");
}

#[test]
fn each_tab_has_its_lines() {
    for (tab, expected) in [
        (Tab::Log, "12:04:31 WARN  robot-six: cannot apply"),
        (
            Tab::Queue,
            "default/robot-six                 due in 2 s        1 failure",
        ),
        (
            Tab::Events,
            "1 s ago     Failed  Robot robot-six  cannot apply  (3 times)",
        ),
        (Tab::Webhooks, "14 requests     0.2 ms each"),
        (Tab::Build, "error[E0425]: cannot find value `x`"),
    ] {
        let mut dashboard = Dashboard::new();
        dashboard.show(tab);
        let text = draw(&dashboard, &snapshot(), 100, 24).text();
        assert!(text.contains(expected), "{tab:?}:\n{text}");
    }
}

#[test]
fn every_size_is_filled() {
    for columns in [0, 1, 39, 40, 41, 80, 300] {
        for lines in [0, 1, 11, 12, 13, 24, 100] {
            let screen = draw(&Dashboard::new(), &snapshot(), columns, lines);
            assert_eq!(screen.lines.len(), lines);
            assert!(screen.lines.iter().all(|line| line.width() == columns));
        }
    }
}

#[test]
fn nothing_is_shown_yet() {
    let empty = Snapshot::default();
    let text = draw(&Dashboard::new(), &empty, 80, 24).text();
    assert!(text.contains("no objects yet"), "{text}");
    let mut dashboard = Dashboard::new();
    for key in [Key::Char('/'), Key::Char('x'), Key::Enter, Key::Down] {
        dashboard.press(key, &empty);
    }
    let text = draw(&dashboard, &empty, 80, 24).text();
    assert!(text.contains("no object matches the filter"), "{text}");
}
