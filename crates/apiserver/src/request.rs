//! An HTTP request on a resource, with its body read and not yet decoded.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::authentication::Identity;
use crate::query::Query;

/// The parts of an HTTP request that the verbs need.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a Method,
    pub(crate) query: Query,
    pub(crate) accept: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) user_agent: &'a str,
    /// The authenticated user.
    pub(crate) identity: &'a Arc<Identity>,
    /// Whether the client asks for an upgrade of the connection, as for exec.
    pub(crate) is_upgrade: bool,
    pub(crate) body: Bytes,
}

impl<'a> Request<'a> {
    pub(crate) fn new(parts: &'a Parts, identity: &'a Arc<Identity>, body: Bytes) -> Self {
        Self {
            method: &parts.method,
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: header_text(&parts.headers, header::ACCEPT),
            content_type: header_text(&parts.headers, header::CONTENT_TYPE),
            user_agent: header_text(&parts.headers, header::USER_AGENT),
            identity,
            is_upgrade: parts.headers.contains_key(header::UPGRADE),
            body,
        }
    }
}

/// Returns the value of a header, or an empty string if the header is missing or is not text.
pub(crate) fn header_text(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}
