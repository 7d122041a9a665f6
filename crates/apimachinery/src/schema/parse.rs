//! Parses a [`Schema`] from its JSON document.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    AdditionalProperties, ListType, MapType, PatchStrategy, Pattern, Schema, SchemaError,
    SchemaRef, SchemaType,
};

impl Schema {
    /// Parses an OpenAPI v3 schema document, for example the `openAPIV3Schema` of a custom resource
    /// definition. Unknown keywords are ignored.
    ///
    /// # Errors
    ///
    /// If a keyword has a value of the wrong type, or a pattern does not compile.
    pub fn parse(openapi: &Value) -> Result<Self, SchemaError> {
        schema(openapi, "")
    }
}

/// A schema document, and its location for error messages.
struct Node<'v> {
    keywords: &'v Map<String, Value>,
    path: &'v str,
}

fn schema(document: &Value, path: &str) -> Result<Schema, SchemaError> {
    let keywords = match document {
        Value::Object(keywords) => keywords,
        // In JSON schema, `true` allows any value: schemars writes it for `serde_json::Value`.
        Value::Bool(true) => {
            return Ok(Schema {
                preserve_unknown_fields: true,
                ..Schema::default()
            });
        }
        _ => return Err(invalid_keyword(path, "schema", "an object")),
    };
    let node = Node { keywords, path };
    let (type_, null_type, two_types) = node.type_()?;
    let mut parsed = Schema {
        reference: node.reference()?,
        type_,
        properties: node.properties()?,
        additional_properties: node.additional_properties()?,
        items: node.child("items")?,
        required: node.strings("required")?,
        enum_: node.array("enum")?.map(<[Value]>::to_vec),
        pattern: node.pattern()?,
        format: node
            .string("format")?
            .filter(|format| !format.is_empty())
            .map(str::to_owned),
        minimum: node.number("minimum")?,
        maximum: node.number("maximum")?,
        exclusive_minimum: node.flag("exclusiveMinimum")?,
        exclusive_maximum: node.flag("exclusiveMaximum")?,
        multiple_of: node.number("multipleOf")?,
        min_length: node.count("minLength")?,
        max_length: node.count("maxLength")?,
        min_items: node.count("minItems")?,
        max_items: node.count("maxItems")?,
        min_properties: node.count("minProperties")?,
        max_properties: node.count("maxProperties")?,
        unique_items: node.flag("uniqueItems")?,
        default: keywords
            .get("default")
            .filter(|default| !default.is_null())
            .cloned(),
        nullable: null_type || node.flag("nullable")?,
        all_of: node.children("allOf")?,
        any_of: node.children("anyOf")?,
        one_of: node.children("oneOf")?,
        not: node.child("not")?,
        int_or_string: two_types || node.flag("x-kubernetes-int-or-string")?,
        preserve_unknown_fields: node.flag("x-kubernetes-preserve-unknown-fields")?,
        embedded_resource: node.flag("x-kubernetes-embedded-resource")?,
        list_type: node.list_type()?,
        list_map_keys: node.strings("x-kubernetes-list-map-keys")?,
        map_type: node.map_type()?,
        patch_merge_key: node
            .string("x-kubernetes-patch-merge-key")?
            .map(str::to_owned),
        patch_strategy: node.patch_strategy()?,
        validations: node
            .array("x-kubernetes-validations")?
            .unwrap_or_default()
            .to_vec(),
    };
    unwrap_all_of(&mut parsed);
    Ok(parsed)
}

/// Replaces `{allOf: [{$ref}], default}` by a reference with a default. Kubernetes writes the
/// `allOf` because OpenAPI 3.0 allows no keyword beside `$ref`.
fn unwrap_all_of(schema: &mut Schema) {
    if let [only] = schema.all_of.as_slice()
        && let Some(reference) = &only.reference
        && schema.reference.is_none()
        && schema.type_.is_none()
        && schema.properties.is_empty()
    {
        schema.reference = Some(reference.clone());
        schema.all_of.clear();
    }
}

