use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::schema::{ListType, NoDefinitions, Schema as OpenApi, Typed};
use crate::structural::validate;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn the_wire_form_is_that_of_metav1() {
    fn check(condition: Condition, expected: Value) {
        assert_eq!(serde_json::to_value(&condition).unwrap(), expected);
        assert_eq!(
            serde_json::from_value::<Condition>(expected).unwrap(),
            condition
        );
    }
    let fresh = Condition::new("Ready", true);
    check(
        fresh.clone(),
        json!({"type": "Ready", "status": "True", "reason": "Ready", "message": ""}),
    );
    let stamped = Condition {
        last_transition_time: Some(at(1_700_000_000)),
        observed_generation: Some(2),
        ..fresh.reason("Up").message("all is well")
    };
    check(
        stamped,
        json!({
            "type": "Ready", "status": "True", "reason": "Up", "message": "all is well",
            "lastTransitionTime": "2023-11-14T22:13:20Z", "observedGeneration": 2,
        }),
    );
}

#[test]
fn reasons_are_derived_from_the_status() {
    fn check(status: impl Into<ConditionStatus>, expected: &str) {
        assert_eq!(Condition::new("Ready", status).reason, expected);
    }
    check(true, "Ready");
    check(false, "NotReady");
    check(ConditionStatus::Unknown, "Unknown");
}

#[test]
fn the_time_is_kept_while_the_status_is_unchanged() {
    fn check(before: bool, after: bool, expected: Option<Timestamp>) {
        let mut conditions = Conditions::new();
        conditions.set(Condition {
            last_transition_time: Some(at(100)),
            ..Condition::new("Ready", before)
        });
        conditions.set(Condition::new("Ready", after).message("again"));
        assert_eq!(conditions[0].last_transition_time, expected);
    }
    check(true, true, Some(at(100)));
    check(true, false, None);
}

#[test]
fn fractions_of_seconds_are_not_written() {
    let condition = Condition {
        last_transition_time: Some(at(5) + jiff::Span::new().milliseconds(900)),
        ..Condition::new("Ready", true)
    };
    let written = serde_json::to_value(&condition).unwrap();
    assert_eq!(written["lastTransitionTime"], "1970-01-01T00:00:05Z");
}

#[test]
fn each_type_occurs_once() {
    let mut conditions = Conditions::new();
    conditions.set(Condition::new("Ready", false));
    conditions.set(Condition::new("Synced", true));
    conditions.set(Condition::new("Ready", true));
    assert_eq!(
        conditions
            .iter()
            .map(|c| c.type_.as_str())
            .collect::<Vec<_>>(),
        ["Ready", "Synced"]
    );
    assert!(conditions.is_true("Ready"));
    assert!(!conditions.is_true("Other"));
    assert_eq!(
        conditions.remove("Ready").unwrap().status,
        ConditionStatus::True
    );
    assert!(conditions.get("Ready").is_none());
}

#[test]
fn the_schema_is_structural_and_fits_the_values() {
    let document = schemars::SchemaGenerator::default().into_root_schema_for::<Conditions>();
    let schema = OpenApi::parse(document.as_value()).unwrap();
    assert_eq!(schema.list_type, Some(ListType::Map));
    assert_eq!(schema.list_map_keys, ["type"]);
    let item = schema.items.as_ref().unwrap();
    assert!(
        item.reference.is_none(),
        "a structural schema knows no references"
    );
    assert_eq!(item.properties.len(), 6);

    let stamped = Condition {
        last_transition_time: Some(at(0)),
        observed_generation: Some(0),
        ..Condition::new("Ready", true)
    };
    let conditions: Conditions = [stamped].into_iter().collect();
    let typed = Typed::new(&schema, &NoDefinitions);
    assert_eq!(
        validate(&serde_json::to_value(&conditions).unwrap(), &typed),
        []
    );
    let wrong = json!([{"type": "Ready", "status": "Maybe", "reason": "", "message": "", "lastTransitionTime": "now"}]);
    assert_eq!(validate(&wrong, &typed).len(), 3);
}
