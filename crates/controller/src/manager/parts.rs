//! Which parts of the kinds a replica of a sharded operator caches.

use std::any::TypeId;
use std::collections::HashMap;

use opkit_apimachinery::shard::ShardKey;
use opkit_cache::InformerOptions;

use crate::builder::spec::ControllerSpec;
use crate::reads::parts::Selected;
use crate::source::spec::{Role, SourceSpec};

/// Returns how the kind of each source of a controller is selected; `None` if the whole kind is
/// cached. By namespace, every namespaced kind is selected. By UID, only the reconciled kind and
/// the kinds of children with owner references are. A kind that is declared in several roles has
/// one informer, which reads what all roles need, so that every read shows the controller's own
/// writes.
fn selected(by: ShardKey, sources: &[SourceSpec]) -> Vec<Option<Selected>> {
    let of_source = |source: &SourceSpec| match (by, source.role) {
        (ShardKey::Namespace, _) => {
            let namespaced = source.watched.kind.namespaced;
            namespaced.then_some(Selected::Object(by))
        }
        (ShardKey::Uid, Role::Primary) => Some(Selected::Object(by)),
        (ShardKey::Uid, Role::Owned | Role::CreatedOnce) => Some(Selected::Owner),
        (ShardKey::Uid, Role::Unowned | Role::Referenced | Role::Watched) => None,
    };
    let alike = |one: &SourceSpec, other: &SourceSpec| {
        one.watched.kind == other.watched.kind && one.watched.type_id == other.watched.type_id
    };
    let of_kind = |source: &SourceSpec| {
        let selected = of_source(source);
        let mut same = sources.iter().filter(|other| alike(source, other));
        selected.filter(|selected| same.all(|other| of_source(other) == Some(*selected)))
    };
    sources.iter().map(of_kind).collect()
}

/// Returns how the kinds of a controller's sources are selected in a sharded operator. `cached`
/// contains the informer options that the operator has set, by Rust type.
pub(super) fn selected_for(
    by: ShardKey,
    cached: &HashMap<TypeId, InformerOptions>,
    spec: &ControllerSpec,
) -> Vec<Option<Selected>> {
    let mut selected = match spec.options.needs_leader_election {
        true => selected(by, &spec.sources),
        // Every replica runs the controller for all objects.
        false => vec![None; spec.sources.len()],
    };
    for (selected, source) in selected.iter_mut().zip(&spec.sources) {
        let options = source.watched.type_id.and_then(|id| cached.get(&id));
        if options.is_some_and(|options| options.shards.range.is_some()) {
            *selected = None;
        }
    }
    selected
}

#[cfg(test)]
mod tests;
