//! An operator under faults: thousands of objects that are edited, requests that fail or conflict,
//! watches that break. In the end every status matches its spec, and nothing leaks.
//!
//! The test runs in virtual time, so minutes take seconds. `cargo test` runs it with few objects,
//! `cargo xtask soak` with 50,000.

mod faults;
mod names;

use opkit::client::{Client, DeleteOptions, ListOptions, Patch};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use opkit::testing::Capability;
use opkit_random::Random;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use faults::Faults;

/// Default number of objects; `OPKIT_SOAK_OBJECTS` overrides it.
const OBJECTS: usize = 200;
/// Duration of the edits, in virtual time; they run twice.
const EDITS: Duration = Duration::from_secs(120);

/// Kind with a number.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "soak.opkit.dev",
    version = "v1",
    kind = "Gauge",
    namespaced,
    status = "GaugeStatus"
)]
pub(crate) struct GaugeSpec {
    value: u32,
}

/// Number that the operator copies to the status.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GaugeStatus {
    #[serde(default)]
    value: Option<u32>,
    #[serde(default)]
    observed_generation: i64,
    #[serde(default)]
    conditions: Conditions,
}

fn operator() -> Operator {
    let controller = Controller::new(reconcile).max_concurrent_reconciles(16);
    Operator::new("gauge-operator")
        .crd::<Gauge>()
        .controller(controller)
}

async fn reconcile(gauge: Arc<Gauge>, cx: Context) -> Result<Action> {
    cx.update_status(&gauge, |status| status.value = Some(gauge.spec.value))
        .await?;
    Ok(Action::await_change())
}

fn name(n: usize) -> String {
    format!("gauge-{n:05}")
}

/// Edits, creates and deletes gauges at random for a while.
async fn edit(client: &Client, namespace: &str, objects: usize, dice: &mut Random) -> Result {
    let end = tokio::time::Instant::now() + EDITS;
    let pause = EDITS / u32::try_from(objects).unwrap_or(u32::MAX);
    while tokio::time::Instant::now() < end {
        let key = (
            namespace.to_owned(),
            name(dice.below(objects as u64) as usize),
        );
        if dice.percent(3) {
            client
                .delete_with::<Gauge>(key.clone(), &DeleteOptions::default())
                .await?;
            client.create(&gauge(namespace, &key.1, 7)).await?;
        } else {
            let value = json!({"spec": {"value": dice.below(1000)}});
            client.patch::<Gauge>(key, Patch::Merge(&value)).await?;
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

fn gauge(namespace: &str, name: &str, value: u32) -> Gauge {
    let mut gauge = Gauge::new(name, GaugeSpec { value });
    gauge.metadata.namespace = Some(namespace.to_owned());
    gauge
}

/// Returns the number of gauges whose status does not match the spec.
async fn wrong(client: &Client) -> Result<usize> {
    let gauges = client.list_all::<Gauge>(&ListOptions::new()).await?;
    let is_wrong = |gauge: &&Gauge| {
        let status = gauge.status.clone().unwrap_or_default();
        status.value != Some(gauge.spec.value)
            || Some(status.observed_generation) != gauge.metadata.generation
    };
    Ok(gauges.items.iter().filter(is_wrong).count())
}

/// Waits until all gauges match. The backoff of an object is limited by the number of its
/// consecutive failures, of which there are few if 5 % of the requests fail.
async fn converged(client: &Client) -> Result {
    for _ in 0..200 {
        if wrong(client).await? == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let wrong = wrong(client).await?;
    Err(Error::msg(format!(
        "{wrong} gauges do not match their spec"
    )))
}

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn all_statuses_match_after_faults_and_nothing_leaks() -> opkit::Result {
    let objects = std::env::var("OPKIT_SOAK_OBJECTS").ok();
    let objects = objects.map_or(OBJECTS, |objects| objects.parse().unwrap());
    let plane = ControlPlane::embedded()?;
    plane.require(Capability::OwnServer)?;
    plane.install(&operator()).await?;
    let (client, namespace) = (Client::new(plane.client()), plane.namespace().to_owned());
    for n in 0..objects {
        client.create(&gauge(&namespace, &name(n), 1)).await?;
    }
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks_before = metrics.num_alive_tasks();

    let faults = Faults::new(7);
    let mut options = RunOptions::default();
    let (mut ready, registry) = (options.ready.subscribe(), options.metrics.clone());
    options.grace_period = Duration::from_secs(30);
    let stop = CancellationToken::new();
    let mut operators = JoinSet::new();
    let run = operator().run_with(faults.around(plane.client()), options, stop.clone());
    operators.spawn(run);
    ready.wait_for(|ready| *ready).await?;

    let mut dice = Random::new(11);
    edit(&client, &namespace, objects, &mut dice).await?;
    converged(&client).await?;
    let (tasks, resident) = (metrics.num_alive_tasks(), resident_kib());
    edit(&client, &namespace, objects, &mut dice).await?;
    converged(&client).await?;

    // The same work once more does not take more tasks, watches or memory.
    assert_eq!(faults.watches(), 1, "one watch of one kind");
    let now = metrics.num_alive_tasks();
    assert!(now <= tasks + 2, "{tasks} tasks became {now}");
    let grown = resident_kib().saturating_sub(resident);
    assert!(
        grown < resident / 4 + 32 * 1024,
        "{resident} KiB grew by {grown}"
    );
    let metrics_text = registry.encode();
    let depth = r#"workqueue_depth{name="gauge",controller="gauge",priority="0"} 0"#;
    assert!(metrics_text.contains(depth), "{metrics_text}");
    let (failed, conflicts, cut) = faults.count();
    assert!(
        failed > 0 && conflicts > 0 && cut > 0,
        "there were faults of each type"
    );

    stop.cancel();
    operators.join_next().await.unwrap()??;
    drop(operators);
    assert_eq!(faults.watches(), 0);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let after = metrics.num_alive_tasks();
    assert!(
        after <= tasks_before + 2,
        "{tasks_before} tasks before, {after} after"
    );
    plane.shutdown().await
}
