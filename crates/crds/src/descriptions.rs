//! Shorter descriptions, for CRDs that are too large.

use serde_json::Value;

/// Cuts the descriptions of all schemas in a CRD after the last sentence that fits into `max`
/// characters, or after `max` characters if no sentence fits. With 0, there are no descriptions.
///
/// # Examples
/// ```
/// use serde_json::json;
///
/// let mut crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
///     "description": "A robot. It walks.",
/// }}}]}});
/// opkit_crds::cut_descriptions(&mut crd, 10);
/// let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
/// assert_eq!(schema["description"], "A robot.");
/// ```
pub fn cut_descriptions(crd: &mut Value, max: usize) {
    let versions = crd.pointer_mut("/spec/versions");
    let versions = versions.and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            cut_schema(schema, max);
        }
    }
}

/// Keywords whose values are schemas, or lists of schemas.
const SCHEMAS: [&str; 6] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "not",
    "oneOf",
];

fn cut_schema(schema: &mut Value, max: usize) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    if max == 0 {
        keywords.remove("description");
    } else if let Some(Value::String(description)) = keywords.get_mut("description") {
        cut(description, max);
    }
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for property in properties.values_mut() {
            cut_schema(property, max);
        }
    }
    for keyword in SCHEMAS {
        match keywords.get_mut(keyword) {
            Some(Value::Array(schemas)) => {
                for schema in schemas {
                    cut_schema(schema, max);
                }
            }
            Some(schema) => cut_schema(schema, max),
            None => {}
        }
    }
}

fn cut(description: &mut String, max: usize) {
    let Some((end, _)) = description.char_indices().nth(max) else {
        return;
    };
    let rest = description.split_off(end);
    let is_sentence = description.ends_with('.') && rest.starts_with(char::is_whitespace);
    let mut last = description.match_indices(['.', '\n']).filter(|(at, _)| {
        let after = description.get(at + 1..).unwrap_or_default();
        after.starts_with(char::is_whitespace)
    });
    if let Some((at, _)) = last.next_back().filter(|_| !is_sentence) {
        description.truncate(at + 1);
    }
    description.truncate(description.trim_end().len());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn descriptions_end_with_a_sentence_if_one_fits() {
        for (text, max, expected) in [
            ("One. Two three.", 100, "One. Two three."),
            ("One. Two three.", 15, "One. Two three."),
            ("One. Two three.", 14, "One."),
            ("One. Two three.", 4, "One."),
            ("One. Two three.", 3, "One"),
            ("Version 1.2 of it. More.", 13, "Version 1.2 o"),
            ("größer als", 6, "größer"),
        ] {
            let mut description = text.to_owned();
            cut(&mut description, max);
            assert_eq!(description, expected, "{max}");
        }
    }

    #[test]
    fn schemas_everywhere_are_cut_and_fields_of_that_name_stay() {
        let crd = |long: bool| {
            let with = |mut schema: Value| {
                if long {
                    schema["description"] = json!("Long. Longer.");
                }
                schema
            };
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": with(json!({
                "properties": {
                    "description": with(json!({"type": "string", "default": "Long. Longer."})),
                    "list": {"items": with(json!({"type": "string"}))},
                    "map": {"additionalProperties": with(json!({"type": "string"}))},
                    "other": {"anyOf": [with(json!({"type": "string"}))]},
                },
            }))}}]}})
        };
        let mut cut = crd(true);
        cut_descriptions(&mut cut, 0);
        assert_eq!(cut, crd(false));
        let mut cut = crd(true);
        cut_descriptions(&mut cut, 5);
        let text = cut.to_string();
        assert_eq!(text.matches("\"description\":\"Long.\"").count(), 5);
    }
}
