//! Reads and writes the Leases of a ring: that of the ring, and those of its members.

use std::collections::HashMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use opkit_apimachinery::selector::label_value_errors;
use opkit_apimachinery::shard::hash;
use opkit_client::{
    DeleteOptions, ListOptions, ObjectKey, RequestError, ResponseFormat, RestClient, one_line,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::engine::{MemberLease, RingRequest, RingResponse, Snapshot};
use super::ring::Ring;
use crate::lock::{lease_kind, record_of, with_record};

/// Label of all Leases of a ring. The value is the name of the ring.
pub(super) const LABEL: &str = "opkit.dev/ring";
/// Annotation of the ring's Lease with the content of the ring.
const ANNOTATION: &str = "opkit.dev/slots";

/// Returns the name of the member Lease of a replica.
pub(super) fn lease_of(ring: &str, identity: &str) -> String {
    format!("{ring}-{:016x}", hash(identity))
}

/// Returns the value of the label [`LABEL`]: the name of the ring, or its hash if the name is not
/// valid as a value of a label.
pub(super) fn label_of(ring: &str) -> String {
    match label_value_errors(ring).is_empty() {
        true => ring.to_owned(),
        false => format!("{:016x}", hash(ring)),
    }
}

/// Leases of a ring, read and written through a client.
#[derive(Debug)]
pub(super) struct RingLeases {
    client: RestClient,
    namespace: String,
    ring: String,
    /// Leases at the last list, including fields of other clients.
    leases: HashMap<String, Value>,
    /// Whether the server refused to create the ring's Lease because it exists.
    exists: bool,
}

/// Outcome of an HTTP request.
#[derive(Debug)]
pub(super) enum RingOutcome {
    Listed(Result<Value, RequestError>),
    Written(Result<(), RequestError>),
    /// No response came within this time.
    TimedOut(Duration),
}

impl RingLeases {
    pub(super) fn new(client: RestClient, namespace: &str, ring: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            ring: ring.to_owned(),
            leases: HashMap::new(),
            exists: false,
        }
    }

    /// Returns a future that sends a request.
    pub(super) fn send(&self, request: RingRequest) -> BoxFuture<'static, RingOutcome> {
        match request {
            RingRequest::List => self.list().boxed(),
            RingRequest::Create(ring) => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {
                        "name": self.ring, "namespace": self.namespace,
                        "labels": {LABEL: label_of(&self.ring)},
                        "annotations": {ANNOTATION: ring.to_text()},
                    },
                    "spec": {},
                });
                self.write(Method::POST, &self.ring, Some(lease))
            }
            RingRequest::Update(ring, version) => {
                let mut lease = self.leases.get(&self.ring).cloned().unwrap_or_default();
                set(
                    &mut lease,
                    &["metadata", "annotations", ANNOTATION],
                    json!(ring.to_text()),
                );
                set(
                    &mut lease,
                    &["metadata", "labels", LABEL],
                    json!(label_of(&self.ring)),
                );
                set(&mut lease, &["metadata", "resourceVersion"], json!(version));
                self.write(Method::PUT, &self.ring, Some(lease))
            }
            RingRequest::RemoveHolder(member) => {
                let lease = self.leases.get(&member.name).cloned().unwrap_or_default();
                let mut lease = with_record(lease, &member.record, &Default::default());
                set(
                    &mut lease,
                    &["metadata", "resourceVersion"],
                    json!(member.version),
                );
                self.write(Method::PUT, &member.name, Some(lease))
            }
            RingRequest::Delete(member) => {
                let options = DeleteOptions::default().resource_version(member.version);
                self.delete(&member.name, options).boxed()
            }
        }
    }

    fn list(&self) -> impl Future<Output = RingOutcome> + Send + use<> {
        let path = lease_kind().path(Some(&self.namespace)).build();
        let (client, selector) = (
            self.client.clone(),
            format!("{LABEL}={}", label_of(&self.ring)),
        );
        async move {
            let path = path.unwrap_or_default();
            let request = client.request(Method::GET, &path);
            RingOutcome::Listed(request.query("labelSelector", &selector).typed().await)
        }
    }

    fn write(
        &self,
        method: Method,
        name: &str,
        lease: Option<Value>,
    ) -> BoxFuture<'static, RingOutcome> {
        let kind = lease_kind();
        let collection = kind.path(Some(&self.namespace));
        let path = match method {
            Method::POST => collection,
            _ => collection.name(name),
        };
        let request = self.client.resource_request(method, &path);
        async move {
            let written = match request {
                Ok(request) => request.json(&lease).bytes().await.map(drop),
                Err(error) => Err(error),
            };
            RingOutcome::Written(written)
        }
        .boxed()
    }

    pub(super) fn delete(
        &self,
        name: &str,
        options: DeleteOptions,
    ) -> impl Future<Output = RingOutcome> + Send + use<> {
        let key = ObjectKey::from((self.namespace.as_str(), name));
        let client = self.client.clone();
        async move {
            let deleted = client.delete(&lease_kind(), &key, &options).await;
            RingOutcome::Written(deleted.map(drop))
        }
    }

    /// Stores the Leases of a list, logs an error, and returns the response for the engine.
    pub(super) fn handle_outcome(&mut self, outcome: RingOutcome) -> RingResponse {
        let ring = &self.ring;
        match outcome {
            RingOutcome::Listed(Ok(list)) => match self.snapshot(list) {
                Some(snapshot) => RingResponse::Listed(snapshot),
                None => RingResponse::Failed,
            },
            RingOutcome::Written(Ok(())) => RingResponse::Written,
            RingOutcome::Written(Err(error))
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() =>
            {
                self.exists = error.is_already_exists();
                RingResponse::Conflict
            }
            RingOutcome::Listed(Err(error)) => {
                let error = one_line(&error);
                warn!(ring, error, "cannot read the leases of the ring");
                RingResponse::Failed
            }
            RingOutcome::Written(Err(error)) => {
                let error = one_line(&error);
                warn!(ring, error, "cannot write a lease of the ring");
                RingResponse::Failed
            }
            RingOutcome::TimedOut(limit) => {
                warn!(
                    ring,
                    ?limit,
                    "no response to a request for the ring in time"
                );
                RingResponse::Failed
            }
        }
    }

    /// Returns the ring and the member Leases of a list, or `None` if the content of the ring
    /// cannot be read.
    fn snapshot(&mut self, mut list: Value) -> Option<Snapshot> {
        let items = list.get_mut("items").map(Value::take);
        let items = items.and_then(|items| match items {
            Value::Array(items) => Some(items),
            _ => None,
        });
        let mut snapshot = Snapshot::default();
        self.leases.clear();
        for lease in items.unwrap_or_default() {
            let text = |path: &str| lease.pointer(path).and_then(Value::as_str);
            let name = text("/metadata/name").unwrap_or_default().to_owned();
            let version = text("/metadata/resourceVersion")
                .unwrap_or_default()
                .to_owned();
            if name == self.ring {
                let annotations = lease.pointer("/metadata/annotations");
                let content = annotations.and_then(|it| it.get(ANNOTATION)?.as_str());
                match Ring::parse(content.unwrap_or_default()) {
                    Ok(ring) => {
                        snapshot.ring = Some((ring, version));
                        snapshot.ring_uid = text("/metadata/uid").unwrap_or_default().to_owned();
                    }
                    Err(error) => {
                        let ring = &self.ring;
                        warn!(ring, %error, "cannot read the annotation {ANNOTATION} of the lease; to start a new ring, scale the operator to 0 replicas and delete the lease");
                        return None;
                    }
                }
            } else {
                let record = record_of(&lease);
                snapshot.leases.push(MemberLease {
                    name: name.clone(),
                    record,
                    version,
                });
            }
            self.leases.insert(name, lease);
        }
        if std::mem::take(&mut self.exists) && snapshot.ring.is_none() {
            let (ring, label) = (&self.ring, label_of(&self.ring));
            warn!(
                ring,
                "the lease has no label {LABEL}={label}; add the label, or scale the operator to 0 replicas and delete the lease"
            );
        }
        Some(snapshot)
    }
}

/// Sets a field of an object. Creates the objects that contain it if they are missing.
fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    if let Value::Object(fields) = object {
        set(fields.entry(*name).or_insert(Value::Null), rest, value);
    }
}

/// Watches the ring and notifies `changed` of each change, until the future is dropped. The server
/// ends each watch after some minutes, and then the next one starts at once; it starts with the
/// present state of the ring, so no change is missed. If a watch fails or ends early, waits for
/// `pause` first; the changes of that time are found by the next list.
pub(super) async fn watch(
    client: RestClient,
    namespace: String,
    ring: String,
    changed: &Notify,
    pause: Duration,
) {
    let mut options = ListOptions::new();
    options.namespace = Some(namespace);
    options.field_selector = format!("metadata.name={ring}");
    let format = ResponseFormat::default();
    loop {
        let started = Instant::now();
        match client.watch(&lease_kind(), &options, format).await {
            Ok(mut events) => {
                while let Some(Ok(_)) = events.next().await {
                    changed.notify_one();
                }
            }
            Err(error) => {
                let error = one_line(&error);
                debug!(ring, error, "cannot watch the ring");
            }
        }
        // The ring may have changed since the last event.
        changed.notify_one();
        if started.elapsed() < pause {
            sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests;
