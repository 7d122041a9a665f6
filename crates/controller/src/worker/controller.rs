//! A running controller, with all names, caches and functions that are determined once when the
//! manager starts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{Informer, Selection, Stored};
use opkit_client::Fence;
use opkit_workqueue::{AddOptions, WaitState};
use parking_lot::RwLock;

use super::metrics::ControllerMetrics;
use super::slots::{Permit, Slots};
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

/// Largest number of slots whose terms are kept. Terms of slots that this replica no longer owns
/// are dropped with all others.
const SLOT_TERMS_MAX: usize = 1_024;

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
    /// Slots of this replica, if the operator is sharded and the controller needs leadership.
    slots: Option<Arc<Slots>>,
    clusters: Vec<RwLock<Terms>>,
}

impl Functions {
    /// Reports whether the reconcile function takes a key, and is called for deleted objects too.
    pub(crate) fn take_key(&self) -> bool {
        matches!(self.reconciler, Reconciler::Key(_))
    }
}

/// A controller in one cluster, with the terms of leadership that its reconciles run in.
#[derive(Debug)]
struct Terms {
    current: ClusterTerm,
    /// Terms of the slots, by the number of the grant. They also end when the slot is lost.
    slots: HashMap<u64, Arc<Term>>,
}

/// The user's functions of a controller, without type parameters.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) reconciler: Reconciler,
    pub(crate) finalizer: Option<Finalizer>,
    pub(crate) error_policy: Option<ErrorPolicy>,
    pub(crate) retries: Option<Arc<dyn RetryLimit>>,
}

/// A controller in one cluster, in one term of leadership.
#[derive(Debug, Clone)]
pub(super) struct ClusterTerm {
    pub(super) cluster: Arc<ClusterController>,
    term: Arc<Term>,
}

impl ClusterTerm {
    /// Returns the term of leadership.
    pub(super) fn term(&self) -> Arc<Term> {
        self.term.clone()
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
        let clusters = clusters.map(|cluster| {
            RwLock::new(Terms {
                current: ClusterTerm {
                    cluster: cluster.clone(),
                    term: Arc::new(Term::without_election(cluster.clone(), states.clone())),
                },
                slots: HashMap::new(),
            })
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
            slots: None,
        }
    }

    /// Lets the controller reconcile only objects of the slots that this replica serves.
    pub(crate) fn in_slots(mut self, slots: Arc<Slots>) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Returns the slots of this replica, if the controller reconciles only their objects.
    pub(crate) fn slots(&self) -> Option<&Arc<Slots>> {
        self.slots.as_ref()
    }

    pub(crate) fn identity(&self) -> &ControllerIdentity {
        &self.sources.controller
    }

    /// Starts a term of leadership: from now on, reconciles read `states`, and write through
    /// `fence`, which refuses writes after the term.
    pub(crate) fn begin_term(&self, fence: &Fence, states: &Arc<States>) {
        for terms in &self.clusters {
            let terms = &mut *terms.write();
            let cluster = terms.current.cluster.clone();
            terms.current.term = Arc::new(Term::behind(fence, cluster, states.clone()));
            terms.slots.clear();
        }
    }

    /// Returns the cluster that a request names, or `None` if the operator has no cluster of that
    /// name.
    pub(super) fn cluster(&self, request: &Request) -> Option<ClusterTerm> {
        Some(self.terms(request)?.read().current.clone())
    }

    /// Same as [`cluster`](Self::cluster), for a reconcile with a permit of a slot: the client also
    /// refuses to write after the slot is lost.
    pub(super) fn cluster_in(
        &self,
        request: &Request,
        permit: Option<&Permit>,
    ) -> Option<ClusterTerm> {
        let Some(permit) = permit else {
            return self.cluster(request);
        };
        let terms = self.terms(request)?;
        let ClusterTerm { cluster, term } = {
            let terms = terms.read();
            if let Some(term) = terms.slots.get(&permit.grant()) {
                return Some(ClusterTerm {
                    cluster: terms.current.cluster.clone(),
                    term: term.clone(),
                });
            }
            terms.current.clone()
        };
        let term = Arc::new(term.in_slot(permit.fence()));
        let slots = &mut terms.write().slots;
        if slots.len() >= SLOT_TERMS_MAX {
            slots.clear();
        }
        slots.insert(permit.grant(), term.clone());
        Some(ClusterTerm { cluster, term })
    }

    fn terms(&self, request: &Request) -> Option<&RwLock<Terms>> {
        let name = request.cluster();
        let mut clusters = self.clusters.iter();
        clusters.find(|it| it.read().current.cluster.name.as_deref() == name)
    }

    /// Adds the objects of the reconciled kind that `selects` selects to the queue, with a lower
    /// priority than objects that change.
    pub(crate) fn requeue_all(&self, selects: impl Fn(&Stored) -> bool) {
        let low = AddOptions {
            priority: Some(LOW_PRIORITY),
            ..Default::default()
        };
        for cluster in &self.sources.clusters {
            let all = Selection::default().all_namespaces();
            let all = cluster.reads.primary.select(&all).into_iter();
            for stored in all.filter(&selects) {
                let request = Request::new(cluster.name.clone(), stored.key());
                let causes = Causes::from(Cause::Elected);
                self.sources.queue.add_with(request, causes, low);
            }
        }
    }

    /// Returns the number of cached objects of the reconciled kind, in all clusters.
    pub(crate) fn objects(&self) -> usize {
        let clusters = self.sources.clusters.iter();
        clusters.map(|cluster| cluster.reads.primary.len()).sum()
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
