//! Audit events. The expected events are those that kube-apiserver 1.36.3 writes for the same
//! requests.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Api, CONFIG_MAPS, Options, config_map};
use crate::{AuditOptions, StaticToken};

const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  verbs: [deletecollection]
- level: RequestResponse
  verbs: [create, patch, delete]
  omitManagedFields: true
- level: Metadata
";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server with an audit log in a file of its own.
struct Audited {
    api: Api,
    path: PathBuf,
}

impl Audited {
    fn start(test: &str, policy: &str) -> Self {
        let name = format!("opkit-audit-{}-{test}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = Options {
            seed: Some(7),
            audit: Some(AuditOptions::new(policy, &path)),
            ..Options::default()
        };
        let tokens = "admin-token,admin,admin,\"system:masters\"";
        options.authentication.tokens = StaticToken::parse_file(tokens).unwrap();
        Self {
            api: Api::with(options),
            path,
        }
    }

    /// Sends a request of the client `test/1` with these headers.
    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> (u16, Value) {
        let mut all = vec![("user-agent", "test/1")];
        all.extend(headers);
        let service = self.api.server.remote_service();
        self.api.send_as(service, (method, path), &all, &body).await
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.send(Method::GET, path, headers, Value::Null).await.0
    }

    /// Stops the server and returns the events of its log.
    async fn events(self) -> Vec<Value> {
        self.api.server.shutdown().await;
        let text = std::fs::read_to_string(&self.path).unwrap();
        std::fs::remove_file(&self.path).unwrap();
        assert!(!text.contains(['<', '>', '&']), "as in Go, escaped: {text}");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

const ADMIN: (&str, &str) = ("authorization", "Bearer admin-token");

/// Returns the fields that all events of an administrator's request have, with the fields of
/// `others`.
fn event(level: &str, stage: &str, verb: &str, uri: &str, others: Value) -> Value {
    let mut event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": level, "stage": stage,
        "requestURI": uri, "verb": verb, "userAgent": "test/1",
        "user": {
            "username": "admin", "uid": "admin",
            "groups": ["system:masters", "system:authenticated"],
        },
    });
    let fields = event.as_object_mut().unwrap();
    fields.extend(others.as_object().unwrap().clone());
    fields.retain(|_, value| !value.is_null());
    event
}

fn allowed() -> Value {
    json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""})
}

