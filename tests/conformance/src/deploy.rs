//! Operators in a cluster: their manifests are applied, replaced, rolled back and removed. No
//! container runs: the Pods of the Deployments become Running, and that is what is waited for.

mod versions;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit::manifests::{Part, Settings};
use opkit::prelude::*;
use opkit::testing::Capability;
use opkit_deploy::{
    DeployError, Deployed, Deployer, ObjectReference, PART_OF_LABEL, Progress, Release,
};
use serde_json::{Value, json};

/// Returns a release of an operator in a namespace.
fn release(operator: Operator, version: &str, settings: &Settings) -> opkit::Result<Release> {
    let model = operator.manifests()?;
    let namespace = settings.namespace.as_deref().unwrap_or(&model.namespace);
    let mut release = Release::new(&model.operator, version, namespace);
    for it in model.objects(settings) {
        release.add(it.object);
    }
    release.runtime_objects = model.runtime_objects(settings);
    Ok(release)
}

fn settings(namespace: &str) -> Settings {
    let mut settings = Settings::default();
    settings.namespace = Some(namespace.to_owned());
    settings
}

/// Returns a name of this test, short enough to be part of other names.
fn unique(plane: &ControlPlane) -> &str {
    let namespace = plane.namespace();
    let start = namespace.len().saturating_sub(8);
    namespace.get(start..).unwrap_or(namespace)
}

/// Returns an operator that is known to this test only, with a CRD of its own.
fn fleet(plane: &ControlPlane, replicas: u32) -> opkit::Result<Release> {
    let unique = unique(plane);
    let mut settings = settings(&format!("{unique}-fleet"));
    settings.replicas = Some(replicas);
    let operator = Operator::new(format!("fleet-{unique}"));
    let mut release = release(operator, &format!("1.0.{replicas}"), &settings)?;
    release.add(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("fleets.{unique}.opkit.dev")},
        "spec": {
            "group": format!("{unique}.opkit.dev"), "scope": "Namespaced",
            "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    }));
    Ok(release)
}

/// Returns the objects that the set of a release has in the cluster, as `Kind/name`.
async fn members(plane: &ControlPlane, release: &Release) -> opkit::Result<Vec<String>> {
    let set = opkit_deploy::ApplySet::new(&release.operator, &release.namespace);
    let (client, namespace) = (plane.client(), release.namespace.as_str());
    let list = ListParams::default().labels(&format!("{PART_OF_LABEL}={}", set.id()));
    let mut found = Vec::new();
    macro_rules! members {
        ($($kind:ident in $api:expr),* $(,)?) => {$(
            let api: Api<$kind> = $api;
            for object in api.list(&list).await? {
                found.push(format!("{}/{}", stringify!($kind), object.name_any()));
            }
        )*};
    }
    members!(
        Namespace in Api::all(client.clone()),
        ClusterRole in Api::all(client.clone()),
        ClusterRoleBinding in Api::all(client.clone()),
        Role in Api::namespaced(client.clone(), namespace),
        ServiceAccount in Api::namespaced(client.clone(), namespace),
        Service in Api::namespaced(client.clone(), namespace),
        Deployment in Api::namespaced(client.clone(), namespace),
        PodDisruptionBudget in Api::namespaced(client.clone(), namespace),
    );
    Ok(found)
}

#[opkit::test]
async fn a_release_is_applied_pruned_rolled_back_and_removed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let deployer = Deployer::new(plane.client());
    let (two, one) = (fleet(&plane, 2)?, fleet(&plane, 1)?);
    let (operator, namespace) = (two.operator.clone(), two.namespace.clone());
    let ignore = &mut |_: Progress| {};

    // A dry run stores nothing, though its namespace does not exist.
    let dry = deployer.clone().dry_run(true).deploy(&two, ignore).await?;
    assert_eq!(dry.changed, []);
    assert_eq!(members(&plane, &two).await?, [""; 0]);

    let first = deployer.deploy(&two, ignore).await?;
    assert_eq!((first.revision, first.unchanged), (1, 0));
    assert_eq!(dry.created, first.created);
    assert_eq!(first.rollouts[0].available, 2);
    let before = members(&plane, &two).await?;
    let budget = format!("PodDisruptionBudget/{operator}-controller-manager");
    assert!(before.contains(&budget), "{before:?}");

    // The same release changes nothing and is no new revision.
    let again = deployer.deploy(&two, ignore).await?;
    assert_eq!(
        (again.revision, again.created.len(), again.changed.len()),
        (1, 0, 0)
    );

    // One replica needs no budget: it is pruned.
    let second = deployer.deploy(&one, ignore).await?;
    let deleted: Vec<_> = second.deleted.iter().map(ToString::to_string).collect();
    assert_eq!(
        deleted,
        [format!("poddisruptionbudget/{operator}-controller-manager")]
    );
    assert_eq!(second.revision, 2);
    assert!(!members(&plane, &two).await?.contains(&budget));

    // The rollback restores what was there.
    let back = deployer
        .rollback(&operator, &namespace, None, ignore)
        .await?;
    assert_eq!((back.revision, back.version.as_str()), (3, "1.0.2"));
    assert_eq!(back.rollouts[0].available, 2);
    assert_eq!(members(&plane, &two).await?, before);
    let numbers = deployer.history(&operator, &namespace).await?;
    let numbers: Vec<_> = numbers.iter().map(|revision| revision.number).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let error = deployer
        .rollback(&operator, &namespace, Some(9), ignore)
        .await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("no revision 9") && error.contains("1, 2, 3"),
        "{error}"
    );

    removed(&plane, &deployer, &two).await
}

