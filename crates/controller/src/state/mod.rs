//! State that an operator's own code shares between reconciles: clients of other systems, settings.

mod caches;
mod context;
mod declarations;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use futures::FutureExt;
use futures::future::BoxFuture;

pub(crate) use self::caches::Caches;
pub use self::context::{Reads, StateContext};
pub use self::declarations::{Kinds, ReadDeclarations};
use crate::error::{Error, ManagerError};

type AnyState = Arc<dyn Any + Send + Sync>;

/// States by Rust type. A state of the unit type, for controllers that need no state, always
/// exists.
#[derive(Clone)]
pub(crate) struct States {
    values: HashMap<TypeId, AnyState, RandomState>,
}

impl Default for States {
    fn default() -> Self {
        let unit: AnyState = Arc::new(());
        Self {
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

    /// Creates the states of `factories` with `context`, one after the other, and adds the states
    /// to this collection.
    pub(crate) async fn with(
        mut self,
        factories: impl IntoIterator<Item = &StateFactory>,
        context: &StateContext,
    ) -> Result<Self, ManagerError> {
        for factory in factories {
            let created = (factory.create)(context.clone()).await;
            let state = created.map_err(|cause| ManagerError::State {
                state: factory.state.name,
                cause: cause.into(),
            })?;
            self.values.insert(factory.state.id, state);
        }
        Ok(self)
    }

    pub(crate) fn has(&self, state: &StateType) -> bool {
        self.values.contains_key(&state.id)
    }
}

type CreateState =
    dyn Fn(StateContext) -> BoxFuture<'static, Result<AnyState, Error>> + Send + Sync;

/// The user's function that creates one state from a [`StateContext`].
pub(crate) struct StateFactory {
    pub(crate) state: StateType,
    create: Box<CreateState>,
}

impl StateFactory {
    pub(crate) fn new<S, E, Fut>(
        create: impl Fn(StateContext) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        S: Send + Sync + 'static,
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<S, E>> + Send + 'static,
    {
        Self {
            state: StateType::of::<S>(),
            create: Box::new(move |context| {
                let future = create(context);
                async move {
                    let state: AnyState = Arc::new(future.await.map_err(Into::into)?);
                    Ok(state)
                }
                .boxed()
            }),
        }
    }
}

/// Rust type of a state, with its name for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateType {
    id: TypeId,
    pub(crate) name: &'static str,
}

impl StateType {
    pub(crate) fn of<S: 'static>() -> Self {
        Self {
            id: TypeId::of::<S>(),
            name: type_name::<S>(),
        }
    }
}
