//! Warnings about features that this control plane does not have. A client that writes an object
//! which relies on such a feature gets a warning. The first warning for each feature is also
//! logged.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

use super::Registry;
use crate::kinds::Kind;
use crate::object;

/// Maximum number of features whose first warnings are kept. Fewer features than this exist.
const FEATURES: usize = 64;

/// Kinds whose objects are stored without any effect: the resource, the name of the missing
/// feature, and the consequence for the object.
const KINDS: &[(&str, &str, &str)] = &[
    (
        "statefulsets.apps",
        "StatefulSets",
        "gets no pods and no status",
    ),
    (
        "daemonsets.apps",
        "DaemonSets",
        "gets no pods and no status",
    ),
    ("jobs.batch", "Jobs", "gets no pods and does not complete"),
    (
        "cronjobs.batch",
        "CronJobs",
        "starts no jobs on its schedule",
    ),
    ("persistentvolumeclaims", "volumes", "is not bound"),
    (
        "horizontalpodautoscalers.autoscaling",
        "autoscaling",
        "scales nothing",
    ),
    (
        "servicecidrs.networking.k8s.io",
        "further ranges of cluster IPs",
        "gives no addresses to Services",
    ),
];

/// The features that were reported so far, each with its first warning.
#[derive(Debug, Default)]
pub(crate) struct Unmodelled {
    reported: Mutex<BTreeMap<&'static str, String>>,
}

impl Unmodelled {
    /// Returns the warnings so far, one for each feature.
    pub(crate) fn reported(&self) -> Vec<String> {
        self.reported.lock().values().cloned().collect()
    }

    fn note(&self, feature: &'static str, warning: &str) {
        let mut reported = self.reported.lock();
        if reported.len() >= FEATURES || reported.contains_key(feature) {
            return;
        }
        tracing::warn!("{warning}");
        reported.insert(feature, warning.to_owned());
    }
}

impl Registry {
    /// Returns the warnings about missing features on which the written `object` relies. Logs the
    /// first warning of each feature.
    pub(crate) fn warn_unmodelled(
        &self,
        kind: &Kind,
        object: &Value,
        created: bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        if created {
            let resource = kind.group_resource();
            let known = KINDS.iter().find(|(of, ..)| *of == resource);
            found.extend(known.map(|(_, feature, missing)| (*feature, (*missing).to_owned())));
            let type_ = object::text(object, &["spec", "type"]);
            if resource == "services" && type_ == "LoadBalancer" {
                found.push(("load balancers", "gets no address".to_owned()));
            }
        }
        let name = object::name(object);
        let warnings = found.into_iter().map(|(feature, missing)| {
            let warning = format!(
                "opkit does not model {feature}: {} {name} {missing}",
                kind.kind
            );
            self.unmodelled.note(feature, &warning);
            warning
        });
        warnings.collect()
    }
}
