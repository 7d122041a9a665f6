//! A schema with the definitions that resolve its references.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{AdditionalProperties, Definitions, ListType, MapType, PatchStrategy, Schema};

/// Maximum number of references that are followed one after the other. A longer chain is a cycle.
const REFERENCE_DEPTH_MAX: usize = 16;

/// A schema with the definitions that resolve its references.
///
/// A `Typed` is a cursor: [`Typed::property`], [`Typed::items`] and [`Typed::additional`] return
/// the cursor at a part of the schema, with references resolved. Cloning is cheap.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, SchemaType, Typed};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"names": {"type": "array", "items": {"type": "string"}}},
/// }))?;
/// let typed = Typed::new(&schema, &NoDefinitions);
/// let name = typed.property("names").and_then(|names| names.items()).unwrap();
/// assert_eq!(name.schema().type_, Some(SchemaType::String));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Typed<'a> {
    /// The schema whose reference led to `schema`, if any. Its keywords take precedence over those
    /// of `schema`.
    site: Option<SchemaPtr<'a>>,
    schema: SchemaPtr<'a>,
    definitions: &'a dyn Definitions,
    built_in: bool,
}

/// A schema that is borrowed from the caller or shared by the definitions.
#[derive(Clone)]
enum SchemaPtr<'a> {
    Borrowed(&'a Schema),
    Shared(Arc<Schema>),
}

impl Deref for SchemaPtr<'_> {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            SchemaPtr::Borrowed(schema) => schema,
            SchemaPtr::Shared(schema) => schema,
        }
    }
}

impl<'a> SchemaPtr<'a> {
    /// Returns the part of this schema that `choose` selects. The part is borrowed if this schema
    /// is borrowed, and shared if this schema is shared.
    fn part(&self, choose: impl FnOnce(&Schema) -> Option<&Arc<Schema>>) -> Option<Self> {
        match self {
            SchemaPtr::Borrowed(schema) => choose(schema).map(|part| SchemaPtr::Borrowed(part)),
            SchemaPtr::Shared(schema) => {
                choose(schema).map(|part| SchemaPtr::Shared(Arc::clone(part)))
            }
        }
    }
}

impl<'a> Typed<'a> {
    /// Creates a cursor at `schema`.
    pub fn new(schema: &'a Schema, definitions: &'a dyn Definitions) -> Self {
        let metadata = schema.properties.get("metadata");
        let built_in = metadata.is_some_and(|metadata| metadata.reference.is_some());
        Self::resolve(SchemaPtr::Borrowed(schema), definitions, built_in)
    }

    /// Returns the schema at the cursor; a reference is already resolved.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Reports whether the cursor reached the schema by a reference (`$ref`). Only schemas of
    /// built-in kinds have references.
    pub fn is_referenced(&self) -> bool {
        self.site.is_some()
    }

    /// Returns the name of the definition by which the cursor reached the schema, such as
    /// `io.k8s.api.core.v1.PodSpec`.
    pub fn definition_name(&self) -> Option<&str> {
        self.at_site(|site| site.reference.as_ref())
            .map(String::as_str)
    }

    /// Reports whether the schema is that of a built-in kind, or a part of one. Kubernetes decodes
    /// objects of built-in kinds into Go types, where null means a missing value. The schema of a
    /// built-in kind is recognized by its `metadata`, which is a reference.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// Returns the schema of the field `name`, or `None` if `properties` does not list the field.
    pub fn property(&self, name: &str) -> Option<Self> {
        self.step(|schema| schema.properties.get(name))
    }

    /// Returns the schema of the items of a list.
    pub fn items(&self) -> Option<Self> {
        self.step(|schema| schema.items.as_ref())
    }

