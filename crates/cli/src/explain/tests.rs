use serde_json::json;

use super::*;

fn record(number: u64, at: &str, causes: &[&str], status: bool) -> Reconcile {
    let writes = match status {
        true => json!([{"verb": "patch", "kind": "Robot", "name": "one", "subresource": "status"}]),
        false => json!([]),
    };
    serde_json::from_value(json!({
        "controller": "robot", "kind": "Robot", "namespace": "default", "name": "one",
        "number": number, "causes": causes, "cacheReads": 1, "liveReads": 0, "writes": writes,
        "started": at, "durationSeconds": 0.0031, "result": {"outcome": "ok"}, "hotLoop": null,
    }))
    .unwrap()
}

#[test]
fn reconciles_are_lines_newest_first() {
    let records = [
        record(3, "2026-01-01T00:00:00Z", &["initial list"], false),
        record(
            4,
            "2026-01-01T00:00:00.1Z",
            &["Deployment one changed: .status.readyReplicas 1 -> 2"],
            true,
        ),
    ];
    let now = "2026-01-01T00:00:12Z".parse().unwrap();
    assert_eq!(
        print(&records, &[], now),
        "robot/one in default reconciled 4 times by robot, the last 2 in 103 ms, idle for 12 s\n \
         #4  Deployment one changed: .status.readyReplicas 1 -> 2  read 1 (cache)  wrote status  3.1 ms  ok\n \
         #3  initial list                                          read 1 (cache)                3.1 ms  ok\n"
    );
}

#[test]
fn a_hot_loop_is_printed_first() {
    let mut looping = record(40, "2026-01-01T00:00:00Z", &["one changed"], true);
    looping.hot_loop = Some(HotLoop {
        object: "Robot one".to_owned(),
        field: ".status.seen".to_owned(),
        manager: Some("robot-operator.robot".to_owned()),
        because: None,
        is_created_and_pruned: false,
        count: 39,
    });
    let text = print(&[looping], &[], "2026-01-01T00:00:01Z".parse().unwrap());
    let second = text.lines().nth(1).unwrap();
    assert_eq!(
        second,
        " LOOP: robot-operator.robot keeps changing .status.seen of Robot one (39 reconciles)"
    );
    // The JSON that the debug endpoint sends.
    let sent = r#"{"object": "Secret password", "field": "", "manager": null, "isCreatedAndPruned": true, "count": 6}"#;
    let mut looping = record(6, "2026-01-01T00:00:00Z", &["one changed"], true);
    looping.hot_loop = Some(serde_json::from_str(sent).unwrap());
    let text = print(&[looping], &[], "2026-01-01T00:00:01Z".parse().unwrap());
    assert_eq!(
        text.lines().nth(1).unwrap(),
        " LOOP: Secret password is created and pruned alternately: apply it in every reconcile, or create it with cx.create_once (6 reconciles)"
    );
}

#[test]
fn long_texts_wrap_and_lines_have_no_trailing_space() {
    let long = "ConfigMap one changed: .data.a, .data.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, .data.c";
    let mut first = record(9, "2026-01-01T00:00:00Z", &[long, "resync"], false);
    let write = |n: u32| Write {
        verb: "create".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some("default".to_owned()),
        name: format!("settings-of-the-shop-{n}"),
        subresource: String::new(),
    };
    first.writes = (0..4).map(write).collect();
    first.live_reads = 3;
    first.result = Outcome::Error {
        message: format!("cannot apply: {}", "a word ".repeat(60)),
        retry_seconds: Some(5.0),
    };
    let second = record(10, "2026-01-01T00:00:00.1Z", &["one deleted"], true);
    let text = print(
        &[first, second],
        &[],
        "2026-01-01T00:00:12Z".parse().unwrap(),
    );
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert_eq!(line, line.trim_end());
    }
    let rows: Vec<_> = text.lines().skip(1).collect();
    assert!(rows[0].starts_with(" #10  one deleted ") && rows[0].ends_with("3.1 ms  ok"));
    assert!(rows[1].starts_with(" #9   ConfigMap one changed: .data.a, "));
    for column in ["read 1 (cache)", "wrote ", "3.1 ms"] {
        assert_eq!(rows[0].find(column), rows[1].find(column), "{text}");
    }
    for n in 0..4 {
        let write = format!("create configmap/settings-of-the-shop-{n}\n");
        assert!(text.contains(write.trim_end()), "{text}");
    }
    assert!(
        text.contains("      again in 5.0 s: cannot apply: a word"),
        "{text}"
    );
    let words = text.matches("a word").count();
    assert!(words > 50, "the error is complete: {text}");
}

