//! The shop operator: six kinds of children, applied in order, and a second controller.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::{Value, json};
use shop_operator::{Database, SHOP, Shop, ShopSpec, operator};

use super::{RunningOperator, condition, golden_rules, merge, object};

pub(super) fn shop() -> Shop {
    let spec = ShopSpec {
        image: "nginx:1.27".into(),
        replicas: 2,
        sale: false,
        config_map: "settings".into(),
        database: Some(Database {
            image: "postgres:17".into(),
        }),
        host: Some("one.example.com".into()),
    };
    Shop::new("one", spec)
}

pub(super) fn settings(currency: &str) -> ConfigMap {
    object(json!({"metadata": {"name": "settings"}, "data": {"CURRENCY": currency}}))
}

fn ready(shop: &Shop) -> Option<(bool, &str)> {
    let conditions = shop.status.as_ref().map(|status| &status.conditions);
    condition(shop.metadata.generation, conditions, "Ready")
}

pub(super) fn waits_for(child: &str) -> impl Fn(&Shop) -> bool {
    let reason = format!("WaitingFor{child}");
    move |shop| ready(shop) == Some((false, reason.as_str()))
}

/// Reports whether the shop is open and has all web servers.
pub(super) fn is_settled(shop: &Shop) -> bool {
    let conditions = shop.status.as_ref().map(|status| &status.conditions);
    let scaled = condition(shop.metadata.generation, conditions, "Scaled");
    shop.is_ready() && scaled.is_some_and(|(scaled, _)| scaled)
}

/// Sets the database to ready: the embedded control plane has no StatefulSet controller; real
/// control planes do.
pub(super) async fn run_database(plane: &ControlPlane) -> opkit::Result {
    if plane.require(Capability::OwnServer).is_err() {
        return Ok(());
    }
    let status = json!({"status": {
        "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1,
        "availableReplicas": 1,
    }});
    let api: Api<StatefulSet> = Api::default_namespaced(plane.client());
    let params = PatchParams::default();
    api.patch_status("one-database", &params, &Patch::Merge(status))
        .await?;
    Ok(())
}

/// Starts the operator with all objects that the shop needs, and waits until it is open.
async fn open(plane: &ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(settings("EUR")).await?;
    plane.apply(shop()).await?;
    plane
        .eventually("one-database", |_: &StatefulSet| true)
        .await?;
    run_database(plane).await?;
    plane.eventually("one", is_settled).await?;
    Ok(())
}

#[opkit::test]
async fn children_are_applied_in_order(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(shop()).await?;
    plane.eventually("one", waits_for("ConfigMap")).await?;
    assert!(plane.get::<Service>("one").await?.is_none());

    plane.apply(settings("EUR")).await?;
    if plane.require(Capability::OwnServer).is_ok() {
        // The shop waits until the test sets the database to ready.
        plane.eventually("one", waits_for("Database")).await?;
        assert!(plane.get::<Service>("one").await?.is_some());
        assert!(plane.get::<Deployment>("one").await?.is_none());
    }
    plane
        .eventually("one-database", |_: &StatefulSet| true)
        .await?;
    run_database(&plane).await?;
    plane.eventually("one", is_settled).await?;
    assert!(plane.get::<ServiceAccount>("one").await?.is_some());
    assert!(plane.get::<PodDisruptionBudget>("one").await?.is_some());
    assert!(plane.get::<Ingress>("one").await?.is_some());

    plane.delete::<Shop>("one").await?;
    plane.eventually_gone::<Deployment>("one").await?;
    plane.eventually_gone::<StatefulSet>("one-database").await?;
    plane.eventually_gone::<Ingress>("one").await
}

#[opkit::test]
async fn children_that_the_spec_drops_are_pruned(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    open(&plane).await?;
    let off = json!({"spec": {"host": null, "database": null}});
    merge::<Shop>(&plane, "one", off).await?;
    plane.eventually_gone::<Ingress>("one").await?;
    plane.eventually_gone::<StatefulSet>("one-database").await?;
    plane.eventually("one", is_settled).await?;
    assert!(plane.get::<Service>("one").await?.is_some());
    Ok(())
}

