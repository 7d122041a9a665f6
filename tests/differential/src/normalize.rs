//! Removal of values from responses that differ from run to run, and of nothing else.
//!
//! Uids and versions become numbered names, so that equal ones stay recognizable: a write that
//! changes nothing keeps the version. Texts of the script itself are not changed.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

static UID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok()
});
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z").ok()
});
/// Current version, in the messages of reads that are too old or too far ahead.
static PRESENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"((?:resource version: [0-9]+,? \(?(?:current: )?)|record \()[0-9]+").ok()
});
/// Whole object, quoted in a message.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(resourceVersion\\\W+)[0-9]+").ok());
static AGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^([0-9]+[smhdy]){1,2}$").ok());

/// Names that were assigned so far in one run of a script.
#[derive(Debug)]
pub struct Normalizer {
    /// Whether the request is a dry run: its generated values do not appear again, and are not
    /// counted.
    pub(crate) is_dry_run: bool,
    script: String,
    uids: Vec<String>,
    /// Versions seen of each object, by its namespace and name.
    versions: HashMap<String, Vec<String>>,
    /// Names that the server generated, and their replacements.
    generated: Vec<(String, String)>,
}

impl Normalizer {
    /// Creates a normalizer for a script with this text.
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

    /// Returns a body without values that differ from run to run.
    pub fn body(&mut self, body: &Value) -> Value {
        match body {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter().map(|item| self.body(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    /// Returns a text without values that differ from run to run.
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
                    // Kubernetes sorts managers by time, which may or may not advance between two
                    // steps.
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

    /// Remembers a name that the server generated from `generateName`.
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

    /// Returns the replacement of a version. Versions of lists and bookmarks are not numbered,
    /// because any write changes them.
    fn version(&mut self, owner: &str, version: &str) -> String {
        if owner.is_empty() {
            return "<version>".to_owned();
        }
        let seen = self.versions.entry(owner.to_owned()).or_default();
        format!("<version {}>", number(seen, version))
    }

    /// Returns a normalized cell of a table: an age depends on the time of the request.
    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.as_ref().is_some_and(|age| age.is_match(text)) => {
                Value::String("<age>".to_owned())
            }
            cell => self.body(cell),
        }
    }
}

/// Returns the object that the metadata `fields` belong to, if they are metadata.
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

/// Returns the index of `value` among the values seen so far, from 1.
fn number(seen: &mut Vec<String>, value: &str) -> usize {
    match seen.iter().position(|known| known == value) {
        Some(place) => place + 1,
        None => {
            seen.push(value.to_owned());
            seen.len()
        }
    }
}
