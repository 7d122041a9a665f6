//! Notices changes of single objects.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{Kind, ListOptions, ObjectKey, ResponseFormat, RestClient};
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::debug;

/// Pause between two watches.
const PAUSE: Duration = Duration::from_secs(5);

/// Watches one object and notifies of each event; never returns. Failed watches are repeated: the
/// keeper also reads all objects at regular intervals.
pub(crate) fn on_change(
    client: &RestClient,
    kind: Kind,
    key: ObjectKey,
    changed: &Arc<Notify>,
) -> impl Future<Output = ()> + Send + use<> {
    let (client, changed) = (client.clone(), changed.clone());
    let mut options = ListOptions::new().fields(&format!("metadata.name={}", key.name));
    if let Some(namespace) = &key.namespace {
        options = options.in_namespace(namespace);
    }
    async move {
        loop {
            match client
                .watch(&kind, &options, ResponseFormat::default())
                .await
            {
                Ok(mut frames) => {
                    while let Some(Ok(frame)) = frames.next().await {
                        if !is_bookmark(&frame) {
                            changed.notify_one();
                        }
                    }
                }
                Err(error) => debug!(%error, %key, "cannot watch"),
            }
            sleep(PAUSE).await;
        }
    }
}

fn is_bookmark(frame: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type")]
        type_: &'a str,
    }
    serde_json::from_slice(frame).is_ok_and(|event: Event<'_>| event.type_ == "BOOKMARK")
}
