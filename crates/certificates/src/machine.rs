//! What one replica does with the Secret, without I/O.

use opkit_client::ObjectKey;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::CertificateError;
use crate::bundle::Bundle;
use crate::content::{Content, Serving};
use crate::periods::seconds;
use crate::replicas;
use crate::rotation::{Change, Purpose, rotate};

/// Annotation with the operator that a Secret belongs to.
pub(crate) const OWNER: &str = "opkit.dev/webhook-certificates-of";

/// Time that a replica without the certificates in memory waits for another replica to restore a
/// lost Secret, in seconds.
const GRACE: i64 = 15;

/// State of one replica.
#[derive(Debug)]
pub(crate) struct Machine {
    purpose: Purpose,
    secret: ObjectKey,
    /// Name of this replica.
    replica: String,
    /// Last valid content of the Secret, from which a deleted or damaged Secret is restored.
    last: Option<Content>,
    /// Fingerprint of the certificate that this replica serves.
    serving: String,
    /// Time when this replica first found no certificates, though they are in use.
    lost: Option<i64>,
}

/// What a replica knows about the objects with a `caBundle`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Targets<'a> {
    /// Whether one of them has a bundle.
    pub(crate) have_bundle: bool,
    /// Certificates that all of them have in their bundles, and the time since which they have
    /// them, in seconds since 1970.
    pub(crate) confirmed: Option<&'a (String, i64)>,
}

/// What a replica has to do next.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Secret to write: with a `resourceVersion` it replaces the stored one, without it is created.
    pub(crate) write: Option<Value>,
    /// Certificate to serve from now on, if it is another one than before.
    pub(crate) serve: Option<Serving>,
    /// Bundle that the webhook configurations must have.
    pub(crate) bundle: Option<Bundle>,
    /// Time when the newest authority expires, in seconds since 1970.
    pub(crate) authority_expires: Option<i64>,
}

impl Machine {
    pub(crate) fn new(purpose: Purpose, secret: ObjectKey, replica: String) -> Self {
        Self {
            purpose,
            secret,
            replica,
            last: None,
            serving: String::new(),
            lost: None,
        }
    }

    /// Decides what to do with `secret`, the stored Secret. `now` is the time of the API server in
    /// seconds since 1970.
    ///
    /// # Errors
    /// If the Secret belongs to another operator, or if a certificate cannot be created.
    pub(crate) fn step(
        &mut self,
        secret: Option<&Value>,
        targets: Targets<'_>,
        now: i64,
    ) -> Result<Step, CertificateError> {
        if let Some(secret) = secret {
            self.check_owner(secret)?;
        }
        let (mut content, is_restored) = self.read(secret);
        let mut step = Step::default();
        if content.serving.is_none() && targets.have_bundle {
            // The Secret was lost. Other replicas have the certificates in memory.
            let lost = self.lost.map_or(now, |lost| lost.min(now));
            self.lost = Some(lost);
            if now - lost < GRACE {
                return Ok(step);
            }
        } else {
            self.lost = None;
        }
        // Certificates are served and trusted only after they are stored.
        if secret.is_some()
            && !is_restored
            && let Some(serving) = &content.serving
        {
            self.last = Some(content.clone());
            let restored = content.history.restored;
            let propagation = seconds(self.purpose.periods.propagation);
            step.bundle = Some(Bundle {
                certificates: content.bundle(),
                is_complete: restored.is_none_or(|restored| now - restored >= propagation),
            });
            step.authority_expires = content
                .authorities
                .first()
                .map(|authority| authority.dates.expires);
            let fingerprint = serving.fingerprint();
            if fingerprint != self.serving {
                self.serving = fingerprint;
                step.serve = Some(serving.clone());
            }
        }
        let periods = &self.purpose.periods;
        let mut is_changed = is_restored || secret.is_none();
        if is_restored {
            content.history.restored = Some(now);
        }
        is_changed |= replicas::correct_clock(&mut content, now);
        is_changed |= replicas::report(&mut content, &self.replica, &self.serving, periods, now);
        is_changed |= replicas::remove_dead(&mut content, periods, now);
        let confirmed = targets
            .confirmed
            .filter(|(certificates, _)| *certificates == content.bundle());
        let since = confirmed.map(|(_, since)| *since);
        if let Some(change) = rotate(&mut content, &self.purpose, since, now)? {
            info!(secret = %self.secret, "{}", change.message());
            content.history.changes += 1;
            if change == Change::Created {
                content.history.restored = Some(now);
            }
            is_changed = true;
        }
        if is_changed {
            step.write = Some(self.secret_with(secret, &content));
        }
        Ok(step)
    }

    /// Returns the Secret without the report of this replica, or `None` if there is no report. A
    /// replica writes it when it stops, so that no rotation waits for it.
    pub(crate) fn without_report(&self, secret: &Value) -> Option<Value> {
        let mut content = Content::decode(secret.get("data")).ok()?;
        content.replicas.remove(&self.replica)?;
        Some(self.secret_with(Some(secret), &content))
    }

    /// Reads the content of the Secret. If the Secret is missing, damaged, or older than the last
    /// one, returns the last valid content and `true`.
    fn read(&self, secret: Option<&Value>) -> (Content, bool) {
        let known = self.last.as_ref().map_or(0, |last| last.history.changes);
        let reason = match secret.map(|secret| Content::decode(secret.get("data"))) {
            Some(Ok(content)) if content.serving.is_some() && content.history.changes >= known => {
                return (content, false);
            }
            Some(Ok(content)) if content.serving.is_some() => "it is an old copy".to_owned(),
            Some(Ok(_)) => "it has no certificates".to_owned(),
            Some(Err(reason)) => reason,
            None => "it was deleted".to_owned(),
        };
        match &self.last {
            Some(last) => {
                warn!(secret = %self.secret, reason, "restored the Secret with the webhook certificates");
                (last.clone(), true)
            }
            None => (Content::default(), false),
        }
    }

    fn check_owner(&self, secret: &Value) -> Result<(), CertificateError> {
        let annotations = secret.pointer("/metadata/annotations");
        let owner = annotations
            .and_then(|annotations| annotations.get(OWNER))
            .and_then(Value::as_str);
        let has_data = secret
            .get("data")
            .and_then(Value::as_object)
            .is_some_and(|data| !data.is_empty());
        match owner {
            Some(owner) if owner == self.purpose.operator => Ok(()),
            Some(owner) => Err(CertificateError::ForeignSecret {
                secret: self.secret.to_string(),
                owner: owner.to_owned(),
                operator: self.purpose.operator.clone(),
            }),
            // An empty Secret is a placeholder, such as one that a chart creates.
            None if !has_data => Ok(()),
            None => Err(CertificateError::UnknownSecret {
                secret: self.secret.to_string(),
            }),
        }
    }

    /// Returns the Secret with this content, and the labels and annotations of `stored`.
    fn secret_with(&self, stored: Option<&Value>, content: &Content) -> Value {
        let mut secret = stored.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "Opaque",
                "metadata": {
                    "name": self.secret.name,
                    "namespace": self.secret.namespace,
                    "labels": {
                        "app.kubernetes.io/name": self.purpose.operator,
                        "app.kubernetes.io/managed-by": "opkit",
                    },
                },
            })
        });
        if let Value::Object(fields) = &mut secret {
            fields.insert("data".to_owned(), content.encode());
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Value::Object(metadata) = metadata {
                metadata.remove("managedFields");
                let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
                if let Value::Object(annotations) = annotations {
                    annotations.insert(OWNER.to_owned(), json!(self.purpose.operator));
                }
            }
        }
        secret
    }
}
