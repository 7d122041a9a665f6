//! Webhooks of an operator, called by the control plane: in process by the embedded server, over
//! HTTPS by real Kubernetes.

mod auth;
mod builtin;
mod own_certificates;
mod policies;
mod replicas;
mod shop;

use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use opkit::prelude::*;
use opkit::webhook::{FailurePolicy, Operation};
use serde_json::{Value, json};

use crate::waiting::until;

/// A gadget.
#[opkit::kind(group = "webhooks.opkit.dev", version = "v1", namespaced, status = GadgetStatus)]
pub(crate) struct GadgetSpec {
    /// Size of the gadget.
    #[opkit(default = 1)]
    pub size: i32,
    /// Colour of the gadget.
    pub colour: Option<String>,
    /// Any text.
    pub note: Option<String>,
}

/// Observed state of a gadget.
#[opkit::status]
pub(crate) struct GadgetStatus {
    /// Wear of the gadget.
    pub wear: i32,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// Conditions of the gadget.
    pub conditions: Conditions,
}

fn set_defaults(gadget: &mut Gadget) {
    if gadget.spec.colour.is_none() {
        gadget.spec.colour = Some(if gadget.spec.size > 5 { "red" } else { "blue" }.to_owned());
    }
}

fn check(gadget: &Gadget, old: Option<&Gadget>) -> Admission {
    let mut admission = Admission::allowed();
    if old.is_some_and(|old| gadget.spec.size < old.spec.size) {
        admission.invalid("spec.size", gadget.spec.size, "may not shrink");
    }
    match gadget.spec.note.as_deref() {
        Some("warn") => drop(admission.warn("a note is a warning")),
        Some("panic") => panic!("the note is a panic"),
        _ => {}
    }
    admission
}

fn check_delete(gadget: &Gadget) -> Admission {
    Admission::allowed_if(gadget.spec.size < 100, "a large gadget stays")
}

/// Refuses gadgets while there is a ConfigMap `closed`, and reports what it was asked.
async fn check_open(request: AdmissionRequest<Gadget>, cx: WebhookContext) -> Result<Admission> {
    let closed = cx.get::<ConfigMap>("closed")?;
    let mut admission = Admission::allowed_if(closed.is_none(), "the shop is closed");
    if request.is_dry_run() {
        admission.warn(format!(
            "dry run of {} by {:?}",
            request.operation(),
            request.name()
        ));
    }
    Ok(admission)
}

fn check_status(gadget: &Gadget, _: Option<&Gadget>) -> Admission {
    let wear = gadget.status.as_ref().map_or(0, |status| status.wear);
    let mut admission = Admission::allowed();
    if wear < 0 {
        admission.invalid("status.wear", wear, "must not be negative");
    }
    admission
}

fn webhook() -> Webhook<Gadget> {
    Webhook::new()
        .defaulting(set_defaults)
        .validating(check)
        .validating_delete(check_delete)
        .validating_with(check_open)
        .reads::<ConfigMap>()
}

fn operator() -> Operator {
    Operator::new("gadget-operator")
        .crd::<Gadget>()
        .webhook(webhook())
        .webhook(
            Webhook::new()
                .validating(check_status)
                .subresource("status"),
        )
}

fn gadget(size: i32, note: Option<&str>) -> Gadget {
    let spec = GadgetSpec {
        size,
        colour: None,
        note: note.map(str::to_owned),
    };
    Gadget::new("one", spec)
}

fn gadgets(plane: &ControlPlane) -> Api<Gadget> {
    Api::namespaced(plane.client(), plane.namespace())
}

/// Sends a request with a JSON body, and returns the status, the warnings and the response.
async fn send(
    plane: &ControlPlane,
    method: &str,
    path: &str,
    body: &Value,
) -> opkit::Result<(u16, Vec<String>, Value)> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(body)?.into())?;
    let response = plane.client().send(request).await?;
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|it| it.to_str().unwrap().to_owned()).collect();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, warnings, serde_json::from_slice(&body)?))
}

fn path(plane: &ControlPlane) -> String {
    let namespace = plane.namespace();
    format!("/apis/webhooks.opkit.dev/v1/namespaces/{namespace}/gadgets")
}

/// Returns a gadget as a client sends it.
fn sent(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "webhooks.opkit.dev/v1", "kind": "Gadget", "metadata": {"name": name},
        "spec": spec,
    })
}

#[opkit::test]
async fn defaults_are_set_and_updates_are_checked(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let created = plane.apply(gadget(7, None)).await?;
    assert_eq!(created.spec.colour.as_deref(), Some("red"));
    let grown = plane.apply(gadget(8, None)).await?;
    assert_eq!(grown.spec.size, 8);

    let refusal = plane.apply(gadget(2, None)).await.unwrap_err();
    assert!(refusal.is_invalid(), "{refusal}");
    assert!(
        refusal
            .to_string()
            .contains("spec.size: Invalid value: 2: may not shrink")
    );
    let body = json!({"spec": {"size": 2}});
    let merge = Patch::Merge(body);
    let refusal = gadgets(&plane)
        .patch("one", &PatchParams::default(), &merge)
        .await;
    let Err(kube::Error::Api(status)) = refusal else {
        panic!("{refusal:?}")
    };
    let details = status.details.clone().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(details.causes[0].field, "spec.size");
    assert_eq!(details.causes[0].reason, "FieldValueInvalid");
    assert_eq!(details.name, "one");
    let prefix = "admission webhook \"validate.gadget.v1.webhooks.opkit.dev\" denied the request: ";
    assert!(status.message.starts_with(prefix), "{}", status.message);
    Ok(())
}

