//! The verbs of the API for any kind: executes a decoded request on the store.
//!
//! The code has no types for kinds. It reads the schema and the subresources of a kind, and the
//! lists in [`rules`]. A write is prepared without the lock of the store, and committed only if the
//! stored object still has the revision for which the write was prepared.

mod api_services;
mod apply;
pub(crate) mod budgets;
mod certificates;
mod conversion;
mod convert;
mod create;
pub(crate) mod decoding;
mod delete;
mod direct;
mod ensure;
mod escalation;
mod field_versions;
mod hooks;
mod identity;
mod merge;
mod metadata;
mod modify;
mod namespaces;
mod page;
mod patch;
mod patched;
mod pods;
mod prepare;
mod problems;
mod rbac;
mod read;
mod rules;
mod scale;
mod scale_paths;
mod services;
mod size;
mod token_request;
mod unmodelled;
mod update;
mod validate;
mod validation;
mod versions;
mod warnings;
mod workloads;
mod zeros;

use std::sync::{Arc, OnceLock};

use opkit_apimachinery::identity::segment_flaw;
use serde_json::Value;
use tokio::time::Instant;

use crate::admission::resource_quota::{Charges, QuotaState};
use crate::admission::{
    AdmissionMetrics, AdmissionPlugin, AdmissionPolicies, AdmissionWebhooks, Notes,
};
use crate::aggregator::Aggregator;
use crate::authentication::{Authentication, Identity, TokenContext};
use crate::authority::Authority;
use crate::authorization::Authorizer;
use crate::clock::Clock;
use crate::impersonation::Impersonation;
use crate::kinds::{Catalog, Kind};
use crate::random::RandomNames;
use crate::schemas::Schemas;
use crate::service_resolver::ServiceResolver;
use crate::status::{ApiError, ApiResult};
use crate::store::{Store, Stored};
use crate::target::Target;
use crate::webhook::WebhookClients;

pub(crate) use convert::{from_storage, is_stored_form, storage_name};
pub(crate) use delete::{CRD_CLEANUP, DeleteOptions, FOREGROUND, ORPHAN, Preconditions};
pub(crate) use escalation::Escalation;
pub(crate) use identity::check_namespace;
pub(crate) use namespaces::ROOT_CA;
pub(crate) use page::{PageRequest, Token};
pub(crate) use patch::{Patch, PatchType};
pub(crate) use pods::Binding;
pub use problems::object_problems;
pub(crate) use read::Filter;
pub(crate) use services::ServiceRanges;
pub(crate) use unmodelled::Unmodelled;

/// The state of the API server: kinds, objects, time.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) authority: Arc<Authority>,
    pub(crate) authentication: Authentication,
    pub(crate) authorizer: Authorizer,
    pub(crate) impersonation: Impersonation,
    pub(crate) catalog: Catalog,
    pub(crate) schemas: Schemas,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) random: RandomNames,
    /// Whether lists and watches use `shardSelector`.
    pub(crate) sharded_list_and_watch: bool,
    pub(crate) unmodelled: Unmodelled,
    /// The ranges of cluster IPs and node ports, and the ports in use.
    pub(crate) services: ServiceRanges,
    /// The enabled admission plugins.
    pub(crate) admission_plugins: Vec<AdmissionPlugin>,
    pub(crate) quotas: Arc<QuotaState>,
    /// The certificate authority of the API server in PEM, once it is published.
    pub(crate) root_ca: OnceLock<String>,
    /// Whether the controllers of a cluster run.
    pub(crate) controllers: bool,
    pub(crate) aggregator: Aggregator,
    pub(crate) resolver: ServiceResolver,
    /// The clients of the webhooks that objects configure.
    pub(crate) webhooks: WebhookClients,
    pub(crate) admission_webhooks: AdmissionWebhooks,
    pub(crate) policies: AdmissionPolicies,
    pub(crate) metrics: AdmissionMetrics,
}

/// The handling of unknown fields, which the parameter `fieldValidation` requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of a write, and the warnings for its response.
#[derive(Debug, Default)]
pub(crate) struct Write {
    /// The field manager.
    pub(crate) manager: String,
    /// Whether the write is a dry run: everything is done except storing the result.
    pub(crate) dry_run: bool,
    /// Whether a server-side apply takes over fields that other managers own.
    pub(crate) force: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) warnings: Vec<String>,
    /// Paths of fields that occur twice in the body.
    pub(crate) duplicate_fields: Vec<String>,
    /// Whether a write of a role or binding is checked for escalation.
    pub(crate) escalation: Escalation,
    /// The user of the request. `None` for a write by the control plane itself.
    pub(crate) user: Option<Arc<Identity>>,
    /// Whether the write does not pass webhooks and policies.
    pub(crate) is_direct: bool,
    /// The field manager and the field validation in the query of the request.
    pub(crate) given_manager: Option<String>,
    pub(crate) given_field_validation: Option<String>,
    /// Whether the request deletes a collection.
    pub(crate) is_collection: bool,
    /// The options of a delete request, from its body and its query.
    pub(crate) delete_options: Value,
    /// The warnings and audit annotations of admission.
    pub(crate) notes: Notes,
    /// The quotas that were charged for the object.
    pub(crate) charges: Charges,
    /// The time at which the client no longer waits for the response.
    pub(crate) deadline: Option<Instant>,
}

impl Write {
    /// Returns the options for a write by the control plane itself, as this field manager.
    pub(crate) fn by(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            ..Self::default()
        }
    }

    /// Reports whether the client no longer waits for the response.
    pub(crate) fn is_overdue(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns the options for a write by the control plane itself that does not pass webhooks and
    /// policies.
    pub(crate) fn directly_by(manager: &str) -> Self {
        Self {
            is_direct: true,
            ..Self::by(manager)
        }
    }
}

impl Registry {
    /// Returns the state with which a ServiceAccount token is compared.
    pub(crate) fn token_context(&self) -> TokenContext<'_> {
        TokenContext {
            store: &self.store,
            now: self.clock.now(),
        }
    }

    /// Returns the kind of the objects that the store has under the name `resource`, in any version
    /// of the kind.
    pub(crate) fn kind_stored(&self, resource: &str) -> Option<Arc<Kind>> {
        let served = self.catalog.find(|kind| storage_name(kind) == resource);
        served.or_else(|| self.catalog.unserved(resource))
    }

    /// Returns a built-in kind in version `v1`.
    pub(crate) fn builtin(&self, group: &str, plural: &str) -> ApiResult<Arc<Kind>> {
        let kind = self.catalog.get(group, "v1", plural);
        kind.ok_or_else(|| ApiError::internal(format!("{plural} is not in the table of kinds")))
    }

    /// Returns the stored object that `target` names.
    pub(crate) fn stored(&self, target: &Target) -> ApiResult<Arc<Stored>> {
        let name = target.name.as_str();
        if let Some(flaw) = segment_flaw(name).filter(|_| !name.is_empty()) {
            let message = format!("Name parameter invalid: {name:?}: {flaw}");
            return Err(ApiError::bad_request(message));
        }
        self.store
            .stored(&target.storage(), &target.key())
            .ok_or_else(|| target.not_found())
    }
}
