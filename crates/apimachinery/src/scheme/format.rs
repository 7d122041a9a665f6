//! Decodes and encodes objects as JSON, YAML and protobuf.

use std::any::Any;
use std::any::type_name;

use serde::Serialize;
use serde_json::Value;

use super::strict::Findings;
use super::{Decoded, Scheme, SchemeError};
use crate::identity::GroupVersionKind;
use crate::protobuf;

/// Encoding of an object.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::scheme::Format;
///
/// assert_eq!(Format::of(b" {\"kind\": \"Pod\"}"), Format::Json);
/// assert_eq!(Format::of(b"kind: Pod"), Format::Yaml);
/// assert_eq!(Format::of(b"k8s\0..."), Format::Protobuf);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JSON.
    Json,
    /// YAML, which includes JSON.
    Yaml,
    /// Kubernetes' protobuf with its envelope. Only built-in kinds have this encoding.
    Protobuf,
}

impl Format {
    /// Detects the format of bytes by their first characters, without decoding them.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(protobuf::MAGIC) {
            return Self::Protobuf;
        }
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            Some(b'{') => Self::Json,
            _ => Self::Yaml,
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Protobuf => "protobuf",
        })
    }
}

impl Scheme {
    /// Decodes one object of any registered kind from JSON, YAML or protobuf.
    ///
    /// A field that the type does not have is an error. A type that collects unknown fields, as
    /// with serde's `flatten`, accepts every field. In protobuf, an unknown empty struct is not an
    /// error, because Go writes such a struct even if it was not set.
    ///
    /// # Errors
    ///
    /// If the bytes cannot be decoded, the object has no `apiVersion` or `kind`, the kind is not
    /// registered, or a field is unknown or does not fit the type. For a field, the error contains
    /// its path.
    pub fn decode(&self, bytes: &[u8]) -> Result<Decoded, SchemeError> {
        let (decoded, unknown) = self.read(bytes)?;
        match unknown.into_iter().next() {
            None => Ok(decoded),
            Some(field) => Err(SchemeError::UnknownField {
                gvk: decoded.gvk,
                field,
            }),
        }
    }

    /// Decodes one object as [`decode`](Self::decode) does, and sets the default values of the
    /// object.
    ///
    /// # Errors
    ///
    /// The errors of [`decode`](Self::decode).
    pub fn decode_with_defaults(&self, bytes: &[u8]) -> Result<Decoded, SchemeError> {
        let mut decoded = self.decode(bytes)?;
        self.default_object(&mut decoded);
        Ok(decoded)
    }

    /// Decodes one object that must be a `T`.
    ///
    /// # Errors
    ///
    /// The errors of [`decode`](Self::decode), and an error if the object is of another type.
    pub fn decode_as<T: Any + Send + Sync>(&self, bytes: &[u8]) -> Result<T, SchemeError> {
        self.decode(bytes)?
            .downcast::<T>()
            .map_err(|decoded| SchemeError::OtherType {
                gvk: decoded.gvk,
                expected: type_name::<T>(),
            })
    }

    /// Returns the object as JSON, with the `apiVersion` and `kind` that were registered for its
    /// type. If the type has several kinds, the kind that was registered first is used.
    ///
    /// # Errors
    ///
    /// If the type is not registered, or does not serialize to an object.
    pub fn to_value<T: Any + Serialize>(&self, object: &T) -> Result<Value, SchemeError> {
        let gvk = self
            .kinds_of::<T>()
            .first()
            .ok_or(SchemeError::UnknownType {
                type_name: type_name::<T>(),
            })?;
        typed(gvk, serde_json::to_value(object))
    }

    /// Encodes the object in a format, with its `apiVersion` and `kind`.
    ///
    /// # Errors
    ///
    /// The errors of [`to_value`](Self::to_value), and an error if the format cannot represent the
    /// object.
    pub fn encode<T: Any + Serialize>(
        &self,
        object: &T,
        format: Format,
    ) -> Result<Vec<u8>, SchemeError> {
        write(&self.to_value(object)?, format)
    }

    /// Encodes an object in a format, with the `apiVersion` and `kind` of `decoded`.
    ///
    /// # Errors
    ///
    /// If the kind is not registered, or the format cannot represent the object.
    pub fn encode_decoded(
        &self,
        decoded: &Decoded,
        format: Format,
    ) -> Result<Vec<u8>, SchemeError> {
        let entry = self.entry(&decoded.gvk)?;
        let value = (entry.encode)(&*decoded.object).ok_or_else(|| SchemeError::OtherType {
            gvk: decoded.gvk.clone(),
            expected: entry.type_name,
        })?;
        write(&typed(&decoded.gvk, value)?, format)
    }

    /// Decodes an object, and returns the object and the paths of the fields that its type does not
    /// have.
    fn read(&self, bytes: &[u8]) -> Result<(Decoded, Vec<String>), SchemeError> {
        let value = parse(bytes)?;
        let text = |field: &'static str| {
            let text = value.get(field).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
                .ok_or(SchemeError::NoTypeMeta { field })
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let gvk = GroupVersionKind::from_api_version(api_version, kind)
            .map_err(|cause| SchemeError::ApiVersion { cause })?;
        let entry = self.entry(&gvk)?;
        let findings = Findings::of(Format::of(bytes));
        match (entry.decode)(&value, &findings) {
            Ok(object) => {
                let decoded = Decoded { gvk, object };
                Ok((decoded, findings.unknown()))
            }
            Err(cause) => Err(SchemeError::Field {
                gvk,
                field: findings.failed(),
                cause,
            }),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, SchemeError> {
    let format = Format::of(bytes);
    let unreadable =
        |cause: Box<dyn std::error::Error + Send + Sync>| SchemeError::Unreadable { format, cause };
    match format {
        // A YAML mapping may start with `{`, like a JSON object.
        Format::Json => serde_json::from_slice(bytes)
            .or_else(|cause| serde_saphyr::from_slice(bytes).map_err(|_| unreadable(cause.into()))),
        Format::Yaml => serde_saphyr::from_slice(bytes).map_err(|cause| unreadable(cause.into())),
        Format::Protobuf => protobuf::decode(bytes).map_err(|cause| unreadable(cause.into())),
    }
}

fn write(value: &Value, format: Format) -> Result<Vec<u8>, SchemeError> {
    let unwritable = |cause: Box<dyn std::error::Error + Send + Sync>| SchemeError::Unwritable {
        what: value
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("object")
            .to_owned(),
        format,
        cause,
    };
    match format {
        Format::Json => serde_json::to_vec(value).map_err(|cause| unwritable(cause.into())),
        Format::Yaml => serde_saphyr::to_string(value)
            .map(String::into_bytes)
            .map_err(|cause| unwritable(cause.into())),
        Format::Protobuf => protobuf::encode(value).map_err(|cause| unwritable(cause.into())),
    }
}

/// Adds `apiVersion` and `kind` to a serialized object.
fn typed(
    gvk: &GroupVersionKind,
    value: Result<Value, serde_json::Error>,
) -> Result<Value, SchemeError> {
    let unwritable = |cause: Box<dyn std::error::Error + Send + Sync>| SchemeError::Unwritable {
        what: gvk.kind.clone(),
        format: Format::Json,
        cause,
    };
    let mut value = value.map_err(|cause| unwritable(cause.into()))?;
    let Value::Object(object) = &mut value else {
        return Err(unwritable(
            "its type does not serialize to an object".into(),
        ));
    };
    object.insert("apiVersion".to_owned(), gvk.api_version().into());
    object.insert("kind".to_owned(), gvk.kind.clone().into());
    Ok(value)
}