impl<'v> Node<'v> {
    fn get(&self, keyword: &str) -> Option<&'v Value> {
        self.keywords.get(keyword).filter(|value| !value.is_null())
    }

    fn string(&self, keyword: &'static str) -> Result<Option<&'v str>, SchemaError> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        value
            .as_str()
            .map(Some)
            .ok_or_else(|| invalid_keyword(self.path, keyword, "a string"))
    }

    fn flag(&self, keyword: &'static str) -> Result<bool, SchemaError> {
        match self.get(keyword) {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| invalid_keyword(self.path, keyword, "a boolean")),
        }
    }

    fn number(&self, keyword: &'static str) -> Result<Option<f64>, SchemaError> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        value
            .as_f64()
            .map(Some)
            .ok_or_else(|| invalid_keyword(self.path, keyword, "a number"))
    }

    fn count(&self, keyword: &'static str) -> Result<Option<u64>, SchemaError> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        let whole = value.as_u64().or_else(|| {
            // YAML written by hand sometimes has 3.0.
            value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && *n >= 0.0)
                .map(|n| n as u64)
        });
        whole
            .map(Some)
            .ok_or_else(|| invalid_keyword(self.path, keyword, "a whole number"))
    }

    fn array(&self, keyword: &'static str) -> Result<Option<&'v [Value]>, SchemaError> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        value
            .as_array()
            .map(|array| Some(array.as_slice()))
            .ok_or_else(|| invalid_keyword(self.path, keyword, "an array"))
    }

    fn strings(&self, keyword: &'static str) -> Result<Vec<String>, SchemaError> {
        let strings = self.array(keyword)?.unwrap_or_default().iter();
        strings
            .map(|value| value.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| invalid_keyword(self.path, keyword, "an array of strings"))
    }

    fn child(&self, keyword: &'static str) -> Result<Option<SchemaRef>, SchemaError> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(schema(value, &join(self.path, keyword))?)))
    }

    fn children(&self, keyword: &'static str) -> Result<Vec<SchemaRef>, SchemaError> {
        let documents = self.array(keyword)?.unwrap_or_default();
        let path = join(self.path, keyword);
        documents
            .iter()
            .map(|document| schema(document, &path).map(Arc::new))
            .collect()
    }

    fn properties(&self) -> Result<BTreeMap<String, SchemaRef>, SchemaError> {
        let Some(value) = self.get("properties") else {
            return Ok(BTreeMap::new());
        };
        let properties = value
            .as_object()
            .ok_or_else(|| invalid_keyword(self.path, "properties", "an object"))?;
        let read = |(name, document): (&String, &Value)| {
            let path = join(self.path, name);
            Ok((name.clone(), Arc::new(schema(document, &path)?)))
        };
        properties.iter().map(read).collect()
    }

    fn additional_properties(&self) -> Result<Option<AdditionalProperties>, SchemaError> {
        match self.get("additionalProperties") {
            None => Ok(None),
            Some(Value::Bool(allowed)) => Ok(Some(AdditionalProperties::Allowed(*allowed))),
            Some(_) => Ok(self
                .child("additionalProperties")?
                .map(AdditionalProperties::Schema)),
        }
    }

    fn reference(&self) -> Result<Option<String>, SchemaError> {
        let target = self.string("$ref")?;
        Ok(target.map(|target| target.rsplit('/').next().unwrap_or(target).to_owned()))
    }

    fn pattern(&self) -> Result<Option<Pattern>, SchemaError> {
        let Some(source) = self.string("pattern")?.filter(|source| !source.is_empty()) else {
            return Ok(None);
        };
        Pattern::compile(source)
            .map(Some)
            .map_err(|reason| SchemaError::Pattern {
                path: self.path.to_owned(),
                pattern: source.to_owned(),
                reason,
            })
    }

    /// Parses the keyword `type`. Returns the type, whether null is allowed, and whether the type
    /// is "integer or string".
    fn type_(&self) -> Result<(Option<SchemaType>, bool, bool), SchemaError> {
        let names: Vec<&str> = match self.get("type") {
            None => Vec::new(),
            Some(Value::String(name)) if name.is_empty() => Vec::new(),
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => return Err(invalid_keyword(self.path, "type", "a string")),
        };
        let null = names.contains(&"null");
        let mut types = Vec::new();
        for name in names.into_iter().filter(|name| *name != "null") {
            types.push(match name {
                "array" => SchemaType::Array,
                "boolean" => SchemaType::Boolean,
                "integer" => SchemaType::Integer,
                "number" => SchemaType::Number,
                "object" => SchemaType::Object,
                "string" => SchemaType::String,
                _ => return Err(invalid_keyword(self.path, "type", "a JSON type")),
            });
        }
        let two = types.len() == 2
            && types.contains(&SchemaType::Integer)
            && types.contains(&SchemaType::String);
        match types.as_slice() {
            [only] => Ok((Some(*only), null, false)),
            _ => Ok((None, null, two)),
        }
    }

    fn list_type(&self) -> Result<Option<ListType>, SchemaError> {
        const KEYWORD: &str = "x-kubernetes-list-type";
        match self.string(KEYWORD)? {
            None => Ok(None),
            Some("atomic") => Ok(Some(ListType::Atomic)),
            Some("set") => Ok(Some(ListType::Set)),
            Some("map") => Ok(Some(ListType::Map)),
            Some(_) => Err(invalid_keyword(self.path, KEYWORD, "atomic, set or map")),
        }
    }

    fn map_type(&self) -> Result<Option<MapType>, SchemaError> {
        const KEYWORD: &str = "x-kubernetes-map-type";
        match self.string(KEYWORD)? {
            None => Ok(None),
            Some("atomic") => Ok(Some(MapType::Atomic)),
            Some("granular") => Ok(Some(MapType::Granular)),
            Some(_) => Err(invalid_keyword(self.path, KEYWORD, "atomic or granular")),
        }
    }

    fn patch_strategy(&self) -> Result<Vec<PatchStrategy>, SchemaError> {
        const KEYWORD: &str = "x-kubernetes-patch-strategy";
        let names = self.string(KEYWORD)?.unwrap_or_default();
        names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(|name| match name {
                "merge" => Ok(PatchStrategy::Merge),
                "replace" => Ok(PatchStrategy::Replace),
                "retainKeys" => Ok(PatchStrategy::RetainKeys),
                _ => Err(invalid_keyword(
                    self.path,
                    KEYWORD,
                    "merge, replace or retainKeys",
                )),
            })
            .collect()
    }
}

fn invalid_keyword(path: &str, keyword: &'static str, expected: &'static str) -> SchemaError {
    SchemaError::Keyword {
        path: path.to_owned(),
        keyword,
        expected,
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
