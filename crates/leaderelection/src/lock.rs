//! The Lease on the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use opkit_client::{Kind, ObjectKey, RequestError, RestClient, one_line};
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::engine::{Answer, Record, Request, Stored};

/// The Lease, read and written through a client.
#[derive(Debug)]
pub(crate) struct Lock {
    client: RestClient,
    key: ObjectKey,
    labels: BTreeMap<String, String>,
    /// As it was read or written last, with whatever others keep in it.
    lease: Option<Value>,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Read(Result<Value, RequestError>),
    Written(Result<Value, RequestError>),
    Late(Duration),
}

impl Reply {
    pub(crate) fn late(limit: Duration) -> Self {
        Self::Late(limit)
    }
}

impl Lock {
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

    pub(crate) fn send(&self, request: Request) -> BoxFuture<'static, Reply> {
        let kind = lease_kind();
        let collection = kind.path(self.key.namespace.as_deref());
        let object = collection.clone().name(&self.key.name);
        let (method, path, body) = match request {
            Request::Get => (http::Method::GET, object, None),
            Request::Create(record) => {
                let lease = json!({
                    "apiVersion": kind.api_version(),
                    "kind": kind.kind,
                    "metadata": {"name": self.key.name, "namespace": self.key.namespace},
                });
                let lease = written(lease, &record, &self.labels);
                (http::Method::POST, collection, Some(lease))
            }
            Request::Update(record, version) => {
                let lease = self.lease.clone().unwrap_or_default();
                let mut lease = written(lease, &record, &self.labels);
                if let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("resourceVersion".to_owned(), json!(version));
                }
                (http::Method::PUT, object, Some(lease))
            }
        };
        let request = self.client.resource_request(method, &path);
        async move {
            match (body, request) {
                (None, Ok(request)) => Reply::Read(request.typed().await),
                (None, Err(error)) => Reply::Read(Err(error)),
                (Some(lease), Ok(request)) => Reply::Written(request.json(&lease).typed().await),
                (Some(_), Err(error)) => Reply::Written(Err(error)),
            }
        }
        .boxed()
    }

    /// Keeps the lease that came, and says what the reply means.
    pub(crate) fn take_in(&mut self, reply: Reply) -> Answer {
        let lease = self.key.to_string();
        match reply {
            Reply::Read(Ok(value)) => Answer::Read(Some(self.keep(value))),
            Reply::Read(Err(error)) if error.is_not_found() => {
                self.lease = None;
                Answer::Read(None)
            }
            Reply::Written(Ok(value)) => Answer::Written(self.keep(value)),
            Reply::Written(Err(error))
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() =>
            {
                Answer::Conflict
            }
            Reply::Read(Err(error)) => {
                let error = one_line(&error);
                warn!(lease, error, "cannot read the lease");
                Answer::Failed
            }
            Reply::Written(Err(error)) => {
                let error = one_line(&error);
                warn!(lease, error, "cannot write the lease");
                Answer::Failed
            }
            Reply::Late(limit) => {
                warn!(lease, ?limit, "no answer about the lease in time");
                Answer::Failed
            }
        }
    }

    fn keep(&mut self, lease: Value) -> Stored {
        let version = lease.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).unwrap_or_default();
        let stored = Stored {
            record: record_of(&lease),
            version: version.to_owned(),
        };
        self.lease = Some(lease);
        stored
    }
}

/// Written as a value, because k8s-openapi's type would tie this room to one Kubernetes version.
fn lease_kind() -> Kind {
    Kind {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
        namespaced: true,
    }
}

/// What a lease says; what it leaves out is empty or zero, as in client-go.
fn record_of(lease: &Value) -> Record {
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
    Record {
        holder: holder.unwrap_or_default().to_owned(),
        lease_seconds: number("leaseDurationSeconds").unwrap_or_default(),
        acquire_time: time("acquireTime"),
        renew_time: time("renewTime"),
        transitions: number("leaseTransitions").unwrap_or_default(),
    }
}

/// The lease with the record and the labels in it, and all else as it was.
fn written(mut lease: Value, record: &Record, labels: &BTreeMap<String, String>) -> Value {
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
    set(fields, "spec", spec);
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata")
        && !labels.is_empty()
    {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| (name.as_str(), json!(value)));
        set(metadata, "labels", labels);
    }
    lease
}

/// Sets fields of the object at `name`, which is made if there is none.
fn set<'a>(
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

/// Kubernetes' MicroTime has exactly six digits.
fn micro_time(micros: i64) -> Value {
    match Timestamp::from_microsecond(micros) {
        Ok(time) => json!(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        Err(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests;
