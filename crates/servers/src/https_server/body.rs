//! Reads the bodies of requests, within limits of size, time and memory.
//!
//! Memory is reserved while a body arrives, so a client that only states a length holds none.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Time limit for the body of a request. An API server sends it at once.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of all bodies that are in memory at the same time, in units of 1 KiB: enough for
/// thousands of usual requests. Further requests wait until others have ended.
const MAX_KIB: usize = 128 * 1024;
/// Least growth of the buffer for a body that arrives in several pieces.
const GROWTH_MIN: usize = 256 * 1024;

/// Reason why the body of a request was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body is larger than the server accepts.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The client did not send the body in time.
    #[error("the body was not sent within {} s", READ_TIMEOUT.as_secs())]
    TimedOut,
    /// The connection failed.
    #[error("the body cannot be read: {0}")]
    Connection(String),
}

/// Memory for the bodies of all requests of a server.
#[derive(Debug)]
pub(super) struct BodyMemory {
    /// In units of 1 KiB.
    shared: Semaphore,
    /// Lets one request at a time use more than the shared memory, up to the limit of its body.
    /// Without it, requests that each have a part of their bodies could wait for each other.
    overflow: Semaphore,
}

/// Memory of the body of one request, which is released when this is dropped.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    memory: &'a BodyMemory,
    shared: Option<SemaphorePermit<'a>>,
    overflow: Option<SemaphorePermit<'a>>,
    reserved_kib: usize,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self::of_kib(MAX_KIB)
    }
}

impl BodyMemory {
    fn of_kib(kib: usize) -> Self {
        Self {
            shared: Semaphore::new(kib),
            overflow: Semaphore::new(1),
        }
    }

    pub(super) fn reserve(&self) -> Reserved<'_> {
        Reserved {
            memory: self,
            shared: None,
            overflow: None,
            reserved_kib: 0,
        }
    }
}

impl Reserved<'_> {
    /// Waits until there is memory for `size` bytes in total.
    async fn grow_to(&mut self, size: usize) {
        let kib = size.div_ceil(1024);
        let more = kib.saturating_sub(self.reserved_kib);
        if more == 0 || self.overflow.is_some() {
            return;
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        // The semaphores are never closed.
        tokio::select! {
            biased;
            Ok(permits) = self.memory.shared.acquire_many(more) => {
                self.reserved_kib = kib;
                match &mut self.shared {
                    Some(shared) => shared.merge(permits),
                    None => self.shared = Some(permits),
                }
            }
            Ok(permit) = self.memory.overflow.acquire() => self.overflow = Some(permit),
            else => {}
        }
    }

    /// Reads a body of at most `limit` bytes; with zero, the body is not read. `declared` is the
    /// length that the client has stated.
    pub(super) async fn read<B>(
        &mut self,
        body: B,
        declared: Option<usize>,
        limit: usize,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        match declared {
            _ if limit == 0 => Ok(Bytes::new()),
            Some(length) if length > limit => Err(BodyError::TooLarge { limit }),
            _ => {
                self.collect(body, declared.unwrap_or_default(), limit)
                    .await
            }
        }
    }

    async fn collect<B>(
        &mut self,
        mut body: B,
        declared: usize,
        limit: usize,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let mut deadline = Instant::now() + READ_TIMEOUT;
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        loop {
            let frame = timeout_at(deadline, body.frame()).await;
            let Some(frame) = frame.map_err(|_| BodyError::TimedOut)? else {
                break;
            };
            let frame = frame.map_err(|error| BodyError::Connection(error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let size = first.len().saturating_add(all.len());
            let size = size.saturating_add(data.len());
            if size > limit {
                return Err(BodyError::TooLarge { limit });
            }
            let arrived = Instant::now();
            self.grow_to(size).await;
            // The client is not to blame for the time of this wait.
            deadline += arrived.elapsed();
            // A body in one piece, which is the usual case, is not copied.
            if first.is_empty() && all.is_empty() {
                first = data;
            } else {
                if all.is_empty() {
                    all.extend_from_slice(&std::mem::take(&mut first));
                }
                grow(&mut all, data.len(), declared);
                all.extend_from_slice(&data);
            }
        }
        Ok(match all.is_empty() {
            true => first,
            false => all.freeze(),
        })
    }
}

/// Reserves space for `more` bytes. The buffer grows to the stated length in few steps, but never
/// to more than a few times of what has arrived.
fn grow(buffer: &mut BytesMut, more: usize, declared: usize) {
    let needed = buffer.len().saturating_add(more);
    if needed > buffer.capacity() {
        let ample = needed.saturating_mul(4).max(GROWTH_MIN);
        let target = declared.clamp(needed, ample.max(needed));
        buffer.reserve(target.saturating_sub(buffer.len()));
    }
}

#[cfg(test)]
mod tests;
