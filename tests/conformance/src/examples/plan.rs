//! The operators in `examples/` are planned: what a plan shows is what the operator then does, and
//! nothing is written before.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog_operator::ProductSpec;
use database_operator::{Database, DatabaseSpec, Engine};
use demo_operator::{Demo, DemoSpec};
use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ResourceQuota, Secret};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit::client::Exchange;
use opkit::operator::{OperatorPlan, PlannedEffect};
use opkit::testing::Capability;
use opkit_apimachinery::differences::differences;
use robot_operator::{Robot, RobotSpec};
use secret_operator::{SecretCopySpec, SecretReference};

use super::*;

/// Group, version, kind and plural of the objects that a test compares.
type Kinds = [(&'static str, &'static str, &'static str, &'static str)];

/// Objects by kind and name.
type Objects = BTreeMap<String, Value>;

/// Annotation that the Deployment controller sets.
const REVISION: &str = "[\"deployment.kubernetes.io/revision\"]";

/// Plans an operator as a user does, and checks that each write is a dry run: on its way to the
/// server and, if the server has an audit log, in the server.
async fn plan(plane: &ControlPlane, operator: Operator) -> opkit::Result<OperatorPlan> {
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    let wire = Seam::new();
    let (agent, client) = with_own_agent(plane.client());
    let client = wire.wrap(client);
    let plan = operator.plan(client, options, CancellationToken::new());
    let plan = plan.await?;
    let mut writes = 0;
    for exchange in wire.exchanges() {
        assert!(changes_nothing(&exchange), "{exchange} {exchange:?}");
        let info = &exchange.info;
        let is_read = matches!(info.verb.as_ref(), "get" | "list" | "watch");
        let is_review = info.group == "authorization.k8s.io";
        writes += usize::from(!is_read && !is_review);
    }
    if let Some(log) = plane.audit_log() {
        for event in audited(&log, &agent, writes).await? {
            let uri = event["requestURI"].as_str().unwrap_or_default();
            let is_dry = match event["verb"].as_str() {
                Some("delete") => event["requestObject"]["dryRun"] == json!(["All"]),
                _ => uri.contains("dryRun=All"),
            };
            assert!(is_dry, "{event}");
        }
    }
    assert_eq!(plan.failures, []);
    assert!(!plan.is_unfinished);
    Ok(plan)
}

/// Returns a client whose requests have a user agent that no other client has.
fn with_own_agent(client: kube::Client) -> (String, kube::Client) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let agent = format!("plan-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let namespace = client.default_namespace().to_owned();
    let header = HeaderValue::try_from(&agent).unwrap();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        request.headers_mut().insert(USER_AGENT, header.clone());
        let client = client.clone();
        async move { client.send(request).await }
    });
    (agent, kube::Client::new(service, namespace))
}

