//! An operator with children in another namespace that crashes at each of its writes: no child is
//! left.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::WRITES;
use super::point::{Crash, CrashPoint};

const ELSEWHERE: &str = "elsewhere";

/// Returns an operator that applies a secret for each name in the map `team`.
fn operator() -> Operator {
    let controller = Controller::new(async |map: Arc<ConfigMap>, cx: Context| {
        for name in names(&map) {
            let mut secret = Secret::default();
            secret.metadata.name = Some(name);
            secret.metadata.namespace = Some(ELSEWHERE.to_owned());
            cx.apply_unowned(secret).await?;
        }
        cx.prune().await?;
        Ok::<_, Error>(Action::await_change())
    });
    Operator::new("team-operator")
        .cross_namespace::<Secret>(|_, _| true)
        .controller(controller.applies_unowned::<Secret>())
}

fn names(map: &ConfigMap) -> Vec<String> {
    let children = map
        .data
        .iter()
        .flatten()
        .find(|(key, _)| *key == "children");
    let names = children.into_iter().flat_map(|(_, names)| names.split(' '));
    names.map(str::to_owned).collect()
}

/// Changes the owner to two children, one child, no child, and deletes it. Continues where it was
/// dropped.
async fn change_and_delete_owner(plane: ControlPlane) -> opkit::Result {
    let exists = |_: &Secret| true;
    let team = plane.get::<ConfigMap>("team").await?;
    let is_alive = |map: &&ConfigMap| map.metadata.deletion_timestamp.is_none();
    if let Some(team) = team.as_ref().filter(is_alive) {
        if names(team).len() == 2 {
            plane.eventually((ELSEWHERE, "a"), exists).await?;
            plane.eventually((ELSEWHERE, "b"), exists).await?;
        }
        let api: Api<ConfigMap> = Api::default_namespaced(plane.client());
        let less = Patch::Merge(json!({"data": {"children": "b"}}));
        api.patch("team", &PatchParams::default(), &less).await?;
        plane.eventually_gone::<Secret>((ELSEWHERE, "a")).await?;
        plane.eventually((ELSEWHERE, "b"), exists).await?;
        plane.delete::<ConfigMap>("team").await?;
    }
    plane.eventually_gone::<ConfigMap>("team").await
}

/// Returns whether the operator crashed, and the number of secrets that were left.
async fn run(point: CrashPoint) -> opkit::Result<(bool, usize)> {
    let plane = ControlPlane::embedded()?;
    let elsewhere = json!({"metadata": {"name": ELSEWHERE}});
    plane
        .apply(serde_json::from_value::<Namespace>(elsewhere)?)
        .await?;
    let team = json!({"metadata": {"name": "team"}, "data": {"children": "a b"}});
    plane
        .apply(serde_json::from_value::<ConfigMap>(team)?)
        .await?;
    let crash = Crash::at(point);
    let client = crash.around(plane.client());
    let first = operator().run_with(client, RunOptions::default(), CancellationToken::new());
    // Dropping the operator's future simulates the crash.
    tokio::select! {
        ended = first => return Err(Error::msg(format!("the operator stopped: {ended:?}"))),
        () = crash.happened() => {}
        done = change_and_delete_owner(plane.clone()) => { done?; }
    }
    plane.start(operator()).await?;
    change_and_delete_owner(plane.clone()).await?;
    let api: Api<Secret> = Api::namespaced(plane.client(), ELSEWHERE);
    let left = api.list(&Default::default()).await?.items.len();
    plane.shutdown().await?;
    Ok((crash.has_happened(), left))
}

/// Only embedded, for the same reason as the other crash test.
#[opkit::test]
async fn a_crash_at_any_write_leaves_no_child_behind(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    let mut crashes = 0;
    for number in 1..WRITES {
        let mut happened = false;
        for point in [CrashPoint::Before(number), CrashPoint::After(number)] {
            let (crashed, left) = run(point).await?;
            assert_eq!(left, 0, "after a crash {point:?}");
            happened |= crashed;
            crashes += usize::from(crashed);
        }
        if !happened {
            break;
        }
    }
    // At least the writes of records, children and deletions.
    assert!(crashes >= 16, "only {crashes} crashes happened");
    Ok(())
}
