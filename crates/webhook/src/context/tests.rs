use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::Expression;
use serde_json::json;

use super::*;

fn map(namespace: &str, name: &str, app: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}},
    }))
    .unwrap()
}

fn names(found: &[Arc<ConfigMap>]) -> Vec<&str> {
    let names = found.iter().map(|map| map.metadata.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

#[test]
fn a_context_for_a_test_reads_its_objects() {
    let cx = WebhookContext::for_test(())
        .with([map("shops", "b", "web"), map("shops", "a", "db")])
        .with([map("other", "c", "web")])
        .in_namespace("shops");
    let found = cx.get::<ConfigMap>("a").unwrap();
    assert_eq!(
        found.unwrap().metadata.labels.as_ref().unwrap()["app"],
        "db"
    );
    assert!(cx.get::<ConfigMap>(("other", "a")).unwrap().is_none());
    assert!(cx.get::<ConfigMap>(("other", "c")).unwrap().is_some());

    assert_eq!(names(&cx.list::<ConfigMap>(()).unwrap()), ["a", "b"]);
    let all = Selection::default().all_namespaces();
    assert_eq!(cx.list::<ConfigMap>(all.clone()).unwrap().len(), 3);
    let web = Expression::Equal("app".to_owned(), "web".to_owned());
    let selected = all.labels(web);
    assert_eq!(names(&cx.list::<ConfigMap>(selected).unwrap()), ["c", "b"]);
}

#[test]
fn a_kind_without_objects_is_declared_or_an_error() {
    let cx = WebhookContext::for_test(()).with(Vec::<ConfigMap>::new());
    assert_eq!(cx.list::<ConfigMap>(()).unwrap().len(), 0);
    assert!(cx.get::<ConfigMap>("a").unwrap().is_none());
    let error = cx.list::<Secret>(()).unwrap_err().to_string();
    assert!(error.contains("Secret"), "{error}");
}
