use serde_json::json;

use super::{Zero, add_field};

#[test]
fn a_field_is_added_if_its_parent_exists() {
    let mut object = json!({"spec": {}});
    add_field(&mut object, &["spec", "serviceName"], Zero::Text);
    add_field(&mut object, &["status", "availableReplicas"], Zero::Number);
    assert_eq!(object, json!({"spec": {"serviceName": ""}}));
}

#[test]
fn an_empty_list_becomes_null_and_other_values_stay() {
    let mut object = json!({"rules": [], "value": 3});
    add_field(&mut object, &["rules"], Zero::Null);
    add_field(&mut object, &["value"], Zero::Number);
    assert_eq!(object, json!({"rules": null, "value": 3}));
}
