//! The verbs of the API over HTTP: from a request on a target to a call of the registry, and back
//! to a response.

mod body;
mod delete;
mod list_options;
mod read;
mod watch;
mod write;
mod write_options;

use std::sync::Arc;

use http::Method;
use serde_json::Value;

use crate::kinds::{Kind, Verb};
use crate::negotiation::{Media, Offer, negotiate};
use crate::query::Query;
use crate::registry::{Filter, Registry};
use crate::representation::{IncludeObject, Representation};
use crate::request::Request;
use crate::response::Response;
use crate::reviews;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// Executes a request, and returns its response and the media type to encode it in.
pub(crate) async fn respond(
    registry: &Registry,
    target: Target,
    request: &Request<'_>,
) -> ApiResult<(Media, Response)> {
    target.check_subresource()?;
    let include = request.query.get("includeObject").unwrap_or_default();
    let include = IncludeObject::parse(include).ok_or_else(|| {
        ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
        ))
    })?;
    let verb = verb(request, &target);
    let offer = Offer {
        is_custom: target.kind.is_custom() && target.subresource != "scale",
        is_watch: verb == Some(Verb::Watch),
    };
    let (media, representation) =
        negotiate(request.accept, offer).map_err(ApiError::not_acceptable)?;
    let verb = verb.filter(|verb| is_allowed(*verb, &target));
    let verb = verb.ok_or_else(ApiError::method_not_allowed)?;
    let handler = Handler {
        registry,
        target,
        verb,
        representation: representation.including(include),
        media,
        request,
    };
    let response = match verb {
        Verb::Get => handler.get().await,
        Verb::List => handler.list().await,
        Verb::Watch => handler.watch(),
        Verb::Create => handler.create(),
        Verb::Update => handler.update(),
        Verb::Patch => handler.patch(),
        Verb::Delete => handler.delete(),
        Verb::DeleteCollection => handler.delete_collection(),
    };
    Ok((media, response?))
}

/// Returns the verb of a request, or `None` if Kubernetes has none for its method there.
fn verb(request: &Request<'_>, target: &Target) -> Option<Verb> {
    let is_object = target.is_object();
    match *request.method {
        Method::GET if is_object => Some(Verb::Get),
        Method::GET if request.query.flag("watch") => Some(Verb::Watch),
        Method::GET => Some(Verb::List),
        Method::POST if is_object && target.subresource.is_empty() => None,
        Method::POST => Some(Verb::Create),
        Method::PUT if is_object => Some(Verb::Update),
        Method::PATCH if is_object => Some(Verb::Patch),
        Method::DELETE if is_object => Some(Verb::Delete),
        Method::DELETE => Some(Verb::DeleteCollection),
        _ => None,
    }
}

/// Reports whether the table of kinds has the verb for the target. Across all namespaces only reads
/// are allowed, and reviews, which have no namespace.
fn is_allowed(verb: Verb, target: &Target) -> bool {
    let kind = &target.kind;
    let verbs = match target.subresource.as_str() {
        "" => Some(&kind.verbs),
        name => kind.subresource(name).map(|subresource| &subresource.verbs),
    };
    let is_across = kind.namespaced && target.namespace.is_empty();
    verbs.is_some_and(|verbs| verbs.contains(&verb))
        && (!is_across || matches!(verb, Verb::List | Verb::Watch) || reviews::is_review(kind))
}

/// A request whose verb, target and media type are known. Its methods execute the verbs.
struct Handler<'a> {
    registry: &'a Registry,
    target: Target,
    verb: Verb,
    representation: Representation,
    media: Media,
    request: &'a Request<'a>,
}

impl Handler<'_> {
    fn kind(&self) -> &Arc<Kind> {
        &self.target.kind
    }

    fn query(&self) -> &Query {
        &self.request.query
    }

    /// Returns the objects that a list or watch selects.
    fn filter(&self) -> ApiResult<Filter> {
        let filter = Filter::parse(self.kind(), self.query())?;
        match self.registry.sharded_list_and_watch {
            true => filter.sharded(self.query()),
            false => Ok(filter),
        }
    }

    /// Returns the response with one object, in the representation that the client accepts. A Scale
    /// is always returned whole.
    fn object_response(&self, code: u16, object: Value, warnings: Vec<String>) -> Response {
        let body = match self.target.subresource.as_str() {
            "scale" => object,
            _ => {
                let now = self.registry.clock.now();
                self.representation.of_object(self.kind(), object, now)
            }
        };
        Response::with_code(code, body, warnings)
    }
}