fn forbidden() -> Value {
    json!({"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""})
}

/// Returns a failure of a request as it is in the field `responseStatus`.
fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

/// Removes the IDs and times of events, which differ between runs.
fn stable(events: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    for event in &mut events {
        let fields = event.as_object_mut().unwrap();
        for field in ["auditID", "requestReceivedTimestamp", "stageTimestamp"] {
            assert!(fields.remove(field).is_some(), "{field} is missing");
        }
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_create_is_recorded_with_its_objects() {
    let audited = Audited::start("create", POLICY);
    let (code, created) = audited
        .send(Method::POST, CONFIG_MAPS, &[ADMIN], config_map("a"))
        .await;
    assert_eq!(code, 201);
    let (code, failed) = audited
        .send(Method::POST, CONFIG_MAPS, &[ADMIN], config_map("a"))
        .await;
    assert_eq!(code, 409);
    let events = audited.events().await;
    let mut reference =
        json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"});
    let collection = reference.clone();
    reference["name"] = json!("a");
    let mut response = created;
    let metadata = response["metadata"].as_object_mut().unwrap();
    assert!(metadata.remove("managedFields").is_some());
    let level = "RequestResponse";
    let expected = [
        event(
            level,
            "RequestReceived",
            "create",
            CONFIG_MAPS,
            json!({"objectRef": collection}),
        ),
        event(
            level,
            "ResponseComplete",
            "create",
            CONFIG_MAPS,
            json!({
                "objectRef": reference, "responseStatus": {"metadata": {}, "code": 201},
                "requestObject": config_map("a"), "responseObject": response,
                "annotations": allowed(),
            }),
        ),
        event(
            level,
            "RequestReceived",
            "create",
            CONFIG_MAPS,
            json!({"objectRef": collection}),
        ),
        event(
            level,
            "ResponseComplete",
            "create",
            CONFIG_MAPS,
            json!({
                "objectRef": reference,
                "responseStatus": failure(409, "AlreadyExists", "configmaps \"a\" already exists",
                    json!({"name": "a", "kind": "configmaps"})),
                "requestObject": config_map("a"), "responseObject": failed,
                "annotations": allowed(),
            }),
        ),
    ];
    assert_eq!(stable(&events), expected);
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
    assert_ne!(events[1]["auditID"], events[2]["auditID"]);
}

#[tokio::test(start_paused = true)]
async fn reads_and_failures_are_recorded_without_objects() {
    let audited = Audited::start("get", POLICY);
    let missing = format!("{CONFIG_MAPS}/missing");
    let own_id = ("audit-id", "mine");
    assert_eq!(audited.get(&missing, &[ADMIN, own_id]).await, 404);
    assert_eq!(audited.get("/version", &[]).await, 200);
    assert_eq!(audited.get("/nothing", &[ADMIN]).await, 404);
    let (code, _) = audited
        .send(Method::DELETE, CONFIG_MAPS, &[ADMIN], Value::Null)
        .await;
    assert_eq!(code, 200, "deletecollection, which is not recorded");
    let events = audited.events().await;
    assert_eq!(events[0]["auditID"], "mine");
    assert_eq!(events[1]["auditID"], "mine");
    let reference = json!({
        "resource": "configmaps", "namespace": "default", "name": "missing", "apiVersion": "v1",
    });
    let details = json!({"name": "missing", "kind": "configmaps"});
    let message = "configmaps \"missing\" not found";
    let anonymous = json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]});
    let reason = "RBAC: allowed by ClusterRoleBinding \"system:public-info-viewer\" of \
        ClusterRole \"system:public-info-viewer\" to Group \"system:unauthenticated\"";
    let (start, end) = ("RequestReceived", "ResponseComplete");
    let expected = [
        event(
            "Metadata",
            start,
            "get",
            &missing,
            json!({"objectRef": reference}),
        ),
        event(
            "Metadata",
            end,
            "get",
            &missing,
            json!({
                "objectRef": reference, "annotations": allowed(),
                "responseStatus": failure(404, "NotFound", message, details),
            }),
        ),
        event(
            "Metadata",
            start,
            "get",
            "/version",
            json!({"user": anonymous}),
        ),
        event(
            "Metadata",
            end,
            "get",
            "/version",
            json!({
                "user": anonymous, "responseStatus": {"metadata": {}, "code": 200},
                "annotations": {
                    "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": reason,
                },
            }),
        ),
        event("Metadata", start, "get", "/nothing", json!({})),
        event(
            "Metadata",
            end,
            "get",
            "/nothing",
            json!({
                "responseStatus": {"metadata": {}, "code": 404}, "annotations": allowed(),
            }),
        ),
    ];
    assert_eq!(stable(&events), expected);
}

#[tokio::test(start_paused = true)]
async fn refused_requests_are_recorded() {
    let audited = Audited::start("refused", POLICY);
    assert_eq!(audited.get(SECRETS, &[]).await, 403);
    let wrong = ("authorization", "Bearer wrong");
    assert_eq!(audited.get(SECRETS, &[wrong]).await, 401);
    let alice = ("impersonate-user", "alice");
    assert_eq!(audited.get(SECRETS, &[ADMIN, alice]).await, 403);
    let masters = [
        ADMIN,
        ("impersonate-user", "bob"),
        ("impersonate-group", "system:masters"),
        ("x-forwarded-for", "1.2.3.4"),
    ];
    let page = format!("{SECRETS}?limit=1&x=y");
    assert_eq!(audited.get(&page, &masters).await, 200);
    assert_eq!(audited.get("/version", &[alice]).await, 403);
    let events = audited.events().await;
    let reference = json!({"resource": "secrets", "namespace": "default", "apiVersion": "v1"});
    let anonymous = json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]});
    let denied = |user: &str| {
        let message = format!(
            "secrets is forbidden: User {user:?} cannot list resource \"secrets\" in API group \
             \"\" in the namespace \"default\""
        );
        failure(403, "Forbidden", &message, json!({"kind": "secrets"}))
    };
    let (start, end) = ("RequestReceived", "ResponseComplete");
    let list = |stage, others| event("Metadata", stage, "list", SECRETS, others);
    let paged = |stage, others| event("Metadata", stage, "list", &page, others);
    let groups = ["system:masters", "system:authenticated"];
    let expected = [
        list(start, json!({"objectRef": reference, "user": anonymous})),
        list(
            end,
            json!({
                "objectRef": reference, "user": anonymous, "annotations": forbidden(),
                "responseStatus": denied("system:anonymous"),
            }),
        ),
        list(
            "ResponseStarted",
            json!({
                "objectRef": reference, "user": {},
                "responseStatus": failure(401, "Unauthorized", "Unauthorized", Value::Null),
            }),
        ),
        list(start, json!({"objectRef": reference})),
        list(
            end,
            json!({
                "objectRef": reference, "annotations": forbidden(),
                "impersonatedUser": {"username": "alice", "groups": ["system:authenticated"]},
                "authenticationMetadata": {"impersonationConstraint": "impersonate:user-info"},
                "responseStatus": denied("alice"),
            }),
        ),
        paged(
            start,
            json!({"objectRef": reference, "sourceIPs": ["1.2.3.4"]}),
        ),
        paged(
            end,
            json!({
                "objectRef": reference, "sourceIPs": ["1.2.3.4"], "annotations": allowed(),
                "impersonatedUser": {"username": "bob", "groups": groups},
                "responseStatus": {"metadata": {}, "code": 200},
            }),
        ),
        event(
            "Metadata",
            start,
            "get",
            "/version",
            json!({"user": anonymous}),
        ),
        event(
            "Metadata",
            end,
            "get",
            "/version",
            json!({
                "user": anonymous,
                "responseStatus": failure(403, "Forbidden", "forbidden: User \"system:anonymous\" \
                    cannot impersonate-on:user-info:get path \"/version\"", json!({})),
            }),
        ),
    ];
    assert_eq!(stable(&events), expected);
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_an_event_when_it_starts_and_when_it_ends() {
    let audited = Audited::start("watch", POLICY);
    let uri = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    assert_eq!(audited.get(&uri, &[ADMIN]).await, 200);
    let events = audited.events().await;
    let reference = json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"});
    let watch = |stage, others| event("Metadata", stage, "watch", &uri, others);
    let responded = json!({
        "objectRef": reference, "responseStatus": {"metadata": {}, "code": 200},
        "annotations": allowed(),
    });
    let expected = [
        watch("RequestReceived", json!({"objectRef": reference})),
        watch("ResponseStarted", responded.clone()),
        watch("ResponseComplete", responded),
    ];
    assert_eq!(stable(&events), expected);
    let time = |index: usize, field: &str| -> jiff::Timestamp {
        events[index][field].as_str().unwrap().parse().unwrap()
    };
    let received = time(2, "requestReceivedTimestamp");
    assert_eq!(time(0, "stageTimestamp"), received);
    let lasted = time(2, "stageTimestamp").duration_since(time(1, "stageTimestamp"));
    assert!(lasted >= Duration::from_secs(1).try_into().unwrap());
}