/// Creates an object of the operator's kind and its Lease, removes the operator, and checks what is
/// left.
async fn removed(plane: &ControlPlane, deployer: &Deployer, release: &Release) -> opkit::Result {
    let (operator, namespace) = (&release.operator, &release.namespace);
    let ignore = &mut |_: Progress| {};
    let group = format!("{}.opkit.dev", unique(plane));
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group, "v1", "Fleet"), "fleets");
    let fleets: Api<DynamicObject> = Api::namespaced_with(plane.client(), plane.namespace(), &kind);
    fleets
        .create(&PostParams::default(), &DynamicObject::new("one", &kind))
        .await?;
    let error = deployer
        .uninstall(&release.crds, false, ignore)
        .await
        .unwrap_err();
    assert!(matches!(error, DeployError::Instances { .. }), "{error}");
    let lease: Lease = serde_json::from_value(release.runtime_objects[0].clone())?;
    let leases: Api<Lease> = Api::namespaced(plane.client(), namespace);
    leases.create(&PostParams::default(), &lease).await?;

    let undeployed = deployer.undeploy(operator, namespace, ignore).await?;
    let crd = format!("fleets.{group}");
    assert_eq!(undeployed.crds.kept, [(crd.clone(), Some(1))]);
    assert_eq!(members(plane, release).await?, [""; 0]);
    let namespaces: Api<Namespace> = Api::all(plane.client());
    assert!(
        namespaces.get_opt(namespace).await?.is_none(),
        "with Lease and revisions"
    );
    let error = deployer
        .undeploy(operator, namespace, ignore)
        .await
        .unwrap_err();
    assert!(matches!(error, DeployError::NotDeployed { .. }), "{error}");

    // Told so, the CRD goes with its objects.
    let crds: Api<CustomResourceDefinition> = Api::all(plane.client());
    assert!(crds.get_opt(&crd).await?.is_some());
    deployer.uninstall(&release.crds, true, ignore).await?;
    assert!(crds.get_opt(&crd).await?.is_none());
    Ok(())
}

