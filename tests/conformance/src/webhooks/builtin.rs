//! Webhooks of kinds that are not the operator's own.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::{EvictParams, PostParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use opkit::client::Kind;

use super::*;

fn pod(name: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn add_label(pod: &mut Pod) {
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert("checked".to_owned(), "yes".to_owned());
}

fn check_host_network(pod: &Pod, _: Option<&Pod>) -> Admission {
    let spec = pod.spec.as_ref();
    let is_host = spec.and_then(|spec| spec.host_network).unwrap_or_default();
    let mut admission = Admission::allowed();
    if is_host {
        admission.forbidden("spec.hostNetwork", "pods have their own network here");
    }
    admission
}

#[opkit::test]
async fn pods_have_webhooks(plane: ControlPlane) -> opkit::Result {
    let webhook = Webhook::new()
        .defaulting(add_label)
        .validating(check_host_network);
    let eviction = Webhook::<Eviction>::new()
        .validating(|_, _| Admission::denied("this pod stays"))
        .subresource_of::<Pod>("eviction");
    let operator = Operator::new("pod-operator")
        .webhook(webhook)
        .webhook(eviction);
    plane.start(operator).await?;
    let pods: Api<Pod> = Api::namespaced(plane.client(), plane.namespace());
    let created = pods.create(&PostParams::default(), &pod("one")).await?;
    assert_eq!(created.metadata.labels.unwrap()["checked"], "yes");
    let mut host = pod("two");
    host.spec.as_mut().unwrap().host_network = Some(true);
    let refusal = pods
        .create(&PostParams::default(), &host)
        .await
        .unwrap_err();
    assert!(
        refusal.to_string().contains("spec.hostNetwork: Forbidden"),
        "{refusal}"
    );
    let refusal = pods
        .evict("one", &EvictParams::default())
        .await
        .unwrap_err();
    assert!(refusal.to_string().contains("this pod stays"), "{refusal}");
    Ok(())
}

#[opkit::test]
async fn fields_that_the_type_does_not_know_stay(plane: ControlPlane) -> opkit::Result {
    type Meta = PartialObjectMeta<ConfigMap>;
    let webhook = Webhook::new().defaulting(|map: &mut Meta| {
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert("seen".to_owned(), "yes".to_owned());
    });
    plane
        .start(Operator::new("map-operator").webhook(webhook))
        .await?;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("one".to_owned());
    map.data = Some([("a".to_owned(), "b".to_owned())].into());
    map.immutable = Some(true);
    let created = plane.apply(map).await?;
    assert_eq!(created.metadata.annotations.unwrap()["seen"], "yes");
    assert_eq!(created.data.unwrap()["a"], "b");
    assert_eq!(created.immutable, Some(true));
    Ok(())
}

#[opkit::test]
async fn a_kind_may_be_known_only_at_run_time(plane: ControlPlane) -> opkit::Result {
    let check = |object: &DynamicObject, _: Option<&DynamicObject>| {
        Admission::allowed_if(object.data["data"]["bad"].is_null(), "it is bad")
    };
    let webhook = Webhook::dynamic(Kind::of::<ConfigMap>()).validating(check);
    plane
        .start(Operator::new("map-operator").webhook(webhook))
        .await?;
    let map = |key: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("one".to_owned());
        map.data = Some([(key.to_owned(), String::new())].into());
        map
    };
    plane.apply(map("good")).await?;
    let refusal = plane.apply(map("bad")).await.unwrap_err().to_string();
    assert!(refusal.contains("it is bad"), "{refusal}");
    Ok(())
}
