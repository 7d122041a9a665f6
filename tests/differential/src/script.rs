//! Requests as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// List of requests that run in order, in their own namespace.
///
/// `${name}` in paths, headers and bodies is replaced by a value that an earlier step captured, by
/// one of `vars`, or, for `${namespace}`, by the namespace of the script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Name of the file without its extension.
    #[serde(skip)]
    pub name: String,
    /// Text of the file: values in it are not normalized.
    #[serde(skip)]
    pub text: String,
    /// Subject of the script, in one sentence.
    pub about: String,
    /// Admission plugins that the recorded server had in addition to those of the other scripts,
    /// such as `ServiceAccount`.
    #[serde(default)]
    pub enabled_plugins: Vec<String>,
    /// Texts that several steps use.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Requests.
    pub steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name of the step; unique in its script.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers in addition to the defaults: `accept: application/json` and, with a body,
    /// `content-type: application/json`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request. A text is sent unchanged, anything else as JSON.
    pub body: Option<Value>,
    /// Values for later steps: name, and JSON pointer into the response's body.
    #[serde(default)]
    pub capture: BTreeMap<String, String>,
    /// Condition until which the request is repeated.
    pub wait: Option<Wait>,
    /// Parts of the response that are not compared.
    #[serde(default)]
    pub ignore: Vec<Ignore>,
}

/// Condition on a response, for which the script waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Expected HTTP status.
    pub status: Option<u16>,
    /// Expected values in the body: pointer and value.
    #[serde(default)]
    pub body: BTreeMap<String, Value>,
    /// Time limit of the wait, in seconds.
    #[serde(default = "ten")]
    pub seconds: u64,
}

fn ten() -> u64 {
    10
}

/// Part of a response that is not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// JSON pointer into the body; a part `*` matches every field or item.
    pub pointer: String,
    /// Reason why the part is not compared.
    pub reason: String,
}

impl Ignore {
    /// Removes the part from `body`.
    pub(crate) fn remove_from(&self, body: &mut Value) {
        let path: Vec<&str> = self.pointer.split('/').skip(1).collect();
        remove(body, &path);
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        match value {
            Value::Object(fields) => drop(fields.remove(*first)),
            Value::Array(items) => {
                if let Some(item) = first.parse().ok().and_then(|i: usize| items.get_mut(i)) {
                    *item = Value::Null;
                }
            }
            _ => {}
        }
        return;
    }
    match value {
        Value::Object(fields) if *first == "*" => {
            fields.values_mut().for_each(|value| remove(value, rest));
        }
        Value::Object(fields) => {
            if let Some(value) = fields.get_mut(*first) {
                remove(value, rest);
            }
        }
        Value::Array(items) if *first == "*" => {
            items.iter_mut().for_each(|value| remove(value, rest));
        }
        Value::Array(items) => {
            if let Some(item) = first.parse().ok().and_then(|i: usize| items.get_mut(i)) {
                remove(item, rest);
            }
        }
        _ => {}
    }
}
