//! Behaviours that the tests of controller-runtime 0.25 pin, in `pkg/webhook`.
//!
//! | controller-runtime's test | test here |
//! |---|---|
//! | http: bad-request when given an empty body, and no body | `an_empty_body_is_a_bad_request` |
//! | http: bad-request when given the wrong content-type | `another_content_type_is_a_bad_request` |
//! | http: bad-request when given an undecodable body | `garbage_is_a_bad_request` |
//! | http: error when given an infinite body | `a_body_of_7_mib_is_too_large`, and `https_server` in the crate `servers` |
//! | http: version defaulted to v1, v1 response, v1beta1 response | `a_response_has_the_version_of_its_request` |
//! | http: context of the HTTP request | no context values: a function takes the request, the state and the caches |
//! | http: no circular calling if the writer has broken | not possible: the body of a response is complete before it is sent |
//! | webhook: invoke the handler; UID of the request; populate the status; keep the status | `a_response_has_the_uid_and_a_status` |
//! | webhook: serialize patch operations into one patch | `all_changes_are_one_patch` |
//! | webhook: request logger | failures are logged with webhook, kind, namespace and name, by `endpoint` |
//! | webhook: recover from a panic by default; do not recover | `a_panic_is_a_refusal`, `a_panic_passes_where_failures_are_ignored`; a panic never ends the process |
//! | decode: valid request, raw object, without GVK, unstructured | `objects_are_decoded_with_and_without_their_type`, `a_dynamic_webhook_decodes_any_kind` |
//! | decode: object that is not of the type | `another_kind_is_a_bad_request` |
//! | response: Allowed, Denied, ValidationResponse with and without message | `decisions_have_the_status_of_kubernetes` |
//! | response: Errored | `an_error_is_an_internal_error` |
//! | response: Patched, PatchResponseFromRaw | `all_changes_are_one_patch` |
//! | response: WithWarnings keeps warnings | `warnings_of_all_functions_are_kept` |
//! | defaulter: preserve unknown fields by default | `unknown_fields_are_preserved` |
//! | defaulter: remove unknown fields where chosen | not offered: it loses data of newer clients |
//! | defaulter: ok for a deletion | `functions_that_set_fields_are_not_called_for_a_deletion` |
//! | validator: 200 for create, update, delete, with and without warnings | `each_operation_has_its_functions` |
//! | validator: propagate a Status error | `an_invalid_field_is_a_status_with_causes`, `a_chosen_status_is_kept` |
//! | validator: 403 for other errors, with and without warnings | `decisions_have_the_status_of_kubernetes`: a refusal is a value; an error is 500 |
//! | validator: 400 if an object cannot be decoded (pending there) | `an_object_that_cannot_be_decoded_is_a_bad_request` |
//! | multi: deny if any handler denies; allow; show warnings | `warnings_of_all_functions_are_kept`, `one_refusal_is_enough` |
//! | multi: no patches if denied; all patches; with warnings | `a_refused_request_has_no_patch`, `all_changes_are_one_patch` |
//! | server: panic for a duplicate path | an error when the operator is checked, in the crate `operator` |
//! | server: serve on the path, before and after the start; TLS options | `server/tests.rs` |
//! | metrics of latency, requests, panics | `metrics_have_controller_runtimes_names` |
//! | authentication: the same cases for TokenReview | `authentication/tests.rs` |
//!
//! And in `pkg/webhook/conversion`; `review/tests.rs` is in `opkit_apimachinery::conversion`, and
//! conformance's `versions::served` has the same on an API server:
//!
//! | controller-runtime's test | test here |
//! |---|---|
//! | spoke to hub, hub to spoke, spoke to spoke | `a_batch_is_converted_in_its_order`, `each_version_is_converted_to_each_other` in `review/tests.rs` |
//! | error for a conversion to the same type | not an error: `a_batch_is_converted_in_its_order` keeps the object |
//! | error for objects of different API groups, and for unknown types | `an_object_that_cannot_be_converted_fails_with_a_sentence` in `review/tests.rs` |
//! | error for no hub, and for several hubs | compile errors, in `tests/compile-fail` |
//! | invalid JSON, no request, wrong kind | `a_body_that_is_not_a_review_is_refused` in `review/tests.rs` |
//! | error for an infinite body | `a_body_over_the_limit_is_refused` in `conversion/tests.rs` |
//! | recover from a panic, with the UID; metric of panics | `a_panic_is_a_failure_with_the_uid_of_the_request` in `conversion/tests.rs` |

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use opkit_controller::Error;
use opkit_servers::metrics::MetricsRegistry;
use serde_json::json;

