//! One controller in one cluster, resolved once when the manager starts.

use std::sync::Arc;

use opkit_cache::Informer;
use opkit_client::{Fence, RestClient};
use opkit_events::EventRecorder;

use super::apply::applied::AppliedChildren;
use super::prune::OwnedKind;
use crate::reads::MapContext;
use crate::state::States;

/// The caches, children and events of one controller in one cluster. The sources, workers and
/// contexts of the controller share one instance.
#[derive(Debug)]
pub(crate) struct ClusterController {
    /// Name of the cluster; `None` for the one that the operator runs in.
    pub(crate) name: Option<Arc<str>>,
    /// Client that writes whether or not this process is the leader.
    pub(crate) client: RestClient,
    /// Caches of the kinds that the controller declares, with the names of the controller.
    pub(crate) reads: MapContext,
    /// Informers of the controller's sources, in the same order as the sources.
    pub(crate) informers: Vec<Informer>,
    /// Memory of the children that were applied.
    pub(crate) applied: AppliedChildren,
    pub(crate) events: EventRecorder,
    /// Kinds of children with an owner reference.
    pub(crate) owned: Vec<OwnedKind>,
    /// Kinds of children without owner references.
    pub(crate) unowned: Vec<OwnedKind>,
}

/// One term of leadership, as one controller in one cluster uses it. A controller that needs no
/// leadership has one term that does not end.
#[derive(Debug)]
pub(crate) struct Term {
    pub(crate) cluster: Arc<ClusterController>,
    /// Client of the reconciles of this term. If there is an election, the client refuses to write
    /// after the term.
    pub(crate) client: RestClient,
    /// States that the reconciles of this term read.
    pub(crate) states: Arc<States>,
}

impl Term {
    /// Creates the term of a controller that needs no leadership.
    pub(crate) fn without_election(cluster: Arc<ClusterController>, states: Arc<States>) -> Self {
        Self {
            client: cluster.client.clone(),
            cluster,
            states,
        }
    }

    /// Creates a term whose reconciles write through `fence`, which refuses writes after the term.
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

    /// Returns the term of a slot of a sharded operator. Its reconciles also write through `fence`,
    /// which refuses writes after this replica has lost the slot.
    pub(crate) fn in_slot(&self, fence: &Fence) -> Self {
        Self {
            client: RestClient::new(fence.layer(self.client.kube())),
            cluster: self.cluster.clone(),
            states: self.states.clone(),
        }
    }

    /// Returns the field manager of the controller's writes.
    pub(crate) fn field_manager(&self) -> &str {
        &self.cluster.reads.controller.field_manager
    }
}
