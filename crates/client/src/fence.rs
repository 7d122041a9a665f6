//! A fence that rejects the writes of a leader once its lease has expired by the local clock.
//!
//! The holder of a lease [opens](Fence::open) the fence until a deadline by the local clock, and
//! extends the deadline with each renewal. A client behind the fence checks each write three times:
//! when the client is called; when the request is passed to the HTTP client, after rate limit,
//! retries, seam and credentials; and when the established connection reads the first byte of the
//! body. A closed fence rejects writes. Reads pass.
//!
//! Guarantee: a write is not passed to the connection after the deadline by this process' clock.
//! Not covered: a process that is suspended between the check and the system's write, and a network
//! that delays a packet, can still deliver a write later. Only preconditions on the object, such as
//! its resourceVersion, prevent such a late write. The caller of [`Fence::open`] decides how much
//! time lies between the deadline and the moment at which another process may become the leader.

mod last_check;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use http::{Extensions, Request};
use kube::client::Body;
use tokio::time::Instant;
use tower::BoxError;

pub(crate) use self::last_check::{GuardedBody, LastCheck, guard};
use crate::RequestInfo;
use crate::transport::boxed;

/// The reason why a fence rejected a write. The write was not sent to the server.
///
/// # Examples
/// ```
/// use opkit_client::{Fence, Fenced};
/// let fence = Fence::new();
/// assert_eq!(fence.check(), Err(Fenced::NotLeading));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fenced {
    /// The fence is closed, because this process does not hold the lease.
    #[error("this process does not hold the lease")]
    NotLeading,
    /// This process held the lease, but did not renew it in time.
    #[error("the lease of term {term} was not renewed in time")]
    DeadlinePassed {
        /// Number of the term. A term lasts from the acquisition to the loss of the lease.
        term: u64,
    },
    /// The work started in a term of leadership that is over.
    #[error("term {term}, in which this work started, is over")]
    TermOver {
        /// Number of the term in which the work started.
        term: u64,
    },
}

impl Fenced {
    /// Searches `error` and its causes for a `Fenced`. `error` may also be a [`kube::Error`] of a
    /// user's own [`Api`](crate::Api).
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        std::iter::successors(Some(error), |error| (*error).source())
            .find_map(|error| error.downcast_ref().copied())
    }
}

/// A fence that lets writes pass while a lease is held. Each period from the acquisition to the
/// loss of the lease is a numbered term. Clones share the same state.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::{Fence, Fenced};
///
/// let fence = Fence::new();
/// fence.open(1, fence.now() + Duration::from_secs(10));
/// let work = fence.for_term(1);
/// assert_eq!(work.check(), Ok(()));
///
/// // The lease is lost and acquired again: work of the first term is still rejected.
/// fence.close();
/// fence.open(2, fence.now() + Duration::from_secs(10));
/// assert_eq!(fence.check(), Ok(()));
/// assert_eq!(work.check(), Err(Fenced::TermOver { term: 1 }));
/// ```
#[derive(Debug, Clone)]
pub struct Fence {
    state: Arc<State>,
    /// Term in which this handle lets writes pass. `None` lets writes pass in every term.
    term: Option<u64>,
}

#[derive(Debug)]
struct State {
    origin: Instant,
    /// Number of the latest term; 0 before the first.
    term: AtomicU64,
    /// Deadline in nanoseconds since `origin`; 0 while the fence is closed. The fence is closed
    /// while the term changes. A deadline that was read between two reads of the same term
    /// therefore belongs to that term.
    deadline: AtomicU64,
}

impl Default for Fence {
    fn default() -> Self {
        Self::new()
    }
}

impl Fence {
    /// Creates a closed fence.
    pub fn new() -> Self {
        Self {
            state: Arc::new(State {
                origin: Instant::now(),
                term: AtomicU64::new(0),
                deadline: AtomicU64::new(0),
            }),
            term: None,
        }
    }

    /// Returns the time since the creation of the fence, by the clock that checks deadlines.
    pub fn now(&self) -> Duration {
        self.state.origin.elapsed()
    }

    /// Lets writes of `term` pass until `deadline`, or changes the deadline if `term` is the
    /// current term. The first term has the number 1. Has no effect if `term` is before the current
    /// term.
    ///
    /// Only the holder of the lease may call this method.
    pub fn open(&self, term: u64, deadline: Duration) {
        let current = self.state.term.load(SeqCst);
        if term < current {
            return;
        }
        if term != current {
            self.close();
            self.state.term.store(term, SeqCst);
        }
        let deadline = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        self.state.deadline.store(deadline, SeqCst);
    }

    /// Rejects all writes until the fence is opened again.
    pub fn close(&self) {
        self.state.deadline.store(0, SeqCst);
    }

    /// Returns a handle for work that starts in `term` and must not write in a later term.
    pub fn for_term(&self, term: u64) -> Self {
        Self {
            state: self.state.clone(),
            term: Some(term),
        }
    }

    /// Checks whether a write may be sent now.
    ///
    /// # Errors
    /// Returns the reason why the write may not be sent.
    pub fn check(&self) -> Result<(), Fenced> {
        self.check_at(self.now())
    }

    /// Checks whether a write may be sent at `now`, for callers with their own clock.
    ///
    /// # Errors
    /// Returns the reason why the write may not be sent.
    pub fn check_at(&self, now: Duration) -> Result<(), Fenced> {
        let (term, deadline) = self.snapshot();
        if let Some(bound) = self.term
            && bound != term
        {
            return Err(Fenced::TermOver { term: bound });
        }
        if deadline == 0 {
            return Err(match self.term {
                Some(term) => Fenced::TermOver { term },
                None => Fenced::NotLeading,
            });
        }
        match now < Duration::from_nanos(deadline) {
            true => Ok(()),
            false => Err(Fenced::DeadlinePassed { term }),
        }
    }

    fn snapshot(&self) -> (u64, u64) {
        loop {
            let term = self.state.term.load(SeqCst);
            let deadline = self.state.deadline.load(SeqCst);
            if term == self.state.term.load(SeqCst) {
                return (term, deadline);
            }
        }
    }

    /// Returns a client that sends its requests through `client`, and writes only while this fence
    /// is open.
    ///
    /// Requests that change nothing always pass: reads, dry runs, and the reviews of
    /// `authentication.k8s.io` and `authorization.k8s.io`. A deletion with `dryRun` in its query is
    /// a write, because its body may override the query. `exec`, `attach`, `portforward` and
    /// `proxy` are writes, regardless of their method. If `client` was not created by
    /// [`ClientOptions`](crate::ClientOptions), each write is checked only when the client is
    /// called, and not again before the bytes are sent.
    pub fn layer(&self, client: kube::Client) -> kube::Client {
        let (fence, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (fence, client) = (fence.clone(), client.clone());
            async move {
                if RequestInfo::may_change(&request) {
                    fence.check()?;
                    Fences::add(request.extensions_mut(), fence);
                }
                let response = client.send(request).await.map_err(BoxError::from)?;
                Ok::<_, BoxError>(response.map(boxed))
            }
        });
        kube::Client::new(service, namespace)
    }
}

/// The fences that a request must pass. Stored as an extension of the request, so that lower layers
/// of the HTTP stack can check the fences again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fences(Vec<Fence>);

impl Fences {
    fn add(extensions: &mut Extensions, fence: Fence) {
        extensions.get_or_insert_default::<Self>().0.push(fence);
    }

    /// Returns the fences of `request`.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    fn check(&self) -> Result<(), Fenced> {
        self.0.iter().try_for_each(Fence::check)
    }
}

#[cfg(test)]
mod tests;
