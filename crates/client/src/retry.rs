//! Retries of a read and a write after a conflict with another client's write.

use crate::{Backoff, RequestError};

/// An error that may be a conflict: the object was changed since it was read.
///
/// # Examples
/// ```
/// use opkit_client::{IsConflict, RequestError};
///
/// enum Error {
///     Request(RequestError),
///     NoRoom,
/// }
///
/// impl IsConflict for Error {
///     fn is_conflict(&self) -> bool {
///         matches!(self, Error::Request(error) if error.is_conflict())
///     }
/// }
/// # assert!(!Error::NoRoom.is_conflict());
/// ```
pub trait IsConflict {
    /// Returns whether this error is a conflict.
    fn is_conflict(&self) -> bool;
}

impl IsConflict for RequestError {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }
}

impl IsConflict for kube::Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 409 && status.reason == "Conflict")
    }
}

/// Calls `attempt` until it returns anything but a conflict, at most five times at intervals of
/// 10 ms. Equals client-go's `RetryOnConflict` with `DefaultRetry`. Each attempt must read the
/// object again.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Client, RequestError, retry_on_conflict};
///
/// async fn count(client: &Client) -> Result<ConfigMap, RequestError> {
///     retry_on_conflict(async || {
///         let mut map: ConfigMap = client.get("settings").await?;
///         map.data.get_or_insert_default().insert("seen".into(), "true".into());
///         client.update(&map).await
///     })
///     .await
/// }
/// ```
///
/// # Errors
/// Returns the error of the last attempt.
///
/// # Cancel safety
/// Same as for the future that `attempt` returns.
pub async fn retry_on_conflict<T, E: IsConflict>(
    attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    retry_on_conflict_with(Backoff::DEFAULT_RETRY, attempt).await
}

/// Calls `attempt` until it returns anything but a conflict, with the delays and the maximum number
/// of attempts in `backoff`. See [`retry_on_conflict`].
///
/// # Errors
/// Returns the error of the last attempt.
///
/// # Cancel safety
/// Same as for the future that `attempt` returns.
pub async fn retry_on_conflict_with<T, E: IsConflict>(
    backoff: Backoff,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut number: u32 = 1;
    loop {
        match attempt().await {
            Err(error) if error.is_conflict() && number < backoff.steps => {
                tokio::time::sleep(backoff.wait(number)).await;
                number = number.saturating_add(1);
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests;
