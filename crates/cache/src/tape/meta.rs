//! Metadata of an object, read in place from its stored form: nothing is decoded, and only packed
//! strings are copied.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::Tag;
use super::deserialize::TapeDeserializer;
use super::reader::{Damaged, Item, Reader};

/// Metadata of a cached object.
///
/// Every method reads the stored form of the object again, which takes well below a microsecond.
/// [`to_object_meta`](Meta::to_object_meta) decodes the usual struct.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a>(Source<'a>);

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// Reader at the map of the metadata.
    Tape(Reader<'a>),
    Typed(&'a ObjectMeta),
}

/// Owner reference; see [`Meta::owners`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner<'a> {
    /// Group and version of the owner's kind, as written in the object.
    pub api_version: Cow<'a, str>,
    /// Kind of the owner.
    pub kind: Cow<'a, str>,
    /// Name of the owner.
    pub name: Cow<'a, str>,
    /// UID of the owner.
    pub uid: Cow<'a, str>,
    /// Whether the owner is the object's controller.
    pub controller: bool,
}

impl<'a> From<&'a ObjectMeta> for Meta<'a> {
    fn from(meta: &'a ObjectMeta) -> Self {
        Meta(Source::Typed(meta))
    }
}

impl<'a> Meta<'a> {
    pub(crate) fn of_tape(reader: Reader<'a>) -> Self {
        Meta(Source::Tape(reader))
    }

    /// Returns the name.
    pub fn name(&self) -> Cow<'a, str> {
        self.text("name", |meta| meta.name.as_deref())
            .unwrap_or_default()
    }

    /// Returns the namespace, if the kind is namespaced.
    pub fn namespace(&self) -> Option<Cow<'a, str>> {
        self.text("namespace", |meta| meta.namespace.as_deref())
            .filter(|namespace| !namespace.is_empty())
    }

    /// Returns the UID.
    pub fn uid(&self) -> Option<Cow<'a, str>> {
        self.text("uid", |meta| meta.uid.as_deref())
    }

    /// Returns the resourceVersion.
    pub fn resource_version(&self) -> Option<Cow<'a, str>> {
        self.text("resourceVersion", |meta| meta.resource_version.as_deref())
    }

    /// Returns `metadata.generation`, if the kind has one.
    pub fn generation(&self) -> Option<i64> {
        match self.0 {
            Source::Typed(meta) => meta.generation,
            Source::Tape(reader) => match field(reader, "generation").ok()??.next().ok()? {
                Item::Unsigned(number) => i64::try_from(number).ok(),
                Item::Signed(number) => Some(number),
                _ => None,
            },
        }
    }

    /// Reports whether the object has a deletion timestamp.
    pub fn is_deleting(&self) -> bool {
        match self.0 {
            Source::Typed(meta) => meta.deletion_timestamp.is_some(),
            Source::Tape(reader) => field(reader, "deletionTimestamp")
                .ok()
                .flatten()
                .is_some_and(|at| !at.is_null()),
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<Cow<'a, str>> {
        match self.0 {
            Source::Typed(meta) => meta.labels.as_ref()?.get(key).map(|value| value.into()),
            Source::Tape(reader) => entry(reader, "labels", key).ok()?,
        }
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<Cow<'a, str>> {
        match self.0 {
            Source::Typed(meta) => meta
                .annotations
                .as_ref()?
                .get(key)
                .map(|value| value.into()),
            Source::Tape(reader) => entry(reader, "annotations", key).ok()?,
        }
    }

    /// Returns all labels.
    pub fn labels(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        match self.0 {
            Source::Typed(meta) => pairs(meta.labels.as_ref()),
            Source::Tape(reader) => entries(reader, "labels").unwrap_or_default(),
        }
    }

    /// Returns all annotations.
    pub fn annotations(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        match self.0 {
            Source::Typed(meta) => pairs(meta.annotations.as_ref()),
            Source::Tape(reader) => entries(reader, "annotations").unwrap_or_default(),
        }
    }

    /// Returns the finalizers.
    pub fn finalizers(&self) -> Vec<Cow<'a, str>> {
        match self.0 {
            Source::Typed(meta) => meta
                .finalizers
                .iter()
                .flatten()
                .map(|finalizer| finalizer.into())
                .collect(),
            Source::Tape(reader) => finalizers(reader).unwrap_or_default(),
        }
    }

    /// Returns the owner references.
    pub fn owners(&self) -> Vec<Owner<'a>> {
        match self.0 {
            Source::Typed(meta) => {
                let owners = meta.owner_references.iter().flatten();
                let owner = owners.map(|owner| Owner {
                    api_version: (&owner.api_version).into(),
                    kind: (&owner.kind).into(),
                    name: (&owner.name).into(),
                    uid: (&owner.uid).into(),
                    controller: owner.controller == Some(true),
                });
                owner.collect()
            }
            Source::Tape(reader) => owners(reader).unwrap_or_default(),
        }
    }

    /// Returns the owner reference of the object's controller.
    pub fn controller(&self) -> Option<Owner<'a>> {
        self.owners().into_iter().find(|owner| owner.controller)
    }

    /// Returns all metadata as an [`ObjectMeta`], with the `managedFields` entries that the cache
    /// keeps.
    pub fn to_object_meta(&self) -> ObjectMeta {
        match self.0 {
            Source::Typed(meta) => meta.clone(),
            Source::Tape(mut reader) => {
                let deserializer = TapeDeserializer::new(&mut reader, None);
                // Metadata that does not match the type was rejected before it was stored.
                ObjectMeta::deserialize(deserializer).unwrap_or_default()
            }
        }
    }

    fn text(
        &self,
        name: &str,
        typed: impl Fn(&'a ObjectMeta) -> Option<&'a str>,
    ) -> Option<Cow<'a, str>> {
        match self.0 {
            Source::Typed(meta) => typed(meta).map(Cow::Borrowed),
            Source::Tape(reader) => field(reader, name).ok()??.text().ok()?,
        }
    }
}

