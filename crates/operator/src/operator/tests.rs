use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use opkit_controller::{Action, Context, Controller};
use serde_json::{Value, json};

use super::*;
use crate::arguments::parse;

/// The documents of one kind that the operator prints with these arguments.
fn documents(operator: Operator, arguments: &[&str], kind: &str) -> Vec<Value> {
    let all = std::iter::once(&"test").chain(arguments);
    let arguments = parse("test", all.map(Into::into)).unwrap();
    let mut documents = operator.rbac(&arguments.flags).documents();
    documents.retain(|document| document["kind"] == kind);
    documents
}

fn idle<K: Object>() -> Controller<K> {
    Controller::new(|_: Arc<K>, _: Context| async { Ok(Action::await_change()) })
}

#[test]
fn the_lease_may_be_written_where_the_flags_say_that_it_is() {
    let operator = || Operator::new("test").leader_election("test");
    let place = |arguments: &[&str]| {
        let roles = documents(operator(), arguments, "Role");
        let bindings = documents(operator(), arguments, "RoleBinding");
        let place = |of: &[Value]| of[0]["metadata"]["namespace"].clone();
        assert_eq!(place(&roles), place(&bindings));
        place(&roles)
    };
    assert_eq!(place(&[]), "test-system");
    assert_eq!(
        place(&["--leader-election-namespace", "elsewhere"]),
        "elsewhere"
    );
}

/// They are in the namespace `default`, whichever are watched.
#[test]
fn events_about_the_cluster_scope_may_be_written_by_who_is_held_to_namespaces() {
    let may_post = |operator: Operator| {
        let roles = documents(operator, &["--namespace", "shops"], "ClusterRole");
        let rules = roles
            .iter()
            .flat_map(|role| role["rules"].as_array().unwrap());
        let mut rules = rules.filter(|rule| rule["resources"] == json!(["events"]));
        rules.any(|rule| rule["verbs"] == json!(["create", "patch"]))
    };
    let operator = || Operator::new("test").controller(idle::<ConfigMap>());
    assert!(!may_post(operator()), "a Role in that namespace will do");
    assert!(may_post(operator().controller(idle::<Namespace>())));
}

#[tokio::test]
async fn a_shutdown_ends_the_making_of_a_state_that_hangs() {
    let config = kube::Config::new("http://localhost".parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let operator = Operator::new("test").state(std::future::pending::<Result<u8>>);
    let shutdown = tokio_util::sync::CancellationToken::new();
    let run = operator.run_with(client, RunOptions::default(), shutdown.clone());
    let mut run = std::pin::pin!(run);
    assert!(run.as_mut().now_or_never().is_none(), "it hangs");
    shutdown.cancel();
    run.now_or_never().expect("it ends").unwrap();
}

#[tokio::test]
async fn a_declared_election_is_not_silently_off() {
    let config = kube::Config::new("http://localhost".parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let operator = || Operator::new("test").leader_election("test");
    let election = |options: &RunOptions| operator().election(options);
    let mut options = RunOptions::default();
    assert!(election(&options).is_some(), "wherever it runs");

    // This process runs in no pod, so nobody knows where the lease is.
    let stop = tokio_util::sync::CancellationToken::new();
    let error = operator().run_with(client, options.clone(), stop).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("--leader-elect=false"), "{error}");

    options.leader_elect = Some(false);
    assert!(election(&options).is_none());
}
