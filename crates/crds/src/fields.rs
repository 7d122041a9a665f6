//! The fields of a version's schema, in the order in which a person reads them.

use serde_json::Value;

/// One schema in the schema of a version: that of a field, of the items of a list, or of the
/// values of a map.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    /// Path from the root, such as `.spec.tools[*].name`; empty for the root.
    pub(crate) path: String,
    /// Name, if it is a field of an object and not an item or a value.
    pub(crate) name: Option<&'a str>,
    pub(crate) schema: &'a Value,
    /// Whether its object needs it.
    pub(crate) is_required: bool,
    /// Whether it is within a whole object of another kind.
    pub(crate) is_embedded: bool,
}

impl Field<'_> {
    /// Returns the type, or an empty text if the schema has none.
    pub(crate) fn type_(&self) -> &str {
        text(self.schema, "type")
    }

    /// Reports whether it is the field or below it.
    pub(crate) fn is_below(&self, path: &str) -> bool {
        self.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
    }
}

/// Returns the text of a keyword, which is empty if there is none.
pub(crate) fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    let value = schema.get(keyword).and_then(Value::as_str);
    value.unwrap_or_default()
}

/// Returns the values of a keyword that is a list of texts.
pub(crate) fn texts<'a>(schema: &'a Value, keyword: &str) -> Vec<&'a str> {
    let values = schema.get(keyword).and_then(Value::as_array);
    values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Reports whether a keyword is `true`.
pub(crate) fn flag(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

/// Returns the schema, and all schemas below it. Fields are in the order of the document.
pub(crate) fn fields(schema: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    let root = Field {
        path: String::new(),
        name: None,
        schema,
        is_required: true,
        is_embedded: false,
    };
    // The stack has the next field at its end.
    let mut waiting = vec![root];
    while let Some(field) = waiting.pop() {
        let mut children = children(&field);
        children.reverse();
        waiting.extend(children);
        found.push(field);
    }
    found
}

fn children<'a>(field: &Field<'a>) -> Vec<Field<'a>> {
    let schema = field.schema;
    let is_embedded = field.is_embedded || flag(schema, "x-kubernetes-embedded-resource");
    let below = |step: &str, name: Option<&'a str>, schema: &'a Value, is_required: bool| Field {
        path: format!("{}{step}", field.path),
        name,
        schema,
        is_required,
        is_embedded,
    };
    let required = texts(schema, "required");
    let mut children = Vec::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let is_required = required.contains(&name.as_str());
        children.push(below(
            &format!(".{name}"),
            Some(name),
            property,
            is_required,
        ));
    }
    if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
        children.push(below("[*]", None, items, false));
    }
    let values = schema.get("additionalProperties");
    if let Some(values) = values.filter(|it| it.is_object()) {
        children.push(below("[*]", None, values, false));
    }
    children
}

/// A version of a CRD.
#[derive(Clone, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) document: &'a Value,
}

impl<'a> Version<'a> {
    /// Returns the versions of a CRD.
    pub(crate) fn all(crd: &'a Value) -> Vec<Self> {
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten();
        versions
            .map(|document| Self {
                name: text(document, "name"),
                document,
            })
            .collect()
    }

    pub(crate) fn schema(&self) -> Option<&'a Value> {
        self.document.pointer("/schema/openAPIV3Schema")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_listed_from_the_root() {
        let schema = json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "tools": {"type": "array", "items": {"type": "string"}},
                        "values": {"additionalProperties": {"type": "integer"}},
                    },
                },
                "status": {},
            },
        });
        let fields = fields(&schema);
        let paths: Vec<_> = fields.iter().map(|it| it.path.as_str()).collect();
        let expected = [
            "",
            ".spec",
            ".spec.tools",
            ".spec.tools[*]",
            ".spec.values",
            ".spec.values[*]",
            ".status",
        ];
        assert_eq!(paths, expected);
        assert!(fields[1].is_required && !fields[6].is_required);
        assert_eq!(fields[3].type_(), "string");
        assert!(fields[3].is_below(".spec.tools") && !fields[3].is_below(".spec.tool"));
    }
}