/// Returns the position of the value of the entry `name` in the map at `reader`, if there is one.
pub(crate) fn field<'a>(mut reader: Reader<'a>, name: &str) -> Result<Option<Reader<'a>>, Damaged> {
    if reader.peek()? != Tag::Map {
        return Ok(None);
    }
    reader.next()?;
    while let Some(found) = reader.name()? {
        if found == name {
            return Ok(Some(reader));
        }
        reader.skip()?;
    }
    Ok(None)
}

fn entry<'a>(reader: Reader<'a>, map: &str, key: &str) -> Result<Option<Cow<'a, str>>, Damaged> {
    let Some(map) = field(reader, map)? else {
        return Ok(None);
    };
    match field(map, key)? {
        Some(mut value) => value.text(),
        None => Ok(None),
    }
}

type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

fn entries<'a>(reader: Reader<'a>, map: &str) -> Result<Pairs<'a>, Damaged> {
    let mut pairs = Vec::new();
    let Some(mut reader) = field(reader, map)?.filter(|at| at.peek() == Ok(Tag::Map)) else {
        return Ok(pairs);
    };
    reader.next()?;
    while let Some(name) = reader.name()? {
        if let Some(value) = reader.text()? {
            pairs.push((Cow::Borrowed(name), value));
        }
    }
    Ok(pairs)
}

fn pairs(map: Option<&std::collections::BTreeMap<String, String>>) -> Pairs<'_> {
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

fn finalizers(reader: Reader<'_>) -> Result<Vec<Cow<'_, str>>, Damaged> {
    let mut finalizers = Vec::new();
    let list = field(reader, "finalizers")?.filter(|at| at.peek() == Ok(Tag::List));
    let Some(mut reader) = list else {
        return Ok(finalizers);
    };
    reader.next()?;
    while !reader.is_end() {
        finalizers.extend(reader.text()?);
    }
    Ok(finalizers)
}

fn owners(reader: Reader<'_>) -> Result<Vec<Owner<'_>>, Damaged> {
    let mut owners = Vec::new();
    let list = field(reader, "ownerReferences")?.filter(|at| at.peek() == Ok(Tag::List));
    let Some(mut reader) = list else {
        return Ok(owners);
    };
    reader.next()?;
    while !reader.is_end() {
        if reader.next()? != Item::Map {
            return Err(Damaged);
        }
        let mut owner = Owner::default();
        while let Some(name) = reader.name()? {
            match name {
                "apiVersion" => owner.api_version = reader.text()?.unwrap_or_default(),
                "kind" => owner.kind = reader.text()?.unwrap_or_default(),
                "name" => owner.name = reader.text()?.unwrap_or_default(),
                "uid" => owner.uid = reader.text()?.unwrap_or_default(),
                "controller" => owner.controller = reader.next()? == Item::Bool(true),
                _ => reader.skip()?,
            }
        }
        owners.push(owner);
    }
    Ok(owners)
}