use super::*;
use crate::{AdmissionRequest, FailurePolicy, Operation, WebhookContext};

/// Returns the status of a response.
fn status(review: &Value) -> &Value {
    assert_eq!(review["response"]["allowed"], false, "{review}");
    &review["response"]["status"]
}

#[tokio::test]
async fn an_empty_body_is_a_bad_request() {
    let response = send(&one(webhook()), VALIDATE, "").await;
    let review: Value = serde_json::from_slice(response.body()).unwrap();
    let expected = json!({"code": 400, "message": "request body is empty"});
    assert_eq!(*status(&review), expected);
}

#[tokio::test]
async fn another_content_type_is_a_bad_request() {
    for content_type in [Some("application/foo"), None] {
        let mut request = Request::post(VALIDATE);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let body = Bytes::from(review("CREATE", config_map(json!({})), json!(null)).to_string());
        let response = one(webhook()).respond(request.body(body).unwrap()).await;
        let review: Value = serde_json::from_slice(response.body()).unwrap();
        let shown = content_type.unwrap_or_default();
        let message = format!("contentType={shown}, expected application/json");
        assert_eq!(*status(&review), json!({"code": 400, "message": message}));
    }
}

#[tokio::test]
async fn garbage_is_a_bad_request() {
    for body in ["{", "null", "[]", "{}", r#"{"request": null}"#, "\u{0}"] {
        let response = send(&one(webhook()), VALIDATE, body).await;
        assert_eq!(response.status(), 200);
        let review: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(status(&review)["code"], 400, "{body}");
    }
}

#[tokio::test]
async fn a_body_of_7_mib_is_too_large() {
    let response = send(&one(webhook()), VALIDATE, vec![b' '; 7 * 1024 * 1024]).await;
    let review: Value = serde_json::from_slice(response.body()).unwrap();
    let message = "request entity is too large; limit is 7340032 bytes";
    assert_eq!(*status(&review), json!({"code": 413, "message": message}));
}

#[tokio::test]
async fn a_response_has_the_version_of_its_request() {
    let router = one(webhook());
    for (sent, expected) in [
        (json!("admission.k8s.io/v1"), "admission.k8s.io/v1"),
        (
            json!("admission.k8s.io/v1beta1"),
            "admission.k8s.io/v1beta1",
        ),
        (json!(""), "admission.k8s.io/v1"),
    ] {
        let mut review = review("CREATE", config_map(json!({})), json!(null));
        review["apiVersion"] = sent;
        let response = call(&router, VALIDATE, &review).await;
        assert_eq!(response["apiVersion"], expected);
        assert_eq!(response["kind"], "AdmissionReview");
        assert_eq!(response["response"]["allowed"], true);
    }
}

#[tokio::test]
async fn a_response_has_the_uid_and_a_status() {
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook()), VALIDATE, &sent).await;
    let expected = json!({
        "uid": sent["request"]["uid"], "allowed": true, "status": {"code": 200},
    });
    assert_eq!(response["response"], expected);
}

#[tokio::test]
async fn all_changes_are_one_patch() {
    let webhook = webhook()
        .defaulting(|map| {
            map.metadata.labels = Some([("a/b".to_owned(), "c".to_owned())].into());
        })
        .defaulting_with(
            async |request: AdmissionRequest<ConfigMap>, _: WebhookContext| {
                let mut admission = Admission::allowed();
                admission.warn("changed");
                let mut map = request.into_object();
                map.data
                    .get_or_insert_default()
                    .insert("late".to_owned(), "2".to_owned());
                Ok::<_, Error>((map, admission))
            },
        );
    let sent = review("CREATE", config_map(json!({"a": "b"})), json!(null));
    let response = call(&one(webhook), MUTATE, &sent).await;
    assert_eq!(response["response"]["patchType"], "JSONPatch");
    assert_eq!(response["response"]["warnings"], json!(["changed"]));
    let mut changed = sent["request"]["object"].clone();
    opkit_apimachinery::patch::json_patch(&mut changed, &patch_of(&response)).unwrap();
    let mut expected = config_map(json!({"a": "b", "default": "1", "late": "2"}));
    expected["metadata"]["labels"] = json!({"a/b": "c"});
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn a_refused_request_has_no_patch() {
    let webhook = webhook().defaulting_with(
        async |request: AdmissionRequest<ConfigMap>, _: WebhookContext| {
            Ok::<_, Error>((request.into_object(), Admission::denied("no")))
        },
    );
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), MUTATE, &sent).await;
    assert_eq!(status(&response)["message"], "no");
    assert_eq!(response["response"].get("patch"), None);
    assert_eq!(response["response"].get("patchType"), None);
}

