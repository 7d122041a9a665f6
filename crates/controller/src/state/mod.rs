//! What an operator's own code shares between reconciles: clients of other systems, settings.

mod context;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use futures::FutureExt;
use futures::future::BoxFuture;

pub(crate) use self::context::Caches;
pub use self::context::{Reads, StateContext};
use crate::error::{Error, ManagerError};

type AnyState = Arc<dyn Any + Send + Sync>;

/// Values by their type. The unit type is always there.
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

    /// Adds the states that `makers` create with `context`, one after the other.
    pub(crate) async fn with(
        mut self,
        makers: impl IntoIterator<Item = &StateMaker>,
        context: &StateContext,
    ) -> Result<Self, ManagerError> {
        for maker in makers {
            let made = (maker.make)(context.clone()).await;
            let state = made.map_err(|cause| ManagerError::State {
                state: maker.state.name,
                cause: cause.into(),
            })?;
            self.values.insert(maker.state.id, state);
        }
        Ok(self)
    }

    pub(crate) fn has(&self, wanted: &StateType) -> bool {
        self.values.contains_key(&wanted.id)
    }
}

type MakeState = dyn Fn(StateContext) -> BoxFuture<'static, Result<AnyState, Error>> + Send + Sync;

/// Creates a state with a context.
pub(crate) struct StateMaker {
    pub(crate) state: StateType,
    make: Box<MakeState>,
}

impl StateMaker {
    pub(crate) fn new<S, E, Fut>(make: impl Fn(StateContext) -> Fut + Send + Sync + 'static) -> Self
    where
        S: Send + Sync + 'static,
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<S, E>> + Send + 'static,
    {
        Self {
            state: StateType::of::<S>(),
            make: Box::new(move |context| {
                let made = make(context);
                async move {
                    let state: AnyState = Arc::new(made.await.map_err(Into::into)?);
                    Ok(state)
                }
                .boxed()
            }),
        }
    }
}

/// The type of state that a controller reads.
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
