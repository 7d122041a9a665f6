//! A cluster that the controllers of a manager run against.

use std::sync::Arc;

use opkit_cache::InformerFactory;
use opkit_client::RestClient;
use opkit_events::EventRecorder;
use opkit_servers::metrics::MetricsRegistry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Manager;
use super::parts::selected_for;
use super::posters::EventPosters;
use crate::state::Caches;

/// A cluster that controllers run against.
pub(super) struct Cluster {
    /// Name of the cluster; `None` for the one that the operator runs in.
    pub(super) name: Option<Arc<str>>,
    pub(super) client: RestClient,
    pub(super) factory: Arc<InformerFactory>,
    /// Recorder of the events of controllers that need no leadership.
    pub(super) events: EventRecorder,
    /// Recorder of the events of controllers that need leadership. The events are posted only while
    /// this process is the leader.
    pub(super) leader_events: EventRecorder,
    /// The informers of the declared kinds.
    pub(super) caches: Arc<Caches>,
}

/// The tasks of the informers, and the token that stops them.
#[derive(Debug, Clone, Default)]
pub(super) struct InformerTasks {
    pub(super) tracker: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl Cluster {
    pub(super) fn new(
        manager: &Manager,
        name: Option<Arc<str>>,
        client: &RestClient,
        posters: &EventPosters,
        informers: &InformerTasks,
    ) -> Self {
        let recorder = |client: RestClient| {
            posters.recorder(&manager.operator, manager.options.event_api, client)
        };
        let events = recorder(client.clone());
        let leader_events = match manager.options.election() {
            Some(election) => recorder(RestClient::new(election.fence.layer(client.kube()))),
            None => events.clone(),
        };
        let factory = InformerFactory::new(
            client.clone(),
            manager.options.scope.clone(),
            informers.tracker.clone(),
            informers.stop.clone(),
        );
        let controllers = manager.controllers.iter();
        let field_managers = controllers.map(|it| it.spec.field_manager(&manager.operator));
        let factory = Arc::new(factory.keep_managers(field_managers));
        let by = manager.options.sharding.as_ref().map(|it| it.by);
        let of_controllers = manager.controllers.iter().flat_map(|controller| {
            let (spec, cached) = (&controller.spec, &manager.cached);
            let selected = by.map(|by| selected_for(by, cached, spec));
            let selected = selected.unwrap_or_else(|| vec![None; spec.sources.len()]);
            let watched = spec.sources.iter().map(|source| source.watched.clone());
            watched.zip(selected)
        });
        // Kinds that are only read are cached in the cluster that the operator runs in.
        let reads = manager.reads.watched.iter().filter(|_| name.is_none());
        let reads = reads.map(|watched| (watched.clone(), None));
        let caches = Caches::new(
            factory.clone(),
            of_controllers.chain(reads).collect(),
            manager.cached.clone(),
            manager.options.cache_sync_timeout,
        );
        Self {
            name,
            client: client.clone(),
            factory,
            events,
            leader_events,
            caches: Arc::new(caches),
        }
    }

    /// Registers the metrics of the caches. The metrics have the label `cluster`, except those of
    /// the cluster that the operator runs in.
    pub(super) fn register_cache(&self, metrics: &MetricsRegistry) {
        let collector = Box::new(self.factory.metrics());
        let mut registry = metrics.lock();
        match &self.name {
            Some(name) => {
                let label = ("cluster".into(), name.to_string().into());
                registry
                    .sub_registry_with_label(label)
                    .register_collector(collector);
            }
            None => registry.register_collector(collector),
        }
    }
}
