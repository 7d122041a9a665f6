//! Conversion of objects between the versions of a kind, without loss.
//!
//! One version of a kind is the *hub*; each other version, a *spoke*, has two functions that
//! convert to the hub and from it. Such functions lose the fields that the other version does not
//! have. [`KindVersions::convert`] finds out what they lost, by converting the result back, and
//! keeps it in the annotation [`ANNOTATION`] of the converted object. When the object is converted
//! again, the kept values are restored:
//!
//! - An object that is converted to another version and back is the same again, and the annotation
//!   is removed when nothing is left to keep.
//! - A value is restored only if the field still has the value that it had when the value was kept.
//!   A client that edits a field in the other version therefore always wins.
//! - Items of lists of the type `map` are found by their keys. Other lists are restored only as a
//!   whole.
//! - A kept value that the schema does not allow is not restored, because a user can edit the
//!   annotation. CEL rules are not evaluated.
//! - The annotations of an object stay within 256 KiB, the limit of Kubernetes. If the kept values
//!   do not fit, the largest ones are lost, with a warning.
//!
//! [`review`] converts the objects of a ConversionReview, the request of an API server to a
//! conversion webhook. This module does no I/O.

mod annotation;
mod difference;
mod hash;
mod notes;
mod partial;
mod restore;
mod review;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use self::annotation::ANNOTATION;
pub use self::difference::{Difference, Step, differences};
pub use self::notes::{Container, FieldNote, Notes};
pub use self::review::{Review, review};
pub use crate::error::ConversionError;
use crate::schema::Schema;

use self::annotation::Kept;
use self::difference::differences_in;
use self::restore::restore;

/// Fields of an object by name.
pub type Fields = Map<String, Value>;

/// A function that converts fields of an object to another version. If the argument `is_reversed`
/// is true, the function also converts the result back, and returns both.
pub type Convert = fn(&Fields, is_reversed: bool) -> Result<Conversion, serde_json::Error>;

/// Result of a [`Convert`] function.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// Fields in the other version.
    pub fields: Fields,
    /// Fields after the conversion back to the first version.
    pub reversed: Fields,
}

/// Functions that convert the objects of one version to the hub, and from the hub.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Fields of the object that the functions take, such as `spec`. The other fields are not
    /// changed. Of `metadata`, the functions may change labels and annotations only.
    pub fields: &'static [&'static str],
    /// Converts the fields to the hub.
    pub to_hub: Convert,
    /// Converts the fields of the hub to this version.
    pub from_hub: Convert,
    /// Returns what the declaration of the version states about its fields, for each field of the
    /// object that the functions take. Returns `None` if the conversions are functions for the
    /// whole object, about which nothing is known.
    pub notes: fn(field: &str) -> Option<Notes>,
}

/// A version of a kind that is not the hub.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Spoke {
    /// Name of the version, such as `v1alpha1`.
    pub name: String,
    /// Schema of the whole object in this version.
    pub schema: Arc<Schema>,
    /// Functions to and from the hub.
    pub functions: Functions,
}

/// The versions of one kind, which [converts](KindVersions::convert) objects between them.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use opkit_apimachinery::conversion::{Conversion, Fields, Functions, KindVersions};
/// use opkit_apimachinery::schema::Schema;
/// use serde_json::{Value, json};
///
/// /// Renames a field of the spec, and drops all other fields.
/// fn rename(fields: &Fields, from: &str, to: &str) -> Fields {
///     let spec = json!({to: fields["spec"][from]});
///     Fields::from_iter([("spec".to_owned(), spec)])
/// }
/// fn there_and_back(fields: &Fields, from: &str, to: &str) -> Conversion {
///     let fields = rename(fields, from, to);
///     Conversion { reversed: rename(&fields, to, from), fields }
/// }
/// let functions = Functions {
///     fields: &["spec"],
///     to_hub: |fields, _| Ok(there_and_back(fields, "size", "replicas")),
///     from_hub: |fields, _| Ok(there_and_back(fields, "replicas", "size")),
///     notes: |_| None,
/// };
/// let schema = Arc::new(Schema::default());
/// let robot = KindVersions::new("example.com", "Robot", "v1", schema.clone())
///     .spoke("v1alpha1", schema, functions);
///
/// let old = json!({
///     "apiVersion": "example.com/v1alpha1", "kind": "Robot", "metadata": {"name": "one"},
///     "spec": {"size": 3, "legacy": true},
/// });
/// let hub = robot.convert(old.clone(), "v1")?.object;
/// assert_eq!(hub["spec"], json!({"replicas": 3}));
/// assert!(hub["metadata"]["annotations"]["opkit.dev/conversion"].is_string());
/// assert_eq!(robot.convert(hub, "v1alpha1")?.object, old);
/// # Ok::<(), opkit_apimachinery::conversion::ConversionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KindVersions {
    group: String,
    kind: String,
    hub: String,
    hub_schema: Arc<Schema>,
    spokes: Vec<Spoke>,
}

