//! The errors of the API: an HTTP code and a `Status`, with the reasons and messages of Kubernetes.

use std::borrow::Cow;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::authorization::Attributes;
use crate::kinds::Kind;
use crate::negotiation::NotAcceptable;
use crate::object;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    reason: Cow<'static, str>,
    message: Box<str>,
    details: Value,
    /// Token with which a client can continue an expired list.
    continue_token: Box<str>,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into().into(),
            details: Value::Null,
            continue_token: Box::default(),
            warnings: Vec::new(),
        }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = json!({"name": name, "kind": kind.plural});
        if !kind.group.is_empty() {
            object::set_field(&mut self.details, "group", json!(kind.group));
        }
        self
    }

    /// Returns the error that a `Status` describes, such as that of a webhook.
    pub(crate) fn from_status(code: u16, status: &Value) -> Self {
        let mut error = Self::new(code, "", object::text(status, &["message"]));
        error.reason = object::text(status, &["reason"]).to_owned().into();
        error.details = object::at(status, &["details"]).clone();
        error
    }

    /// Returns the error for a request that has taken longer than its client allows.
    pub(crate) fn timeout() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context \
                       deadline exceeded";
        let mut error = Self::new(504, "Timeout", message);
        error.details = json!({});
        error
    }

    /// Returns an error without a reason, as Kubernetes returns for internal Go errors.
    pub(crate) fn without_reason(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.group_resource();
        Self::new(
            403,
            "Forbidden",
            format!("{resource} {name:?} is forbidden: {why}"),
        )
        .about(kind, name)
    }

    /// Returns the error for a request that the authorizers do not allow.
    pub(crate) fn denied(user: &str, attributes: &Attributes<'_>, reason: &str) -> Self {
        // As in Kubernetes, the message is never valid HTML.
        let denial = attributes.denial(user);
        let denial = denial.replace('&', "&amp;");
        let denial = denial.replace('<', "&lt;").replace('>', "&gt;");
        let why = match reason {
            "" => denial,
            reason => format!("{denial}: {reason}"),
        };
        Self::forbidden_named(
            &attributes.group,
            &attributes.resource,
            &attributes.name,
            &why,
        )
    }

    /// Returns the error for a request on a resource that is not allowed. Resource and name can be
    /// empty.
    pub(crate) fn forbidden_named(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = match group {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        };
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{qualified} is forbidden: {why}"),
            (_, name) => format!("{qualified} {name:?} is forbidden: {why}"),
        };
        let mut error = Self::new(403, "Forbidden", message);
        error.details = json!({});
        for (field, value) in [("name", name), ("group", group), ("kind", resource)] {
            if !value.is_empty() {
                object::set_field(&mut error.details, field, json!(value));
            }
        }
        error
    }

    /// Returns the error for a path without a resource.
    pub(crate) fn no_such_resource() -> Self {
        let mut error = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = json!({});
        error
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", kind.group_resource()),
        )
        .about(kind, name)
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let mut error = Self::new(404, "NotFound", format!("namespaces {name:?} not found"));
        error.details = json!({"name": name, "kind": "namespaces"});
        error
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut error = Self::new(405, "MethodNotAllowed", message);
        error.details = json!({});
        error
    }

    /// Returns the error for an `Accept` header that cannot be satisfied. As in Kubernetes, the
    /// message for an unknown media type differs from the message for an unsupported
    /// representation.
    pub(crate) fn not_acceptable(why: NotAcceptable) -> Self {
        let mut types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        if why == NotAcceptable::Stream {
            types =
                "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        }
        if why != NotAcceptable::Type {
            let message = format!("only the following media types are accepted: {types}");
            return Self::new(406, "NotAcceptable", message);
        }
        Self::not_acceptable_but(types)
    }

    /// Returns the error for an `Accept` header with none of the media types in `types`.
    pub(crate) fn not_acceptable_but(types: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {types}");
        let mut error = Self::new(406, "NotAcceptable", message);
        error.details = json!({});
        error
    }

    /// Returns the error for a form of the response that the object or list does not have.
    pub(crate) fn unsupported_form(message: String) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.group_resource());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.group_resource();
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// Returns the conflict error for an object of a kind that is not in the path of the request.
    pub(crate) fn conflict_named(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = match group {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        };
        let message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        let mut error = Self::new(409, "Conflict", message);
        error.details = json!({"name": name, "kind": resource});
        if !group.is_empty() {
            object::set_field(&mut error.details, "group", json!(group));
        }
        error
    }

    /// Returns the error for a subresource that refuses a write in the present state of the object.
    pub(crate) fn subresource_conflict(
        kind: &Kind,
        subresource: &str,
        name: &str,
        why: &str,
    ) -> Self {
        let resource = format!("{}/{subresource}", kind.plural);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        let mut error = Self::new(409, "Conflict", message).about(kind, name);
        object::set_field(&mut error.details, "kind", json!(resource));
        error
    }

    /// Returns the error for a request that can be repeated after some seconds, with its cause.
    pub(crate) fn too_many_requests(
        message: &str,
        retry_after_seconds: u32,
        reason: &str,
        cause: &str,
    ) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = json!({"causes": [{"reason": reason, "message": cause}]});
        if retry_after_seconds > 0 {
            let seconds = json!(retry_after_seconds);
            object::set_field(&mut error.details, "retryAfterSeconds", seconds);
        }
        error
    }

    /// Replaces the message of the error.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message.into();
        self
    }

    /// Returns the error for a write to an object that has changed since the client read the
    /// object. The message has the exact words of Kubernetes, because some clients search for these
    /// words.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; \
                   please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// Returns the error for an apply of fields that other managers own.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        error.details = json!({"causes": causes});
        error
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Adds a `continue` token, with which the client can continue an expired list.
    pub(crate) fn continuing(mut self, token: String) -> Self {
        self.continue_token = token.into();
        self
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns the error for a patch of an unknown type on a built-in resource.
    pub(crate) fn unsupported_patch_type() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        error.details = json!({});
        error
    }

    /// Puts `text` before the message of the error.
    pub(crate) fn prefixed(mut self, text: &str) -> Self {
        self.message = format!("{text}{}", self.message).into();
        self
    }

    /// Returns the error for an object that is not valid, with the errors of its fields.
    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        // Kubernetes reports events of both API groups in the core group.
        let group = if kind.kind == "Event" {
            ""
        } else {
            &kind.group
        };
        Self::invalid_named(&kind.kind, group, name, errors)
    }

    /// Returns the error for request options that are not valid. `options` is the kind of the
    /// options, such as `PatchOptions`.
    pub(crate) fn invalid_options(options: &str, errors: &[FieldError]) -> Self {
        Self::invalid_named(options, "meta.k8s.io", "", errors)
    }

    /// Returns the error for an access review that is not valid. As in Kubernetes, the error names
    /// only the group of the review.
    pub(crate) fn invalid_review(group: &str, errors: &[FieldError]) -> Self {
        Self::invalid_named("", group, "", errors)
    }

    /// Returns the error for a patch whose result is not an object of its kind. As in Kubernetes,
    /// the error does not name the object.
    pub(crate) fn invalid_patch(error: FieldError) -> Self {
        Self::invalid_named("", "", "", &[error])
    }

    /// Returns the error for a TokenRequest that is not valid.
    pub(crate) fn invalid_token_request(name: &str, error: FieldError) -> Self {
        Self::invalid_named("TokenRequest", "authentication.k8s.io", name, &[error])
    }

    /// Returns the error for a Scale that is not valid.
    pub(crate) fn invalid_scale(name: &str, error: FieldError) -> Self {
        Self::invalid_named("Scale", "autoscaling", name, &[error])
    }

    /// Returns the error for a body whose kind is not that of the custom resource in the path.
    pub(crate) fn wrong_kind(kind: &Kind, given: &str, name: &str) -> Self {
        let detail = format!("must be {}", kind.kind);
        let error = FieldError::invalid("kind", &json!(given), detail);
        Self::invalid_named(given, &kind.group, name, &[error])
    }

    /// Returns the error for an update without a `resourceVersion`, for kinds that require one.
    pub(crate) fn no_version(kind: &Kind, name: &str) -> Self {
        let field = "metadata.resourceVersion";
        let error = FieldError::invalid(field, &json!(0), "must be specified for an update");
        Self::invalid_named(&kind.plural, &kind.group, name, &[error])
    }

    fn invalid_named(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let group_kind = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let mut texts: Vec<String> = Vec::with_capacity(errors.len());
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut error = Self::new(
            422,
            "Invalid",
            format!("{group_kind} {name:?} is invalid: {list}"),
        );
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.reason(), "message": e.detail, "field": e.field}))
            .collect();
        error.details = json!({"causes": causes});
        for (field, value) in [("kind", kind), ("name", name), ("group", group)] {
            if !value.is_empty() {
                object::set_field(&mut error.details, field, json!(value));
            }
        }
        error
    }

    /// Returns the error for a delete whose preconditions do not hold.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let kind_name = &kind.kind;
        let message = format!("Operation cannot be fulfilled on {kind_name} {name:?}: {why}");
        let mut error = Self::new(409, "Conflict", message).about(kind, name);
        object::set_field(&mut error.details, "kind", json!(kind.kind));
        error
    }

    /// Returns the error for a patch that cannot be applied. As in Kubernetes, the error has no
    /// details.
    pub(crate) fn patch_refused() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut error = Self::new(422, "Invalid", message);
        error.details = json!({});
        error
    }

    /// Returns the error for a body that cannot be decoded as an object of the kind.
    pub(crate) fn undecodable(kind: &Kind, why: &str) -> Self {
        let (kind, version) = (&kind.kind, &kind.version);
        Self::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    }

    pub(crate) fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut error = Self::new(504, "Timeout", message);
        let cause =
            json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        error.details = json!({"causes": [cause], "retryAfterSeconds": 1});
        error
    }

    pub(crate) fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// Returns the error for a feature that this server does not have: 501.
    pub(crate) fn not_modelled(what: &str) -> Self {
        Self::new(
            501,
            "NotImplemented",
            format!("the embedded control plane does not model {what}"),
        )
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Returns the error of Kubernetes for an operation that failed inside of the server.
    pub(crate) fn internal_occurred(cause: impl Into<String>) -> Self {
        let cause = cause.into();
        let mut error = Self::internal(format!("Internal error occurred: {cause}"));
        error.details = json!({"causes": [{"message": cause}]});
        error
    }

    /// Adds a cause to the details of the error.
    pub(crate) fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        object::set_field(
            &mut self.details,
            "causes",
            json!([{"reason": reason, "message": message, "field": field}]),
        );
        self
    }

    /// Sets the HTTP code and the reason.
    pub(crate) fn with_reason(mut self, code: u16, reason: &str) -> Self {
        self.code = code;
        self.reason = reason.to_owned().into();
        self
    }

    /// Adds a cause that has only a message to the details of the error.
    pub(crate) fn add_cause(&mut self, message: &str) {
        let mut causes = object::items(&self.details, &["causes"]).to_vec();
        causes.push(json!({"message": message}));
        object::set_field(&mut self.details, "causes", json!(causes));
    }

    /// Adds a cause that has only a reason to the details of the error.
    pub(crate) fn with_bare_cause(mut self, reason: &str) -> Self {
        let causes = json!([{"reason": reason}]);
        object::set_field(&mut self.details, "causes", causes);
        self
    }

    /// Returns the time in seconds after which a client can repeat the request.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        object::at(&self.details, &["retryAfterSeconds"]).as_u64()
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code == 404
    }

    pub(crate) fn message(&self) -> String {
        self.message.to_string()
    }

    /// Returns the error as a Kubernetes `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.continue_token.is_empty() {
            object::set_meta(&mut status, "continue", json!(self.continue_token));
        }
        if !self.reason.is_empty() {
            object::set_field(&mut status, "reason", json!(self.reason));
        }
        if !self.details.is_null() {
            object::set_field(&mut status, "details", self.details.clone());
        }
        status
    }
}
