//! Three replicas of the shop operator, one of which is killed and another one added while shops
//! are edited.

use std::collections::HashMap;

use http::{Request, Uri};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use opkit::controller::ReconcileLog;
use opkit::leaderelection::LeaderElectionOptions;
use opkit::operator::{RunOptions, ShardKey};
use opkit::prelude::*;
use serde_json::{Value, json};
use shop_operator::{Shop, ShopSpec};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const NAMESPACES: usize = 6;
const SHOPS: usize = 3;

/// How the replicas of a test divide the shops.
#[derive(Clone, Copy)]
struct Division {
    by: ShardKey,
    /// Whether the server selects the objects of shards. Without the feature gate
    /// `ShardedListAndWatch`, it ignores their selector.
    by_server: bool,
}

/// A replica of the shop operator, with a log of its own.
struct Replica {
    log: ReconcileLog,
    run: JoinSet<opkit::Result>,
}

impl Replica {
    async fn start(
        plane: &ControlPlane,
        division: Division,
        namespaces: &[String],
    ) -> opkit::Result<Self> {
        let seconds = Duration::from_secs;
        let lease = LeaderElectionOptions::new("shop-operator.opkit.dev");
        let lease = lease.timings(seconds(6), seconds(4), Duration::from_millis(500));
        let operator = shop_operator::operator();
        let operator = operator.leader_election(lease).sharded(division.by);
        let mut options = RunOptions::default();
        options.leader_election_namespace = Some(plane.namespace().to_owned());
        options.namespaces = namespaces.to_vec();
        let log = options.log.clone();
        let mut ready = options.ready.subscribe();
        let client = plane.operator_client(&operator, &options).await?;
        let client = match division.by_server {
            true => client,
            false => without_selector(client),
        };
        let mut run = JoinSet::new();
        run.spawn(operator.run_with(client, options, CancellationToken::new()));
        tokio::select! {
            ready = ready.wait_for(|ready| *ready) => drop(ready?),
            ended = run.join_next() => {
                return Err(Error::msg(format!("the operator stopped: {ended:?}")));
            }
        }
        Ok(Self { log, run })
    }

    /// Ends the replica as a crash does: its Leases stay.
    async fn kill(&mut self) {
        self.run.abort_all();
        while self.run.join_next().await.is_some() {}
    }
}

/// Returns a client whose server does not know the selector of shards.
fn without_selector(client: kube::Client) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        async move {
            let uri = request.uri().to_string();
            if let Some((path, query)) = uri.split_once('?') {
                let kept = query.split('&');
                let kept: Vec<_> = kept
                    .filter(|it| !it.starts_with("shardSelector="))
                    .collect();
                *request.uri_mut() = format!("{path}?{}", kept.join("&")).parse::<Uri>()?;
            }
            let response = client.send(request).await?;
            Ok::<_, tower::BoxError>(response)
        }
    });
    kube::Client::new(service, namespace)
}

/// The shops of a test, in namespaces of their own.
struct Shops {
    plane: ControlPlane,
    namespaces: Vec<String>,
}

impl Shops {
    async fn create(plane: &ControlPlane) -> opkit::Result<Self> {
        plane.install(&shop_operator::operator()).await?;
        // Names that differ only at their end would be in one slot.
        let names = (0..NAMESPACES).map(|at| format!("mall-{at}-of-{}", plane.namespace()));
        let namespaces: Vec<String> = names.collect();
        for namespace in &namespaces {
            let object = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
            plane.apply::<Namespace>(object).await?;
            let settings = json!({"metadata": {"name": "settings", "namespace": namespace}});
            plane
                .apply::<ConfigMap>(serde_json::from_value(settings)?)
                .await?;
            for shop in 0..SHOPS {
                let spec = ShopSpec {
                    image: "nginx:1".into(),
                    replicas: 1,
                    sale: false,
                    config_map: "settings".into(),
                    database: None,
                    host: None,
                };
                let mut shop = Shop::new(&format!("shop-{shop}"), spec);
                shop.metadata.namespace = Some(namespace.clone());
                plane.apply(shop).await?;
            }
        }
        let plane = plane.clone();
        Ok(Self { plane, namespaces })
    }

    /// Sets the image of all shops.
    async fn edit(&self, image: &str) -> opkit::Result {
        for namespace in &self.namespaces {
            let api: Api<Shop> = Api::namespaced(self.plane.client(), namespace);
            for shop in 0..SHOPS {
                let patch = Patch::Merge(json!({"spec": {"image": image}}));
                let params = PatchParams::default();
                api.patch(&format!("shop-{shop}"), &params, &patch).await?;
            }
        }
        Ok(())
    }