/// Returns the writes of a client in an audit log, which has `number` of them once the server has
/// written all.
async fn audited(log: &Path, agent: &str, number: usize) -> opkit::Result<Vec<Value>> {
    let mut found = Vec::new();
    for _ in 0..600 {
        let text = std::fs::read_to_string(log)?;
        // The last line may not be complete yet.
        let events = text
            .lines()
            .map_while(|line| serde_json::from_str(line).ok());
        found = events
            .filter(|event: &Value| event["userAgent"] == agent)
            .collect();
        if found.len() >= number {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(found.len(), number, "{found:?}");
    Ok(found)
}

/// Reports whether a request is a read, a review or a dry run.
fn changes_nothing(exchange: &Exchange) -> bool {
    let body = || format!("{:?}", exchange.body);
    match exchange.info.verb.as_ref() {
        "get" | "list" | "watch" => true,
        // The server reads the options of a deletion from its body.
        "delete" => body().contains("dryRun"),
        _ => exchange.info.group == "authorization.k8s.io" || exchange.query.contains("dryRun=All"),
    }
}

/// Reads all objects of these kinds in the namespace of the test.
async fn objects(plane: &ControlPlane, kinds: &Kinds) -> opkit::Result<Objects> {
    let mut found = Objects::new();
    for (group, version, kind, plural) in kinds {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        if *plural == "namespaces" {
            let api: Api<DynamicObject> = Api::all_with(plane.client(), &resource);
            let object = api.get(plane.namespace()).await?;
            found.insert(kind.kind, serde_json::to_value(object).unwrap());
            continue;
        }
        let api: Api<DynamicObject> = Api::default_namespaced_with(plane.client(), &resource);
        for object in api.list(&ListParams::default()).await? {
            let name = format!("{} {}", kind.kind, object.name_any());
            // A controller of the cluster creates it some time after the namespace.
            if name == "ConfigMap kube-root-ca.crt" {
                continue;
            }
            let mut object = serde_json::to_value(object).unwrap();
            // The items of a list have no kind.
            object["kind"] = json!(kind.kind);
            found.insert(name, object);
        }
    }
    Ok(found)
}

/// Returns the entries of `managedFields` with which the operator has written the objects. Each
/// write that changes something changes the entry.
fn written(objects: &Objects, operator: &str) -> Vec<(String, Value)> {
    let mut entries = Vec::new();
    for (name, object) in objects {
        let all = object["metadata"]["managedFields"].as_array();
        for entry in all.into_iter().flatten() {
            let manager = entry["manager"].as_str().unwrap_or_default();
            if manager.starts_with(operator) {
                entries.push((name.clone(), entry.clone()));
            }
        }
    }
    entries
}

/// Returns what differs between two states of the objects, one line for each.
fn changes(before: &Objects, after: &Objects) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, old) in before {
        let Some(new) = after.get(name) else {
            lines.push(format!("- {name}"));
            continue;
        };
        let fields = differences(old, new).into_iter();
        let fields = fields.map(|field| field.to_string());
        let fields: Vec<_> = fields.filter(|field| !field.contains(REVISION)).collect();
        if !fields.is_empty() {
            lines.push(format!("~ {name}: {}", fields.join(", ")));
        }
    }
    let new = after.keys().filter(|name| !before.contains_key(*name));
    lines.extend(new.map(|name| format!("+ {name}")));
    lines.sort();
    lines
}

/// Returns a plan as lines like those of [`changes`].
fn lines(plan: &OperatorPlan) -> Vec<String> {
    let line = |change: &opkit::operator::PlannedObject| {
        let name = match change.kind.as_str() {
            "Namespace" => change.kind.clone(),
            kind => format!("{kind} {}", change.name),
        };
        let fields: Vec<_> = change.fields.iter().map(ToString::to_string).collect();
        match change.change {
            PlannedEffect::Created => format!("+ {name}"),
            PlannedEffect::Deleted => format!("- {name}"),
            PlannedEffect::Changed => format!("~ {name}: {}", fields.join(", ")),
        }
    };
    let mut lines: Vec<_> = plan.changes.iter().map(line).collect();
    lines.sort();
    lines
}

/// An operator with objects that it has reconciled, and that is stopped.
struct Stopped<'a> {
    plane: &'a ControlPlane,
    operator: fn() -> Operator,
    kinds: &'a Kinds,
}

impl Stopped<'_> {
    /// Checks that a plan shows nothing, and that it shows what the operator then does after a user
    /// has changed objects. `settle` waits until the operator has processed the change.
    async fn check(
        &self,
        change: impl AsyncFnOnce() -> opkit::Result,
        settle: impl AsyncFnOnce() -> opkit::Result,
    ) -> opkit::Result<Vec<String>> {
        let (plane, operator) = (self.plane, self.operator);
        assert_eq!(lines(&plan(plane, operator()).await?), [""; 0]);
        change().await?;
        let before = objects(plane, self.kinds).await?;
        let planned = plan(plane, operator()).await?;
        // Nothing was written. Other controllers may still write the status.
        let present = objects(plane, self.kinds).await?;
        assert_eq!(changes(&before, &present), [""; 0]);
        let name = operator().name().to_owned();
        assert_eq!(written(&before, &name), written(&present, &name));
        assert!(!written(&before, &name).is_empty());

        let running = RunningOperator::start(plane, operator(), &[]).await?;
        settle().await?;
        running.stop().await?;
        let after = objects(plane, self.kinds).await?;
        assert_eq!(lines(&planned), changes(&before, &after));
        assert_eq!(lines(&plan(plane, operator()).await?), [""; 0]);
        Ok(lines(&planned))
    }
}

