//! Validation errors of single fields, in Kubernetes' words.

use std::fmt;

use serde_json::Value;

use crate::golang;

/// A validation error of one field, which Kubernetes sends as one *cause* of an `Invalid` response.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::structural::FieldError;
/// use serde_json::json;
///
/// let error = FieldError::invalid("spec.replicas", &json!(-1), "must be positive");
/// assert_eq!(error.to_string(), "spec.replicas: Invalid value: -1: must be positive");
/// assert_eq!(error.reason(), "FieldValueInvalid");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// Kind of the error.
    pub kind: FieldErrorKind,
    /// Path of the field, for example `spec.ports[0].name`.
    pub field: String,
    /// Text of the error after the path: the kind of the error in words, the value, and the
    /// explanation.
    pub detail: String,
}

/// Kind of a validation error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldErrorKind {
    /// The value occurs more than once, but must be unique.
    Duplicate,
    /// The field may not be set or changed.
    Forbidden,
    /// The server failed to validate the field.
    Internal,
    /// The value is malformed or out of range.
    Invalid,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value is not one of the supported values.
    NotSupported,
    /// The field is missing.
    Required,
    /// The text is too long.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
    /// The value has a different type than the schema requires.
    TypeInvalid,
}

impl FieldErrorKind {
    /// Returns the kind of the error as Kubernetes writes it in messages.
    fn as_str(self) -> &'static str {
        match self {
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::Internal => "Internal error",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotFound => "Not found",
            Self::NotSupported => "Unsupported value",
            Self::Required => "Required value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

impl FieldError {
    /// Creates the error for a value that is malformed or out of range.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::with_value(FieldErrorKind::Invalid, field, value, detail)
    }

    /// Creates the error for a malformed value that Kubernetes prints in the form `shown`. Use it
    /// for values whose printed form is not that of their JSON, such as Go structs.
    pub fn invalid_shown(
        field: impl Into<String>,
        shown: impl Into<String>,
        detail: impl AsRef<str>,
    ) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(shown.into()), detail)
    }

    /// Creates the error for a value of a different type than the schema requires.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::with_value(FieldErrorKind::TypeInvalid, field, value, detail)
    }

    /// Creates the error for a missing field.
    pub fn required(field: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::new(FieldErrorKind::Required, field, None, detail)
    }

    /// Creates the error for a field that may not be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, None, detail)
    }

    /// Creates the error for a value that refers to something that does not exist.
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::with_value(FieldErrorKind::NotFound, field, value, "")
    }

    /// Creates the error for a value that is not one of the `supported` values.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| golang::quote(value)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::with_value(FieldErrorKind::NotSupported, field, value, detail)
    }

    /// Creates the error for a value that occurs more than once, but must be unique.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::with_value(FieldErrorKind::Duplicate, field, value, "")
    }

    /// Creates the error for a text that is longer than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        Self::new(FieldErrorKind::TooLong, field, None, detail)
    }

    /// Creates the error for a list or map with `actual` entries, which is more than `max`.
    pub fn too_many(field: impl Into<String>, actual: usize, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        Self::with_value(FieldErrorKind::TooMany, field, &Value::from(actual), detail)
    }

    /// Returns the machine-readable reason, which is `details.causes[].reason` in a Status.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::Internal => "InternalError",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn with_value(
        kind: FieldErrorKind,
        field: impl Into<String>,
        value: &Value,
        detail: impl AsRef<str>,
    ) -> Self {
        Self::new(kind, field, Some(golang::value(value)), detail)
    }

    fn new(
        kind: FieldErrorKind,
        field: impl Into<String>,
        value: Option<String>,
        detail: impl AsRef<str>,
    ) -> Self {
        let mut text = kind.as_str().to_owned();
        for part in [value.as_deref().unwrap_or_default(), detail.as_ref()] {
            if !part.is_empty() {
                text.push_str(": ");
                text.push_str(part);
            }
        }
        Self {
            kind,
            field: field.into(),
            detail: text,
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}
