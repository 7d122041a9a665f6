//! An operator that keeps buckets in an object store: something outside the cluster.
//!
//! It shows what such operators need: a state that reaches the outside, a finalizer that cleans up
//! there, errors that are retried as each of them asks for, a look at the outside now and then, and
//! a web hook that saves the wait.

mod bucket;
mod store;
mod web_hook;

use opkit::{prelude::*, trigger};

pub use bucket::{Bucket, BucketSpec, BucketStatus};
pub use store::{Answer, Deletion, MemoryStore, ObjectStore, Put, Settings, StoreError};
use web_hook::WebHook;

/// How often each bucket is looked at, whether or not anybody tells of a change.
const DRIFT_CHECK: Duration = Duration::from_secs(600);
/// How long to wait before asking again whether a bucket is empty.
const EMPTYING: Duration = Duration::from_secs(2);

/// What reconciles work with beside the cluster: here the store, elsewhere a pool of connections or
/// settings.
pub(crate) struct App {
    store: Box<dyn ObjectStore>,
}

impl App {
    /// A real store would be connected to here: an error ends the operator with one clear sentence.
    async fn connect(store: impl ObjectStore) -> Result<Self> {
        Ok(Self {
            store: Box::new(store),
        })
    }
}

/// The whole operator, with a store that forgets everything when it ends.
pub fn operator() -> Operator {
    operator_with(MemoryStore::default())
}

/// The operator with a store of one's own: what tests call.
pub fn operator_with(store: impl ObjectStore) -> Operator {
    let (trigger, calls) = trigger("web hook");
    Operator::new("bucket-operator")
        .crd::<Bucket>()
        .state(|| App::connect(store))
        .controller(
            Controller::new(reconcile)
                // The status that reconcile writes is no reason for another look at the store.
                .primary(|buckets| buckets.only(predicate::generation_changed()))
                .triggered_by(calls)
                .finalizer("bucket.opkit.dev/cleanup", clean_up)
                // Stores answer slowly; different buckets need not wait for each other.
                .max_concurrent_reconciles(8),
        )
        .runnable(WebHook { trigger })
}

/// Brings one bucket of the store to what its spec asks for, and says so in its status.
async fn reconcile(bucket: Arc<Bucket>, cx: Context<App>) -> Result<Action> {
    let name = bucket.name_any();
    let put = cx.state().store.put(&name, settings(&bucket, &cx)).await;

    let ready = match &put {
        Ok(_) => Condition::new("Ready", true).reason("InStore"),
        Err(error) => Condition::new("Ready", false)
            .reason(error.reason())
            .message(error.to_string()),
    };
    tell(&bucket, &put, &ready, &cx);
    cx.update_status(&bucket, |status| {
        status.url = put.is_ok().then(|| format!("memory://{name}"));
        status.conditions.set(&ready);
    })
    .await?;

    match put {
        // Somebody may change the bucket where Kubernetes does not see it.
        Ok(_) => Ok(Action::requeue(DRIFT_CHECK)),
        Err(error) => Err(retry(error)),
    }
}

/// Each error is retried in its own way.
fn retry(error: StoreError) -> Error {
    match error {
        // The store knows best when it has time.
        StoreError::Throttled(pause) => Error::retry_after(pause, error),
        // No retry helps before the object changes.
        StoreError::InvalidName(_) => Error::terminal(error),
        // The other may give it up, and nobody would tell us.
        StoreError::Taken { .. } => Error::retry_after(DRIFT_CHECK, error),
        // The object's own backoff: 5 ms, and twice as long each time.
        StoreError::Unavailable => error.into(),
    }
}

/// Events tell of transitions: one for each look at the store would only be noise.
fn tell(bucket: &Bucket, put: &Result<Put, StoreError>, ready: &Condition, cx: &Context<App>) {
    let before = bucket.status.as_ref();
    let before = before.and_then(|status| status.conditions.get("Ready"));
    match put {
        Ok(Put::Created) => cx.event(Normal, "Created", "made the bucket"),
        Ok(Put::Updated) => cx.event(Normal, "Updated", "changed the settings of the bucket"),
        Ok(Put::Unchanged) => {}
        Err(_) if before.is_some_and(|before| before.reason == ready.reason) => {}
        Err(error) => cx.event(Warning, error.reason(), error.to_string()),
    }
}

/// Deletes the bucket before its object goes. Called until it is done, also after a restart in
/// between.
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