#[tokio::test]
async fn unknown_fields_are_preserved() {
    let mut object = config_map(json!({"a": "b"}));
    object["newField"] = json!({"x": [1, 2]});
    object["metadata"]["newMeta"] = json!(true);
    let response = call(
        &one(webhook()),
        MUTATE,
        &review("UPDATE", object, config_map(json!({}))),
    )
    .await;
    let expected = json!([{"op": "add", "path": "/data/default", "value": "1"}]);
    assert_eq!(patch_of(&response), expected);
}

#[tokio::test]
async fn functions_that_set_fields_are_not_called_for_a_deletion() {
    let sent = review("DELETE", json!(null), config_map(json!({})));
    let response = call(&one(webhook()), MUTATE, &sent).await;
    assert_eq!(response["response"]["allowed"], true);
    assert_eq!(response["response"].get("patch"), None);
}

#[tokio::test]
async fn each_operation_has_its_functions() {
    let webhook = Webhook::new()
        .validating(|_: &ConfigMap, old| {
            let mut admission = Admission::allowed();
            admission.warn(if old.is_some() { "update" } else { "create" });
            admission
        })
        .validating_delete(|map| {
            let mut admission = Admission::allowed();
            admission.warn(format!("delete {}", map.metadata.name.clone().unwrap()));
            admission
        });
    let router = one(webhook);
    let object = || config_map(json!({}));
    for (operation, new, old, warnings) in [
        ("CREATE", object(), json!(null), json!(["create"])),
        ("UPDATE", object(), object(), json!(["update"])),
        ("DELETE", json!(null), object(), json!(["delete one"])),
        // Nothing is validated for a connection, unless a function asks for it.
        ("CONNECT", object(), json!(null), json!(null)),
    ] {
        let response = call(&router, VALIDATE, &review(operation, new, old)).await;
        assert_eq!(response["response"]["allowed"], true, "{response}");
        assert_eq!(response["response"]["warnings"], warnings, "{operation}");
        assert_eq!(response["response"]["status"]["code"], 200);
    }
}

#[tokio::test]
async fn a_function_with_the_request_gets_chosen_operations() {
    let webhook = |operations: &[Operation]| {
        let webhook = Webhook::new()
            .validating_delete(|_: &ConfigMap| Admission::allowed())
            .validating_with(
                async |request: AdmissionRequest<ConfigMap>, _: WebhookContext| {
                    let mut admission = Admission::allowed();
                    admission.warn(request.operation().to_string());
                    Ok::<_, Error>(admission)
                },
            );
        match operations {
            [] => webhook,
            _ => webhook.operations(operations.iter().copied()),
        }
    };
    let delete = review("DELETE", json!(null), config_map(json!({})));
    let response = call(&one(webhook(&[])), VALIDATE, &delete).await;
    assert_eq!(response["response"].get("warnings"), None);
    let response = call(&one(webhook(&[Operation::Delete])), VALIDATE, &delete).await;
    assert_eq!(response["response"]["warnings"], json!(["DELETE"]));
}

#[tokio::test]
async fn decisions_have_the_status_of_kubernetes() {
    for (admission, expected) in [
        (Admission::allowed(), json!({"code": 200})),
        (
            Admission::denied("acceptable"),
            json!({"code": 403, "reason": "Forbidden", "message": "acceptable"}),
        ),
        (
            Admission::denied(""),
            json!({"code": 403, "reason": "Forbidden", "message": ""}),
        ),
    ] {
        let decided = admission.clone();
        let webhook = Webhook::new().validating(move |_: &ConfigMap, _| decided.clone());
        let sent = review("CREATE", config_map(json!({})), json!(null));
        let response = call(&one(webhook), VALIDATE, &sent).await;
        assert_eq!(response["response"]["status"], expected);
        assert_eq!(response["response"]["allowed"], admission.is_allowed());
    }
}

#[tokio::test]
async fn a_chosen_status_is_kept() {
    let webhook = Webhook::new()
        .validating(|_: &ConfigMap, _| Admission::refused(422, "Unprocessable", "later"));
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), VALIDATE, &sent).await;
    let expected = json!({"code": 422, "reason": "Unprocessable", "message": "later"});
    assert_eq!(*status(&response), expected);
}

