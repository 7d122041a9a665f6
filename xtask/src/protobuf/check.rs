//! Check of the table against OpenAPI: a message has exactly the properties of its definition.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Form, Message, short};

/// Fails with all differences between `messages` and `definitions`.
pub(crate) fn against_definitions(
    messages: &BTreeMap<String, Message>,
    definitions: &str,
) -> Result<()> {
    let mut properties: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in definitions.lines() {
        let (name, definition) = line.split_once('\t').context("a definition has no name")?;
        let definition: Value = serde_json::from_str(definition)
            .with_context(|| format!("definition {name} is not JSON"))?;
        let names = definition.get("properties").and_then(Value::as_object);
        let names = names
            .map(|names| names.keys().cloned().collect())
            .unwrap_or_default();
        properties.insert(short(name), names);
    }
    let mut differences = Vec::new();
    for (name, message) in messages {
        // A message that is only inlined, or has another JSON form, has no definition with
        // properties.
        let Some(published) = properties
            .get(name)
            .filter(|_| message.form == Form::Message)
        else {
            continue;
        };
        let mut found = BTreeSet::new();
        names(messages, message, &mut found);
        for extra in found.difference(published) {
            differences.push(format!(
                "{name}.{extra} is not a property of the definition"
            ));
        }
        for missing in published.difference(&found) {
            // Every kind has these fields; they are in the envelope.
            if missing != "apiVersion" && missing != "kind" {
                differences.push(format!("{name}.{missing} has no field"));
            }
        }
    }
    ensure!(
        differences.is_empty(),
        "the messages differ from OpenAPI:\n{}",
        differences.join("\n")
    );
    Ok(())
}

/// Collects the JSON names of a message's fields, including those of inline messages.
fn names(messages: &BTreeMap<String, Message>, message: &Message, found: &mut BTreeSet<String>) {
    for field in message.fields.values() {
        let inner = field.message().and_then(|name| messages.get(name));
        match inner {
            Some(inner) if field.name == "(inline)" => names(messages, inner, found),
            _ => drop(found.insert(field.name.trim_end_matches('?').to_owned())),
        }
    }
}
