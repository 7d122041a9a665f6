//! Tests of the operators in `examples/`.

mod bucket;
mod catalog;
mod hand_written;
mod namespace;
mod permissions;
mod plan;
mod secret;
mod shop;

use bucket_operator::Bucket;
use catalog_operator::Product;
use hand_written_controller::Foo;
use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use opkit::client::{Object, Rule, Seam};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use secret_operator::SecretCopy;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shop_operator::Shop;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Operator that has only the permissions of its manifests, and that can be stopped and restarted.
struct RunningOperator {
    plane: ControlPlane,
    since: Timestamp,
    seam: Seam,
    stop: CancellationToken,
    operator: JoinSet<opkit::Result>,
}

impl RunningOperator {
    /// Runs `operator` for the namespace of the test and the namespaces `more`.
    async fn start(plane: &ControlPlane, operator: Operator, more: &[&str]) -> opkit::Result<Self> {
        Self::start_with(plane, operator, more, Vec::new(), true).await
    }

    /// Runs `operator` as [`start`](Self::start) does, with `faults` of its client. `preflight` is
    /// whether the operator checks its permissions first.
    async fn start_with(
        plane: &ControlPlane,
        operator: Operator,
        more: &[&str],
        faults: Vec<Rule>,
        preflight: bool,
    ) -> opkit::Result<Self> {
        plane.install(&operator).await?;
        let mut options = RunOptions::default();
        options.preflight = preflight;
        options.log = plane.reconciles().clone();
        options.leader_election_namespace = Some(plane.namespace().to_owned());
        options.namespaces = vec![plane.namespace().to_owned()];
        options
            .namespaces
            .extend(more.iter().map(|&name| name.into()));
        let mut ready = options.ready.subscribe();
        let (since, seam, stop) = (Timestamp::now(), Seam::new(), CancellationToken::new());
        faults.into_iter().for_each(|fault| seam.add(fault));
        let client = seam.wrap(plane.operator_client(&operator, &options).await?);
        let mut running = Self {
            plane: plane.clone(),
            since,
            seam,
            stop: stop.clone(),
            operator: JoinSet::new(),
        };
        running
            .operator
            .spawn(operator.run_with(client, options, stop));
        tokio::select! {
            ready = ready.wait_for(|ready| *ready) => drop(ready?),
            ended = running.operator.join_next() => {
                return Err(Error::msg(format!("the operator stopped: {ended:?}")));
            }
        }
        Ok(running)
    }

    /// Reports whether an object of the test's namespace was reconciled since the start.
    fn has_reconciled(&self, controller: &str, name: &str) -> bool {
        let key = (self.plane.namespace(), name).into();
        let last = self.plane.reconciles().last(controller, &key);
        last.is_some_and(|last| last.started >= self.since)
    }

    /// Returns the writes of this operator, except events and its Lease: verb, resource, name.
    fn writes(&self) -> Vec<String> {
        let exchanges = self.seam.exchanges();
        let writes = exchanges.iter().map(|exchange| &exchange.info);
        let writes = writes.filter(|info| {
            let reads = ["get", "list", "watch"].contains(&info.verb.as_ref());
            let own = ["events", "leases", "selfsubjectaccessreviews"];
            !reads && !own.contains(&info.plural.as_ref())
        });
        let described = writes.map(|info| {
            let name = info.name.as_deref().unwrap_or_default();
            format!("{} {} {name}", info.verb, info.plural)
        });
        described.collect()
    }

    async fn stop(mut self) -> opkit::Result {
        self.stop.cancel();
        while let Some(ended) = self.operator.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Returns the rules that `manifests` prints.
fn rules(operator: &Operator) -> Vec<Value> {
    let rules = operator.rules();
    let rules = rules.iter().map(
        |rule| json!({"apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs}),
    );
    rules.collect()
}

/// Compares the permissions of an operator with the reviewed golden file.
fn golden_rules(operator: &Operator) -> opkit::Result {
    let path = format!("../../examples/{}/config/rbac/rules.yaml", operator.name());
    opkit::testing::golden(path, &Value::from(rules(operator)))
}

#[opkit::test]
async fn samples_are_accepted(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    async fn check<K: Object>(
        plane: &ControlPlane,
        operator: Operator,
        name: &str,
    ) -> opkit::Result {
        plane.install(&operator).await?;
        let path = format!(
            "../../examples/{}/config/samples/{name}.yaml",
            operator.name()
        );
        for object in opkit::testing::fixtures::<K>(path)? {
            plane.apply(object).await?;
        }
        Ok(())
    }
    check::<Shop>(&plane, shop_operator::operator(), "shop-one").await?;
    check::<Bucket>(&plane, bucket_operator::operator(), "bucket-one").await?;
    check::<Product>(&plane, catalog_operator::operator(), "product-one").await?;
    let hand_written = Operator::new("hand-written-controller").crd::<Foo>();
    check::<Foo>(&plane, hand_written, "foo-one").await?;
    check::<SecretCopy>(&plane, secret_operator::operator(), "shared").await?;
    check::<Namespace>(&plane, namespace_operator::operator(), "team-red").await
}

/// Decodes an object from JSON.
fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

/// Changes an object of the test's namespace as a user would.
async fn merge<K>(plane: &ControlPlane, name: &str, patch: Value) -> opkit::Result<K>
where
    K: Object<Scope = k8s_openapi::NamespaceResourceScope> + std::fmt::Debug,
{
    let api: Api<K> = Api::default_namespaced(plane.client());
    let params = PatchParams::default();
    Ok(api.patch(name, &params, &Patch::Merge(patch)).await?)
}

/// Waits for an event about an object with this reason; returns its count.
async fn event(plane: &ControlPlane, about: &str, reason: &str) -> opkit::Result<i32> {
    let api: Api<Event> = Api::all(plane.client());
    let fields = format!("involvedObject.name={about},reason={reason}");
    for _ in 0..1_000 {
        let found = api.list(&ListParams::default().fields(&fields)).await?;
        if !found.items.is_empty() {
            let times = found.iter().map(|event| event.series.as_ref());
            let times = times.map(|series| series.and_then(|series| series.count).unwrap_or(1));
            return Ok(times.sum());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(Error::msg(format!("no event {reason} about {about}")))
}

/// Returns status and reason of a condition, once it belongs to the current spec.
fn condition<'a>(
    generation: Option<i64>,
    conditions: Option<&'a Conditions>,
    type_: &str,
) -> Option<(bool, &'a str)> {
    let condition = conditions?.get(type_)?;
    let is_present = condition.observed_generation == generation;
    is_present.then_some((condition.is_true(), condition.reason.as_str()))
}