#[opkit::test]
async fn a_deletion_is_checked(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(gadget(100, None)).await?;
    let refusal = plane.delete::<Gadget>("one").await.unwrap_err().to_string();
    assert!(refusal.contains("a large gadget stays"), "{refusal}");
    let small = Gadget {
        metadata: kube::core::ObjectMeta {
            name: Some("two".into()),
            ..Default::default()
        },
        ..gadget(1, None)
    };
    plane.apply(small).await?;
    plane.delete::<Gadget>("two").await?;
    Ok(())
}

#[opkit::test]
async fn warnings_and_dry_runs_reach_the_functions(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let dry = format!("{}?dryRun=All", path(&plane));
    let body = sent("dry", json!({"note": "warn"}));
    let (status, warnings, created) = send(&plane, "POST", &dry, &body).await?;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["spec"]["colour"], "blue");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("a note is a warning"), "{warnings:?}");
    assert!(warnings[1].contains("dry run of CREATE"), "{warnings:?}");
    assert!(plane.get::<Gadget>("dry").await?.is_none());
    Ok(())
}

#[opkit::test]
async fn a_panic_refuses_the_request_and_the_next_is_served(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let body = sent("one", json!({"note": "panic"}));
    let (status, _, refused) = send(&plane, "POST", &path(&plane), &body).await?;
    assert_eq!(status, 500, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("panic: the note is a panic [recovered]"),
        "{message}"
    );
    plane.apply(gadget(1, None)).await?;
    Ok(())
}

#[opkit::test]
async fn a_panic_passes_where_failures_are_ignored(plane: ControlPlane) -> opkit::Result {
    let webhook = Webhook::new()
        .validating(check)
        .failure_policy(FailurePolicy::Ignore);
    plane
        .start(
            Operator::new("gadget-operator")
                .crd::<Gadget>()
                .webhook(webhook),
        )
        .await?;
    let body = sent("one", json!({"note": "panic"}));
    let (status, warnings, created) = send(&plane, "POST", &path(&plane), &body).await?;
    assert_eq!(status, 201, "{created}");
    assert!(warnings[0].contains("the note is a panic"), "{warnings:?}");
    Ok(())
}

#[opkit::test]
async fn an_object_that_is_being_deleted_can_lose_its_finalizer(
    plane: ControlPlane,
) -> opkit::Result {
    // An invalid object is stored before the webhook exists.
    plane.install(&operator()).await?;
    let mut invalid = gadget(-1, Some("panic"));
    invalid.metadata.finalizers = Some(vec!["opkit.dev/test".to_owned()]);
    plane.apply(invalid).await?;
    plane.start(operator()).await?;
    plane.delete::<Gadget>("one").await?;
    let remove = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    gadgets(&plane)
        .patch("one", &PatchParams::default(), &remove)
        .await?;
    plane.eventually_gone::<Gadget>("one").await
}

#[opkit::test]
async fn a_function_reads_the_cache(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(gadget(1, None)).await?;
    let mut closed = ConfigMap::default();
    closed.metadata.name = Some("closed".to_owned());
    plane.apply(closed).await?;
    let refused = async || {
        let applied = plane.apply(gadget(2, None)).await;
        applied.is_err_and(|error| error.to_string().contains("the shop is closed"))
    };
    // The cache is a moment behind.
    until("the shop is closed", refused).await;
    plane.delete::<ConfigMap>("closed").await?;
    let admitted = async || plane.apply(gadget(3, None)).await.is_ok();
    until("the shop is open", admitted).await;
    Ok(())
}

#[opkit::test]
async fn a_subresource_has_a_webhook_of_its_own(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(gadget(1, None)).await?;
    let patch = |wear: i32| Patch::Merge(json!({"status": {"wear": wear, "conditions": []}}));
    let (api, params) = (gadgets(&plane), PatchParams::default());
    api.patch_status("one", &params, &patch(1)).await?;
    let refusal = api
        .patch_status("one", &params, &patch(-1))
        .await
        .unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("status.wear: Invalid value: -1"),
        "{refusal}"
    );
    Ok(())
}

#[opkit::test]
async fn match_conditions_and_operations_select_requests(plane: ControlPlane) -> opkit::Result {
    let webhook = Webhook::new()
        .validating(|_: &Gadget, _| Admission::denied("never"))
        .operations([Operation::Create])
        .match_condition("named", "object.metadata.name.startsWith('bad')");
    plane
        .start(
            Operator::new("gadget-operator")
                .crd::<Gadget>()
                .webhook(webhook),
        )
        .await?;
    plane.apply(gadget(1, None)).await?;
    plane.apply(gadget(2, None)).await?;
    let body = sent("bad", json!({}));
    let (status, _, refused) = send(&plane, "POST", &path(&plane), &body).await?;
    assert_eq!(status, 403, "{refused}");
    let api = gadgets(&plane);
    let created = api
        .create(
            &PostParams::default(),
            &Gadget::new("good", gadget(1, None).spec),
        )
        .await?;
    // No webhook sets defaults here.
    assert_eq!(created.spec.colour, None);
    Ok(())
}
