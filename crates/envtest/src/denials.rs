//! Requests of operators that the server denied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use opkit_client::RequestInfo;
use parking_lot::Mutex;

/// Maximum number of different denied requests that are recorded.
const REQUESTS_MAX: usize = 1_000;

/// Request of an operator that the server denied, because the roles of the operator's
/// ServiceAccount do not allow the request.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct DeniedRequest {
    /// Name of the operator.
    pub operator: String,
    /// ServiceAccount, as `namespace/name`.
    pub service_account: String,
    /// Verb of the request, such as `list`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, or `resource/subresource`. For a request without a resource, its path.
    pub resource: String,
    /// Namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
}

impl fmt::Display for DeniedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operator,
            service_account,
            verb,
            group,
            resource,
            namespace,
        } = self;
        write!(f, "{operator} may not {verb} {resource}")?;
        if !group.is_empty() {
            write!(f, " of API group {group}")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in namespace {namespace}")?,
            None => f.write_str(" in the whole cluster")?,
        }
        write!(f, " (ServiceAccount {service_account})")
    }
}

/// Record of the denied requests of all operators of a test. Clones share the record.
#[derive(Clone, Default)]
pub(crate) struct Denials {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Whether the test has ended. After that, operators act as administrator and no denial is
    /// recorded.
    has_ended: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    /// Number of denials of each request.
    counts: BTreeMap<DeniedRequest, u64>,
    /// ServiceAccounts whose denials do not fail the test.
    expected: BTreeSet<String>,
}

impl Denials {
    /// Declares that denials of this ServiceAccount do not fail the test.
    pub(crate) fn expect(&self, service_account: &str) {
        let mut record = self.shared.record.lock();
        record.expected.insert(service_account.to_owned());
    }

    /// Returns the denied requests.
    pub(crate) fn requests(&self) -> Vec<DeniedRequest> {
        self.shared.record.lock().counts.keys().cloned().collect()
    }

    /// Returns the denied requests as text, one per line.
    pub(crate) fn report(&self) -> String {
        self.shared.record.lock().text(|_| true)
    }

    /// Ends the recording: from now on operators act as administrator. Returns the denied requests
    /// that were not expected as text, one per line.
    pub(crate) fn end(&self) -> String {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        let record = self.shared.record.lock();
        record.text(|request| !record.expected.contains(&request.service_account))
    }

    /// Returns a client that sends requests through `client`, which acts as the ServiceAccount
    /// `name` in `namespace`, and that records denied requests of `operator`. After the test has
    /// ended, the client sends requests through `admin`.
    pub(crate) fn record(
        &self,
        operator: &str,
        (namespace, name): (&str, &str),
        client: kube::Client,
        admin: kube::Client,
    ) -> kube::Client {
        let subject = Arc::new(Subject {
            operator: operator.to_owned(),
            service_account: format!("{namespace}/{name}"),
            user: format!("system:serviceaccount:{namespace}:{name}"),
        });
        let (denials, default_namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (denials, subject) = (denials.clone(), subject.clone());
            let (client, admin) = (client.clone(), admin.clone());
            async move {
                if denials.shared.has_ended.load(Ordering::Relaxed) {
                    return admin.send(request).await;
                }
                let info = RequestInfo::of(&request);
                let response = client.send(request).await?;
                if response.status() != StatusCode::FORBIDDEN {
                    return Ok(response);
                }
                let (head, body) = response.into_parts();
                let body = body.collect_bytes().await?;
                // Quotas and admission plugins respond with 403 too.
                if subject.is_named_in(&String::from_utf8_lossy(&body)) {
                    denials.add(subject.denied(info));
                }
                Ok(Response::from_parts(head, Body::from(body.to_vec())))
            }
        });
        kube::Client::new(service, default_namespace)
    }

    fn add(&self, request: DeniedRequest) {
        let counts = &mut self.shared.record.lock().counts;
        if counts.len() < REQUESTS_MAX || counts.contains_key(&request) {
            let count = counts.entry(request).or_default();
            *count = count.saturating_add(1);
        }
    }
}

impl Record {
    fn text(&self, shows: impl Fn(&DeniedRequest) -> bool) -> String {
        let shown = self.counts.iter().filter(|(request, _)| shows(request));
        let lines = shown.map(|(request, count)| match count {
            1 => format!("{request}: denied once\n"),
            many => format!("{request}: denied {many} times\n"),
        });
        lines.collect()
    }
}

/// Operator whose requests are recorded.
struct Subject {
    operator: String,
    service_account: String,
    user: String,
}

impl Subject {
    /// Reports whether the text of an error is that of an authorizer about this user.
    fn is_named_in(&self, error: &str) -> bool {
        let parts = error.split(&self.user).skip(1);
        let mut parts = parts.map(|part| part.trim_start_matches('\\'));
        parts.any(|part| part.starts_with("\" cannot "))
    }

    fn denied(&self, info: RequestInfo) -> DeniedRequest {
        let resource = match (info.is_resource, &info.subresource) {
            (false, _) => info.path,
            (true, None) => info.plural,
            (true, Some(subresource)) => format!("{}/{subresource}", info.plural),
        };
        DeniedRequest {
            operator: self.operator.clone(),
            service_account: self.service_account.clone(),
            verb: info.verb.into_owned(),
            group: info.group,
            resource,
            namespace: info.namespace,
        }
    }
}

#[cfg(test)]
mod tests;
