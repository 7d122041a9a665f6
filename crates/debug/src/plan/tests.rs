use serde_json::json;

use super::*;

#[test]
fn a_plan_of_another_version_may_lack_fields() {
    let plan: OperatorPlan = serde_json::from_value(json!({
        "changes": [{"kind": "Pod", "name": "a", "change": "created"}],
    }))
    .unwrap();
    assert_eq!(plan.changes[0].change, PlannedEffect::Created);
    assert_eq!((plan.refused, plan.is_unfinished), (None, false));
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let mut plan = OperatorPlan::refused("it has a state");
    let name = ObjectName {
        kind: "Robot".to_owned(),
        namespace: Some("default".to_owned()),
        name: "one".to_owned(),
    };
    assert_eq!(name.to_string(), "robot/one");
    plan.changes.push(PlannedObject {
        reconciled: vec![name],
        ..PlannedObject::default()
    });
    let text = serde_json::to_value(&plan).unwrap();
    assert_eq!(text["changes"][0]["for"][0]["name"], "one");
    assert_eq!(serde_json::from_value::<OperatorPlan>(text).unwrap(), plan);
}
