//! Validation of built-in kinds by the rules that Kubernetes does not publish as data, with its
//! messages and in its order.
//!
//! One module has the rules of one kind or of a few related kinds. The schema of a built-in kind is
//! used only for the types of its fields. What depends on deprecated annotations (seccomp,
//! AppArmor), and the fields of volumes of removed plugins, is not validated.

mod addresses;
mod admission_policies;
mod autoscalers;
mod claims;
mod classes;
mod containers;
mod cron_jobs;
mod difference;
mod endpoints;
mod environment;
mod events;
mod field;
mod flow_control;
mod format;
mod ingresses;
mod jobs;
mod leases;
mod namespaces;
mod network_policies;
mod nodes;
mod persistent_volumes;
mod pod_specs;
mod pods;
mod probes;
mod quotas;
mod resources;
mod scheduling;
mod secrets;
mod security_contexts;
mod selectors;
mod storage;
mod volumes;
mod webhook_configurations;
mod workloads;

use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use super::{budgets, convert};
use crate::kinds::Kind;
use field::{Errors, Field};

/// Returns the errors in a built-in object. `live` is the stored object, if there is one. Returns
/// `None` if the kind has no rules here.
pub(super) fn errors(kind: &Kind, new: &Value, live: Option<&Value>) -> Option<Vec<FieldError>> {
    let mut errors = Errors::default();
    let object = &Field::root(new);
    let old = live.map(Field::root);
    let is_update = live.is_some();
    let to = &mut errors;
    match kind.group_resource().as_str() {
        "pods" => pods::pod(object, to),
        "podtemplates" => pods::pod_template(object, to),
        "replicationcontrollers" => workloads::replication_controller(object, to),
        "deployments.apps" => workloads::deployment(object, to),
        "replicasets.apps" => workloads::replica_set(object, to),
        "statefulsets.apps" => workloads::stateful_set(object, is_update, to),
        "daemonsets.apps" => workloads::daemon_set(object, to),
        "jobs.batch" => jobs::job(object, to),
        "cronjobs.batch" => cron_jobs::cron_job(object, old.as_ref(), to),
        "configmaps" => secrets::config_map(object, to),
        "secrets" => secrets::secret(object, to),
        "serviceaccounts" => {}
        "namespaces" if is_update => {}
        "namespaces" => namespaces::namespace(object, to),
        "poddisruptionbudgets.policy" => {
            to.0.extend(budgets::errors(kind, new));
            let spec = object.get("spec");
            selectors::selector(&spec.get("selector"), to);
            let policies = ["AlwaysAllow", "IfHealthyBudget"];
            to.supported_if_set(&spec.get("unhealthyPodEvictionPolicy"), &policies);
        }
        "nodes" => nodes::node(object, to),
        "endpoints" => endpoints::endpoints(object, to),
        "endpointslices.discovery.k8s.io" => endpoints::endpoint_slice(object, to),
        "limitranges" => quotas::limit_range(object, to),
        "resourcequotas" => quotas::resource_quota(object, to),
        "persistentvolumeclaims" => claims::claim(object, to),
        "persistentvolumes" => persistent_volumes::volume(object, to),
        "storageclasses.storage.k8s.io" => storage::storage_class(object, to),
        "csidrivers.storage.k8s.io" => storage::csi_driver(object, to),
        "csinodes.storage.k8s.io" => storage::csi_node(object, to),
        "csistoragecapacities.storage.k8s.io" => storage::storage_capacity(object, to),
        "volumeattachments.storage.k8s.io" => storage::volume_attachment(object, to),
        "volumeattributesclasses.storage.k8s.io" => {
            storage::volume_attributes_class(object, to);
        }
        "ingresses.networking.k8s.io" => ingresses::ingress(object, is_update, to),
        "ingressclasses.networking.k8s.io" => ingresses::ingress_class(object, to),
        "networkpolicies.networking.k8s.io" => network_policies::network_policy(object, to),
        "horizontalpodautoscalers.autoscaling" if kind.version == "v1" => {
            autoscalers::old_autoscaler(object, old.as_ref(), to);
        }
        "horizontalpodautoscalers.autoscaling" => {
            autoscalers::autoscaler(object, old.as_ref(), to);
        }
        "priorityclasses.scheduling.k8s.io" => classes::priority_class(object, to),
        "runtimeclasses.node.k8s.io" => classes::runtime_class(object, to),
        "leases.coordination.k8s.io" => leases::lease(object, to),
        "events" | "events.events.k8s.io" => {
            event(kind, new, live, to);
        }
        "flowschemas.flowcontrol.apiserver.k8s.io" => flow_control::flow_schema(object, to),
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => {
            flow_control::priority_level(object, to);
        }
        "validatingwebhookconfigurations.admissionregistration.k8s.io"
        | "mutatingwebhookconfigurations.admissionregistration.k8s.io" => {
            webhook_configurations::configuration(object, to);
        }
        "validatingadmissionpolicies.admissionregistration.k8s.io" => {
            admission_policies::validating_policy(object, to);
        }
        "mutatingadmissionpolicies.admissionregistration.k8s.io" => {
            admission_policies::mutating_policy(object, to);
        }
        "validatingadmissionpolicybindings.admissionregistration.k8s.io" => {
            admission_policies::binding(object, false, to);
        }
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io" => {
            admission_policies::binding(object, true, to);
        }
        _ => return None,
    }
    Some(errors.0)
}

/// Returns the errors in the change from `live` to `new`, beside those of [`errors`].
pub(super) fn update_errors(kind: &Kind, live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let (before, after) = (&Field::root(live), &Field::root(new));
    let to = &mut errors;
    match kind.group_resource().as_str() {
        "jobs.batch" => jobs::job_update(before, after, to),
        "nodes" => nodes::node_update(before, after, to),
        "endpointslices.discovery.k8s.io" => {
            endpoints::endpoint_slice_update(before, after, to);
        }
        "resourcequotas" => quotas::resource_quota_update(before, after, to),
        "persistentvolumeclaims" => claims::claim_update(before, after, to),
        "persistentvolumes" => persistent_volumes::volume_update(before, after, to),
        "storageclasses.storage.k8s.io" => storage::storage_class_update(before, after, to),
        "csidrivers.storage.k8s.io" => storage::csi_driver_update(before, after, to),
        "volumeattachments.storage.k8s.io" => {
            to.immutable(&after.get("spec"), before.get("spec").value);
        }
        "volumeattributesclasses.storage.k8s.io" => {
            storage::volume_attributes_class_update(before, after, to);
        }
        "ingressclasses.networking.k8s.io" => {
            ingresses::ingress_class_update(before, after, to);
        }
        "priorityclasses.scheduling.k8s.io" => {
            classes::priority_class_update(before, after, to);
        }
        "runtimeclasses.node.k8s.io" => classes::runtime_class_update(before, after, to),
        _ => {}
    }
    errors.0
}

/// Adds the errors in an Event, after its conversion to the form of the core group.
fn event(kind: &Kind, new: &Value, live: Option<&Value>, errors: &mut Errors) {
    let core = |object: &Value| {
        let mut object = object.clone();
        convert::to_storage(kind, &mut object);
        object
    };
    let (new, live) = (core(new), live.map(core));
    let live = live.as_ref().map(Field::root);
    let is_new_group = !kind.group.is_empty();
    events::event(&Field::root(&new), is_new_group, live.as_ref(), errors);
}
