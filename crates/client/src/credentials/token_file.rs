//! A bearer token in a file, such as the token of a pod's service account, which the kubelet
//! replaces before it expires.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CredentialsError, bearer};

/// Time after which the file is read again: client-go's period of a minute without its leeway of
/// 10 s. The kubelet replaces a token when at most 80 % of its lifetime of at least 10 minutes have
/// passed.
const READ_AFTER: Duration = Duration::from_secs(50);

/// A token in a file. The file is read again once a minute, and after a response 401.
pub(super) struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    header: HeaderValue,
    read: Instant,
}

impl TokenFile {
    /// Reads the file. `fallback` is used if the file cannot be read.
    pub(super) fn new(path: PathBuf, fallback: Option<&str>) -> Result<Self, CredentialsError> {
        let header = match (read(&path), fallback) {
            (Err(_), Some(token)) => bearer(token)?,
            (header, _) => header?,
        };
        let read = Instant::now();
        Ok(Self {
            path,
            state: Mutex::new(State { header, read }),
        })
    }

    /// Returns the header. If the file cannot be read again, the last token stays in use, because a
    /// program may remove the file after the start.
    pub(super) fn header(&self) -> HeaderValue {
        let mut state = self.state.lock();
        if state.read.elapsed() >= READ_AFTER {
            self.read_again(&mut state);
        }
        state.header.clone()
    }

    /// Reads the file now, unless `header` is not the current one.
    pub(super) fn refused(&self, header: Option<&HeaderValue>) {
        let mut state = self.state.lock();
        if header == Some(&state.header) {
            self.read_again(&mut state);
        }
    }

    fn read_again(&self, state: &mut State) {
        state.read = Instant::now();
        match read(&self.path) {
            Ok(header) => state.header = header,
            Err(error) => {
                let error = crate::one_line(&error);
                tracing::warn!(error, "the last token stays in use");
            }
        }
    }
}

fn read(path: &PathBuf) -> Result<HeaderValue, CredentialsError> {
    let text = std::fs::read_to_string(path).map_err(|cause| CredentialsError::Read {
        item: "token",
        path: path.clone(),
        cause,
    })?;
    match text.trim() {
        "" => Err(CredentialsError::Invalid {
            item: "token",
            reason: format!("{} is empty", path.display()),
        }),
        token => bearer(token),
    }
}

#[cfg(test)]
mod tests;
