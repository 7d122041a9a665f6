//! Head of a received object: its identity and version, read before the object is decoded.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::json::{Field, InvalidJson, Scanner};
use super::visit::Name;

/// Identity and resourceVersion of a received object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) namespace: Option<Cow<'a, str>>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) uid: Option<Cow<'a, str>>,
    pub(crate) resource_version: Option<Cow<'a, str>>,
    /// Byte range of `managedFields` in the JSON, if the field was skipped.
    pub(crate) managed_fields: Option<Range<usize>>,
}

impl<'a> Head<'a> {
    /// Reads the head from JSON. An object without a name is an error.
    pub(crate) fn of_json(json: &'a str) -> Result<Self, InvalidJson> {
        let mut head = Head::default();
        let mut scanner = Scanner::new(json);
        scanner.fields(|scanner, name| {
            if name != "metadata" {
                return Ok(Field::Skip);
            }
            scanner.fields(|scanner, name| {
                let text = match name {
                    "name" | "namespace" | "uid" | "resourceVersion"
                        if scanner.peek() == Some(b'"') =>
                    {
                        Some(scanner.string()?)
                    }
                    "managedFields" => {
                        head.managed_fields = Some(scanner.passed()?);
                        return Ok(Field::Passed);
                    }
                    _ => return Ok(Field::Skip),
                };
                match name {
                    "name" => head.name = text.unwrap_or_default(),
                    "namespace" => head.namespace = text,
                    "uid" => head.uid = text,
                    _ => head.resource_version = text,
                }
                // Go writes these fields first; the rest need not be read.
                Ok(if head.is_complete() {
                    Field::Stop
                } else {
                    Field::Passed
                })
            })?;
            Ok(Field::Stop)
        })?;
        if head.name.is_empty() {
            return Err(InvalidJson {
                what: "no metadata.name",
                at: 0,
            });
        }
        // Go sometimes writes the namespace of cluster-scoped objects as an empty string.
        head.namespace = head
            .namespace
            .take()
            .filter(|namespace| !namespace.is_empty());
        Ok(head)
    }

    /// Reads the head from any serde deserializer.
    pub(crate) fn of<D: Deserializer<'a>>(object: D) -> Result<Self, D::Error> {
        let Object { metadata } = Object::deserialize(object)?;
        let text = |name: Option<Name<'a>>| name.map(|Name(text)| text).filter(|t| !t.is_empty());
        Ok(Head {
            name: text(metadata.name).ok_or_else(|| D::Error::custom("no metadata.name"))?,
            namespace: text(metadata.namespace),
            uid: text(metadata.uid),
            resource_version: text(metadata.resource_version),
            managed_fields: None,
        })
    }

    /// Reads the UIDs of the owner references from JSON.
    pub(crate) fn owners_of_json(json: &'a str) -> Result<Vec<Cow<'a, str>>, InvalidJson> {
        let mut uids = Vec::new();
        let mut scanner = Scanner::new(json);
        scanner.fields(|scanner, name| {
            if name != "metadata" {
                return Ok(Field::Skip);
            }
            scanner.fields(|scanner, name| {
                if name != "ownerReferences" {
                    return Ok(Field::Skip);
                }
                scanner.items(|scanner| {
                    scanner.fields(|scanner, name| {
                        if name != "uid" || scanner.peek() != Some(b'"') {
                            return Ok(Field::Skip);
                        }
                        uids.push(scanner.string()?);
                        Ok(Field::Passed)
                    })
                })?;
                Ok(Field::Stop)
            })?;
            Ok(Field::Stop)
        })?;
        Ok(uids)
    }

    /// Reads the UIDs of the owner references from any serde deserializer.
    pub(crate) fn owners_of<D: Deserializer<'a>>(object: D) -> Result<Vec<Cow<'a, str>>, D::Error> {
        let Owned { metadata } = Owned::deserialize(object)?;
        let owners = metadata.owner_references.into_iter().flatten();
        let uids = owners.filter_map(|owner| owner.uid.map(|Name(uid)| uid));
        Ok(uids.collect())
    }

    fn is_complete(&self) -> bool {
        !self.name.is_empty()
            && self.namespace.is_some()
            && self.uid.is_some()
            && self.resource_version.is_some()
    }
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Option<Name<'a>>,
    #[serde(borrow)]
    name: Option<Name<'a>>,
    #[serde(borrow)]
    uid: Option<Name<'a>>,
    #[serde(borrow)]
    resource_version: Option<Name<'a>>,
}

#[derive(Deserialize)]
struct Owned<'a> {
    #[serde(borrow, default)]
    metadata: Owners<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Owners<'a> {
    #[serde(borrow)]
    owner_references: Option<Vec<Owner<'a>>>,
}

#[derive(Deserialize)]
struct Owner<'a> {
    #[serde(borrow, default)]
    uid: Option<Name<'a>>,
}