/// A converted object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The object in the other version.
    pub object: Value,
    /// Kept values that were lost because the annotations of the object would have been too large.
    pub lost: usize,
}

impl KindVersions {
    /// Creates a kind with only the hub. The schema is that of the whole object.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        hub: impl Into<String>,
        schema: Arc<Schema>,
    ) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            hub: hub.into(),
            hub_schema: schema,
            spokes: Vec::new(),
        }
    }

    /// Adds a version.
    #[must_use]
    pub fn spoke(
        mut self,
        name: impl Into<String>,
        schema: Arc<Schema>,
        functions: Functions,
    ) -> Self {
        self.spokes.push(Spoke {
            name: name.into(),
            schema,
            functions,
        });
        self
    }

    /// Returns the API group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the name of the hub.
    pub fn hub(&self) -> &str {
        &self.hub
    }

    /// Returns the versions that are not the hub.
    pub fn spokes(&self) -> &[Spoke] {
        &self.spokes
    }

    /// Returns the names of all versions, the hub first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let spokes = self.spokes.iter().map(|spoke| spoke.name.as_str());
        std::iter::once(self.hub.as_str()).chain(spokes)
    }

    /// Returns the schema of a version.
    pub fn schema(&self, version: &str) -> Option<&Arc<Schema>> {
        match version == self.hub {
            true => Some(&self.hub_schema),
            false => self.find(version).map(|spoke| &spoke.schema),
        }
    }

    /// Converts an object of this kind to another version, such as `v1`.
    ///
    /// Required fields may be missing: then the fields that depend on them are missing in the
    /// result too.
    ///
    /// # Errors
    /// If the object is not of this kind or has no version of it, if the kind has no such version,
    /// or if the object does not fit the Rust type of its version.
    pub fn convert(&self, object: Value, to: &str) -> Result<Converted, ConversionError> {
        let Value::Object(mut object) = object else {
            return Err(ConversionError::NotAnObject);
        };
        let from = self.version_of(&object)?.to_owned();
        if !self.names().any(|name| name == to) {
            return Err(self.unknown_version(to));
        }
        let api_version = Value::String(format!("{}/{to}", self.group));
        if from == to {
            return Ok(Converted {
                object: Value::Object(object),
                lost: 0,
            });
        }
        object.insert("apiVersion".to_owned(), api_version);
        // A bookmark of a watch has only metadata.
        if !object.contains_key("spec") && !object.contains_key("status") {
            return Ok(Converted {
                object: Value::Object(object),
                lost: 0,
            });
        }
        let kept = Kept::take(&mut object);
        let converted = self.convert_fields(&mut object, kept.clone(), &from, to);
        let kept = match (converted, self.schema(&from)) {
            (Ok(kept), _) => kept,
            (Err(error), Some(schema)) => {
                // The object may be a part of one: server-side apply converts the fields of a
                // manager without those of others.
                let converted = partial::convert(&object, schema, |mut object| {
                    let kept = self.convert_fields(&mut object, kept.clone(), &from, to)?;
                    Ok((object, kept))
                });
                let (converted, kept) = converted.ok_or(error)?;
                object = converted;
                kept
            }
            (Err(error), None) => return Err(error),
        };
        let lost = kept.store(&mut object);
        Ok(Converted {
            object: Value::Object(object),
            lost,
        })
    }

    /// Converts the fields of an object, which no longer has the annotation. The object is not
    /// changed if there is an error.
    fn convert_fields(
        &self,
        object: &mut Fields,
        mut kept: Kept,
        from: &str,
        to: &str,
    ) -> Result<Kept, ConversionError> {
        let mut before = None;
        if let Some(spoke) = self.find(from) {
            let hub = Side::new(&self.hub, &self.hub_schema);
            let own = Side::new(&spoke.name, &spoke.schema);
            let Functions {
                to_hub, from_hub, ..
            } = spoke.functions;
            let fields = convert_one(spoke, object, &mut kept, own, hub, to_hub, from_hub)?;
            before = Some(replace(object, spoke.functions.fields, fields));
        }
        // The object is in the hub now; values that were kept for the hub are restored or outdated.
        kept.remove(&self.hub);
        if let Some(spoke) = self.find(to) {
            let hub = Side::new(&self.hub, &self.hub_schema);
            let own = Side::new(&spoke.name, &spoke.schema);
            let Functions {
                to_hub, from_hub, ..
            } = spoke.functions;
            match convert_one(spoke, object, &mut kept, hub, own, from_hub, to_hub) {
                Ok(fields) => drop(replace(object, spoke.functions.fields, fields)),
                Err(error) => {
                    if let (Some(spoke), Some(before)) = (self.find(from), before) {
                        replace(object, spoke.functions.fields, before);
                    }
                    return Err(error);
                }
            }
        }
        Ok(kept)
    }

    fn find(&self, version: &str) -> Option<&Spoke> {
        self.spokes.iter().find(|spoke| spoke.name == version)
    }

    /// Returns the version of an object, after checking that the object is of this kind.
    fn version_of<'a>(&self, object: &'a Fields) -> Result<&'a str, ConversionError> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if group != self.group || kind != self.kind {
            return Err(ConversionError::UnknownKind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            });
        }
        match self.names().any(|name| name == version) {
            true => Ok(version),
            false => Err(self.unknown_version(version)),
        }
    }

    fn unknown_version(&self, version: &str) -> ConversionError {
        ConversionError::UnknownVersion {
            group: self.group.clone(),
            kind: self.kind.clone(),
            version: version.to_owned(),
            versions: self.names().collect::<Vec<_>>().join(", "),
        }
    }
}

