//! Webhooks that respond as they should.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::events::v1::Event as NewEvent;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::server::{WebhookServer, allow, patch};
use super::{Registered, config_map, create};

/// The requests to webhooks on Kubernetes 1.36.3, normalized.
const REQUESTS: &str = include_str!("requests.json");

/// Replaces what differs from run to run in the request to a webhook.
fn normalize(plane: &ControlPlane, request: &Value) -> Value {
    let text = request.to_string().replace(plane.namespace(), "NAMESPACE");
    let mut request: Value = serde_json::from_str(&text).unwrap();
    let fields = request.as_object_mut().unwrap();
    fields.remove("uid");
    fields.remove("userInfo");
    for object in ["object", "oldObject"] {
        let Some(metadata) = fields
            .get_mut(object)
            .and_then(|object| object.get_mut("metadata"))
        else {
            continue;
        };
        let metadata = metadata.as_object_mut().unwrap();
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "name",
        ] {
            match metadata.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::String(name)) if field == "name" && !name.contains("generated-") => {}
                Some(_) => drop(metadata.insert(field.to_owned(), json!("SET"))),
            }
        }
    }
    let name = fields.get("name").and_then(Value::as_str);
    if name.is_some_and(|name| name.contains("generated-")) {
        fields.insert("name".to_owned(), json!("SET"));
    }
    // A real server sends empty objects where this one sends nothing.
    fields.retain(|_, value| !value.is_null());
    request
}

#[opkit::test]
async fn webhooks_get_the_requests_of_kubernetes(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|_, _| allow()).await;
    let webhook = |path| [(path, json!({}))];
    let registered =
        Registered::create(&plane, &server, &webhook("/admit"), &webhook("/validate")).await?;
    let seen = |path: &str| server.requests(path).len();
    let (admitted, validated) = (seen("/admit"), seen("/validate"));

    let api: Api<ConfigMap> = Api::namespaced(plane.client(), plane.namespace());
    let create = PostParams::default();
    let mut generated = config_map("", json!({"a": "b"}));
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("generated-".to_owned());
    api.create(&create, &generated).await?;
    let dry = PostParams {
        dry_run: true,
        field_manager: Some("tester".to_owned()),
    };
    api.create(&dry, &config_map("dry", json!({}))).await?;
    let mut map = api.create(&create, &config_map("one", json!({}))).await?;
    map.data = Some([("c".to_owned(), "d".to_owned())].into());
    api.replace("one", &PostParams::default(), &map).await?;
    let merge = Patch::Merge(json!({"data": {"e": "f"}}));
    api.patch("one", &PatchParams::default(), &merge).await?;
    let applied = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"g": "h"},
    }));
    api.patch("two", &PatchParams::apply("applier").force(), &applied)
        .await?;
    api.delete("one", &DeleteParams::background()).await?;
    let two = ListParams::default().fields("metadata.name=two");
    api.delete_collection(&DeleteParams::default(), &two)
        .await?;
    registered.remove().await?;

    let requests = |path: &str, skipped: usize| -> Vec<Value> {
        let requests = server.requests(path);
        // kube-controller-manager writes this ConfigMap at any time.
        let is_own = |request: &&Value| request["name"] != "kube-root-ca.crt";
        let requests = requests.iter().skip(skipped).filter(is_own);
        requests.map(|request| normalize(&plane, request)).collect()
    };
    let found = json!({
        "admit": requests("/admit", admitted), "validate": requests("/validate", validated),
    });
    let wanted: Value = serde_json::from_str(REQUESTS)?;
    if std::env::var_os("OPKIT_BLESS").is_some() {
        std::fs::write(
            "src/admission/requests.json",
            serde_json::to_string_pretty(&found)? + "\n",
        )?;
        return Ok(());
    }
    for sort in ["admit", "validate"] {
        let (found, wanted) = (
            found[sort].as_array().unwrap(),
            wanted[sort].as_array().unwrap(),
        );
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!(found, wanted, "found {found}\nwanted {wanted}");
        }
        assert_eq!(found.len(), wanted.len());
    }
    Ok(())
}

#[opkit::test]
async fn a_later_change_calls_a_webhook_again(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let add = |label: &str| {
        let path = format!("/metadata/labels/{label}");
        patch(&json!([
            {"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}},
            {"op": "add", "path": path, "value": "yes"},
        ]))
    };
    let server = WebhookServer::start(move |path, request| {
        let labels = &request["object"]["metadata"]["labels"];
        match path {
            "/a" | "/b" => allow(),
            "/c" if labels["c"].is_null() => add("c"),
            _ => allow(),
        }
    });
    let server = server.await;
    let if_needed = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = [("/a", if_needed), ("/b", json!({})), ("/c", json!({}))];
    let registered = Registered::create(&plane, &server, &webhooks, &[]).await?;
    let created = create(&plane, "one").await.unwrap();
    registered.remove().await?;
    let calls = |path: &str| {
        let requests = server.requests(path);
        requests
            .iter()
            .filter(|request| request["name"] == "one")
            .count()
    };
    assert_eq!((calls("/a"), calls("/b"), calls("/c")), (2, 1, 1));
    assert_eq!(created.metadata.labels.unwrap()["c"], "yes");
    Ok(())
}

#[opkit::test]
async fn a_webhook_with_side_effects_refuses_a_dry_run(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|_, _| allow()).await;
    let webhooks = [(
        "/effects",
        json!({
            "sideEffects": "NoneOnDryRun",
            "matchConditions": [{"name": "named", "expression": "object.metadata.name != 'skipped'"}],
        }),
    )];
    let registered = Registered::create(&plane, &server, &[], &webhooks).await?;
    let api: Api<ConfigMap> = Api::namespaced(plane.client(), plane.namespace());
    let dry = PostParams {
        dry_run: true,
        field_manager: None,
    };
    for name in ["one", "skipped"] {
        api.create(&dry, &config_map(name, json!({}))).await?;
    }
    registered.remove().await?;
    let requests = server.requests("/effects");
    let dry: Vec<&Value> = requests
        .iter()
        .filter(|request| request["dryRun"] == true)
        .collect();
    assert_eq!(dry.len(), 1);
    assert_eq!(dry[0]["name"], "one");
    Ok(())
}

