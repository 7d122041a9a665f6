use serde_json::json;

use super::*;

fn kind() -> Kind {
    Kind {
        group: "robot.opkit.dev".into(),
        version: "v1".into(),
        kind: "Robot".into(),
        plural: "robots".into(),
        namespaced: true,
    }
}

fn gaps(properties: Value, paths: &[&str]) -> Vec<String> {
    let gvk = |kind: &str| json!([{"group": "robot.opkit.dev", "version": "v1", "kind": kind}]);
    let paths: serde_json::Map<_, _> = paths
        .iter()
        .map(|path| ((*path).to_owned(), json!({})))
        .collect();
    let document = json!({"paths": paths, "components": {"schemas": {
        "a": {"x-kubernetes-group-version-kind": gvk("RobotList")},
        "b": {"x-kubernetes-group-version-kind": gvk("Robot"), "properties": properties},
    }}});
    status_gaps(&kind(), &document)
}

const ROBOT: &str = "/apis/robot.opkit.dev/v1/namespaces/{namespace}/robots/{name}";
const STATUS: &str = "/apis/robot.opkit.dev/v1/namespaces/{namespace}/robots/{name}/status";

#[test]
fn a_complete_status_has_no_gaps() {
    let status = json!({"properties": {
        "observedGeneration": {},
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }});
    assert_eq!(gaps(json!({"status": status}), &[ROBOT, STATUS]), [""; 0]);
}

#[test]
fn each_gap_is_reported() {
    assert_eq!(
        gaps(json!({"status": {"properties": {"phase": {}}}}), &[ROBOT]),
        [
            "Robot has status in its schema but no status subresource: its status cannot be updated",
            "Robot has no status.observedGeneration: clients cannot determine whether its status is up to date",
            "Robot has no status.conditions: it cannot report that it is ready",
        ]
    );
    let status = json!({"properties": {"observedGeneration": {}, "conditions": {"type": "array"}}});
    assert_eq!(
        gaps(json!({"status": status}), &[ROBOT, STATUS]),
        [
            "Robot has status.conditions that are not a list of type map with the key type: controllers cannot own conditions separately",
        ]
    );
}

#[test]
fn unknown_schemas_are_not_reported() {
    assert_eq!(gaps(json!({"spec": {}}), &[ROBOT]), [""; 0], "no status");
    let open = json!({"status": {"x-kubernetes-preserve-unknown-fields": true}});
    assert_eq!(gaps(open, &[ROBOT, STATUS]), [""; 0]);
    assert_eq!(status_gaps(&kind(), &json!({})), [""; 0]);
    let other = Kind {
        version: "v2".into(),
        ..kind()
    };
    assert_eq!(
        status_gaps(&other, &json!({"components": {"schemas": {}}})),
        [""; 0]
    );
}