/// Runs an operator until `settle` returns.
async fn run(
    plane: &ControlPlane,
    operator: Operator,
    settle: impl AsyncFnOnce() -> opkit::Result,
) -> opkit::Result {
    let running = RunningOperator::start(plane, operator, &[]).await?;
    settle().await?;
    running.stop().await
}

#[opkit::test]
async fn a_plan_of_the_robot_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let robot = |image: &str| {
        let image = image.to_owned();
        let spec = RobotSpec {
            image,
            replicas: 1,
            command: None,
        };
        Robot::new("one", spec)
    };
    let is_settled = |robot: &Robot| {
        let status = robot.status.as_ref();
        let seen = status.and_then(|status| status.observed_generation);
        robot.is_ready() && seen == robot.metadata.generation
    };
    run(&plane, robot_operator::operator(), async || {
        plane.apply(robot("nginx:1.27")).await?;
        plane.eventually("one", is_settled).await.map(drop)
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: robot_operator::operator,
        kinds: &[("apps", "v1", "Deployment", "deployments")],
    };
    let image = |deployment: &Deployment| {
        let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref();
        pod.unwrap().containers[0].image.as_deref() == Some("nginx:1.28")
    };
    let planned = stopped.check(
        async || plane.apply(robot("nginx:1.28")).await.map(drop),
        async || {
            plane.eventually("one", image).await?;
            plane.eventually("one", is_settled).await.map(drop)
        },
    );
    let field = ".spec.template.spec.containers[robot].image";
    let line = format!(r#"~ Deployment one: {field} "nginx:1.27" -> "nginx:1.28""#);
    assert_eq!(planned.await?, [line]);
    Ok(())
}

#[opkit::test]
async fn a_plan_names_the_reconciled_object_and_the_new_one(plane: ControlPlane) -> opkit::Result {
    plane.install(&robot_operator::operator()).await?;
    let spec = RobotSpec {
        image: "nginx:1.27".into(),
        replicas: 1,
        command: None,
    };
    plane.apply(Robot::new("one", spec)).await?;
    let plan = plan(&plane, robot_operator::operator()).await?;
    let change = &plan.changes[0];
    assert_eq!(change.change, PlannedEffect::Created);
    assert_eq!(change.reconciled[0].to_string(), "robot/one");
    // The server has set the default.
    let strategy = &change.object.as_ref().unwrap()["spec"]["strategy"]["type"];
    assert_eq!(strategy, "RollingUpdate");
    assert_eq!(
        (
            plan.reconciled[0].plural.as_str(),
            plan.reconciled[0].objects
        ),
        ("robots", 1)
    );
    assert!(plane.get::<Deployment>("one").await?.is_none());
    Ok(())
}

#[opkit::test]
async fn a_plan_of_the_demo_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    let demo = |name: &str| {
        let spec = DemoSpec {
            size: 3,
            type_: "small".into(),
            config_map_name: name.into(),
        };
        Demo::new("one", spec)
    };
    let is_settled = |demo: &Demo| {
        let status = demo.status.as_ref();
        let seen = status.and_then(|status| status.observed_generation);
        seen == demo.metadata.generation
    };
    run(&plane, demo_operator::operator(), async || {
        plane.apply(demo("old")).await?;
        plane.eventually("one", is_settled).await.map(drop)
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: demo_operator::operator,
        kinds: &[
            ("", "v1", "ConfigMap", "configmaps"),
            ("demo.opkit.dev", "v1", "Demo", "demos"),
        ],
    };
    let planned = stopped.check(
        async || plane.apply(demo("new")).await.map(drop),
        async || {
            plane.eventually_gone::<ConfigMap>("old").await?;
            plane.eventually("one", is_settled).await.map(drop)
        },
    );
    assert_eq!(planned.await?, ["+ ConfigMap new", "- ConfigMap old"]);
    // The finalizer of a deleted object is planned, too.
    plane.delete::<Demo>("one").await?;
    let deletion = plan(&plane, demo_operator::operator()).await?;
    assert_eq!(lines(&deletion), ["- ConfigMap new", "- Demo one"]);
    run(&plane, demo_operator::operator(), async || {
        plane.eventually_gone::<Demo>("one").await
    })
    .await
}

#[opkit::test]
async fn a_plan_of_the_secret_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    let token = |value: &str| {
        let mut secret: Secret = object(json!({"metadata": {"name": "token"}}));
        secret.data = Some([("token".to_owned(), ByteString(value.into()))].into());
        secret
    };
    let has = |value: &'static str| {
        move |secret: &Secret| {
            let data = secret.data.as_ref();
            data.is_some_and(|data| data["token"].0 == value.as_bytes())
        }
    };
    run(&plane, secret_operator::operator(), async || {
        plane.apply(token("old")).await?;
        let from = SecretReference {
            namespace: plane.namespace().into(),
            name: "token".into(),
        };
        plane
            .apply(SecretCopy::new("copy", SecretCopySpec { from }))
            .await?;
        plane.eventually("copy", has("old")).await.map(drop)
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: secret_operator::operator,
        kinds: &[("", "v1", "Secret", "secrets")],
    };
    let planned = stopped.check(
        async || plane.apply(token("new")).await.map(drop),
        async || plane.eventually("copy", has("new")).await.map(drop),
    );
    let line = r#"~ Secret copy: .data.token "REDACTED" -> "REDACTED""#;
    assert_eq!(planned.await?, [line]);
    Ok(())
}

