//! An operator that manages buckets in an object store, outside of the cluster.
//!
//! It shows the parts that such operators need: a state with a connection to the store, a finalizer
//! that cleans up there, a retry policy for each error, a periodic check for drift, and a web hook
//! that reports changes earlier.

mod bucket;
mod store;
mod web_hook;

use opkit::controller::trigger;
use opkit::prelude::*;

pub use bucket::{Bucket, BucketSpec, BucketStatus};
pub use store::{Deletion, MemoryStore, ObjectStore, Put, Settings, StoreError, StoreFuture};
use web_hook::WebHook;

/// Interval at which each bucket is checked, also without a report of a change.
const DRIFT_CHECK: Duration = Duration::from_secs(600);
/// Time between two checks whether a bucket that is being deleted is empty.
const EMPTYING: Duration = Duration::from_secs(2);

/// Shared state of the reconciles: here the store, elsewhere a connection pool or settings.
pub(crate) struct App {
    store: Box<dyn ObjectStore>,
}

impl App {
    /// Creates the state. A real operator would connect to its store here; an error stops the
    /// operator with one sentence.
    async fn connect(store: impl ObjectStore) -> Result<Self> {
        Ok(Self {
            store: Box::new(store),
        })
    }
}

/// Returns the operator, with a store that keeps its data in memory.
pub fn operator() -> Operator {
    operator_with(MemoryStore::default())
}

/// Returns the operator with another store; tests call this.
pub fn operator_with(store: impl ObjectStore) -> Operator {
    let (trigger, calls) = trigger("web hook");
    Operator::new("bucket-operator")
        .crd::<Bucket>()
        .state(|| App::connect(store))
        .controller(
            Controller::new(reconcile)
                // The status that reconcile writes must not lead to another request to the store.
                .primary(|buckets| buckets.only(predicate::generation_changed()))
                .triggered_by(calls)
                .finalizer("bucket.opkit.dev/cleanup", clean_up)
                // Stores respond slowly; different buckets need not wait for each other.
                .max_concurrent_reconciles(8),
        )
        .runnable(WebHook { trigger })
}

/// Brings one bucket of the store to the state in its spec, and reports the result in its status.
async fn reconcile(bucket: Arc<Bucket>, cx: Context<App>) -> Result<Action> {
    let name = bucket.name_any();
    let put = cx.state().store.put(&name, settings(&bucket, &cx)).await;

    let ready = match &put {
        Ok(_) => Condition::new("Ready", true).reason("InStore"),
        Err(error) => Condition::new("Ready", false)
            .reason(error.reason())
            .message(error.to_string()),
    };
    report_transition(&bucket, &put, &ready, &cx);
    cx.update_status(&bucket, |status| {
        status.url = put.is_ok().then(|| format!("memory://{name}"));
        status.conditions.set(&ready);
    })
    .await?;

    match put {
        // Another client of the store may change the bucket, which Kubernetes does not see.
        Ok(_) => Ok(Action::requeue(DRIFT_CHECK)),
        Err(error) => Err(retry(error)),
    }
}

/// Selects the retry policy of an error.
fn retry(error: StoreError) -> Error {
    match error {
        // The store sets the delay.
        StoreError::Throttled(pause) => Error::retry_after(pause, error),
        // No retry helps before the object changes.
        StoreError::InvalidName(_) => Error::terminal(error),
        // The other owner may release the bucket, without a notification.
        StoreError::Taken { .. } => Error::retry_after(DRIFT_CHECK, error),
        // The object's own backoff: 5 ms, doubled each time.
        StoreError::Unavailable => error.into(),
    }
}

/// Creates an event for each transition; one for each check of the store would only be noise.
fn report_transition(
    bucket: &Bucket,
    put: &Result<Put, StoreError>,
    ready: &Condition,
    cx: &Context<App>,
) {
    let before = bucket.status.as_ref();
    let before = before.and_then(|status| status.conditions.get("Ready"));
    match put {
        Ok(Put::Created) => cx.event(Normal, "Created", "created the bucket"),
        Ok(Put::Updated) => cx.event(Normal, "Updated", "changed the settings of the bucket"),
        Ok(Put::Unchanged) => {}
        Err(_) if before.is_some_and(|before| before.reason == ready.reason) => {}
        Err(error) => cx.event(Warning, error.reason(), error.to_string()),
    }
}

/// Deletes the bucket before its object is deleted. Called until it is done, also after a restart
/// in between.
async fn clean_up(bucket: Arc<Bucket>, cx: Context<App>) -> Result<Cleanup> {
    let (name, owner) = (bucket.name_any(), cx.key().to_string());
    match cx.state().store.delete(&name, &owner).await {
        Ok(Deletion::Done) => Ok(Cleanup::Done),
        Ok(Deletion::Pending) => Ok(Cleanup::Pending(EMPTYING)),
        Err(error) => Err(retry(error)),
    }
}

fn settings(bucket: &Bucket, cx: &Context<App>) -> Settings {
    Settings {
        owner: cx.key().to_string(),
        versioning: bucket.spec.versioning,
        quota_gib: bucket.spec.quota_gib,
    }
}
