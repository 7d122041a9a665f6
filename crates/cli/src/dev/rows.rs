//! Rows of the view, one per object.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{DynamicClient, Kind, ListOptions, Unstructured};
use opkit_dashboard::ObjectRow;
use opkit_debug::{Outcome, Reconcile};
use serde_json::Value;

/// Object of one of the operator's own kinds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) ready: String,
    pub(crate) status: String,
    pub(crate) last: Option<LastReconcile>,
}

impl Row {
    /// Returns `kind/name` of the object, with the namespace unless it is the default namespace.
    pub(crate) fn object(&self) -> String {
        match self.namespace.as_deref() {
            None | Some("default") => format!("{} {}", self.kind, self.name),
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
        }
    }

    /// Returns the row of the view.
    pub(crate) fn shown(&self) -> ObjectRow {
        let namespace = self.namespace.as_deref();
        ObjectRow::new(&self.kind, namespace, &self.name, &self.ready, &self.status)
    }
}

/// Last reconcile of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastReconcile {
    pub(crate) duration: Duration,
    pub(crate) cause: String,
    pub(crate) error: Option<String>,
}

/// Returns the objects of the kinds that `crds` define, each with its last reconcile.
pub(crate) async fn collect(
    client: &DynamicClient,
    crds: &[CustomResourceDefinition],
    reconciles: &[Reconcile],
) -> Vec<Row> {
    let mut rows = Vec::new();
    for crd in crds {
        let Some(version) = crd.spec.versions.iter().find(|version| version.served) else {
            continue;
        };
        let names = &crd.spec.names;
        let resource = client.resource(Kind {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
            namespaced: crd.spec.scope == "Namespaced",
        });
        // A kind that cannot be listed now is listed at the next refresh.
        let Ok(objects) = resource.list(&ListOptions::new()).await else {
            continue;
        };
        rows.extend(
            objects
                .items
                .iter()
                .map(|object| row(&names.kind, object, reconciles)),
        );
    }
    rows
}

fn row(kind: &str, object: &Unstructured, reconciles: &[Reconcile]) -> Row {
    let summary = summary(object);
    let count = |field: &str, name: &str| object.get_i64(&[field, name]);
    let is_ready = summary.as_ref().and_then(|it| it.ready.clone());
    let ready = match count("spec", "replicas") {
        Some(wanted) => format!("{}/{wanted}", count("status", "readyReplicas").unwrap_or(0)),
        None => is_ready.unwrap_or_else(|| "-".to_owned()),
    };
    let last = reconciles
        .iter()
        .filter(|r| {
            r.kind == kind
                && r.name == object.name()
                && r.namespace.as_deref() == object.namespace()
        })
        .max_by_key(|r| r.started)
        .map(last_of);
    Row {
        kind: kind.to_owned(),
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
        ready,
        status: summary.map_or_else(|| "-".to_owned(), |it| it.text),
        last,
    }
}

fn last_of(reconcile: &Reconcile) -> LastReconcile {
    LastReconcile {
        duration: Duration::try_from_secs_f64(reconcile.duration_seconds).unwrap_or_default(),
        cause: causes(&reconcile.causes),
        error: match &reconcile.result {
            Outcome::Error { message, .. } => Some(message.clone()),
            Outcome::Ok | Outcome::Requeue { .. } => None,
        },
    }
}

/// Status of an object in one column. It is the reason of the condition `Ready`, if there is one.
/// Otherwise it is the type, status and reason of the condition `Available` or, without
/// `Available`, of the condition that changed last. For an object without conditions it is the
/// phase.
#[derive(Debug, PartialEq)]
struct Summary {
    /// Status of the condition `Ready`, or of `Available`.
    ready: Option<String>,
    text: String,
}

fn summary(object: &Unstructured) -> Option<Summary> {
    let conditions = object.get(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value, field: &str| {
        let text = value.get(field).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let of = |type_: &str| conditions.iter().find(|it| it["type"] == type_);
    if let Some(ready) = of("Ready") {
        return Some(Summary {
            ready: text(ready, "status"),
            text: text(ready, "reason").unwrap_or_else(|| "-".to_owned()),
        });
    }
    let available = of("Available");
    // Times of the same format can be compared as text; of several conditions with the same time,
    // the last is taken.
    let last = || {
        conditions
            .iter()
            .max_by_key(|it| text(it, "lastTransitionTime"))
    };
    let Some(condition) = available.or_else(last) else {
        let phase = text(object.get(&["status"])?, "phase")?;
        return Some(Summary {
            ready: None,
            text: phase,
        });
    };
    let (type_, status) = (text(condition, "type")?, text(condition, "status")?);
    let reason = text(condition, "reason").map(|reason| format!(": {reason}"));
    Some(Summary {
        ready: available.map(|_| status.clone()),
        text: format!("{type_}={status}{}", reason.unwrap_or_default()),
    })
}

/// Returns the objects whose changes caused a reconcile, each object once. The changed fields are
/// left out, because the view has only one line.
fn causes(causes: &[String]) -> String {
    let mut brief: Vec<_> = causes
        .iter()
        .map(|cause| cause.split(": ").next().unwrap_or(cause))
        .collect();
    brief.dedup();
    brief.join(" and ")
}

#[cfg(test)]
mod tests;
