use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::faults::script::Server;
use crate::{ShardKey, ShardSelector, Shards};

#[tokio::test(start_paused = true)]
async fn an_informer_that_becomes_equal_to_another_does_not_replace_it() {
    let server = Server::new(10);
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let client = RestClient::new(server.client());
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let all = factory.informer::<ConfigMap>();
    let half = InformerOptions::default().shards(Shards::part(ShardKey::Uid, 0, 2));
    let half = factory.informer_with::<ConfigMap>(half);
    let same = |one: &Lister<ConfigMap>, other: &Lister<ConfigMap>| {
        one.informer()
            .downgrade()
            .ptr_eq(&other.informer().downgrade())
    };
    factory.resplit(&half, Shards::default());
    assert!(same(&factory.informer(), &all));
    assert_eq!(
        factory.informers.lock().len(),
        2,
        "both are waited for and measured"
    );
    // It can be split again.
    let third = Shards::part(ShardKey::Uid, 0, 3);
    factory.resplit(&half, third.clone());
    let found = factory.informer_with(InformerOptions::default().shards(third));
    assert!(same(&found, &half));
    assert!(same(&factory.informer(), &all));
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}

/// Factory with a scripted server, whose tasks end when the test does.
fn factory(server: &Server) -> InformerFactory {
    let client = RestClient::new(server.client());
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    InformerFactory::new(client, Scope::All, tasks, stop)
}

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_resplit_waits_for_the_lists_of_the_new_part() {
    let server = Server::new(10);
    let factory = factory(&server);
    let slots = |slots: &[u32]| {
        let slots = slots.iter().copied();
        Shards::range(ShardSelector::slots(ShardKey::Uid, slots, 4))
    };
    let nothing = InformerOptions::default().shards(slots(&[]));
    let maps = factory.informer_with::<ConfigMap>(nothing);
    factory.wait_for_sync(TIMEOUT).await.unwrap();
    assert!(maps.is_empty() && factory.tasks.is_empty(), "no request");
    // The server's UIDs are spread over the slots by the number.
    for number in 0..40 {
        server.put(
            "configmaps",
            &format!("{number}-map"),
            serde_json::json!({}),
        );
    }
    let in_slots = |expected: &[u32]| {
        let hash = |number: u32| opkit_apimachinery::shard::hash(&format!("uid-of-{number}-map"));
        let slot = |number: u32| opkit_apimachinery::shard::slot(hash(number), 4);
        (0..40)
            .filter(|number| expected.contains(&slot(*number)))
            .count()
    };
    let two = factory.resplit(&maps, slots(&[0, 2]));
    assert!(!two.is_listed() && maps.informer().is_synced());
    two.wait(TIMEOUT).await.unwrap();
    assert!(two.is_listed());
    let count = in_slots(&[0, 2]);
    assert!(count > 0 && count < 40);
    assert_eq!(maps.len(), count);
    // Two splits in a row: both wait for the last one, and only its reflectors run.
    let first = factory.resplit(&maps, slots(&[0, 1, 2, 3]));
    let second = factory.resplit(&maps, slots(&[3]).watches(2));
    first.wait(TIMEOUT).await.unwrap();
    assert!(second.is_listed());
    assert_eq!(maps.len(), in_slots(&[3]));
    tokio::task::yield_now().await;
    assert_eq!(factory.tasks.len(), 2);
    let none = factory.resplit(&maps, slots(&[]));
    assert!(none.is_listed() && maps.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resplit_that_is_not_listed_in_time_is_an_error() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        let refusal = http::Response::builder().status(500);
        refusal.body(kube::client::Body::empty())
    });
    let client = RestClient::new(kube::Client::new(service, "d"));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let factory = InformerFactory::new(client, Scope::All, tasks, stop);
    let maps = factory.dynamic(Kind::of::<ConfigMap>(), InformerOptions::default());
    let half = factory.resplit(&maps, Shards::part(ShardKey::Uid, 0, 2));
    let error = half.wait(TIMEOUT).await.unwrap_err().to_string();
    let start = "the cache has no complete list of ConfigMap after 60 s: ";
    assert!(error.starts_with(start), "{error}");
}

#[tokio::test(start_paused = true)]
async fn informers_of_different_parts_are_not_shared() {
    let server = Server::new(10);
    let factory = factory(&server);
    let half = || ShardSelector::part(ShardKey::Uid, 0, 2);
    let parts = [
        Shards::default(),
        Shards::range(half()),
        Shards::owners(half()),
        Shards::range(ShardSelector::slots(ShardKey::Uid, [], 2)),
        Shards::owners(ShardSelector::slots(ShardKey::Uid, [], 2)),
        Shards::part(ShardKey::Namespace, 0, 2),
    ];
    let informer = |shards: &Shards| {
        factory.informer_with::<ConfigMap>(InformerOptions::default().shards(shards.clone()))
    };
    let informers: Vec<_> = parts.iter().map(informer).collect();
    assert_eq!(factory.informers.lock().len(), parts.len());
    for (part, started) in parts.iter().zip(&informers) {
        let again = informer(&part.clone().watches(3)).informer().downgrade();
        assert!(again.ptr_eq(&started.informer().downgrade()), "{part:?}");
    }
    let informers = factory.informers.lock();
    let mut labels: Vec<_> = informers.keys().map(Identity::selector).collect();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), parts.len(), "{labels:?}");
    // By owner, no selector is sent to the server.
    for (shards, sends) in parts.iter().zip([false, true, false, false, false, true]) {
        let parts = shards.parts(&[None]);
        assert_eq!(parts.iter().any(|part| !part.selector().is_empty()), sends);
    }
}
