//! The handler of one path of the webhook server, without type parameters.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_controller::{Error, Reads, RunContext};

use crate::admission::endpoint::panic_text;
use crate::context::TestObjects;
use crate::metrics::WebhookMetrics;

/// Handler of the requests to one path: a function from the body of a request to the body of the
/// response. It does no I/O of its own; only the user's functions may.
pub(crate) trait ErasedHandler: fmt::Debug + Send + Sync + 'static {
    /// Returns the size of a body that is refused, in bytes.
    fn max_bytes(&self) -> usize;

    /// Returns the response to a request whose body cannot be read.
    fn refuse(&self, code: u16, message: &str) -> Bytes;

    /// Returns the response to a body.
    fn handle(self: Arc<Self>, body: Bytes, call: Call) -> BoxFuture<'static, Bytes>;
}

/// What a handler needs besides the body of the request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Time that the API server waits for the response.
    pub(crate) timeout: Duration,
    pub(crate) services: Arc<Services>,
    pub(crate) metrics: WebhookMetrics,
}

impl Call {
    /// Waits for the decision of the user's function about a review. Returns the reason if there is
    /// none: the function returned an error, panicked, or took too long. `path` is the path of the
    /// webhook, for the log.
    pub(crate) async fn decide<T>(
        &self,
        path: &str,
        decision: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, String> {
        let decided = AssertUnwindSafe(decision).catch_unwind();
        match tokio::time::timeout(self.timeout, decided).await {
            Ok(Ok(decided)) => decided.map_err(|error| error.to_string()),
            Ok(Err(panic)) => {
                self.metrics.count_panic();
                let text = panic_text(&*panic);
                tracing::error!(path, text, "a webhook panicked");
                Err(format!("panic: {text} [recovered]"))
            }
            Err(_) => Err("the webhook took too long".to_owned()),
        }
    }
}

/// Caches, client and states that the user's functions may read.
#[derive(Debug, Default)]
pub(crate) struct Services {
    pub(crate) run: Option<RunContext>,
    pub(crate) reads: Option<Reads>,
    /// Objects that are read in a test without a server.
    pub(crate) test_objects: TestObjects,
}

impl Services {
    /// Returns the services of a running operator. The caches of the declared kinds are started.
    pub(crate) fn new(run: RunContext) -> Self {
        Self {
            reads: Some(run.reads()),
            run: Some(run),
            test_objects: TestObjects::default(),
        }
    }

    /// Returns the state of type `S`. The unit state always exists.
    pub(crate) fn state<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        match &self.run {
            Some(run) => run.state(),
            None => {
                let unit: Arc<dyn std::any::Any + Send + Sync> = Arc::new(());
                unit.downcast().ok()
            }
        }
    }
}
