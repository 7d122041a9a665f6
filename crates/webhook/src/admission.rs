//! The decision of an admission webhook.

pub(crate) mod endpoint;
pub(crate) mod request;
pub(crate) mod review;

use std::collections::BTreeMap;

use opkit_apimachinery::structural::FieldError;
use serde::Serialize;
use serde_json::{Value, json};

/// Decision of a webhook about a request: allowed or refused, with warnings for the client and
/// annotations for the audit log.
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use opkit::Admission;
///
/// fn check(replicas: i32, image: &str) -> Admission {
///     let mut admission = Admission::allowed();
///     if replicas > 100 {
///         admission.invalid("spec.replicas", replicas, "must be at most 100");
///     }
///     if image.ends_with(":latest") {
///         admission.warn("spec.image: this tag moves");
///     }
///     admission
/// }
/// assert!(check(1, "nginx:1.27").is_allowed());
/// assert_eq!(check(200, "nginx:1.27").invalid_fields(), ["spec.replicas"]);
/// assert_eq!(check(1, "nginx:latest").warnings(), ["spec.image: this tag moves"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Admission {
    denial: Option<Denial>,
    invalid: Vec<FieldError>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

/// Refusal that is not about a field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Denial {
    code: u16,
    reason: String,
    message: String,
}

impl Admission {
    /// Allows the request.
    pub fn allowed() -> Self {
        Self::default()
    }

    /// Refuses the request with `403 Forbidden`.
    pub fn denied(message: impl Into<String>) -> Self {
        let mut admission = Self::allowed();
        admission.deny(message);
        admission
    }

    /// Allows the request if `condition` is true, and otherwise refuses it with this message.
    ///
    /// # Examples
    /// ```
    /// # use opkit_webhook as opkit;
    /// use opkit::Admission;
    /// let admission = Admission::allowed_if(false, "the fleet's quota is closed");
    /// assert_eq!(admission.message().as_deref(), Some("the fleet's quota is closed"));
    /// ```
    pub fn allowed_if(condition: bool, message: impl Into<String>) -> Self {
        match condition {
            true => Self::allowed(),
            false => Self::denied(message),
        }
    }

    /// Refuses the request with an HTTP status code from 400 to 599, and a reason of Kubernetes
    /// such as `Conflict`. Prefer [`denied`](Self::denied) and [`invalid`](Self::invalid).
    pub fn refused(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let denial = Denial {
            code: code.clamp(400, 599),
            reason: reason.into(),
            message: message.into(),
        };
        Self {
            denial: Some(denial),
            ..Self::default()
        }
    }

    /// Refuses the request with `403 Forbidden`. If the request is already refused, the first
    /// message stays.
    pub fn deny(&mut self, message: impl Into<String>) -> &mut Self {
        self.denial.get_or_insert_with(|| Denial {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: message.into(),
        });
        self
    }

    /// Refuses the request with `422 Invalid`, because of the value of a field. `field` is the path
    /// of the field, such as `spec.ports[0].name`. May be called for several fields: the client
    /// gets all of them.
    pub fn invalid(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        message: impl AsRef<str>,
    ) -> &mut Self {
        self.field(FieldError::invalid(field, &json(value), message))
    }

    /// Refuses the request with `422 Invalid`, because a field is missing.
    pub fn required(&mut self, field: impl Into<String>, message: impl AsRef<str>) -> &mut Self {
        self.field(FieldError::required(field, message))
    }

    /// Refuses the request with `422 Invalid`, because a field may not be set or changed.
    pub fn forbidden(&mut self, field: impl Into<String>, message: impl AsRef<str>) -> &mut Self {
        self.field(FieldError::forbidden(field, message))
    }

    /// Refuses the request with `422 Invalid`, because a value occurs twice.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Serialize) -> &mut Self {
        self.field(FieldError::duplicate(field, &json(value)))
    }

    /// Refuses the request with `422 Invalid`, because a value is not one of `supported`.
    pub fn not_supported(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        supported: &[&str],
    ) -> &mut Self {
        self.field(FieldError::not_supported(field, &json(value), supported))
    }

    fn field(&mut self, error: FieldError) -> &mut Self {
        self.invalid.push(error);
        self
    }

    /// Adds a warning, which kubectl prints. The API server shortens warnings of more than 256
    /// bytes if there are many.
    pub fn warn(&mut self, warning: impl Into<String>) -> &mut Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the audit event of the request. The API server puts the name of the
    /// webhook before `key`.
    pub fn audit_annotation(
        &mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> &mut Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// Adds the refusals, warnings and annotations of another decision. The result is allowed only
    /// if both are.
    pub fn merge(&mut self, other: Self) -> &mut Self {
        if self.denial.is_none() {
            self.denial = other.denial;
        }
        self.invalid.extend(other.invalid);
        self.warnings.extend(other.warnings);
        self.audit_annotations.extend(other.audit_annotations);
        self
    }

    /// Reports whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none() && self.invalid.is_empty()
    }

    /// Returns the paths of the fields because of which the request is refused.
    pub fn invalid_fields(&self) -> Vec<&str> {
        self.invalid.iter().map(|error| &*error.field).collect()
    }

    /// Returns the reason of the refusal, without the name of the object, or `None` if the request
    /// is allowed.
    pub fn message(&self) -> Option<String> {
        match &self.denial {
            Some(denial) => Some(denial.message.clone()),
            None if self.invalid.is_empty() => None,
            None => Some(self.invalid_message()),
        }
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the annotations of the audit event.
    pub fn audit_annotations(&self) -> &BTreeMap<String, String> {
        &self.audit_annotations
    }

    /// Returns all errors of fields, as Kubernetes joins them.
    fn invalid_message(&self) -> String {
        let errors: Vec<_> = self.invalid.iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", errors.join(", ")),
        }
    }

    /// Returns the status of the response. An `Invalid` status has the same form as one of the API
    /// server itself: the object in `details`, and a cause for each field.
    pub(crate) fn status(&self, object: &Subject<'_>) -> Value {
        if let Some(Denial {
            code,
            reason,
            message,
        }) = &self.denial
        {
            return json!({"code": code, "reason": reason, "message": message});
        }
        if self.invalid.is_empty() {
            return json!({"code": 200});
        }
        let causes: Vec<_> = (self.invalid.iter())
            .map(|error| {
                json!({"reason": error.reason(), "message": error.detail, "field": error.field})
            })
            .collect();
        let Subject { group, kind, name } = object;
        let subject = match group.is_empty() {
            true => (*kind).to_owned(),
            false => format!("{kind}.{group}"),
        };
        json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "message": format!("{subject} {name:?} is invalid: {}", self.invalid_message()),
            "details": {"name": name, "group": group, "kind": kind, "causes": causes},
        })
    }
}

/// Object that a decision is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// Returns the value of a field for a message. A value that has no JSON form is shown as null.
fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
