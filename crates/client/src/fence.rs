//! The fence: no write of leader-only work leaves this process after the lease's local deadline.
//!
//! Whoever holds a lease [opens](Fence::open) the fence until a deadline by its own clock and moves
//! the deadline on with each renewal. A client behind the fence refuses writes while it is closed,
//! and again at the last moment: below the rate limit, the retries, the seam and the credentials,
//! and once more when a connection stands and the first byte of the body is asked for. Reads pass.
//!
//! What this promises, and what it cannot: a write is not handed to the connection once the
//! deadline has passed by this process' clock. A process that stands still between that check and
//! the system's write, and a network that holds a packet back, can still deliver it later; only
//! preconditions on the object, such as its resourceVersion, answer those. How much time there is
//! before somebody else may lead is told by the one who opens the fence.

mod last_check;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use http::{Extensions, Request};
use kube::client::Body;
use tokio::time::Instant;
use tower::BoxError;

pub(crate) use self::last_check::{GuardedBody, LastCheck, guarded};
use crate::RequestInfo;
use crate::transport::boxed;

/// Why a write was refused before it was sent. It has not reached the server.
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
    /// The fence is closed.
    #[error("this process does not hold the lease")]
    NotLeading,
    /// The lease was held, and was not renewed in time.
    #[error("the lease of term {term} was not renewed in time")]
    DeadlinePassed {
        /// The term that was held.
        term: u64,
    },
    /// The work began in a term that is over.
    #[error("term {term}, in which this work began, is over")]
    TermOver {
        /// The term in which it began.
        term: u64,
    },
}

impl Fenced {
    /// The refusal in the causes of `error`, if it is one: also in a [`kube::Error`] of a user's
    /// own [`Api`](crate::Api).
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        std::iter::successors(Some(error), |error| (*error).source())
            .find_map(|error| error.downcast_ref().copied())
    }
}

/// Lets writes pass while a lease is held. Cloning gives another handle on the same fence.
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
/// // The lease is lost and won again: what began in the first term stays out.
/// fence.close();
/// fence.open(2, fence.now() + Duration::from_secs(10));
/// assert_eq!(fence.check(), Ok(()));
/// assert_eq!(work.check(), Err(Fenced::TermOver { term: 1 }));
/// ```
#[derive(Debug, Clone)]
pub struct Fence {
    state: Arc<State>,
    /// The term that this handle is for; none for whichever is there.
    term: Option<u64>,
}

#[derive(Debug)]
struct State {
    origin: Instant,
    /// The term that was opened last; 0 before the first.
    term: AtomicU64,
    /// Nanoseconds since the origin; 0 while closed. It is closed while the term changes, so that a
    /// deadline that was read between two equal terms belongs to that term.
    deadline: AtomicU64,
}

impl Default for Fence {
    fn default() -> Self {
        Self::new()
    }
}

impl Fence {
    /// A closed fence.
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

    /// The time since the fence was made, by the clock that deadlines are checked with.
    pub fn now(&self) -> Duration {
        self.state.origin.elapsed()
    }

    /// Lets writes of `term` pass until `deadline`, or moves the deadline of the present term on.
    /// Terms count up from 1; an earlier one than the present is not opened again.
    ///
    /// Only the one who holds the lease calls this.
    pub fn open(&self, term: u64, deadline: Duration) {
        let present = self.state.term.load(SeqCst);
        if term < present {
            return;
        }
        if term != present {
            self.close();
            self.state.term.store(term, SeqCst);
        }
        let deadline = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        self.state.deadline.store(deadline, SeqCst);
    }

    /// Lets no write pass until the fence is opened again.
    pub fn close(&self) {
        self.state.deadline.store(0, SeqCst);
    }

    /// A handle for work that begins in `term` and must not write in a later one.
    pub fn for_term(&self, term: u64) -> Self {
        Self {
            state: self.state.clone(),
            term: Some(term),
        }
    }

    /// Whether a write may leave now.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Fenced> {
        self.check_at(self.now())
    }

    /// Whether a write may leave at `now`, for whoever has a clock of their own.
    ///
    /// # Errors
    /// Why not.
    pub fn check_at(&self, now: Duration) -> Result<(), Fenced> {
        let (term, deadline) = self.snapshot();
        if let Some(own) = self.term
            && own != term
        {
            return Err(Fenced::TermOver { term: own });
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

    /// A client that sends through `client`, writes only while this fence lets them pass.
    ///
    /// Reads pass, and so do dry runs and the reviews of `authentication.k8s.io` and
    /// `authorization.k8s.io`, which change nothing; a deletion that is a dry run does not, because
    /// its body could say otherwise. `exec`, `attach`, `portforward` and `proxy` act, whatever
    /// their method, and are writes here. The last check needs a client that
    /// [`ClientOptions`](crate::ClientOptions) made; any other is checked at its entrance only.
    pub fn layer(&self, client: kube::Client) -> kube::Client {
        let (fence, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (fence, client) = (fence.clone(), client.clone());
            async move {
                if RequestInfo::acts(&request) {
                    fence.check()?;
                    Fences::add(request.extensions_mut(), fence);
                }
                let answer = client.send(request).await.map_err(BoxError::from)?;
                Ok::<_, BoxError>(answer.map(boxed))
            }
        });
        kube::Client::new(service, namespace)
    }
}

/// The fences that a request has to pass, carried by it down to the wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fences(Vec<Fence>);

impl Fences {
    fn add(extensions: &mut Extensions, fence: Fence) {
        extensions.get_or_insert_default::<Self>().0.push(fence);
    }

    /// Those of `request`.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    fn check(&self) -> Result<(), Fenced> {
        self.0.iter().try_for_each(Fence::check)
    }
}

#[cfg(test)]
mod tests;