/// A namespace that was there before the operator stays, with all that is not the operator's.
#[opkit::test]
async fn an_existing_namespace_is_not_removed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let operator = || Operator::new(format!("guest-{}", unique(&plane))).namespaced();
    let release = release(operator(), "1.0.0", &settings(plane.namespace()))?;
    let deployer = Deployer::new(plane.client());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "mine"}}))?;
    plane.apply(map).await?;
    deployer.deploy(&release, &mut |_| {}).await?;
    let found = members(&plane, &release).await?;
    assert!(
        !found.iter().any(|it| it.starts_with("Namespace/")),
        "{found:?}"
    );

    // A kind that the cluster does not have is reported before anything is changed.
    let mut prometheus = settings(plane.namespace());
    prometheus.prometheus = true;
    prometheus.replicas = Some(3);
    let prometheus = self::release(operator(), "1.0.1", &prometheus)?;
    let error = deployer.deploy(&prometheus, &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, DeployError::UnknownKind { .. }), "{error}");
    assert_eq!(members(&plane, &release).await?, found);

    // Another deployment of the same operator would take over its cluster-scoped objects.
    let mut elsewhere = release.clone();
    elsewhere.namespace = "kube-public".to_owned();
    let error = deployer.deploy(&elsewhere, &mut |_| {}).await.unwrap_err();
    assert!(
        matches!(error, DeployError::BelongsToAnotherSet { .. }),
        "{error}"
    );

    deployer
        .undeploy(&release.operator, &release.namespace, &mut |_| {})
        .await?;
    assert_eq!(members(&plane, &release).await?, [""; 0]);
    let secrets: Api<Secret> = Api::default_namespaced(plane.client());
    let left = secrets.list(&ListParams::default()).await?;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert!(
        !left.iter().any(|name| name.starts_with(&release.operator)),
        "{left:?}"
    );
    assert!(plane.get::<ConfigMap>("mine").await?.is_some());
    Ok(())
}

/// Plans a release and deploys it. Checks that the deployment did what was planned, and that
/// nothing is planned after it.
async fn deploy_as_planned(deployer: &Deployer, release: &Release) -> opkit::Result<Deployed> {
    let planned = deployer.plan(release).await?;
    let deployed = deployer.deploy(release, &mut |_| {}).await?;
    assert_eq!(planned.changes, deployed.changes);
    assert_eq!(planned.unchanged, deployed.unchanged);
    assert_eq!(deployer.plan(release).await?.changes, []);
    Ok(deployed)
}

/// The server accepts every object that the examples print, and their Pods run. CRDs are those of
/// other tests too, so they are installed and stay: an object of each kind keeps them.
async fn example(
    plane: &ControlPlane,
    operator: fn() -> Operator,
    sample: Option<Value>,
) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let deployer = Deployer::new(plane.client());
    let mut settings = settings(plane.namespace());
    settings.replicas = Some(2);
    settings.network_policy = true;
    settings.grafana = true;
    let release = release(operator(), "1.0.0", &settings)?;
    deployer.install(&release.crds, &mut |_| {}).await?;
    if let Some(sample) = sample {
        let (api_version, kind) = (sample["apiVersion"].as_str(), sample["kind"].as_str());
        let (group, version) = api_version.unwrap().split_once('/').unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.unwrap()));
        let objects: Api<DynamicObject> = Api::default_namespaced_with(plane.client(), &kind);
        let object: DynamicObject = serde_json::from_value(sample)?;
        objects.create(&PostParams::default(), &object).await?;
    }

    let deployed = deploy_as_planned(&deployer, &release).await?;
    assert_eq!(deployed.rollouts[0].available, 2);
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let label = format!("app.kubernetes.io/name={}", release.operator);
    let pods = pods.list(&ListParams::default().labels(&label)).await?;
    assert_eq!(pods.items.len(), 2);

    // Another image, and no budget, which one replica does not need.
    settings.replicas = Some(1);
    settings.image = Some("registry.example.com/operator:1.1.0".to_owned());
    let next = self::release(operator(), "1.1.0", &settings)?;
    let deployed = deploy_as_planned(&deployer, &next).await?;
    let names = |objects: &[ObjectReference]| -> Vec<String> {
        objects.iter().map(ToString::to_string).collect()
    };
    let manager = format!("{}-controller-manager", next.operator);
    assert_eq!(names(&deployed.created), [""; 0]);
    assert_eq!(names(&deployed.changed), [format!("deployment/{manager}")]);
    assert_eq!(
        names(&deployed.deleted),
        [format!("poddisruptionbudget/{manager}")]
    );

    let undeployed = deployer
        .undeploy(&release.operator, &release.namespace, &mut |_| {})
        .await?;
    assert_eq!(undeployed.crds.deleted, [""; 0]);
    assert_eq!(undeployed.crds.kept.len(), release.crds.len());
    assert_eq!(members(plane, &release).await?, [""; 0]);
    Ok(())
}

