//! The schemas of all kinds, each parsed at most once, and the CEL rules of custom kinds.

use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::schema::{Definitions, Schema, Typed};
use opkit_cel::Rules;
use parking_lot::RwLock;

use crate::kinds::{self, Kind, SchemaSource};
use crate::status::{ApiError, ApiResult};

/// Parsed schemas.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    /// Looked up for every reference in every write.
    definitions: RwLock<HashMap<String, Arc<Schema>, foldhash::fast::RandomState>>,
    custom: RwLock<HashMap<String, Custom>>,
}

/// The schema of a custom kind.
#[derive(Clone, Debug)]
struct Custom {
    /// The schema as the CRD has it.
    source: SchemaSource,
    schema: Arc<Schema>,
    /// The compiled rules of the schema. `None` if it has no rules.
    rules: Option<Arc<Rules>>,
}

impl Schemas {
    /// Returns the schema of `kind`.
    pub(crate) fn of(&self, kind: &Kind) -> ApiResult<Arc<Schema>> {
        let found = match &kind.schema {
            SchemaSource::Definition(name) => self.definition(name),
            SchemaSource::Custom(_) => {
                let custom = self.custom.read();
                custom.get(&place(kind)).map(|custom| custom.schema.clone())
            }
        };
        found.ok_or_else(|| ApiError::internal(format!("no schema for {}", kind.group_resource())))
    }

    /// Returns `schema` together with these schemas, in which references of `schema` are resolved.
    pub(crate) fn typed<'a>(&'a self, schema: &'a Schema) -> Typed<'a> {
        Typed::new(schema, self)
    }

    /// Returns the CEL rules of a custom kind. Returns `None` if the kind is built in or has no
    /// rules.
    pub(crate) fn rules(&self, kind: &Kind) -> Option<Arc<Rules>> {
        match &kind.schema {
            SchemaSource::Definition(_) => None,
            SchemaSource::Custom(_) => self.custom.read().get(&place(kind))?.rules.clone(),
        }
    }

    /// Adds the schema of a custom kind, and compiles its rules unless the schema is the same as
    /// before.
    pub(crate) fn insert_custom(&self, kind: &Kind, schema: Schema) {
        let place = place(kind);
        let known = self.custom.read().get(&place).cloned();
        if known.is_some_and(|known| known.source == kind.schema) {
            return;
        }
        let rules = Rules::new(&schema);
        let custom = Custom {
            source: kind.schema.clone(),
            schema: Arc::new(schema),
            rules: (!rules.is_empty()).then(|| Arc::new(rules)),
        };
        self.custom.write().insert(place, custom);
    }
}

impl Definitions for Schemas {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.definitions.read().get(name) {
            return Some(schema.clone());
        }
        let schema = kinds::Definitions::builtin().schema(name)?;
        self.definitions
            .write()
            .insert(name.to_owned(), schema.clone());
        Some(schema)
    }
}

fn place(kind: &Kind) -> String {
    format!("{}/{}", kind.api_version(), kind.plural)
}