#[opkit::test]
async fn settings_and_pull_secrets_reach_the_pods(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    open(&plane).await?;
    plane.apply(settings("SEK")).await?;
    let currency = |web: &Deployment| -> Option<String> {
        let pod = web.spec.as_ref()?.template.spec.as_ref()?;
        pod.containers.first()?.env.as_ref()?.first()?.value.clone()
    };
    plane
        .eventually("one", |web: &Deployment| {
            currency(web).as_deref() == Some("SEK")
        })
        .await?;

    let secret = |shop: Option<&str>| -> Value {
        json!({"metadata": {"name": "pull", "labels": shop.map(|shop| json!({SHOP: shop}))}})
    };
    let pulls = |account: &ServiceAccount| account.image_pull_secrets.iter().flatten().count();
    plane.apply(object::<Secret>(secret(Some("one")))).await?;
    plane
        .eventually("one", |account: &ServiceAccount| pulls(account) == 1)
        .await?;
    // The label is removed: the map function is called with the Secret before and after.
    plane.apply(object::<Secret>(secret(None))).await?;
    plane
        .eventually("one", |account: &ServiceAccount| pulls(account) == 0)
        .await?;
    Ok(())
}

#[opkit::test]
async fn the_scaler_keeps_its_own_field_and_condition(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    open(&plane).await?;
    let replicas = |web: &Deployment| web.spec.as_ref().and_then(|spec| spec.replicas);
    assert_eq!(
        replicas(&plane.get::<Deployment>("one").await?.unwrap()),
        Some(2)
    );

    let sale = json!({"spec": {"sale": true, "image": "nginx:1.28"}});
    merge::<Shop>(&plane, "one", sale).await?;
    // Both controllers write: one owns the template, the other the number of replicas.
    plane
        .eventually("one", |web: &Deployment| {
            replicas(web) == Some(4) && web.is_ready()
        })
        .await?;
    let shop = plane.eventually("one", is_settled).await?;
    assert_eq!(
        shop.status.as_ref().map(|status| status.ready_replicas),
        Some(4)
    );
    let entries = shop.metadata.managed_fields.iter().flatten();
    let mut managers: Vec<_> = entries
        .filter(|entry| entry.subresource.as_deref() == Some("status"))
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    managers.sort();
    managers.dedup();
    assert_eq!(managers, ["shop-operator.scaler", "shop-operator.shop"]);
    Ok(())
}

#[opkit::test]
async fn a_service_of_another_client_is_reported_and_kept(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(settings("EUR")).await?;
    let foreign: Service = object(json!({
        "metadata": {"name": "one"}, "spec": {"ports": [{"port": 443}]},
    }));
    let foreign = plane.apply(foreign).await?;
    plane.apply(shop()).await?;
    let refused = plane
        .eventually("one", |shop: &Shop| {
            ready(shop) == Some((false, "NameTaken"))
        })
        .await?;
    let status = refused.status.unwrap();
    let message = &status.conditions.get("Ready").unwrap().message;
    let want = format!(
        "Service {}/one exists and is not controlled by",
        plane.namespace()
    );
    assert!(message.starts_with(&want), "{message}");
    let same = plane.get::<Service>("one").await?.unwrap();
    assert_eq!(same.spec, foreign.spec);
    assert!(plane.get::<StatefulSet>("one-database").await?.is_none());
    Ok(())
}

#[opkit::test]
async fn a_restart_writes_nothing(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let running = RunningOperator::start(&plane, operator(), &[]).await?;
    plane.apply(settings("EUR")).await?;
    plane.apply(shop()).await?;
    plane
        .eventually("one-database", |_: &StatefulSet| true)
        .await?;
    run_database(&plane).await?;
    plane.eventually("one", is_settled).await?;
    running.stop().await?;

    let running = RunningOperator::start(&plane, operator(), &[]).await?;
    let again =
        |_: &Shop| running.has_reconciled("shop", "one") && running.has_reconciled("scaler", "one");
    plane.eventually("one", again).await?;
    assert_eq!(running.writes(), [""; 0]);
    running.stop().await
}

#[test]
fn the_permissions_are_least_privilege() -> opkit::Result {
    golden_rules(&operator())
}