    /// Returns the schema of the fields that are not in `properties`.
    pub fn additional(&self) -> Option<Self> {
        self.step(|schema| match &schema.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => Some(schema),
            _ => None,
        })
    }

    /// Returns the schema of the field `name` in `properties`, or else the schema of additional
    /// properties.
    pub fn field(&self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// Returns the default that is written beside the reference, or else the default of the schema.
    pub fn default(&self) -> Option<&Value> {
        self.at_site(|site| site.default.as_ref())
            .or(self.schema.default.as_ref())
    }

    /// Reports whether this is the schema of RawExtension, whose content is never merged.
    pub(crate) fn is_raw_extension(&self) -> bool {
        let name = self.at_site(|site| site.reference.as_ref());
        name.is_some_and(|name| name.ends_with(".pkg.runtime.RawExtension"))
    }

    pub(crate) fn nullable(&self) -> bool {
        self.built_in
            || self.schema.nullable
            || self.site.as_ref().is_some_and(|site| site.nullable)
    }

    pub(crate) fn list_type(&self) -> Option<ListType> {
        self.at_site(|site| site.list_type.as_ref())
            .or(self.schema.list_type.as_ref())
            .copied()
    }

    pub(crate) fn map_type(&self) -> Option<MapType> {
        self.at_site(|site| site.map_type.as_ref())
            .or(self.schema.map_type.as_ref())
            .copied()
    }

    pub(crate) fn list_map_keys(&self) -> &[String] {
        match &self.site {
            Some(site) if !site.list_map_keys.is_empty() => &site.list_map_keys,
            _ => &self.schema.list_map_keys,
        }
    }

    pub(crate) fn patch_merge_key(&self) -> Option<&str> {
        self.at_site(|site| site.patch_merge_key.as_ref())
            .or(self.schema.patch_merge_key.as_ref())
            .map(String::as_str)
    }

    pub(crate) fn patch_strategy(&self) -> &[PatchStrategy] {
        match &self.site {
            Some(site) if !site.patch_strategy.is_empty() => &site.patch_strategy,
            _ => &self.schema.patch_strategy,
        }
    }

    /// Reports whether this is the schema of `resource.Quantity`.
    pub(crate) fn is_quantity(&self) -> bool {
        self.at_site(|site| site.reference.as_ref())
            .is_some_and(|name| name.ends_with(QUANTITY))
    }

    /// Returns a cursor at another schema, with the same definitions.
    pub(crate) fn at<'b>(&self, schema: &'b Schema) -> Typed<'b>
    where
        'a: 'b,
    {
        Typed::resolve(SchemaPtr::Borrowed(schema), self.definitions, self.built_in)
    }

    fn at_site<'s, T>(&'s self, get: impl FnOnce(&'s Schema) -> Option<&'s T>) -> Option<&'s T> {
        match &self.site {
            Some(site) => get(site),
            None => None,
        }
    }

    fn step(&self, choose: impl FnOnce(&Schema) -> Option<&Arc<Schema>>) -> Option<Self> {
        Some(Self::resolve(
            self.schema.part(choose)?,
            self.definitions,
            self.built_in,
        ))
    }

    fn resolve(start: SchemaPtr<'a>, definitions: &'a dyn Definitions, built_in: bool) -> Self {
        let mut schema = start.clone();
        for _ in 0..REFERENCE_DEPTH_MAX {
            let next = match schema.reference.as_deref() {
                None => break,
                Some(name) => match lenient(name) {
                    Some(lenient) => SchemaPtr::Borrowed(lenient),
                    // A missing definition allows any value.
                    None => definitions
                        .definition(name)
                        .map_or(SchemaPtr::Borrowed(&ANYTHING), SchemaPtr::Shared),
                },
            };
            schema = next;
        }
        let site = start.reference.is_some().then_some(start);
        let built_in = built_in || site.is_some();
        Self {
            site,
            schema,
            definitions,
            built_in,
        }
    }
}

impl fmt::Debug for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed")
            .field("schema", &*self.schema)
            .finish_non_exhaustive()
    }
}

const QUANTITY: &str = ".api.resource.Quantity";

/// Returns a schema for Quantity or IntOrString that accepts every value that the API server
/// accepts. The published schemas of the two types differ between versions, and some reject valid
/// values.
fn lenient(name: &str) -> Option<&'static Schema> {
    let is_lenient = name.ends_with(QUANTITY) || name.ends_with(".util.intstr.IntOrString");
    is_lenient.then_some(&*SCALAR)
}

static ANYTHING: LazyLock<Schema> = LazyLock::new(|| Schema {
    preserve_unknown_fields: true,
    ..Schema::default()
});

static SCALAR: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(&json!({"anyOf": [{"type": "string"}, {"type": "number"}]})).unwrap_or_default()
});
