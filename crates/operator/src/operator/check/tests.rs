use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use opkit_controller::{Action, Cleanup, Context, Controller, Result};

use super::*;

async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
    Ok(Action::await_change())
}

async fn clean_up(_: Arc<ConfigMap>, _: Context) -> Result<Cleanup> {
    Ok(Cleanup::Done)
}

/// Returns the problem of an operator in one line, or an empty text.
fn problem(operator: Operator, watched: &[&str]) -> String {
    let watched: Vec<_> = watched.iter().map(|it| (*it).to_owned()).collect();
    match operator.check(&watched) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn good_names_pass() {
    let operator = Operator::new("map-operator")
        .controller(Controller::new(reconcile).finalizer("map.opkit.dev/cleanup", clean_up))
        .controller(Controller::new(reconcile).named("Second one"))
        .leader_election("map-operator.opkit.dev")
        .namespaces(["shops"]);
    assert_eq!(problem(operator, &["default"]), "");
}

#[test]
fn invalid_names_are_reported_with_the_rule_they_break() {
    let check = |operator: Operator, watched: &[&str], expected: &[&str]| {
        let problem = problem(operator, watched);
        for part in expected {
            assert!(problem.contains(part), "{part:?} is not in {problem:?}");
        }
    };
    let new = || Operator::new("test");
    check(
        Operator::new("My Operator"),
        &[],
        &[
            "the operator's name \"My Operator\"",
            "lowercase RFC 1123 label",
        ],
    );
    check(Operator::new(""), &[], &["the operator's name \"\""]);
    check(
        Operator::new("o".repeat(57)),
        &[],
        &["no more than 63 bytes", "-system"],
    );
    check(
        new().leader_election("no/slash"),
        &[],
        &["the leader election's lease \"no/slash\""],
    );
    check(new().namespaces(["a.b"]), &[], &["namespace \"a.b\""]);
    check(
        new(),
        &["kube-system/secrets"],
        &["namespace \"kube-system/secrets\""],
    );
    let controller = || Controller::new(reconcile);
    check(
        new().controller(controller().finalizer("cleanup", clean_up)),
        &[],
        &[
            "the finalizer of controller configmap \"cleanup\"",
            "domain",
        ],
    );
    check(
        new().controller(controller().named("")),
        &[],
        &["the name of a ConfigMap controller", "empty"],
    );
    check(
        new().controller(controller().named("x".repeat(200))),
        &[],
        &["the field manager of controller", "no more than 128 bytes"],
    );
}
