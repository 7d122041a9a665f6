use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::faults::script::Server;
use crate::{ShardKey, Shards};

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
