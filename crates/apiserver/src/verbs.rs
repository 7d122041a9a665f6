//! The verbs of the API over HTTP: checks and decodes a request, calls the registry, and returns
//! the response.

mod body;
mod connect;
mod delete;
mod json;
mod list_options;
mod read;
mod watch;
mod write;
mod write_options;

use std::sync::Arc;

use http::Method;

use crate::audit::RequestAudit;
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
use crate::view::View;

/// Executes a request. Returns the response, and the media type in which to encode the response.
pub(crate) async fn respond(
    registry: &Registry,
    target: Target,
    request: &Request<'_>,
    audit: &RequestAudit,
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
    if connect::is_forwarded(&target.subresource) {
        let is_known = verb.is_some_and(|verb| is_allowed(verb, &target));
        return match is_known {
            true => {
                connect::admit(registry, &target, request, audit).await?;
                Ok((Media::Json, connect::respond(registry, &target, request)?))
            }
            false => Err(ApiError::method_not_allowed()),
        };
    }
    let offer = Offer {
        is_custom: target.kind.is_custom() && target.subresource != "scale",
        is_watch: verb == Some(Verb::Watch),
    };
    let (media, representation) =
        negotiate(request.accept, offer).map_err(ApiError::not_acceptable)?;
    let verb = verb.filter(|verb| is_allowed(*verb, &target));
    let verb = verb.ok_or_else(ApiError::method_not_allowed)?;
    check_form(&target.kind, verb, representation)?;
    let deprecation = target.kind.deprecation.clone();
    let handler = Handler {
        registry,
        target,
        verb,
        representation: representation.including(include),
        media,
        request,
        audit,
    };
    let response = match verb {
        Verb::Get => handler.get().await,
        Verb::List => handler.list().await,
        Verb::Watch => handler.watch(),
        Verb::Create => handler.create().await,
        Verb::Update => handler.update().await,
        Verb::Patch => handler.patch().await,
        Verb::Delete => handler.delete().await,
        Verb::DeleteCollection => handler.delete_collection().await,
    };
    let Some(warning) = deprecation else {
        return Ok((media, response?));
    };
    match response {
        Ok(mut response) => {
            match &mut response {
                Response::Object(object) => object.warnings.insert(0, warning),
                Response::Watch(watch) => watch.warnings.insert(0, warning),
                Response::NoContent => {}
            }
            Ok((media, response))
        }
        Err(mut error) => {
            error.warnings.insert(0, warning);
            Err(error)
        }
    }
}

/// Refuses a list in the form of one object, and one object in the form of a list.
fn check_form(kind: &Kind, verb: Verb, representation: Representation) -> ApiResult<()> {
    let package = match kind.group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    let type_ = |suffix: &str| match kind.is_custom() {
        true => format!("*unstructured.Unstructured{suffix}"),
        false => format!("*{package}.{}{suffix}", kind.kind),
    };
    let message = match (verb, representation) {
        (Verb::List, Representation::PartialObjectMetadata) => format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            type_("List")
        ),
        (
            Verb::Get | Verb::Create | Verb::Update | Verb::Patch,
            Representation::PartialObjectMetadataList,
        ) => format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            type_("")
        ),
        _ => return Ok(()),
    };
    Err(ApiError::unsupported_form(message))
}

/// Returns the API verb of a request, or `None` if Kubernetes has no verb for this HTTP method on
/// such a target.
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

/// Reports whether the kind or subresource of the target supports the verb. Without a namespace, a
/// namespaced kind can only be listed and watched, except that a review, such as
/// LocalSubjectAccessReview, can be created.
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

/// A request whose verb, target and media type are known. The methods execute the verbs.
struct Handler<'a> {
    registry: &'a Registry,
    target: Target,
    verb: Verb,
    representation: Representation,
    media: Media,
    request: &'a Request<'a>,
    audit: &'a RequestAudit,
}

impl Handler<'_> {
    fn kind(&self) -> &Arc<Kind> {
        &self.target.kind
    }

    fn query(&self) -> &Query {
        &self.request.query
    }

    /// Returns the filter for the objects that a list or watch selects.
    fn filter(&self) -> ApiResult<Filter> {
        let filter = Filter::parse(self.kind(), self.query())?;
        match self.registry.sharded_list_and_watch {
            true => filter.sharded(self.query()),
            false => Ok(filter),
        }
    }

    /// Returns the view of stored objects in the representation that the client accepts.
    fn view(&self) -> View {
        View::new(self.registry, self.kind(), self.representation, self.media)
    }
}
