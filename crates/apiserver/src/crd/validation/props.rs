//! Access to the keywords of a schema in a CRD.

use serde_json::{Map, Value};

use crate::object;

/// A schema in a CRD, as it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Props<'a>(pub(super) &'a Value);

/// The keyword `items`: one schema, or several, which is not supported.
pub(super) struct Items<'a> {
    pub(super) schema: Option<Props<'a>>,
    pub(super) schemas: &'a [Value],
}

/// The keyword `additionalProperties`.
pub(super) struct Additional<'a> {
    pub(super) allows: bool,
    pub(super) schema: Option<Props<'a>>,
}

impl<'a> Props<'a> {
    /// Returns the schema in `value`, or `None` if there is no schema.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.is_object().then_some(Self(value))
    }

    pub(super) fn get(self, keyword: &str) -> &'a Value {
        object::at(self.0, &[keyword])
    }

    pub(super) fn has(self, keyword: &str) -> bool {
        !self.get(keyword).is_null()
    }

    pub(super) fn text(self, keyword: &str) -> &'a str {
        self.get(keyword).as_str().unwrap_or_default()
    }

    /// Returns the type, or an empty string if there is none.
    pub(super) fn type_(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn is_true(self, keyword: &str) -> bool {
        self.get(keyword) == &Value::Bool(true)
    }

    pub(super) fn list_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-list-type").as_str()
    }

    pub(super) fn map_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-map-type").as_str()
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        object::items(self.0, &[keyword])
    }

    pub(super) fn texts(self, keyword: &str) -> impl Iterator<Item = &'a str> {
        self.list(keyword).iter().filter_map(Value::as_str)
    }

    pub(super) fn child(self, keyword: &str) -> Option<Self> {
        Self::of(self.get(keyword))
    }

    /// Returns the schemas in a keyword such as `allOf`.
    pub(super) fn children(self, keyword: &str) -> impl Iterator<Item = Self> + use<'a> {
        self.list(keyword).iter().filter_map(Self::of)
    }

    /// Returns the entries of a keyword such as `properties`.
    pub(super) fn named(self, keyword: &str) -> impl Iterator<Item = (&'a String, Self)> {
        let entries = self.map(keyword).into_iter().flatten();
        entries.filter_map(|(name, schema)| Some((name, Self::of(schema)?)))
    }

    pub(super) fn map(self, keyword: &str) -> Option<&'a Map<String, Value>> {
        self.get(keyword).as_object().filter(|map| !map.is_empty())
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        Self::of(self.map("properties")?.get(name)?)
    }

    pub(super) fn items(self) -> Option<Items<'a>> {
        match self.get("items") {
            Value::Null => None,
            Value::Array(schemas) => Some(Items {
                schema: None,
                schemas,
            }),
            value => Some(Items {
                schema: Self::of(value),
                schemas: &[],
            }),
        }
    }

    pub(super) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties") {
            Value::Null => None,
            Value::Bool(allows) => Some(Additional {
                allows: *allows,
                schema: None,
            }),
            value => Some(Additional {
                allows: true,
                schema: Self::of(value),
            }),
        }
    }

    /// Reports whether `is_wanted` returns true for this schema or for a schema in it.
    pub(super) fn any(self, is_wanted: &mut dyn FnMut(Self) -> bool) -> bool {
        if is_wanted(self) {
            return true;
        }
        let lists = ["allOf", "anyOf", "oneOf"];
        let maps = ["properties", "patternProperties", "definitions"];
        let items = self.items().into_iter().flat_map(|items| {
            let several = items.schemas.iter().filter_map(Self::of);
            items.schema.into_iter().chain(several)
        });
        let listed = lists.iter().flat_map(|keyword| self.children(keyword));
        let named = maps.iter().flat_map(|keyword| self.named(keyword));
        let mut parts = items
            .chain(listed)
            .chain(self.child("not"))
            .chain(named.map(|(_, part)| part))
            .chain(self.additional().and_then(|additional| additional.schema));
        parts.any(|part| part.any(is_wanted))
    }
}
