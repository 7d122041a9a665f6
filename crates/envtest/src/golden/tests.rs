use serde_json::json;

use super::*;

#[test]
fn fields_that_differ_from_run_to_run_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deployment.yaml");
    let object = |uid: &str, replicas: i32| {
        json!({
            "kind": "Deployment",
            "metadata": {
                "name": "web", "uid": uid, "resourceVersion": uid, "managedFields": [uid],
                "ownerReferences": [{"kind": "Robot", "name": "web", "uid": uid}],
            },
            "spec": {"replicas": replicas, "template": {"metadata": {"creationTimestamp": uid}}},
        })
    };
    fs::write(&path, yaml(&object("1", 2)).unwrap()).unwrap();
    golden(&path, &object("2", 2)).unwrap();
    assert!(!fs::read_to_string(&path).unwrap().contains("uid"));

    let error = golden(&path, &object("1", 3)).unwrap_err();
    let error = error.downcast_ref::<TestError>().unwrap().to_string();
    for part in [
        "deployment.yaml",
        "replicas: 2",
        "replicas: 3",
        "OPKIT_BLESS=1",
    ] {
        assert!(error.contains(part), "{part:?} is not in\n{error}");
    }
}

#[test]
fn the_order_of_fields_does_not_count_and_unknown_fields_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.yaml");
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let reordered =
        "# reviewed\ndata: {k: v}\nmetadata: {name: a}\nkind: ConfigMap\napiVersion: v1\n";
    fs::write(&path, reordered).unwrap();
    golden(&path, &settings).unwrap();
    fs::write(&path, format!("{reordered}datta: {{}}\n")).unwrap();
    let error = golden(&path, &settings).unwrap_err();
    let error = error.downcast_ref::<TestError>().unwrap().to_string();
    assert!(error.contains("has no field datta"), "{error}");
}

#[test]
fn a_missing_file_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    assert!(golden(folder.path().join("none.yaml"), &json!({"a": 1})).is_err());
}
