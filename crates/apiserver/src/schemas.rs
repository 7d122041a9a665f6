//! The schemas of all kinds, each parsed at most once.

use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::schema::{Definitions, Schema, Typed};
use parking_lot::RwLock;

use crate::kinds::{self, Kind, SchemaSource};
use crate::status::{ApiError, ApiResult};

/// Parsed schemas.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    /// Looked up for every reference in every write.
    definitions: RwLock<HashMap<String, Arc<Schema>, foldhash::fast::RandomState>>,
    custom: RwLock<HashMap<String, Arc<Schema>>>,
}

impl Schemas {
    /// Returns the schema of `kind`.
    pub(crate) fn of(&self, kind: &Kind) -> ApiResult<Arc<Schema>> {
        let found = match &kind.schema {
            SchemaSource::Definition(name) => self.definition(name),
            SchemaSource::Custom(_) => self.custom.read().get(&place(kind)).cloned(),
        };
        found.ok_or_else(|| ApiError::internal(format!("no schema for {}", kind.group_resource())))
    }

    /// Returns `schema` together with these schemas, in which references of `schema` are resolved.
    pub(crate) fn typed<'a>(&'a self, schema: &'a Schema) -> Typed<'a> {
        Typed::new(schema, self)
    }

    /// Adds the schema of a custom kind.
    pub(crate) fn insert_custom(&self, kind: &Kind, schema: Schema) {
        self.custom.write().insert(place(kind), Arc::new(schema));
    }
}

impl Definitions for Schemas {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.definitions.read().get(name) {
            return Some(schema.clone());
        }
        let raw = kinds::Definitions::builtin().value(name)?;
        let schema = Arc::new(Schema::parse(&raw).ok()?);
        self.definitions
            .write()
            .insert(name.to_owned(), schema.clone());
        Some(schema)
    }
}

fn place(kind: &Kind) -> String {
    format!("{}/{}", kind.api_version(), kind.plural)
}
