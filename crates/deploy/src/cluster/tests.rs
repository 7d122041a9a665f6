use serde_json::json;

use super::*;

#[test]
fn a_namespace_that_does_not_end_reports_the_message_of_the_server() {
    let namespace = |type_: &str, status: &str, message: &str| {
        Unstructured::from(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"},
            "status": {"phase": "Terminating", "conditions": [{
                "type": type_, "status": status, "reason": "A", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
    };
    let failure = "conversion webhook for robots failed";
    let blocked = namespace("NamespaceDeletionContentFailure", "True", failure);
    assert_eq!(problem_of_deletion(&blocked).as_deref(), Some(failure));
    let fine = namespace("NamespaceDeletionContentFailure", "False", "All deleted");
    assert_eq!(problem_of_deletion(&fine), None);

    let error = DeployError::NotRemoved {
        object: Box::new(ObjectReference::of(&Value::from(blocked.clone()))),
        seconds: 300,
        finalizers: Vec::new(),
        problem: problem_of_deletion(&blocked),
    };
    assert_eq!(
        error.to_string(),
        format!("namespace/one is still there after 300 s: {failure}")
    );
}
