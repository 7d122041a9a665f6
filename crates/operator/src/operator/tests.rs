use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use opkit_controller::{Action, Context, Controller};
use serde_json::{Value, json};

use super::*;
use crate::arguments::CommandLine;

/// Returns the documents of one kind that the operator prints with these arguments.
fn documents(operator: Operator, arguments: &[&str], kind: &str) -> Vec<Value> {
    let all = std::iter::once(&"test").chain(arguments);
    let line = CommandLine::new("test", &[]).unwrap();
    let (arguments, _) = line.parse(all.map(Into::into)).unwrap();
    let mut documents = operator
        .rbac(&RunOptions::from(arguments.flags))
        .documents();
    documents.retain(|document| document["kind"] == kind);
    documents
}

fn idle<K: Object>() -> Controller<K> {
    Controller::new(|_: Arc<K>, _: Context| async { Ok::<_, Error>(Action::await_change()) })
}

#[test]
fn the_lease_may_be_written_in_the_namespace_of_the_flags() {
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

/// Such events are in the namespace `default`, whichever namespaces are watched.
#[test]
fn an_operator_of_some_namespaces_may_create_events_about_cluster_scoped_objects() {
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
async fn a_shutdown_stops_the_creation_of_a_state_that_hangs() {
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
async fn a_declared_election_without_namespace_is_an_error() {
    let config = kube::Config::new("http://localhost".parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let operator = || Operator::new("test").leader_election("test");
    let election = |options: &RunOptions| operator().election(options);
    let mut options = RunOptions::default();
    assert!(election(&options).is_some(), "wherever it runs");

    // This process does not run in a pod, so the Lease has no default namespace.
    let stop = tokio_util::sync::CancellationToken::new();
    let error = operator().run_with(client, options.clone(), stop).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("--leader-elect=false"), "{error}");

    options.leader_elect = Some(false);
    assert!(election(&options).is_none());
}

#[derive(clap::Args)]
struct Settings {
    /// URL of the store
    #[arg(long)]
    store_url: String,
}

/// Creates a state that fails with the given flag.
async fn fail(settings: Settings) -> Result<u8> {
    Err(Error::msg(settings.store_url))
}

async fn fail_with(_: opkit_controller::StateContext, settings: Settings) -> Result<u8> {
    fail(settings).await
}

/// Returns the error of running against an address where nothing listens.
async fn error_of(operator: Operator, arguments: &[&str]) -> String {
    let config = kube::Config::new("http://localhost".parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let mut options = RunOptions::default();
    options.args = arguments.iter().map(Into::into).collect();
    let stop = tokio_util::sync::CancellationToken::new();
    let error = operator.run_with(client, options, stop).await;
    error.unwrap_err().to_string()
}

#[tokio::test]
async fn flags_are_given_to_states() {
    let operator = || Operator::new("test").args::<Settings>();
    let url = ["--store-url", "http://store"];
    let error = error_of(operator().state(fail), &url).await;
    assert_eq!(error, "http://store");
    let error = error_of(operator().state_with(fail_with), &url).await;
    assert_eq!(error, "cannot create the state u8: http://store");
    let error = error_of(operator().state(fail), &[]).await;
    assert!(
        error.ends_with("not provided: --store-url <STORE_URL>"),
        "{error}"
    );
}

#[tokio::test]
async fn undeclared_flags_are_an_error_before_any_state_is_created() {
    let expected = "the state u8 takes opkit_operator::operator::tests::Settings, \
                    which the operator does not declare: add .args::<Settings>()";
    let never = || async { panic!("the state is created") as Result<u16> };
    let operator = || Operator::new("test").state(never);
    assert_eq!(error_of(operator().state(fail), &[]).await, expected);
    assert_eq!(
        error_of(operator().state_with(fail_with), &[]).await,
        expected
    );
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_named() {
    let config = kube::Config::new("http://localhost".parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let connect = || async { Err::<kube::Client, _>(Error::msg("no kubeconfig")) };
    let operator = Operator::new("test").cluster("edge", connect);
    let stop = tokio_util::sync::CancellationToken::new();
    let error = operator.run_with(client, RunOptions::default(), stop).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "cannot connect to the cluster edge: no kubeconfig"
    );
}

#[test]
fn the_timings_of_an_election_are_its_own() {
    let seconds = std::time::Duration::from_secs;
    let declared = LeaderElectionOptions::new("test").timings(seconds(60), seconds(40), seconds(5));
    let operator = Operator::new("test").leader_election(declared);
    let mut options = RunOptions::default();
    options.leader_election_namespace = Some("system".to_owned());
    let election = operator.election(&options).unwrap();
    assert_eq!(election.lease_duration, seconds(60));
    assert_eq!(election.renew_deadline, seconds(40));
    assert_eq!(election.retry_period, seconds(5));
    assert_eq!(election.namespace.as_deref(), Some("system"));
}

#[tokio::test]
async fn a_flag_that_collides_is_an_error_with_its_name() {
    #[derive(clap::Args)]
    struct Colliding {
        #[arg(long)]
        kubeconfig: Option<String>,
    }
    let error = error_of(Operator::new("test").args::<Colliding>(), &[]).await;
    let expected = "Colliding declares --kubeconfig, which opkit has: rename it";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn evicted_objects_may_be_read_from_the_server() {
    let verbs = |options: InformerOptions| {
        let operator = Operator::new("test").controller(idle::<ConfigMap>());
        let rules = operator.cache::<ConfigMap>(options).rules();
        let of_maps = rules
            .iter()
            .find(|rule| rule.resources.contains("configmaps"));
        Vec::from_iter(of_maps.unwrap().verbs.clone())
    };
    assert_eq!(verbs(InformerOptions::default()), ["list", "watch"]);
    let mut options = InformerOptions::default();
    options.memory_budget = Some(1_000_000);
    assert_eq!(verbs(options), ["get", "list", "watch"]);
}
