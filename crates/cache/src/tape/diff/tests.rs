use serde_json::{Value, json};

use super::*;
use crate::tape::encoder::Encoder;
use crate::tape::strings::{Interner, Vocabulary};
use crate::tape::visit;

const ALL: DiffOptions = DiffOptions {
    limit: 8,
    values: ShownValues::All,
    is_secret: false,
};
const DEFAULT: DiffOptions = DiffOptions {
    values: ShownValues::Status,
    ..ALL
};

fn check(old: Value, new: Value, expected: &[&str]) {
    check_with(ALL, old, new, expected);
}

fn check_with(options: DiffOptions, old: Value, new: Value, expected: &[&str]) {
    let (vocabulary, mut interner) = (Vocabulary::default(), Interner::new());
    let mut tape = |value: &Value, object| {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, &vocabulary, &mut interner, object);
        visit::encode(value, &mut encoder, &|_| false).unwrap();
        out
    };
    // Several times, so that strings become shared in between.
    let tapes: Vec<_> = (0..3)
        .map(|n| (tape(&old, n * 2), tape(&new, n * 2 + 1)))
        .collect();
    for (old, _) in &tapes {
        for (_, new) in &tapes {
            let changes = diff(
                Reader::new(old, &vocabulary),
                Reader::new(new, &vocabulary),
                options,
            );
            let found: Vec<_> = changes.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn fields_that_differ_are_named() {
    check(
        json!({"metadata": {"resourceVersion": "1"}, "status": {"readyReplicas": 1}}),
        json!({"metadata": {"resourceVersion": "2"}, "status": {"readyReplicas": 2}}),
        &[".status.readyReplicas 1 -> 2"],
    );
    check(
        json!({"status": {}}),
        json!({"status": {"ready": 1}}),
        &[".status.ready absent -> 1"],
    );
    check(
        json!({"spec": {"a": "x"}}),
        json!({"spec": {}}),
        &[".spec.a x -> absent"],
    );
    check(
        json!({"spec": {"a": [1]}}),
        json!({"spec": {"a": {"b": 1}}}),
        &[".spec.a […] -> {…}"],
    );
    let same = json!({"a": {"b": [1, "two", null, {"c": true}]}});
    check(same.clone(), same, &[]);
}

#[test]
fn items_of_lists_are_called_by_type_or_name_or_number() {
    let status = |ready: &str| json!({"conditions": [{"type": "Ready", "status": ready}, {"type": "Live", "status": "True"}]});
    check(
        status("False"),
        status("True"),
        &[".conditions[Ready].status False -> True"],
    );
    check(
        json!({"a": [1, 2]}),
        json!({"a": [1, 3, 4]}),
        &[".a[1] 2 -> 3", ".a[2] absent -> 4"],
    );
    check(
        json!({"c": [{"name": "web"}]}),
        json!({"c": []}),
        &[".c[web].name web -> absent"],
    );
}

#[test]
fn long_texts_are_cut_and_the_first_fields_are_enough() {
    let long = "ä".repeat(100);
    let cut = format!(".a x -> {}…", "ä".repeat(64));
    check(json!({"a": "x"}), json!({"a": long}), &[&cut]);
    let many = |value: u32| Value::from_iter((0..20).map(|n| (format!("f{n:02}"), value)));
    let first: Vec<_> = (0..8).map(|n| format!(".f{n:02} 1 -> 2")).collect();
    check(
        many(1),
        many(2),
        &first.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn an_added_or_removed_container_is_reported_by_its_parts() {
    check(
        json!({"spec": {}}),
        json!({"spec": {"a": [{"name": "x", "n": 1}, 2], "b": [], "c": {}}}),
        &[
            ".spec.a[x].n absent -> 1",
            ".spec.a[x].name absent -> x",
            ".spec.a[1] absent -> 2",
            ".spec.b absent -> []",
            ".spec.c absent -> {}",
        ],
    );
}

#[test]
fn by_default_only_numbers_and_booleans_of_the_status_are_shown() {
    let object = |n: u32| {
        json!({
            "data": {"a": format!("value{n}")},
            "metadata": {"annotations": {LAST_APPLIED_CONFIGURATION: format!("{{\"value{n}\"}}")}},
            "spec": {"env": [{"name": "A", "value": format!("value{n}")}], "replicas": n},
            "status": {"is": n == 1, "phase": format!("value{n}"), "ready": n},
        })
    };
    let paths = [
        ".data.a",
        ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
        ".spec.env[A].value",
        ".spec.replicas",
        ".status.is true -> false",
        ".status.phase",
        ".status.ready 1 -> 2",
    ];
    check_with(DEFAULT, object(1), object(2), &paths);
    let secret = DiffOptions {
        is_secret: true,
        ..ALL
    };
    let paths = paths.map(|path| path.split(' ').next().unwrap());
    check_with(secret, object(1), object(2), &paths);
}

#[test]
fn the_last_applied_annotation_is_never_shown() {
    let path = ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration";
    let object = |last: Option<&str>| {
        let last = last.map(|last| (LAST_APPLIED_CONFIGURATION, Value::from(last)));
        json!({"metadata": {"annotations": Value::from_iter(last)}})
    };
    for (old, new) in [(None, Some("x")), (Some("x"), Some("y")), (Some("x"), None)] {
        check(object(old), object(new), &[path]);
    }
}

#[test]
fn equal_values_have_one_fingerprint() {
    let print = |text| fingerprint(Some(text));
    assert_eq!(print("a"), print("a"));
    assert_ne!(print("a"), print("b"));
}