#[tokio::test]
async fn an_invalid_field_is_a_status_with_causes() {
    let webhook = Webhook::new().validating(|_: &ConfigMap, _| {
        let mut admission = Admission::allowed();
        admission
            .invalid("data.a", 7, "must be at most 5")
            .required("data.b", "");
        admission
    });
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), VALIDATE, &sent).await;
    let expected = json!({
        "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "ConfigMap \"one\" is invalid: [data.a: Invalid value: 7: must be at most 5, data.b: Required value]",
        "details": {
            "name": "one", "group": "", "kind": "ConfigMap",
            "causes": [
                {
                    "reason": "FieldValueInvalid", "field": "data.a",
                    "message": "Invalid value: 7: must be at most 5",
                },
                {"reason": "FieldValueRequired", "field": "data.b", "message": "Required value"},
            ],
        },
    });
    assert_eq!(*status(&response), expected);
}

#[tokio::test]
async fn warnings_of_all_functions_are_kept() {
    let warn = |text: &'static str| {
        move |_: &ConfigMap, _: Option<&ConfigMap>| {
            let mut admission = Admission::allowed();
            admission.warn(text).audit_annotation(text, "yes");
            admission
        }
    };
    let webhook = Webhook::new().validating(warn("a")).validating(warn("b"));
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), VALIDATE, &sent).await;
    assert_eq!(response["response"]["warnings"], json!(["a", "b"]));
    let annotations = json!({"a": "yes", "b": "yes"});
    assert_eq!(response["response"]["auditAnnotations"], annotations);
}

#[tokio::test]
async fn one_refusal_is_enough() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let webhook = webhook()
        .validating(|_, _| Admission::denied("second"))
        .validating_with(move |_: AdmissionRequest<ConfigMap>, _: WebhookContext| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, Error>(Admission::allowed()))
        });
    let router = one(webhook);
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&router, VALIDATE, &sent).await;
    assert_eq!(status(&response)["message"], "second");
    // Functions that may send requests are not called for a request that is refused anyway.
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_panic_is_a_refusal() {
    let router = one(Webhook::new().validating(|map: &ConfigMap, _| {
        assert!(map.data.is_none(), "fake panic test");
        Admission::allowed()
    }));
    let sent = review("CREATE", config_map(json!({"a": "b"})), json!(null));
    let response = call(&router, VALIDATE, &sent).await;
    let message = "panic: fake panic test [recovered]";
    let expected = json!({"code": 500, "reason": "InternalError", "message": message});
    assert_eq!(*status(&response), expected);
    assert_eq!(response["response"]["uid"], sent["request"]["uid"]);
    // The next request is served.
    let sent = review("CREATE", json!({"metadata": {"name": "one"}}), json!(null));
    assert_eq!(
        call(&router, VALIDATE, &sent).await["response"]["allowed"],
        true
    );
}

#[tokio::test]
async fn a_panic_passes_where_failures_are_ignored() {
    let webhook = Webhook::new()
        .failure_policy(FailurePolicy::Ignore)
        .defaulting(|_: &mut ConfigMap| panic!("fake panic test"));
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), MUTATE, &sent).await;
    assert_eq!(response["response"]["allowed"], true);
    let warning = "the webhook mutate.configmap.v1.core failed: panic: fake panic test [recovered]";
    assert_eq!(response["response"]["warnings"], json!([warning]));
}

#[tokio::test]
async fn an_error_is_an_internal_error() {
    let webhook = Webhook::new().validating_with(
        async |_: AdmissionRequest<ConfigMap>, _: WebhookContext| {
            Err::<Admission, _>(Error::msg("the quota cannot be read"))
        },
    );
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), VALIDATE, &sent).await;
    let expected =
        json!({"code": 500, "reason": "InternalError", "message": "the quota cannot be read"});
    assert_eq!(*status(&response), expected);
}

#[tokio::test(start_paused = true)]
async fn a_function_has_the_time_that_the_server_waits() {
    let webhook = Webhook::new().validating_with(
        async |_: AdmissionRequest<ConfigMap>, _: WebhookContext| {
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
            Ok::<_, Error>(Admission::allowed())
        },
    );
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&one(webhook), VALIDATE, &sent).await;
    assert_eq!(status(&response)["code"], 504);
}

#[tokio::test]
async fn objects_are_decoded_with_and_without_their_type() {
    let router = one(webhook());
    let mut object = config_map(json!({"bad": ""}));
    for _ in 0..2 {
        let sent = review("CREATE", object.clone(), json!(null));
        assert_eq!(
            status(&call(&router, VALIDATE, &sent).await)["message"],
            "it is bad"
        );
        object
            .as_object_mut()
            .unwrap()
            .retain(|name, _| name != "kind" && name != "apiVersion");
    }
}

