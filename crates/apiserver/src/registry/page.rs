//! Pages of a list: `limit` and `continue`.
//!
//! A `continue` token contains the first key of the next page, and the revision at which all pages
//! are read. To show the state at the revision, the store undoes the events after it. If these
//! events are no longer in the history, the token has expired. The error response then has a token
//! with which the client can continue at the current state.

use std::sync::Arc;

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine as _, alphabet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Filter, Registry};
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::{Key, Stored};
use crate::target::Target;

const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// A base64 decoder that ignores excess bits at the end, as the one of Go does.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    NO_PAD.with_decode_allow_trailing_bits(true),
);
const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. \
     You can start a new list without the continue parameter, or use the continue token in this response to \
     retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
     objects that were created, modified, or deleted between the time the first chunk was returned and now may \
     show up in the list.";

/// The requested part of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageRequest {
    /// Maximum number of objects on the page; 0 for all objects.
    pub(crate) limit: usize,
    /// The revision at which to read the list; `None` for the current revision.
    pub(crate) exact: Option<u64>,
    /// The `continue` token from the previous page.
    pub(crate) token: Option<Token>,
}

/// The content of a `continue` parameter.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Token {
    #[serde(default)]
    v: String,
    /// The revision at which the first page was read; negative to read the current state.
    #[serde(default)]
    rv: i64,
    /// The key at which the page starts: just after the last object of the previous page.
    #[serde(default)]
    start: String,
}

impl Token {
    pub(crate) fn parse(text: &str) -> ApiResult<Self> {
        let refuse = |why: &str| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = BASE64.decode(text).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _)
                | DecodeError::InvalidLastSymbol { offset: at, .. } => at,
                // Go reports the position of the last group of four characters.
                _ => text.len() / 4 * 4,
            };
            refuse(&format!("illegal base64 data at input byte {at}"))
        })?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|_| {
            let first = bytes.first().copied().map_or(' ', char::from);
            refuse(&format!(
                "invalid character '{first}' looking for beginning of value"
            ))
        })?;
        if token.v != TOKEN_VERSION {
            let version = &token.v;
            return Err(refuse(&format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        if token.rv == 0 {
            return Err(refuse(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        let start = token.start.strip_prefix('/').unwrap_or(&token.start);
        if start.is_empty() {
            return Err(refuse("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let is_path = start
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."));
        if !is_path {
            return Err(refuse(&token.start));
        }
        Ok(token)
    }

    /// Returns the revision at which to read the page, or `None` for the current state.
    pub(crate) fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    fn to_text(&self) -> String {
        let token = json!({"v": self.v, "rv": self.rv, "start": self.start});
        BASE64.encode(token.to_string())
    }

    /// Returns the key at which the page starts.
    fn key(&self, target: &Target) -> Key {
        let start = self.start.strip_prefix('/').unwrap_or(&self.start);
        match start.split_once('/') {
            _ if !target.namespace.is_empty() => Key::new(target.namespace.as_str(), start),
            _ if !target.kind.namespaced => Key::new("", start),
            Some((namespace, name)) => Key::new(namespace, name),
            None => Key::new(start, ""),
        }
    }
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// The `continue` token for the next page; empty on the last page.
    pub(crate) token: String,
    /// Number of objects on later pages. As in Kubernetes, the number is `None` if the list has a
    /// selector.
    pub(crate) remaining: Option<usize>,
}

impl Page {
    /// Returns the `metadata` of the list in the response.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if !self.token.is_empty() {
            object::set_field(&mut metadata, "continue", json!(self.token));
        }
        if let Some(remaining) = self.remaining {
            object::set_field(&mut metadata, "remainingItemCount", json!(remaining));
        }
        metadata
    }
}

impl Registry {
    /// Returns the requested page of a list.
    pub(crate) fn list_page(
        &self,
        target: &Target,
        filter: &Filter,
        request: &PageRequest,
    ) -> ApiResult<Page> {
        let namespace = Some(target.namespace.as_str()).filter(|n| !n.is_empty());
        let token = request.token.as_ref();
        let exact = token.map_or(request.exact, Token::revision);
        let start = match token {
            Some(token) => token.key(target),
            None => Key::new(target.namespace.as_str(), ""),
        };
        // Without a filter, the store need not return more than the page.
        let limit = match filter.is_everything() && request.limit > 0 {
            true => request.limit,
            false => usize::MAX,
        };
        let listed = self
            .store
            .list_at(&target.storage(), namespace, &start, exact, limit)
            .map_err(|_| expired(token))?;
        let revision = listed.revision;
        let mut page = Page {
            objects: Vec::new(),
            revision,
            token: String::new(),
            remaining: None,
        };
        let count = listed.objects.len() + listed.remaining;
        for (at, object) in listed.objects.into_iter().enumerate() {
            if !filter.matches(&object) {
                continue;
            }
            page.objects.push(object);
            if page.objects.len() == request.limit && at + 1 < count {
                page.token = page.next(target, revision);
                page.remaining = (!filter.selects()).then(|| count - at - 1);
                break;
            }
        }
        Ok(page)
    }
}

impl Page {
    /// Returns the `continue` token for the page after this one.
    fn next(&self, target: &Target, revision: u64) -> String {
        let Some(last) = self.objects.last() else {
            return String::new();
        };
        let (namespace, name) = (last.namespace(), last.name());
        let start = if namespace.is_empty() || !target.namespace.is_empty() {
            format!("{name}\0")
        } else {
            format!("{namespace}/{name}\0")
        };
        let token = Token {
            v: TOKEN_VERSION.to_owned(),
            rv: i64::try_from(revision).unwrap_or(i64::MAX),
            start,
        };
        token.to_text()
    }
}

/// Returns the error for a list at a revision that is no longer in the history. If the request had
/// a token, the error has a new token, with which the client can continue at the current state.
fn expired(token: Option<&Token>) -> ApiError {
    match token {
        None => ApiError::expired(TOO_OLD),
        Some(token) => {
            let token = Token {
                rv: -1,
                ..token.clone()
            };
            ApiError::expired(CONTINUE_TOO_OLD).continuing(token.to_text())
        }
    }
}
