//! Warnings of the server, such as "policy/v1beta1 is deprecated", each reported once.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use http::header::WARNING;
use kube::client::Body;
use parking_lot::Mutex;
use tower::ServiceExt;

use super::HttpResponse;
use super::middleware::{Middleware, Next, Outcome};

/// Maximum number of warning texts that are remembered, to bound memory. A warning is reported
/// again if it recurs after its text was evicted; the oldest text is evicted first.
const TEXTS_MAX: usize = 1024;

/// A warning that the server sent with a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Name of the sender; `-` if it is the API server.
    pub agent: String,
    /// Text of the warning.
    pub text: String,
}

type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Handling of warnings. The default logs each text once.
///
/// # Examples
/// ```
/// use opkit_client::{ClientOptions, Warnings};
/// let mut options = ClientOptions::default();
/// options.warnings = Warnings::handled(|warning| eprintln!("careful: {}", warning.text));
/// ```
#[derive(Clone)]
pub struct Warnings {
    handler: Option<Handler>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    texts: HashSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Seen {
    /// Stores the text of a warning. Returns whether the text is new.
    fn insert(&mut self, text: &str) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if self.order.len() >= TEXTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        let text: Arc<str> = text.into();
        self.order.push_back(text.clone());
        self.texts.insert(text)
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Self::handled(|warning| {
            tracing::warn!(text = warning.text, "the API server sent a warning");
        })
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warnings").finish_non_exhaustive()
    }
}

impl Warnings {
    /// Creates a setting that calls `handler` for each warning with a new text.
    pub fn handled(handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self {
            handler: Some(Arc::new(handler)),
            seen: Arc::default(),
        }
    }

    /// Creates a setting that ignores all warnings.
    pub fn ignored() -> Self {
        Self {
            handler: None,
            seen: Arc::default(),
        }
    }

    fn report(&self, response: &HttpResponse) {
        let Some(handler) = &self.handler else { return };
        for header in response.headers().get_all(WARNING) {
            for warning in parse(&String::from_utf8_lossy(header.as_bytes())) {
                if self.seen.lock().insert(&warning.text) {
                    handler(&warning);
                }
            }
        }
    }
}

/// Parses the warnings with code 299, the code that Kubernetes uses, from a `Warning` header. A
/// warning has a code, an agent and a quoted text; several are separated by commas. Parts that do
/// not match this form are ignored.
fn parse(header: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut rest = header.trim_start();
    while let Some((head, tail)) = rest.split_once('"') {
        let mut text = String::new();
        let mut end = None;
        let mut chars = tail.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => text.extend(chars.next().map(|(_, char)| char)),
                '"' => {
                    end = Some(at.saturating_add(1));
                    break;
                }
                char => text.push(char),
            }
        }
        let mut words = head.split_whitespace();
        if let (Some("299"), Some(agent), Some(_)) = (words.next(), words.next(), end) {
            let agent = agent.to_owned();
            warnings.push(Warning { agent, text });
        }
        let Some(after) = end.and_then(|end| tail.get(end..)) else {
            break;
        };
        // A quoted date may follow. A comma precedes the next warning.
        let after = after.trim_start();
        let after = match after
            .strip_prefix('"')
            .and_then(|date| date.split_once('"'))
        {
            Some((_, after)) => after,
            None => after,
        };
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    warnings
}

/// Middleware that reports the warnings in responses.
#[derive(Clone)]
pub(super) struct ReportWarnings(pub(super) Warnings);

impl Middleware for ReportWarnings {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let warnings = self.0.clone();
        async move {
            let response = next.oneshot(request).await?;
            warnings.report(&response);
            Ok(response)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
