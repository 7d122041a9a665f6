//! Replays creates, merge patches and applies recorded from kube-apiserver 1.36.3.

use serde_json::{Value, json};

use super::super::*;
use super::TIME;
use crate::schema::{NoDefinitions, Schema, Typed};
use crate::structural::{fill_defaults, validate};

#[test]
fn a_real_server_would_have_answered_the_same() {
    let recorded = include_str!("../../../testdata/apply.jsonl");
    let mut lines = recorded
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let schema = Schema::parse(&lines.next().unwrap()["schema"]).unwrap();
    let mut live: Option<Value> = None;
    let mut run = Value::Null;
    for step in lines {
        if run != step["run"] {
            run = step["run"].clone();
            live = None;
        }
        check(&schema, live.as_ref(), &step);
        if let Some(result) = step.get("result") {
            live = Some(result.clone());
        }
    }
}

fn check(schema: &Schema, live: Option<&Value>, step: &Value) {
    let typed = Typed::new(schema, &NoDefinitions);
    let manager = super::by(step["manager"].as_str().unwrap());
    if step["op"] != "apply" {
        let mut new = step["result"].clone();
        managers::strip(&mut new);
        if let Some(sent) = step.pointer("/body/metadata/managedFields") {
            new["metadata"]["managedFields"] = sent.clone();
        }
        update(live, &mut new, &typed, &manager, TIME);
        assert_eq!(sorted(&new), sorted(&step["result"]), "{step}");
        return;
    }
    let force = step["force"] == true;
    let answer = apply(live, &step["body"], &typed, &manager, force, TIME)
        .map_err(|error| error.to_string())
        .and_then(|mut object| {
            fill_defaults(&mut object, &typed);
            match validate(&object, &typed).as_slice() {
                [] => Ok(object),
                [only] => Err(format!("Apply.test.io \"t\" is invalid: {only}")),
                several => Err(format!("{several:?}")),
            }
        });
    match (answer, step.get("error")) {
        (Ok(object), None) => assert_eq!(sorted(&object), sorted(&step["result"]), "{step}"),
        (Err(error), Some(expected)) => assert_eq!(json!(error), *expected, "{step}"),
        (answer, _) => panic!("{answer:?} for {step}"),
    }
}

/// Returns the object with its entries sorted. The recorded times were all different; without them,
/// entries have no order.
fn sorted(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Array(entries)) = object.pointer_mut("/metadata/managedFields") {
        entries.sort_by_key(Value::to_string);
    }
    object
}
