//! What an operator's own code shares between reconciles: clients of other systems, settings.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// Values by their type. The unit type is always there.
#[derive(Clone)]
pub(crate) struct States {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>, RandomState>,
}

impl Default for States {
    fn default() -> Self {
        let unit: Arc<dyn Any + Send + Sync> = Arc::new(());
        States {
            values: HashMap::from_iter([(TypeId::of::<()>(), unit)]),
        }
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("len", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl States {
    pub(crate) fn insert<S: Send + Sync + 'static>(&mut self, state: Arc<S>) {
        self.values.insert(TypeId::of::<S>(), state);
    }

    pub(crate) fn get<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        let value = self.values.get(&TypeId::of::<S>())?;
        value.clone().downcast().ok()
    }

    pub(crate) fn has(&self, wanted: &StateType) -> bool {
        self.values.contains_key(&wanted.id)
    }
}

/// The type of state that a controller reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateType {
    id: TypeId,
    pub(crate) name: &'static str,
}

impl StateType {
    pub(crate) fn of<S: 'static>() -> Self {
        StateType {
            id: TypeId::of::<S>(),
            name: type_name::<S>(),
        }
    }
}
