//! The server's warnings, such as "policy/v1beta1 is deprecated", each surfaced once.

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

use super::Answer;
use super::step::{Next, Outcome, Step};

/// How many texts are remembered; the oldest is forgotten first, and would be surfaced again.
const REMEMBERED_MAX: usize = 1024;

/// A warning of the server about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Who warns; `-` for the API server.
    pub agent: String,
    /// What it says.
    pub text: String,
}

type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

/// What happens to warnings: the default logs each text once.
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
    /// Whether `text` is new.
    fn is_new(&mut self, text: &str) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if self.order.len() >= REMEMBERED_MAX
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
            tracing::warn!(text = warning.text, "the API server warns");
        })
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warnings").finish_non_exhaustive()
    }
}

impl Warnings {
    /// Calls `handler` with each warning whose text is new.
    pub fn handled(handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self {
            handler: Some(Arc::new(handler)),
            seen: Arc::default(),
        }
    }

    /// Takes no notice of warnings.
    pub fn ignored() -> Self {
        Self {
            handler: None,
            seen: Arc::default(),
        }
    }

    fn surface(&self, answer: &Answer) {
        let Some(handler) = &self.handler else { return };
        for header in answer.headers().get_all(WARNING) {
            for warning in parse(&String::from_utf8_lossy(header.as_bytes())) {
                if self.seen.lock().is_new(&warning.text) {
                    handler(&warning);
                }
            }
        }
    }
}

/// The warnings of a header with code 299, which is the one that Kubernetes uses: a code, an agent
/// and a quoted text, perhaps several behind commas. What does not fit is left out.
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
        // A date may follow, in quotes as well; the next warning comes after a comma.
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

/// Surfaces the warnings of answers.
#[derive(Clone)]
pub(super) struct SurfaceWarnings(pub(super) Warnings);

impl Step for SurfaceWarnings {
    fn pass(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let warnings = self.0.clone();
        async move {
            let answer = next.oneshot(request).await?;
            warnings.surface(&answer);
            Ok(answer)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
