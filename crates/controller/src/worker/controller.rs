//! A running controller, with all names, caches and functions that are determined once when the
//! manager starts.

use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{Informer, Selection};
use opkit_client::Fence;
use opkit_workqueue::{AddOptions, WaitState};
use parking_lot::RwLock;

use super::metrics::ControllerMetrics;
use crate::builder::spec::ControllerOptions;
use crate::context::{ClusterController, Term};
use crate::object::Request;
use crate::reads::ControllerIdentity;
use crate::reconcile::error_policy::ErrorPolicy;
use crate::reconcile::function::{Finalizer, Reconciler};
use crate::reconcile::retries::RetryLimit;
use crate::record::Cause;
use crate::record::causes::Causes;
use crate::source::ControllerSources;
use crate::source::enqueue::LOW_PRIORITY;
use crate::source::spec::Role;
use crate::state::States;

/// A running controller: its sources and their queue, the user's functions, and its clusters.
#[derive(Debug)]
pub(crate) struct RunningController {
    pub(crate) sources: Arc<ControllerSources>,
    pub(super) reconciler: Reconciler,
    pub(super) finalizer: Option<Finalizer>,
    pub(super) error_policy: Option<ErrorPolicy>,
    pub(super) retries: Option<Arc<dyn RetryLimit>>,
    pub(crate) options: ControllerOptions,
    /// Whether the controller declares kinds of children without owner references.
    pub(super) has_unowned: bool,
    pub(super) metrics: ControllerMetrics,
    clusters: Vec<ClusterTerm>,
}

/// The user's functions of a controller, without type parameters.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) reconciler: Reconciler,
    pub(crate) finalizer: Option<Finalizer>,
    pub(crate) error_policy: Option<ErrorPolicy>,
    pub(crate) retries: Option<Arc<dyn RetryLimit>>,
}

/// A controller in one cluster, with the current term of leadership.
#[derive(Debug)]
pub(super) struct ClusterTerm {
    pub(super) cluster: Arc<ClusterController>,
    term: RwLock<Arc<Term>>,
}

impl ClusterTerm {
    /// Returns the current term of leadership.
    pub(super) fn term(&self) -> Arc<Term> {
        self.term.read().clone()
    }

    /// Returns the informer of the reconciled kind.
    pub(super) fn primary(&self) -> &Informer {
        &self.cluster.reads.primary
    }
}

impl RunningController {
    /// Creates a controller whose reconciles read `states`.
    pub(crate) fn new(
        sources: ControllerSources,
        functions: Functions,
        options: ControllerOptions,
        metrics: ControllerMetrics,
        states: &Arc<States>,
    ) -> Self {
        let clusters = sources.clusters.iter();
        let clusters = clusters.map(|cluster| ClusterTerm {
            cluster: cluster.clone(),
            term: RwLock::new(Arc::new(Term::without_election(
                cluster.clone(),
                states.clone(),
            ))),
        });
        let mut declared = sources.sources.iter();
        Self {
            clusters: clusters.collect(),
            has_unowned: declared.any(|source| source.role == Role::Unowned),
            sources: Arc::new(sources),
            reconciler: functions.reconciler,
            finalizer: functions.finalizer,
            error_policy: functions.error_policy,
            retries: functions.retries,
            options,
            metrics,
        }
    }

    pub(crate) fn identity(&self) -> &ControllerIdentity {
        &self.sources.controller
    }

    /// Starts a term of leadership: from now on, reconciles read `states`, and write through
    /// `fence`, which refuses writes after the term.
    pub(crate) fn begin_term(&self, fence: &Fence, states: &Arc<States>) {
        for ClusterTerm { cluster, term } in &self.clusters {
            *term.write() = Arc::new(Term::behind(fence, cluster.clone(), states.clone()));
        }
    }

    /// Returns the cluster that a request names, or `None` if the operator has no cluster of that
    /// name.
    pub(super) fn cluster(&self, request: &Request) -> Option<&ClusterTerm> {
        let name = request.cluster();
        let mut clusters = self.clusters.iter();
        clusters.find(|it| it.cluster.name.as_deref() == name)
    }

    /// Adds all objects of the reconciled kind to the queue, with a lower priority than objects
    /// that change.
    pub(crate) fn requeue_all(&self) {
        let low = AddOptions {
            priority: Some(LOW_PRIORITY),
            ..Default::default()
        };
        for cluster in &self.sources.clusters {
            let all = Selection::default().all_namespaces();
            for stored in cluster.reads.primary.select(&all) {
                let request = Request::new(cluster.name.clone(), stored.key());
                let causes = Causes::from(Cause::Elected);
                self.sources.queue.add_with(request, causes, low);
            }
        }
    }

    /// Returns the requests that are being reconciled, each with the time since its reconcile
    /// started, the longest first.
    pub(crate) fn in_work(&self) -> Vec<(Request, Duration)> {
        let most = self.options.max_concurrent_reconciles;
        let keys = self.sources.queue.snapshot(most).keys.into_iter();
        let in_work = keys.filter(|key| key.state == WaitState::InWork);
        in_work.map(|key| (key.key, key.age)).collect()
    }
}