#[tokio::test(start_paused = true)]
async fn bodies_of_all_writes_and_encodings_are_recorded() {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], \
         omitManagedFields: true, rules: [{level: RequestResponse}]}";
    let audited = Audited::start("bodies", policy);
    let mut object = config_map("a");
    object["data"]["a"] = json!("<b>");
    audited
        .send(Method::POST, CONFIG_MAPS, &[ADMIN], object)
        .await;
    let path = format!("{CONFIG_MAPS}/a");
    let merge = ("content-type", "application/merge-patch+json");
    let patch = json!({"data": {"a": "c"}});
    let service = audited.api.server.service();
    let request = http::Request::patch(&path)
        .header(merge.0, merge.1)
        .body(patch.to_string())
        .unwrap();
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    drop(response);
    for accept in [
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
    ] {
        let headers = [ADMIN, ("accept", accept)];
        assert_eq!(audited.get(CONFIG_MAPS, &headers).await, 200);
    }
    let options = json!({"propagationPolicy": "Background"});
    let (code, deleted) = audited.send(Method::DELETE, &path, &[ADMIN], options).await;
    assert_eq!(code, 200);
    let events = audited.events().await;
    assert_eq!(events.len(), 6);
    assert_eq!(events[0]["requestObject"]["data"], json!({"a": "<b>"}));
    assert_eq!(events[1]["requestObject"], patch);
    assert_eq!(events[1]["responseObject"]["data"], json!({"a": "c"}));
    for event in &events[2..4] {
        let list = &event["responseObject"];
        assert_eq!(list["kind"], "ConfigMapList");
        let named = |item: &&Value| item["metadata"]["name"] == "a";
        let item = list["items"].as_array().unwrap().iter().find(named);
        assert_eq!(item.unwrap()["data"], json!({"a": "c"}));
        assert!(item.unwrap()["metadata"].get("managedFields").is_none());
    }
    let row = &events[4]["responseObject"]["rows"][0]["object"];
    assert_eq!(row["kind"], "PartialObjectMetadata");
    assert!(row["metadata"].get("managedFields").is_none());
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal",
        "propagationPolicy": "Background",
    });
    assert_eq!(events[5]["requestObject"], options);
    assert_eq!(events[5]["responseObject"], deleted);
    let mut status = json!({"metadata": {}, "status": "Success", "code": 200});
    status["details"] = deleted["details"].clone();
    assert_eq!(events[5]["responseStatus"], status);
}

