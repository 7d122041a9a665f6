use serde_json::json;

use super::*;

#[test]
fn the_managers_of_each_field_are_read() {
    let robot = json!({
        "kind": "Robot",
        "metadata": {"name": "one", "uid": "u", "resourceVersion": "7", "managedFields": [
            {"manager": "b", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:tools": {
                ".": {}, "k:{\"name\":\"arm\"}": {".": {}, "f:size": {}},
            }}}},
            {"manager": "a", "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}},
        ]},
    });
    let look = Look::of(&[robot]);
    let seen = &look.objects["u"];
    assert_eq!(seen.resource_version, "7");
    let owners: Vec<_> = seen.owners.iter().collect();
    assert_eq!(
        owners,
        [
            (
                &".spec.replicas".to_owned(),
                &vec!["a".to_owned(), "b".to_owned()]
            ),
            (&".spec.tools[arm].size".to_owned(), &vec!["b".to_owned()]),
        ]
    );
}