#[opkit::test]
async fn a_condition_with_an_error_refuses_the_request(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|_, _| allow()).await;
    let webhooks = [(
        "/condition",
        json!({
            "matchConditions": [{"name": "missing", "expression": "object.data.missing == 'x'"}],
        }),
    )];
    let registered = Registered::create(&plane, &server, &[], &webhooks).await?;
    let refused = create(&plane, "one").await.unwrap_err();
    registered.remove().await?;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "configmaps \"one\" is forbidden: expression 'object.data.missing == 'x'' resulted in \
         error: no such key: data"
    );
    Ok(())
}

/// A rule for events of the core group selects those of the newer group, too.
#[opkit::test]
async fn an_equivalent_resource_is_converted(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|path, _| match path {
        "/events" => patch(&json!([{"op": "add", "path": "/message", "value": "changed"}])),
        _ => allow(),
    });
    let server = server.await;
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["events"],
    });
    let webhooks = [("/events", json!({"rules": [rule]})), ("/maps", json!({}))];
    let registered = Registered::create(&plane, &server, &webhooks, &[]).await?;
    let namespace = plane.namespace();
    let event: NewEvent = serde_json::from_value(json!({
        "metadata": {"name": "one"}, "note": "sent", "reason": "Tested", "action": "Test",
        "type": "Normal", "reportingController": "example.com/test", "reportingInstance": "one",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Namespace", "name": namespace, "namespace": namespace},
    }))?;
    let events: Api<NewEvent> = Api::namespaced(plane.client(), namespace);
    let created = events.create(&PostParams::default(), &event).await?;
    registered.remove().await?;
    assert_eq!(created.note.as_deref(), Some("changed"));
    let requests = server.requests("/events");
    let request = requests
        .iter()
        .find(|request| request["name"] == "one")
        .unwrap();
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "Event"})
    );
    assert_eq!(request["requestKind"]["group"], "events.k8s.io");
    assert_eq!(request["object"]["apiVersion"], "v1");
    assert_eq!(request["object"]["message"], "sent");
    let stored: Option<Event> = plane.get("one").await?;
    assert_eq!(stored.unwrap().message.as_deref(), Some("changed"));
    Ok(())
}

/// kube-controller-manager checks the types of expressions against the kinds that a policy selects.
#[opkit::test]
async fn wrong_types_in_a_policy_are_reported_in_its_status(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    plane.require(Capability::ControllerManager)?;
    let name = plane.namespace().to_owned();
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                "resources": ["deployments", "replicasets"],
            }]},
            "variables": [{"name": "replicas", "expression": "object.spec.replicas"}],
            "validations": [
                {"expression": "object.spec.replica > 1"},
                {"expression": "variables.replicas == 'one'", "messageExpression": "string(object.kind)"},
            ],
        },
    }))?;
    let api: Api<ValidatingAdmissionPolicy> = Api::all(plane.client());
    api.create(&PostParams::default(), &policy).await?;
    let is_checked = |policy: &ValidatingAdmissionPolicy| {
        let status = policy.status.as_ref();
        status.is_some_and(|status| status.observed_generation == Some(1))
    };
    let mut checked = None;
    for _ in 0..500 {
        checked = Some(api.get(&name).await?).filter(is_checked);
        if checked.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    api.delete(&name, &DeleteParams::default()).await?;
    let status = checked.expect("a checked policy").status.unwrap();
    let warnings = status.type_checking.unwrap().expression_warnings.unwrap();
    let found: Vec<(&str, &str)> = warnings
        .iter()
        .map(|warning| (warning.field_ref.as_str(), warning.warning.as_str()))
        .collect();
    let undefined = "ERROR: <input>:1:12: undefined field 'replica'\n \
                     | object.spec.replica > 1\n | ...........^";
    let mismatch = "ERROR: <input>:1:20: found no matching overload for \
                    '_==_' applied to '(int, string)'\n \
                    | variables.replicas == 'one'\n | ...................^";
    let both = |error: &str| {
        format!("apps/v1, Kind=Deployment: {error}\n\napps/v1, Kind=ReplicaSet: {error}\n")
    };
    let (undefined, mismatch) = (both(undefined), both(mismatch));
    let wanted = [
        ("spec.validations[0].expression", undefined.as_str()),
        ("spec.validations[1].expression", mismatch.as_str()),
    ];
    assert_eq!(found, wanted);
    Ok(())
}
