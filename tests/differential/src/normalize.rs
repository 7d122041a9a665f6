//! Takes out of answers what no two runs have in common, and nothing else.
//!
//! Uids and versions become numbered names, so that it still shows where two are the same: a write
//! that changes nothing keeps its version. What the script itself says is left as it is.

use std::{collections::HashMap, sync::LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

static UID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok()
});
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z").ok()
});
/// The present version, in the messages of reads that are too old or too far ahead.
static PRESENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"((?:resource version: [0-9]+,? \(?(?:current: )?)|record \()[0-9]+").ok()
});
/// A whole object, quoted in a message.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(resourceVersion\\\W+)[0-9]+").ok());
static AGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^([0-9]+[smhdy]){1,2}$").ok());

/// The names given so far in one run of a script.
#[derive(Debug)]
pub struct Normalizer {
    /// What a request that is only tried makes up is not seen again, and not counted.
    pub(crate) is_dry_run: bool,
    script: String,
    uids: Vec<String>,
    /// The versions seen of each object, by its namespace and name.
    versions: HashMap<String, Vec<String>>,
    /// Names that the server made up, and what they are called.
    generated: Vec<(String, String)>,
}

impl Normalizer {
    /// For a script with this text.
    #[must_use]
    pub fn new(script: &str) -> Self {
        Self {
            is_dry_run: false,
            script: script.to_owned(),
            uids: Vec::new(),
            versions: HashMap::new(),
            generated: Vec::new(),
        }
    }

    /// A body without what changes from run to run.
    pub fn body(&mut self, body: &Value) -> Value {
        match body {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter().map(|item| self.body(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    /// A text without what changes from run to run.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, called) in &self.generated {
            text = text.replace(name.as_str(), called);
        }
        if let Some(uid) = &*UID {
            text = uid
                .replace_all(&text, |found: &Captures<'_>| {
                    let uid = found.get(0).map_or("", |uid| uid.as_str());
                    if self.script.contains(uid) {
                        return uid.to_owned();
                    }
                    if self.is_dry_run && !self.uids.iter().any(|known| known == uid) {
                        return "<new uid>".to_owned();
                    }
                    format!("<uid {}>", number(&mut self.uids, uid))
                })
                .into_owned();
        }
        if let Some(time) = &*TIME {
            text = time
                .replace_all(&text, |found: &Captures<'_>| {
                    let time = found.get(0).map_or("", |time| time.as_str());
                    match found.get(1) {
                        _ if self.script.contains(time) => time.to_owned(),
                        Some(_) => "<micro time>".to_owned(),
                        None => "<time>".to_owned(),
                    }
                })
                .into_owned();
        }
        for version in [&*PRESENT, &*QUOTED].into_iter().flatten() {
            text = version.replace_all(&text, "${1}<version>").into_owned();
        }
        text
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Value {
        self.learn_name(fields);
        let owner = owner(fields);
        let normalised = fields.iter().map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("resourceVersion", Value::String(version)) => {
                    Value::String(self.version(&owner, version))
                }
                ("continue", Value::String(token)) if !token.is_empty() => {
                    Value::String("<continue>".to_owned())
                }
                ("managedFields", Value::Array(managers)) => {
                    let mut managers: Vec<Value> =
                        managers.iter().map(|manager| self.body(manager)).collect();
                    // Kubernetes sorts them by time, which may or may not tick between two steps.
                    managers.sort_by_key(manager_key);
                    Value::Array(managers)
                }
                ("cells", Value::Array(cells)) => {
                    cells.iter().map(|cell| self.cell(cell)).collect()
                }
                (_, value) => self.body(value),
            };
            (key.clone(), value)
        });
        Value::Object(normalised.collect())
    }

    /// A name that was made from `generateName` is known from here on.
    fn learn_name(&mut self, fields: &Map<String, Value>) {
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let (Some(prefix), Some(name)) = (text("generateName"), text("name")) else {
            return;
        };
        let known = self.generated.iter().any(|(known, _)| known == name);
        if name.starts_with(prefix) && name.len() == prefix.len() + 5 && !known {
            let called = format!("{prefix}<suffix {}>", self.generated.len() + 1);
            self.generated.push((name.to_owned(), called));
        }
    }

    /// Versions of lists and bookmarks tell nothing: anybody's write moves them.
    fn version(&mut self, owner: &str, version: &str) -> String {
        if owner.is_empty() {
            return "<version>".to_owned();
        }
        let seen = self.versions.entry(owner.to_owned()).or_default();
        format!("<version {}>", number(seen, version))
    }

    /// A cell of a table: how old something is depends on when one asks.
    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.as_ref().is_some_and(|age| age.is_match(text)) => {
                Value::String("<age>".to_owned())
            }
            cell => self.body(cell),
        }
    }
}

/// The object whose metadata `fields` are, if they are.
fn owner(fields: &Map<String, Value>) -> String {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    match text("name") {
        Some(name) => format!("{}/{name}", text("namespace").unwrap_or_default()),
        None => String::new(),
    }
}

fn manager_key(manager: &Value) -> [String; 4] {
    let text = |field: &str| manager.get(field).and_then(Value::as_str);
    ["operation", "manager", "subresource", "apiVersion"]
        .map(|field| text(field).unwrap_or_default().to_owned())
}

/// The place of `value` among those seen, from 1.
fn number(seen: &mut Vec<String>, value: &str) -> usize {
    match seen.iter().position(|known| known == value) {
        Some(place) => place + 1,
        None => {
            seen.push(value.to_owned());
            seen.len()
        }
    }
}
