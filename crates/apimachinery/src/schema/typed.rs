//! A schema together with where its references lead.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{AdditionalProperties, Definitions, ListType, MapType, PatchStrategy, Schema};

/// References may chain; a longer chain than this is a loop.
const REFERENCE_DEPTH_MAX: usize = 16;

/// A schema together with where its references lead.
///
/// It is a cursor: [`Typed::property`], [`Typed::items`] and [`Typed::additional`] step into an
/// object's parts and follow references on the way. Cloning it is cheap.
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
    /// Where the reference was written, whose own keywords win.
    site: Option<Held<'a>>,
    schema: Held<'a>,
    definitions: &'a dyn Definitions,
    built_in: bool,
}

/// A schema borrowed from the caller or shared by the definitions.
#[derive(Clone)]
enum Held<'a> {
    Borrowed(&'a Schema),
    Shared(Arc<Schema>),
}

impl Deref for Held<'_> {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Held::Borrowed(schema) => schema,
            Held::Shared(schema) => schema,
        }
    }
}

impl<'a> Held<'a> {
    /// The part of this schema that `choose` picks, held the same way.
    fn part(&self, choose: impl FnOnce(&Schema) -> Option<&Arc<Schema>>) -> Option<Self> {
        match self {
            Held::Borrowed(schema) => choose(schema).map(|part| Held::Borrowed(part)),
            Held::Shared(schema) => choose(schema).map(|part| Held::Shared(Arc::clone(part))),
        }
    }
}

impl<'a> Typed<'a> {
    /// A cursor at `schema`.
    pub fn new(schema: &'a Schema, definitions: &'a dyn Definitions) -> Self {
        let metadata = schema.properties.get("metadata");
        let built_in = metadata.is_some_and(|metadata| metadata.reference.is_some());
        Self::resolve(Held::Borrowed(schema), definitions, built_in)
    }

    /// The schema, after following its reference.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether a reference led here: true inside built-in kinds, never inside custom ones.
    pub fn is_referenced(&self) -> bool {
        self.site.is_some()
    }

    /// Whether this is (part of) a built-in kind, whose metadata is a reference. Kubernetes
    /// reads such objects into Go types, which take a null for the absence of a value.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// The schema of the field `name`, when it is a named property.
    pub fn property(&self, name: &str) -> Option<Self> {
        self.step(|schema| schema.properties.get(name))
    }

    /// The schema of a list's items.
    pub fn items(&self) -> Option<Self> {
        self.step(|schema| schema.items.as_ref())
    }

    /// The schema of the fields beyond the named ones.
    pub fn additional(&self) -> Option<Self> {
        self.step(|schema| match &schema.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => Some(schema),
            _ => None,
        })
    }

    /// The schema of the field `name`: its own, or the one for additional properties.
    pub fn field(&self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// The default written beside the reference, or else the schema's own.
    pub fn default(&self) -> Option<&Value> {
        self.at_site(|site| site.default.as_ref())
            .or(self.schema.default.as_ref())
    }

    /// Whether this is RawExtension, whose content nobody merges.
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

    /// Whether it stands for `resource.Quantity`.
    pub(crate) fn is_quantity(&self) -> bool {
        self.at_site(|site| site.reference.as_ref())
            .is_some_and(|name| name.ends_with(QUANTITY))
    }

    /// The same definitions at another schema.
    pub(crate) fn at<'b>(&self, schema: &'b Schema) -> Typed<'b>
    where
        'a: 'b,
    {
        Typed::resolve(Held::Borrowed(schema), self.definitions, self.built_in)
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

    fn resolve(start: Held<'a>, definitions: &'a dyn Definitions, built_in: bool) -> Self {
        let mut schema = start.clone();
        for _ in 0..REFERENCE_DEPTH_MAX {
            let Some(name) = schema.reference.clone() else {
                break;
            };
            schema = match lenient(&name) {
                Some(lenient) => Held::Borrowed(lenient),
                // An unknown definition says nothing about its values.
                None => definitions
                    .definition(&name)
                    .map_or(Held::Borrowed(&ANYTHING), Held::Shared),
            };
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

/// Quantity and IntOrString are written differently by different versions of the published
/// documents, some of which refuse what the API server takes.
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