    /// Waits until the web servers of all shops have an image.
    async fn until_all_run(&self, image: &str) -> opkit::Result {
        for namespace in &self.namespaces {
            for shop in 0..SHOPS {
                let key = (namespace.as_str(), format!("shop-{shop}").as_str()).into();
                let runs = |deployment: &Deployment| {
                    let spec = deployment.spec.as_ref();
                    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
                    let image_of = |it: &k8s_openapi::api::core::v1::Container| it.image.clone();
                    let images = pod.map(|pod| pod.containers.iter().filter_map(image_of));
                    images.into_iter().flatten().any(|it| it == image)
                };
                let key: ObjectKey = key;
                self.plane.eventually(key, runs).await?;
            }
        }
        Ok(())
    }

    async fn delete(self) -> opkit::Result {
        for namespace in self.namespaces {
            self.plane.delete::<Namespace>(namespace.as_str()).await?;
        }
        Ok(())
    }
}

/// Checks in the records that no two replicas reconciled a shop at the same time.
fn check_owners(replicas: &[&Replica]) {
    let mut reconciles: HashMap<_, Vec<_>> = HashMap::new();
    for (replica, log) in replicas.iter().map(|it| &it.log).enumerate() {
        for record in log.records() {
            let end = record.started + record.duration;
            let of = reconciles.entry((record.controller.clone(), record.request.clone()));
            of.or_default().push((record.started, end, replica));
        }
    }
    assert!(!reconciles.is_empty());
    for (object, mut reconciles) in reconciles {
        reconciles.sort_unstable();
        for pair in reconciles.windows(2) {
            let [(_, end, one), (start, _, other)] = pair else {
                continue;
            };
            assert!(one == other || end <= start, "{object:?}: {reconciles:?}");
        }
    }
}

/// Returns the number of slots of each replica of a ring; `None` if a slot has no owner.
fn shares(ring: &Lease) -> Option<Vec<usize>> {
    let slots = ring.annotations().get("opkit.dev/slots")?;
    let slots: Value = serde_json::from_str(slots).ok()?;
    let mut shares = vec![0; slots["members"].as_array()?.len()];
    // The owners are runs, such as `0*4,1*3`.
    for run in slots["owners"].as_str()?.split(',') {
        let (owner, count) = run.split_once('*')?;
        *shares.get_mut(owner.parse::<usize>().ok()?)? += count.parse::<usize>().ok()?;
    }
    Some(shares)
}

async fn three_replicas(plane: ControlPlane, division: Division) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    if division.by_server {
        plane.require(Capability::Shards)?;
    }
    let shops = Shops::create(&plane).await?;
    let start = || Replica::start(&plane, division, &shops.namespaces);
    let (one, mut two, three) = (start().await?, start().await?, start().await?);
    shops.until_all_run("nginx:1").await?;

    shops.edit("nginx:2").await?;
    two.kill().await;
    shops.edit("nginx:3").await?;
    shops.until_all_run("nginx:3").await?;

    shops.edit("nginx:4").await?;
    let four = start().await?;
    shops.edit("nginx:5").await?;
    shops.until_all_run("nginx:5").await?;

    check_owners(&[&one, &two, &three, &four]);
    // The replica that was killed is gone, and the others have equal shares.
    let is_divided = |ring: &Lease| {
        let shares = shares(ring).unwrap_or_default();
        let (least, most) = (shares.iter().min(), shares.iter().max());
        shares.len() == 3
            && least
                .zip(most)
                .is_some_and(|(least, most)| most - least <= 1)
    };
    plane
        .eventually("shop-operator.opkit.dev", is_divided)
        .await?;
    drop((one, three, four));
    shops.delete().await
}

#[opkit::test]
async fn three_replicas_divide_namespaces(plane: ControlPlane) -> opkit::Result {
    let (by, by_server) = (ShardKey::Namespace, true);
    three_replicas(plane, Division { by, by_server }).await
}

#[opkit::test]
async fn three_replicas_divide_namespaces_without_the_feature(
    plane: ControlPlane,
) -> opkit::Result {
    let (by, by_server) = (ShardKey::Namespace, false);
    three_replicas(plane, Division { by, by_server }).await
}

#[opkit::test]
async fn three_replicas_divide_objects(plane: ControlPlane) -> opkit::Result {
    let (by, by_server) = (ShardKey::Uid, true);
    three_replicas(plane, Division { by, by_server }).await
}

#[opkit::test]
async fn three_replicas_divide_objects_without_the_feature(plane: ControlPlane) -> opkit::Result {
    let (by, by_server) = (ShardKey::Uid, false);
    three_replicas(plane, Division { by, by_server }).await
}
