//! Rights of the operators that tests start: those of their manifests, and no others.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use opkit::prelude::*;
use opkit::testing::TestError;
use serde_json::json;

/// Reads a Secret, and ignores the error. Does nothing for the ConfigMaps of the cluster itself.
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    if map.name_any() != "one" {
        return Ok(Action::await_change());
    }
    let namespace = map.namespace().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(cx.client(), &namespace);
    let read = secrets.get_opt("token").await;
    let reason = if read.is_ok() { "Read" } else { "NotRead" };
    cx.event(Normal, reason, "the secret token");
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("reading-operator").controller(Controller::new(reconcile))
}

/// Starts the operator, and waits until it has read the Secret with this result.
async fn read(plane: &ControlPlane, operator: Operator, reason: &str) -> opkit::Result {
    plane.start(operator).await?;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "one"}}))?;
    plane.apply(map).await?;
    plane.eventually_event::<ConfigMap>("one", reason).await?;
    Ok(())
}

#[opkit::test]
async fn a_denied_request_fails_a_test_that_passes_otherwise(_: ControlPlane) -> opkit::Result {
    let plane = ControlPlane::from_env().await?;
    read(&plane, operator(), "NotRead").await?;
    let namespace = plane.namespace().to_owned();
    let denied = plane.denied();
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(denied[0].namespace.as_ref(), Some(&namespace));
    let error = plane.shutdown().await.unwrap_err();
    let report = match error.downcast_ref::<TestError>() {
        Some(TestError::Denied { report }) => report,
        _ => panic!("{error}"),
    };
    let start = format!(
        "reading-operator may not get secrets in namespace {namespace} (ServiceAccount {namespace}/"
    );
    assert!(report.starts_with(&start), "{report}");
    assert!(report.contains("): denied "), "{report}");
    Ok(())
}

#[opkit::test]
async fn expected_denials_do_not_fail_a_test(plane: ControlPlane) -> opkit::Result {
    read(&plane.expect_denials(), operator(), "NotRead").await?;
    assert_eq!(plane.denied().len(), 1);
    Ok(())
}

#[opkit::test]
async fn a_declared_rule_grants_the_permission(plane: ControlPlane) -> opkit::Result {
    let rule = PolicyRule::new("", ["secrets"], ["get"]);
    read(&plane, operator().rule(rule), "Read").await
}

#[opkit::test]
async fn an_administrator_needs_no_rule(plane: ControlPlane) -> opkit::Result {
    read(&plane.operators_as_admin(), operator(), "Read").await
}

#[opkit::test]
async fn a_timeout_reports_the_denied_requests(plane: ControlPlane) -> opkit::Result {
    let soon = plane.expect_denials();
    read(&soon, operator(), "NotRead").await?;
    let soon = soon.with_timeout(Duration::from_millis(50));
    let error = soon.eventually("one", |_: &ConfigMap| false).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("--- denied requests reading-operator may not get"),
        "{error}"
    );
    Ok(())
}
