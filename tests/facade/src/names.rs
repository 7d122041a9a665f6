//! Names of types, in signatures that a user would write.

use opkit::controller::{event, limiter};
use opkit::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit::leaderelection::LeaderElectionOptions;
use opkit::metrics;
use opkit::operator::CancellationToken;
use opkit::predicate::Predicate;
use opkit::prelude::*;

async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
    Ok(Action::await_change())
}

/// Custom rate limiter.
struct Steady;

impl limiter::RateLimiter<Request> for Steady {
    fn when(&mut self, _: Duration, _: &Request) -> Duration {
        Duration::from_secs(1)
    }

    fn forget(&mut self, _: &Request) {}

    fn num_requeues(&self, _: &Request) -> u32 {
        0
    }
}

fn controllers() -> [opkit::controller::AnyController; 2] {
    let bucket = limiter::TokenBucket::new(10.0, 100);
    let backoff = limiter::ItemExponential::new(Duration::from_millis(5), Duration::from_secs(60));
    let limited = limiter::MaxOf::new(vec![Box::new(backoff), Box::new(bucket)]);
    let is_new = |event: &event::CreateEvent<'_, Secret>, _: &MapContext| -> Vec<ObjectKey> {
        vec![event.object.name_any().into()]
    };
    let seen: Predicate = predicate::created().or(predicate::deleted());
    [
        Controller::new(reconcile)
            .rate_limiter(limited)
            .watches_with::<Secret>(|secrets: opkit::controller::Source<Secret>| {
                secrets.only(seen).on_create(is_new)
            })
            .into(),
        Controller::new(reconcile)
            .named("steady")
            .rate_limiter(Steady)
            .into(),
    ]
}

async fn edge() -> Result<opkit::kube::Client, opkit::kube::Error> {
    opkit::kube::Client::try_default().await
}

/// Returns an operator with timings, clusters, flags, states and metrics.
fn operator() -> Operator {
    let seconds = Duration::from_secs;
    let election =
        LeaderElectionOptions::new("facade").timings(seconds(60), seconds(40), seconds(5));
    let calls: metrics::Counter<1> = metrics::Counter::new("facade_calls", "Calls", ["result"]);
    let [one, other] = controllers();
    Operator::new("facade")
        .leader_election(election)
        .cluster("edge", edge)
        .metric(&calls)
        .state_with(|cx: StateContext| async move { Ok::<_, Error>(cx.recorder()) })
        .cache::<Secret>(opkit::cache::InformerOptions::default())
        .controller(one)
        .controller(other)
}

/// Reads the parts of a reconcile's record.
fn shown(
    record: &opkit::controller::ReconcileRecord,
) -> (
    opkit::controller::Reasons<opkit::controller::Cause>,
    opkit::controller::Outcome,
    Option<opkit::controller::HotLoop>,
) {
    (
        record.causes.clone(),
        record.result.clone(),
        record.hot_loop.clone(),
    )
}

#[test]
fn an_operator_needs_only_opkit() {
    let operator = operator();
    let names: Vec<_> = operator.controllers().iter().map(|it| it.name()).collect();
    assert_eq!(names, ["configmap", "steady"]);
}

#[opkit::test]
async fn a_test_needs_only_opkit(plane: ControlPlane) -> opkit::Result {
    plane.require(opkit::testing::Capability::ControllerManager)?;
    plane
        .start(Operator::new("facade").controller(Controller::new(reconcile)))
        .await?;
    let map = ConfigMap {
        metadata: opkit::kube::core::ObjectMeta {
            name: Some("one".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    plane.apply(map).await?;
    plane.eventually("one", |_: &ConfigMap| true).await?;
    let stop = CancellationToken::new();
    stop.cancel();
    let records = plane.reconciles().records();
    let _: Vec<_> = records.iter().map(|record| shown(record)).collect();
    Ok(())
}
