//! The type-erased controller, which the builder creates and the manager runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opkit_apimachinery::names::{check_field_manager, check_finalizer};
use opkit_cache::Index;
use opkit_client::Kind;
use opkit_workqueue::RateLimiter;

use crate::context::unowned::record::record_name;
use crate::error::ManagerError;
use crate::object::Request;
use crate::reads::{UncachedKind, Watched};
use crate::reconcile::Action;
use crate::reconcile::error_policy::ErrorPolicy;
use crate::reconcile::function::{Finalizer, Function, Reconciler};
use crate::reconcile::retries::RetryLimit;
use crate::source::Triggers;
use crate::source::predicate::Predicate;
use crate::source::spec::{Role, SourceSpec};
use crate::state::StateType;

#[derive(Debug)]
pub(crate) struct ControllerSpec {
    pub(crate) name: String,
    pub(crate) kind: Arc<Kind>,
    pub(crate) reconciler: Reconciler,
    pub(crate) finalizer: Option<Finalizer>,
    pub(crate) error_policy: Option<ErrorPolicy>,
    /// Limit of the retries of an object.
    pub(crate) retries: Option<Arc<dyn RetryLimit>>,
    /// Sources; the first is the reconciled kind.
    pub(crate) sources: Vec<SourceSpec>,
    /// Filter of the events of all sources.
    pub(crate) event_filter: Option<Predicate>,
    /// Kinds that the controller reads from the server.
    pub(crate) uncached: Vec<UncachedKind>,
    /// Indexes of the reconciled kind.
    pub(crate) indexes: Vec<Index>,
    pub(crate) state: StateType,
    pub(crate) options: ControllerOptions,
}

/// Settings of a controller.
#[derive(Debug, Clone)]
pub(crate) struct ControllerOptions {
    pub(crate) max_concurrent_reconciles: usize,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Option<Duration>,
    pub(crate) needs_leader_election: bool,
    pub(crate) is_fair: bool,
    /// Period of resyncs; `None` for that of the operator, zero for no resyncs.
    pub(crate) resync: Option<Duration>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            max_concurrent_reconciles: 1,
            reconcile_timeout: None,
            cache_sync_timeout: None,
            needs_leader_election: true,
            is_fair: false,
            resync: None,
        }
    }
}

/// A controller without type parameters, as [`Manager`](crate::Manager) accepts it.
pub struct AnyController {
    pub(crate) spec: ControllerSpec,
    /// Triggers, each with the index (in the sources of the controller) of the source that receives
    /// the trigger's keys as generic events.
    pub(crate) triggers: Vec<(usize, Triggers)>,
    /// Rate limiter that decides the retry delay of failing objects; `None` for the default.
    pub(crate) rate_limiter: Option<Box<dyn RateLimiter<Request>>>,
}

impl fmt::Debug for AnyController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyController")
            .field("spec", &self.spec)
            .field("triggers", &self.triggers)
            .finish_non_exhaustive()
    }
}

impl AnyController {
    /// Returns the name of the controller.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Returns the reconciled kind.
    pub fn kind(&self) -> &Kind {
        &self.spec.kind
    }

    /// Returns the watched kinds with their roles. The permissions that the operator needs are
    /// derived from these.
    pub fn watches(&self) -> Vec<WatchedKind> {
        let sources = self.spec.sources.iter();
        sources
            .map(|source| WatchedKind {
                kind: source.watched.kind.clone(),
                is_owned: source.role == Role::Owned,
                is_created_once: source.role == Role::CreatedOnce,
                is_unowned: source.role == Role::Unowned,
                is_reconciled: source.role == Role::Primary,
            })
            .collect()
    }

    /// Returns the kinds that the controller reads from the server.
    pub fn uncached_kinds(&self) -> impl Iterator<Item = &Kind> {
        self.spec.uncached.iter().map(|uncached| &uncached.kind)
    }

    /// Reports whether the controller sets a condition on objects that it no longer retries.
    pub fn sets_condition(&self) -> bool {
        let retries = self.spec.retries.as_ref();
        retries.is_some_and(|retries| retries.sets_condition())
    }

    /// Checks everything about the controller that can be checked without a cluster.
    ///
    /// # Errors
    /// When its name or its finalizer is not valid in Kubernetes.
    pub fn check(&self, operator: &str) -> Result<(), ManagerError> {
        self.spec.check_names(operator)
    }

    /// Reports whether the controller adds a finalizer to the objects that it reconciles.
    pub fn has_finalizer(&self) -> bool {
        self.spec.finalizer.is_some() || self.spec.has_unowned()
    }
}

/// A kind that a controller watches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedKind {
    /// The watched kind.
    pub kind: Kind,
    /// Whether the objects are children with owner references, which the controller applies and
    /// deletes.
    pub is_owned: bool,
    /// Whether the objects are children with owner references, which the controller only creates.
    pub is_created_once: bool,
    /// Whether the objects are children without owner references, which the controller applies and
    /// deletes.
    pub is_unowned: bool,
    /// Whether the kind is the reconciled kind.
    pub is_reconciled: bool,
}

impl ControllerSpec {
    pub(crate) fn new(watched: Watched, reconciler: Reconciler, state: StateType) -> Self {
        let kind = Arc::new(watched.kind.clone());
        Self {
            name: kind.kind.to_lowercase(),
            kind,
            reconciler,
            finalizer: None,
            error_policy: None,
            retries: None,
            sources: vec![SourceSpec {
                watched,
                role: Role::Primary,
                maps: Vec::new(),
                predicate: None,
            }],
            event_filter: None,
            uncached: Vec::new(),
            indexes: Vec::new(),
            state,
            options: ControllerOptions::default(),
        }
    }

    /// Returns the field manager of the controller's writes: `<operator>.<controller>`.
    pub(crate) fn field_manager(&self, operator: &str) -> String {
        format!("{operator}.{}", self.name)
    }

    /// Reports whether the controller declares kinds of children without owner references.
    pub(crate) fn has_unowned(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| source.role == Role::Unowned)
    }

    /// Checks the names that are written to objects: the field manager and the finalizers.
    pub(crate) fn check_names(&self, operator: &str) -> Result<(), ManagerError> {
        let invalid = |what: String, name: &str, problem: String| ManagerError::Name {
            what,
            name: name.to_owned(),
            problem,
        };
        if self.name.is_empty() {
            let (what, problem) = (
                format!("the name of a {} controller", self.kind.noun()),
                "it is empty",
            );
            return Err(invalid(what, &self.name, problem.to_owned()));
        }
        let manager = self.field_manager(operator);
        check_field_manager(&manager).map_err(|problem| {
            let what = format!("the field manager of controller {:?}", self.name);
            invalid(what, &manager, problem)
        })?;
        if let Some(Finalizer { name, .. }) = &self.finalizer {
            check_finalizer(name).map_err(|problem| {
                let what = format!("the finalizer of controller {}", self.name);
                invalid(what, name, problem)
            })?;
        }
        if self.has_unowned() {
            let name = record_name(&manager);
            check_finalizer(&name).map_err(|problem| {
                let what = format!(
                    "the finalizer for children without owner references of controller {}",
                    self.name
                );
                invalid(what, &name, problem)
            })?;
        }
        Ok(())
    }

    /// Returns a reconciler that calls `function` with the object. `sees_deletion` is whether
    /// `function` is also called for objects that are being deleted.
    pub(crate) fn object(function: Function<Action>, sees_deletion: bool) -> Reconciler {
        Reconciler::Object {
            function,
            sees_deletion,
        }
    }
}