#[opkit::test]
async fn a_plan_of_the_namespace_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    let settled = async |size: &'static str| namespace::annotated(&plane, Some(size)).await;
    run(&plane, namespace_operator::operator(), async || {
        namespace::resize(&plane, Some("small")).await?;
        settled("small").await
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: namespace_operator::operator,
        kinds: &[
            ("", "v1", "Namespace", "namespaces"),
            ("", "v1", "ResourceQuota", "resourcequotas"),
            ("", "v1", "LimitRange", "limitranges"),
            (
                "networking.k8s.io",
                "v1",
                "NetworkPolicy",
                "networkpolicies",
            ),
        ],
    };
    let planned = stopped.check(
        async || namespace::resize(&plane, Some("large")).await,
        async || settled("large").await,
    );
    let planned = planned.await?;
    let annotation = r#"~ Namespace: .metadata.annotations["namespace.opkit.dev/applied-size"] "small" -> "large""#;
    assert_eq!(planned[0], annotation);
    assert!(planned[1].starts_with("~ ResourceQuota namespace-operator: .spec.hard"));
    assert!(
        plane
            .get::<ResourceQuota>("namespace-operator")
            .await?
            .is_some()
    );
    plane.get::<Namespace>(plane.namespace()).await.map(drop)
}

#[opkit::test]
async fn a_plan_of_the_shop_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    run(&plane, shop_operator::operator(), async || {
        plane.apply(shop::settings("EUR")).await?;
        plane.apply(shop::shop()).await?;
        plane
            .eventually("one-database", |_: &StatefulSet| true)
            .await?;
        shop::run_database(&plane).await?;
        plane.eventually("one", shop::is_settled).await.map(drop)
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: shop_operator::operator,
        kinds: &[
            ("apps", "v1", "Deployment", "deployments"),
            ("apps", "v1", "StatefulSet", "statefulsets"),
            ("", "v1", "Service", "services"),
            (
                "policy",
                "v1",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
            ),
            ("networking.k8s.io", "v1", "Ingress", "ingresses"),
        ],
    };
    // One controller applies the image, and the other one scales.
    let patch = json!({"spec": {"image": "nginx:1.28", "sale": true}});
    let planned = stopped.check(
        async || merge::<Shop>(&plane, "one", patch).await.map(drop),
        async || plane.eventually("one", shop::is_settled).await.map(drop),
    );
    let planned = planned.await?;
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert!(planned[0].contains(".spec.replicas 2 -> 4"), "{planned:?}");
    assert!(
        planned[0].contains(r#""nginx:1.27" -> "nginx:1.28""#),
        "{planned:?}"
    );
    Ok(())
}

#[opkit::test]
async fn a_plan_of_the_database_operator_is_what_it_does(plane: ControlPlane) -> opkit::Result {
    let database = |version: &str| {
        let spec = DatabaseSpec {
            engine: Engine::Postgres,
            version: version.to_owned(),
            replicas: 1,
            storage: "1Gi".parse().unwrap(),
            backup: None,
            password_secret_ref: None,
        };
        Database::new("one", spec)
    };
    // A status with a problem, such as permissions that the server does not know yet, is not the
    // last one.
    let is_settled = |database: &Database| {
        let status = database.status.as_ref();
        status.is_some_and(|status| {
            let degraded = status.conditions.get("Degraded");
            status.observed_generation == database.metadata.generation
                && degraded.is_some_and(|degraded| degraded.reason == "AsExpected")
        })
    };
    run(&plane, database_operator::operator(), async || {
        plane.apply(database("17")).await?;
        plane.eventually("one", is_settled).await.map(drop)
    })
    .await?;
    let stopped = Stopped {
        plane: &plane,
        operator: database_operator::operator,
        kinds: &[
            ("apps", "v1", "StatefulSet", "statefulsets"),
            ("", "v1", "Service", "services"),
            ("", "v1", "Secret", "secrets"),
            ("", "v1", "ConfigMap", "configmaps"),
        ],
    };
    let planned = stopped.check(
        async || plane.apply(database("18")).await.map(drop),
        async || plane.eventually("one", is_settled).await.map(drop),
    );
    let planned = planned.await?;
    assert!(
        planned
            .iter()
            .any(|line| line.starts_with("~ StatefulSet one: ")),
        "{planned:?}"
    );
    merge::<Database>(&plane, "one", json!({"metadata": {"finalizers": null}})).await?;
    plane.delete::<Database>("one").await
}

/// The operator writes only a status, which no plan shows.
#[opkit::test]
async fn a_plan_of_the_catalog_operator_is_empty(plane: ControlPlane) -> opkit::Result {
    plane.install(&catalog_operator::operator()).await?;
    plane
        .apply(Product::new("tea", ProductSpec { price: 350 }))
        .await?;
    let plan = plan(&plane, catalog_operator::operator()).await?;
    assert_eq!((lines(&plan), plan.refused), (Vec::new(), None));
    let reconciled = &plan.reconciled[0];
    assert_eq!(
        (reconciled.plural.as_str(), reconciled.objects),
        ("products", 1)
    );
    let product: Product = plane.get("tea").await?.unwrap();
    assert!(product.status.is_none(), "nothing is written");
    Ok(())
}

#[opkit::test]
async fn the_bucket_operator_is_refused(plane: ControlPlane) -> opkit::Result {
    let operator = bucket_operator::operator();
    let client = plane.client();
    let plan = operator.plan(client, RunOptions::default(), CancellationToken::new());
    let expected = "its state App could write outside of the cluster; give `plan` one that cannot: .state_for_plan(App::read_only)";
    assert_eq!(plan.await?.refused.as_deref(), Some(expected));
    Ok(())
}
