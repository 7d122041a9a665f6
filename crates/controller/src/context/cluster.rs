//! One controller in one cluster, resolved once when the manager starts.

use std::sync::Arc;

use opkit_cache::Informer;
use opkit_client::{Fence, RestClient};
use opkit_events::EventRecorder;

use super::apply::applied::AppliedChildren;
use super::prune::OwnedKind;
use crate::reads::MapContext;
use crate::state::States;

/// The caches, children and events of one controller in one cluster. Sources, workers and contexts
/// share it.
#[derive(Debug)]
pub(crate) struct ClusterController {
    /// Name of the cluster; `None` for the one that the operator runs in.
    pub(crate) name: Option<Arc<str>>,
    /// Client without a fence.
    pub(crate) client: RestClient,
    /// Caches of the declared kinds, with the names of the controller.
    pub(crate) reads: MapContext,
    /// Informers of the sources, in the order of the sources.
    pub(crate) informers: Vec<Informer>,
    /// Memory of the children that were applied.
    pub(crate) applied: AppliedChildren,
    pub(crate) events: EventRecorder,
    /// Kinds of children with an owner reference, which are pruned.
    pub(crate) owned: Vec<OwnedKind>,
    /// Kinds of children without owner references.
    pub(crate) unowned: Vec<OwnedKind>,
}

/// A term of leadership of one controller in one cluster. A controller that needs no leadership has
/// one term that does not end.
#[derive(Debug)]
pub(crate) struct Term {
    pub(crate) cluster: Arc<ClusterController>,
    /// Client of the reconciles of this term, behind its fence if there is an election.
    pub(crate) client: RestClient,
    /// States of this term.
    pub(crate) states: Arc<States>,
}

impl Term {
    /// Creates a term that needs no leadership.
    pub(crate) fn without_election(cluster: Arc<ClusterController>, states: Arc<States>) -> Self {
        Self {
            client: cluster.client.clone(),
            cluster,
            states,
        }
    }

    /// Creates a term whose reconciles write behind `fence`.
    pub(crate) fn behind(
        fence: &Fence,
        cluster: Arc<ClusterController>,
        states: Arc<States>,
    ) -> Self {
        Self {
            client: RestClient::new(fence.layer(cluster.client.kube())),
            cluster,
            states,
        }
    }

    /// Returns the field manager of the controller's writes.
    pub(crate) fn field_manager(&self) -> &str {
        &self.cluster.reads.controller.field_manager
    }
}
