//! Reads and writes the Lease.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use opkit_client::{Kind, ObjectKey, RequestError, RestClient, one_line};
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::engine::{LeaseRecord, LeaseRequest, LeaseResponse, StoredRecord};

/// Lease of the election, read and written through a client.
#[derive(Debug)]
pub(crate) struct LeaseLock {
    client: RestClient,
    key: ObjectKey,
    labels: BTreeMap<String, String>,
    /// Lease at the last read or write, including fields of other clients.
    lease: Option<Value>,
}

/// Outcome of an HTTP request for the Lease.
#[derive(Debug)]
pub(crate) enum RequestOutcome {
    /// Result of a GET.
    Read(Result<Value, RequestError>),
    /// Result of a POST or PUT.
    Written(Result<Value, RequestError>),
    /// No response came within this time.
    TimedOut(Duration),
}

impl LeaseLock {
    pub(crate) fn new(
        client: RestClient,
        namespace: &str,
        name: &str,
        labels: BTreeMap<String, String>,
    ) -> Self {
        Self {
            client,
            key: ObjectKey::from((namespace, name)),
            labels,
            lease: None,
        }
    }

    /// Returns a future that sends a request.
    pub(crate) fn send(&self, request: LeaseRequest) -> BoxFuture<'static, RequestOutcome> {
        let kind = lease_kind();
        let collection = kind.path(self.key.namespace.as_deref());
        let object = collection.clone().name(&self.key.name);
        let (method, path, body) = match request {
            LeaseRequest::Get => (http::Method::GET, object, None),
            LeaseRequest::Create(record) => {
                let lease = json!({
                    "apiVersion": kind.api_version(),
                    "kind": kind.kind,
                    "metadata": {"name": self.key.name, "namespace": self.key.namespace},
                });
                let lease = with_record(lease, &record, &self.labels);
                (http::Method::POST, collection, Some(lease))
            }
            LeaseRequest::Update(record, version) => {
                let lease = self.lease.clone().unwrap_or_default();
                let mut lease = with_record(lease, &record, &self.labels);
                if let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("resourceVersion".to_owned(), json!(version));
                }
                (http::Method::PUT, object, Some(lease))
            }
        };
        let request = self.client.resource_request(method, &path);
        async move {
            match (body, request) {
                (None, Ok(request)) => RequestOutcome::Read(request.typed().await),
                (None, Err(error)) => RequestOutcome::Read(Err(error)),
                (Some(lease), Ok(request)) => {
                    RequestOutcome::Written(request.json(&lease).typed().await)
                }
                (Some(_), Err(error)) => RequestOutcome::Written(Err(error)),
            }
        }
        .boxed()
    }

    /// Stores the Lease of a successful request, logs an error, and returns the response for the
    /// engine.
    pub(crate) fn handle_outcome(&mut self, outcome: RequestOutcome) -> LeaseResponse {
        let lease = self.key.to_string();
        match outcome {
            RequestOutcome::Read(Ok(value)) => LeaseResponse::Read(Some(self.store(value))),
            RequestOutcome::Read(Err(error)) if error.is_not_found() => {
                self.lease = None;
                LeaseResponse::Read(None)
            }
            RequestOutcome::Written(Ok(value)) => LeaseResponse::Written(self.store(value)),
            RequestOutcome::Written(Err(error))
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() =>
            {
                LeaseResponse::Conflict
            }
            RequestOutcome::Read(Err(error)) => {
                let error = one_line(&error);
                warn!(lease, error, "cannot read the lease");
                LeaseResponse::Failed
            }
            RequestOutcome::Written(Err(error)) => {
                let error = one_line(&error);
                warn!(lease, error, "cannot write the lease");
                LeaseResponse::Failed
            }
            RequestOutcome::TimedOut(limit) => {
                warn!(
                    lease,
                    ?limit,
                    "no response to a request for the lease in time"
                );
                LeaseResponse::Failed
            }
        }
    }

    /// Stores a Lease and returns its record.
    fn store(&mut self, lease: Value) -> StoredRecord {
        let version = lease.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).unwrap_or_default();
        let stored = StoredRecord {
            record: record_of(&lease),
            version: version.to_owned(),
        };
        self.lease = Some(lease);
        stored
    }
}

/// Returns the kind of Leases. Leases are JSON values because k8s-openapi's type would tie this
/// crate to one Kubernetes version.
pub(crate) fn lease_kind() -> Kind {
    Kind {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
        namespaced: true,
    }
}

/// Returns the record of a Lease. Missing fields are empty or zero, as in client-go.
pub(crate) fn record_of(lease: &Value) -> LeaseRecord {
    let field = |name: &str| lease.get("spec").and_then(|spec| spec.get(name));
    let number = |name: &str| {
        let number = field(name).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let time = |name: &str| {
        let time = field(name).and_then(Value::as_str);
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        time.map_or(0, Timestamp::as_microsecond)
    };
    let holder = field("holderIdentity").and_then(Value::as_str);
    LeaseRecord {
        holder: holder.unwrap_or_default().to_owned(),
        lease_seconds: number("leaseDurationSeconds").unwrap_or_default(),
        acquire_time: time("acquireTime"),
        renew_time: time("renewTime"),
        transitions: number("leaseTransitions").unwrap_or_default(),
    }
}

/// Returns the Lease with its record and labels set, and all other fields unchanged.
pub(crate) fn with_record(
    mut lease: Value,
    record: &LeaseRecord,
    labels: &BTreeMap<String, String>,
) -> Value {
    let Value::Object(fields) = &mut lease else {
        return lease;
    };
    let spec = [
        ("holderIdentity", json!(record.holder)),
        ("leaseDurationSeconds", json!(record.lease_seconds)),
        ("acquireTime", micro_time(record.acquire_time)),
        ("renewTime", micro_time(record.renew_time)),
        ("leaseTransitions", json!(record.transitions)),
    ];
    set_fields(fields, "spec", spec);
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata")
        && !labels.is_empty()
    {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| (name.as_str(), json!(value)));
        set_fields(metadata, "labels", labels);
    }
    lease
}

/// Sets `values` in the object that is the field `name` of `fields`. Creates the object if it is
/// missing.
fn set_fields<'a>(
    fields: &mut Map<String, Value>,
    name: &str,
    values: impl IntoIterator<Item = (&'a str, Value)>,
) {
    let inner = fields.entry(name).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = json!({});
    }
    if let Value::Object(inner) = inner {
        for (name, value) in values {
            inner.insert(name.to_owned(), value);
        }
    }
}

/// Formats a Kubernetes MicroTime, which has exactly six digits after the decimal point.
fn micro_time(micros: i64) -> Value {
    match Timestamp::from_microsecond(micros) {
        Ok(time) => json!(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        Err(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests;