#[tokio::test(start_paused = true)]
async fn recorded_objects_have_their_defaults() {
    let audited = Audited::start("defaults", POLICY);
    let path = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let (code, _) = audited.send(Method::POST, path, &[ADMIN], service).await;
    assert_eq!(code, 201);
    let events = audited.events().await;
    let expected = json!({
        "kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"},
        "spec": {
            "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}], "type": "ClusterIP",
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    });
    assert_eq!(events[1]["requestObject"], expected);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_has_a_last_event() {
    let audited = Audited::start("given-up", POLICY);
    let endless = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
    let request = http::Request::post(CONFIG_MAPS)
        .body(StreamBody::new(endless))
        .unwrap();
    let sent = audited.api.server.service().oneshot(request);
    let sent = tokio::time::timeout(Duration::from_secs(1), sent).await;
    assert!(sent.is_err(), "the body is not read");
    let events = audited.events().await;
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    let status = json!({
        "metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200,
    });
    assert_eq!(events[1]["responseStatus"], status);
}

#[tokio::test]
async fn violations_of_pod_security_are_recorded() {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    let audited = Audited::start("pod-security", policy);
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/audit": "restricted",
    });
    let namespace = json!({"metadata": {"name": "n", "labels": labels}});
    let create =
        async |path: &str, body: Value| audited.send(Method::POST, path, &[ADMIN], body).await.0;
    assert_eq!(create("/api/v1/namespaces", namespace).await, 201);
    let pod = |name: &str, host_pid: bool| {
        let containers = json!([{"name": "c", "image": "x"}]);
        let spec = json!({"containers": containers, "hostPID": host_pid});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let pods = "/api/v1/namespaces/n/pods";
    assert_eq!(create(pods, pod("a", false)).await, 201);
    assert_eq!(create(pods, pod("b", true)).await, 403);
    let events = audited.events().await;
    let of_pods = events
        .iter()
        .filter(|event| event["requestURI"] == pods && event["stage"] == "ResponseComplete");
    let prefix = "pod-security.kubernetes.io";
    let violations: Vec<&str> = of_pods
        .map(|event| {
            let annotations = &event["annotations"];
            assert_eq!(
                annotations[format!("{prefix}/enforce-policy")],
                "baseline:latest"
            );
            annotations[format!("{prefix}/audit-violations")]
                .as_str()
                .unwrap()
        })
        .collect();
    let text = "would violate PodSecurity \"restricted:latest\": ";
    let [a, b] = violations.as_slice() else {
        panic!("{violations:?}")
    };
    assert!(
        a.starts_with(&format!("{text}allowPrivilegeEscalation != false")),
        "{a}"
    );
    assert!(
        b.starts_with(&format!("{text}host namespaces (hostPID=true)")),
        "{b}"
    );
}

#[tokio::test]
async fn every_response_has_an_audit_id() {
    let api = Api::start();
    let own = api.raw("/version", &[("audit-id", "mine")]).await;
    assert_eq!(own.headers()["audit-id"], "mine");
    let first = api.raw("/version", &[]).await.headers()["audit-id"].clone();
    let second = api.raw("/nothing", &[]).await.headers()["audit-id"].clone();
    assert_eq!(first.len(), 36);
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_wrong_policy_or_path_is_an_error_of_the_start() {
    let start = |policy: &str, path: &str| {
        let options = Options {
            audit: Some(AuditOptions::new(policy, path)),
            ..Options::default()
        };
        crate::Server::start(options).unwrap_err().to_string()
    };
    assert_eq!(
        start("{}", "-"),
        "the audit policy of the server is not valid: unknown group version field \
         audit.k8s.io/__internal, Kind=Policy in policy"
    );
    let error = start(POLICY, "/dev/null/audit.log");
    let expected = "the audit log path of the server is not valid: cannot open /dev/null/audit.log";
    assert!(error.starts_with(expected), "{error}");
}
