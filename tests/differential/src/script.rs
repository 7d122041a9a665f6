//! Requests as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A list of requests that belong together. They run in order, in a namespace of their own.
///
/// `${name}` in paths, headers and bodies stands for what an earlier step captured, for one of
/// `vars`, or, as `${namespace}`, for the namespace of the script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// The file's text: what a client writes itself is not normalised away.
    #[serde(skip)]
    pub text: String,
    /// What the script is about, in a sentence.
    pub about: String,
    /// Texts that several steps use.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// The requests.
    pub steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the step does; unique in its script.
    pub name: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers beyond the defaults: `accept: application/json`, and
    /// `content-type: application/json` where there is a body.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body. A text is sent as it is, anything else as JSON.
    pub body: Option<Value>,
    /// Values for later steps: name, and where in the answer's body.
    #[serde(default)]
    pub capture: BTreeMap<String, String>,
    /// Repeat the request until the answer is as wanted.
    pub wait: Option<Wait>,
    /// What is not compared.
    #[serde(default)]
    pub ignore: Vec<Ignore>,
}

/// What an answer has to be like before the script goes on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// This HTTP status.
    pub status: Option<u16>,
    /// This value somewhere in the body: pointer and value.
    #[serde(default)]
    pub body: BTreeMap<String, Value>,
    /// The most seconds to wait.
    #[serde(default = "ten")]
    pub seconds: u64,
}

fn ten() -> u64 {
    10
}

/// A part of an answer that says nothing about likeness.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// Where in the body; a part `*` is every field or item.
    pub pointer: String,
    /// Why it is not compared.
    pub reason: String,
}

impl Ignore {
    /// Takes the part out of `body`.
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