#[tokio::test]
async fn a_dynamic_webhook_decodes_any_kind() {
    let kind = opkit_client::Kind::of::<ConfigMap>();
    let webhook = Webhook::dynamic(kind).defaulting(|object: &mut DynamicObject| {
        object.data["data"]["seen"] = json!("yes");
    });
    let sent = review("CREATE", config_map(json!({})), json!(null));
    let response = call(&router([webhook.into()]), MUTATE, &sent).await;
    let expected = json!([{"op": "add", "path": "/data/seen", "value": "yes"}]);
    assert_eq!(patch_of(&response), expected);
}

#[tokio::test]
async fn a_webhook_may_see_only_the_metadata() {
    type Meta = kube::core::PartialObjectMeta<ConfigMap>;
    let webhook = Webhook::new().defaulting(|object: &mut Meta| {
        object
            .metadata
            .labels
            .get_or_insert_default()
            .insert("seen".to_owned(), "yes".to_owned());
    });
    let sent = review("CREATE", config_map(json!({"a": "b"})), json!(null));
    let response = call(&router([webhook.into()]), MUTATE, &sent).await;
    let expected = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]);
    assert_eq!(patch_of(&response), expected);
}

#[tokio::test]
async fn another_kind_is_a_bad_request() {
    let mut sent = review("CREATE", config_map(json!({})), json!(null));
    sent["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let response = call(&one(webhook()), VALIDATE, &sent).await;
    assert_eq!(status(&response)["code"], 400);
    // The kind of the request is right, and the type of the object is not.
    let mut object = config_map(json!({}));
    object["kind"] = json!("Secret");
    let response = call(
        &one(webhook()),
        VALIDATE,
        &review("CREATE", object, json!(null)),
    )
    .await;
    assert_eq!(status(&response)["code"], 400);
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_a_bad_request() {
    let router = one(webhook().validating_delete(|_| Admission::allowed()));
    let (good, bad) = (config_map(json!({})), config_map(json!({"a": 7})));
    for (operation, new, old) in [
        ("CREATE", bad.clone(), json!(null)),
        ("CREATE", json!(null), json!(null)),
        ("UPDATE", bad.clone(), good.clone()),
        ("UPDATE", good.clone(), bad.clone()),
        ("UPDATE", good.clone(), json!(null)),
        ("DELETE", json!(null), bad.clone()),
        ("DELETE", json!(null), json!(null)),
    ] {
        let response = call(&router, VALIDATE, &review(operation, new, old)).await;
        assert_eq!(status(&response)["code"], 400, "{operation}");
        assert_eq!(status(&response)["reason"], "BadRequest");
    }
}

#[tokio::test]
async fn updates_of_an_object_that_is_being_deleted_pass() {
    let mut object = config_map(json!({"bad": ""}));
    object["metadata"]["deletionTimestamp"] = json!("2026-11-18T00:00:00Z");
    let sent = review("UPDATE", object.clone(), object);
    for path in [MUTATE, VALIDATE] {
        let response = call(&one(webhook()), path, &sent).await;
        assert_eq!(response["response"]["allowed"], true);
        assert_eq!(response["response"].get("patch"), None);
    }
    let response = call(&one(webhook().while_deleting()), VALIDATE, &sent).await;
    assert_eq!(response["response"]["allowed"], false);
}

#[tokio::test]
async fn metrics_have_controller_runtimes_names() {
    let router = one(webhook().validating(|map, _| {
        assert!(map.data.is_some(), "fake panic test");
        Admission::allowed()
    }));
    let registry = MetricsRegistry::default();
    router.metrics.register(&registry);
    call(
        &router,
        VALIDATE,
        &review("CREATE", config_map(json!({})), json!(null)),
    )
    .await;
    call(&router, VALIDATE, &review("CREATE", json!({}), json!(null))).await;
    let get = Request::get(VALIDATE).body(Bytes::new()).unwrap();
    assert_eq!(router.respond(get).await.status(), 405);
    let text = registry.encode_prometheus();
    for line in [
        r#"controller_runtime_webhook_requests_total{webhook="/validate--v1-configmap",code="200"} 2"#,
        r#"controller_runtime_webhook_requests_total{webhook="/validate--v1-configmap",code="500"} 0"#,
        r#"controller_runtime_webhook_requests_total{webhook="/validate--v1-configmap",code="405"} 1"#,
        r#"controller_runtime_webhook_requests_in_flight{webhook="/validate--v1-configmap"} 0"#,
        r#"controller_runtime_webhook_latency_seconds_count{webhook="/validate--v1-configmap"} 3"#,
        "controller_runtime_webhook_panics_total 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let response = send(&one(webhook()), "/validate--v1-secret", "{}").await;
    assert_eq!(response.status(), 404);
}