impl fmt::Display for KindVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.group)
    }
}

/// Name and schema of a version.
#[derive(Clone, Copy)]
struct Side<'a> {
    name: &'a str,
    schema: &'a Schema,
}

impl<'a> Side<'a> {
    fn new(name: &'a str, schema: &'a Schema) -> Self {
        Self { name, schema }
    }
}

/// Converts the fields of an object between the hub and a spoke. Values that were kept for the
/// version `to` are restored, and values that it cannot express are kept for the version `from`.
fn convert_one(
    spoke: &Spoke,
    object: &Fields,
    kept: &mut Kept,
    from: Side<'_>,
    to: Side<'_>,
    convert: Convert,
    reverse: Convert,
) -> Result<Fields, ConversionError> {
    let names = spoke.functions.fields;
    let original = match names.contains(&"metadata") {
        true => Cow::Owned(selected(object, names)),
        false => Cow::Borrowed(object),
    };
    let converted = convert(&original, true)
        .map_err(|cause| decoding(object_name(object), from.name, cause))?;
    let entries = kept.take_version(to.name);
    let (fields, reversed) = restore(converted, &entries, to.schema, |fields| {
        reverse(fields, false).map(|conversion| conversion.fields)
    });
    let lost = differences_in(names, &reversed, &original, from.schema);
    kept.set(from.name, lost);
    Ok(fields)
}

/// Returns copies of the fields that conversion functions take. Of the metadata, only the names,
/// the labels and the annotations are copied.
fn selected(object: &Fields, names: &[&str]) -> Fields {
    let mut fields = Fields::new();
    for name in names {
        let value = match *name {
            "metadata" => Some(Value::Object(metadata_of(object))),
            name => object.get(name).cloned(),
        };
        fields.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    fields
}

fn metadata_of(object: &Fields) -> Fields {
    const CONVERTED: [&str; 4] = ["name", "namespace", "labels", "annotations"];
    let metadata = object.get("metadata").and_then(Value::as_object);
    let fields = metadata.into_iter().flatten();
    fields
        .filter(|(name, _)| CONVERTED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Replaces the fields of the object that were converted, and returns the old fields. Of the
/// metadata, only the labels and the annotations are replaced.
fn replace(object: &mut Fields, names: &[&str], mut fields: Fields) -> Fields {
    let mut before = Fields::new();
    for name in names {
        let new = fields.remove(*name);
        let old = match (*name, new) {
            ("metadata", new) => replace_metadata(object, new),
            (name, Some(new)) => object.insert(name.to_owned(), new),
            (name, None) => object.remove(name),
        };
        before.extend(old.map(|old| ((*name).to_owned(), old)));
    }
    before
}

fn replace_metadata(object: &mut Fields, new: Option<Value>) -> Option<Value> {
    let before = Value::Object(metadata_of(object));
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return None;
    };
    for name in ["labels", "annotations"] {
        match new.as_ref().and_then(|new| new.get(name)) {
            Some(new) if new.is_object() => metadata.insert(name.to_owned(), new.clone()),
            _ => metadata.remove(name),
        };
    }
    Some(before)
}

/// Returns the namespace and the name of an object for error messages.
fn object_name(object: &Fields) -> String {
    let text = |name: &str| {
        let value = object
            .get("metadata")
            .and_then(|metadata| metadata.get(name));
        value.and_then(Value::as_str)
    };
    let name = text("name").unwrap_or("without a name");
    match text("namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn decoding(object: String, version: &str, cause: serde_json::Error) -> ConversionError {
    ConversionError::Decode {
        object,
        version: version.to_owned(),
        cause,
    }
}

#[cfg(test)]
mod tests;