/// `Action::requeue(Duration::MAX)` is one way to requeue never.
#[test]
fn the_longest_requeue_time_is_shown() {
    let mut never = record(1, "2026-01-01T00:00:00Z", &["initial list"], false);
    let after_seconds = Duration::MAX.as_secs_f64();
    never.result = Outcome::Requeue { after_seconds };
    let text = print(&[never], &[], "2026-01-01T00:00:01Z".parse().unwrap());
    assert!(text.contains("ok, again in "), "{text}");
}

/// Text from objects and errors is shown and does not act on the terminal.
#[test]
fn control_characters_in_texts_do_not_reach_the_terminal() {
    let causes = ["one changed: .spec.a \"\u{1b}[2J\" -> \"\u{9b}2J\"", "a\nb"];
    let mut odd = record(1, "2026-01-01T00:00:00Z", &causes, false);
    odd.result = Outcome::Error {
        message: "first\nsecond\r\u{7}".to_owned(),
        retry_seconds: None,
    };
    let text = print(&[odd], &[], "2026-01-01T00:00:01Z".parse().unwrap());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text:?}");
    assert!(!lines.concat().contains(char::is_control), "{text:?}");
}

/// Two operators may both reconcile an object.
#[tokio::test]
async fn every_operator_is_asked() {
    async fn operator(response: serde_json::Value) -> (String, tokio::task::JoinSet<()>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let body = response.to_string();
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).await.unwrap();
        });
        (address, serving)
    }
    let by = |controller: &str| {
        json!({"objects": [[{
            "controller": controller, "kind": "Robot", "namespace": "default", "name": "one",
            "number": 1, "causes": [], "cacheReads": 1, "liveReads": 0, "writes": [],
            "started": "2026-01-01T00:00:00Z", "durationSeconds": 0.0031,
            "result": {"outcome": "ok"}, "hotLoop": null,
        }]]})
    };
    let (first, _a) = operator(by("walker")).await;
    let (none, _b) = operator(json!({"objects": []})).await;
    let (second, _c) = operator(by("painter")).await;
    let objects = explain(&[first, none, second], "robot", "one", "")
        .await
        .unwrap();
    let controllers = objects
        .objects
        .iter()
        .flatten()
        .map(|it| it.controller.as_str());
    assert_eq!(controllers.collect::<Vec<_>>(), ["walker", "painter"]);

    let (none, _d) = operator(json!({"objects": []})).await;
    let error = explain(&[none], "robot", "one", "").await.unwrap_err();
    assert_eq!(error.to_string(), "robot/one has no recent reconcile");
}

#[test]
fn the_owner_of_an_object_of_a_sharded_operator_is_printed() {
    let owner = Owner {
        namespace: Some("default".to_owned()),
        name: "one".to_owned(),
        hash: "2c".to_owned(),
        slot: 5,
        of: 32,
        replica: Some("pod-b".to_owned()),
    };
    let records = [record(1, "2026-01-01T00:00:00Z", &["initial list"], false)];
    let now = "2026-01-01T00:00:12Z".parse().unwrap();
    assert_eq!(
        print(&records, std::slice::from_ref(&owner), now),
        "robot/one in default reconciled once by robot, in 3.1 ms, idle for 12 s\n \
         slot 5 of 32, owned by pod-b\n \
         #1  initial list  read 1 (cache)    3.1 ms  ok\n"
    );
    let nobody = Owner {
        replica: None,
        ..owner
    };
    assert_eq!(
        print_owner("Robot", &nobody),
        "robot/one in default has no recent reconcile in this replica: \
         slot 5 of 32, owned by no replica at present\n"
    );
}