/// Returns an object of an example's kind.
fn sample(api_version: &str, kind: &str, spec: Value) -> Option<Value> {
    Some(json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "deployed"}, "spec": spec,
    }))
}

#[opkit::test]
async fn the_robot_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let spec = json!({"image": "nginx:1.27", "replicas": 1});
    let robot = sample("robot.opkit.dev/v1", "Robot", spec);
    example(&plane, || robot_operator::operator().namespaced(), robot).await
}

/// Limited to the namespace of the test: its webhooks must not be called by other tests.
#[opkit::test]
async fn the_shop_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let spec = json!({"image": "nginx:1.27", "replicas": 2, "configMap": "settings"});
    let shop = sample("shop.opkit.dev/v1", "Shop", spec);
    example(&plane, || shop_operator::operator().namespaced(), shop).await
}

#[opkit::test]
async fn the_bucket_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let bucket = sample("bucket.opkit.dev/v1", "Bucket", json!({"quotaGib": 20}));
    example(&plane, || bucket_operator::operator().namespaced(), bucket).await
}

#[opkit::test]
async fn the_catalog_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let product = sample("catalog.opkit.dev/v1", "Product", json!({"price": 350}));
    example(
        &plane,
        || catalog_operator::operator().namespaced(),
        product,
    )
    .await
}

#[opkit::test]
async fn the_database_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let spec = json!({"engine": "postgres", "version": "17", "replicas": 1, "storage": "1Gi"});
    let database = sample("db.example.com/v1", "Database", spec);
    example(
        &plane,
        || database_operator::operator().namespaced(),
        database,
    )
    .await
}

#[opkit::test]
async fn the_demo_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let spec = json!({"size": 3, "type": "small", "configMapName": "deployed"});
    let demo = sample("demo.opkit.dev/v1", "Demo", spec);
    example(&plane, || demo_operator::operator().namespaced(), demo).await
}

#[opkit::test]
async fn the_namespace_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    example(&plane, namespace_operator::operator, None).await
}

#[opkit::test]
async fn the_secret_operator_is_deployed(plane: ControlPlane) -> opkit::Result {
    let spec = json!({"from": {"namespace": plane.namespace(), "name": "none"}});
    let copy = sample("secret.opkit.dev/v1", "SecretCopy", spec);
    example(&plane, secret_operator::operator, copy).await
}

/// The Role in its own namespace is enough for an operator of one namespace.
#[opkit::test]
async fn a_namespaced_operator_reconciles_in_its_namespace(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(robot_operator::operator().namespaced()).await?;
    plane.apply(crate::robot::robot("near", 1)).await?;
    plane
        .eventually("near", |robot: &robot_operator::Robot| {
            crate::robot::has_ready(robot, 1)
        })
        .await?;
    Ok(())
}

/// Every example prints manifests whose objects are complete.
#[test]
fn all_examples_have_a_deployment_with_their_service_account() -> opkit::Result {
    let operators = [
        bucket_operator::operator(),
        catalog_operator::operator(),
        database_operator::operator(),
        demo_operator::operator(),
        namespace_operator::operator(),
        robot_operator::operator(),
        secret_operator::operator(),
        shop_operator::operator(),
    ];
    for operator in operators {
        let model = operator.manifests()?;
        let find = |kind: &str| {
            let objects = model.objects.iter().map(|it| &it.object);
            let mut objects = objects.filter(|object| object["kind"] == kind);
            objects.next().cloned().unwrap_or_default()
        };
        let account = &find("ServiceAccount")["metadata"]["name"];
        let pod = &find("Deployment")["spec"]["template"]["spec"];
        assert_eq!(&pod["serviceAccountName"], account, "{}", model.operator);
        assert!(model.objects.iter().any(|it| it.part == Part::Rbac));
    }
    Ok(())
}
