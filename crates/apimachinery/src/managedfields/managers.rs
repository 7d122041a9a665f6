//! Managers of an object and the fields that they own: `metadata.managedFields`, decoded.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Manager;
use super::set::FieldSet;

/// Maximum number of managers with the operation `Update`, which is Kubernetes' limit. Above this
/// limit, the entries of the oldest managers are merged into one entry of the manager [`ANCIENT`].
const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Key of an entry in `managedFields`. Two entries with the operation `Update` may differ only in
/// the API version; two entries with the operation `Apply` may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// Operation by which fields were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Identity {
    pub(super) fn new(manager: &Manager<'_>, operation: Operation) -> Self {
        let api_version = match operation {
            Operation::Apply => String::new(),
            Operation::Update => manager.api_version.to_owned(),
        };
        Self {
            manager: manager.name.to_owned(),
            operation,
            api_version,
            subresource: manager.subresource.to_owned(),
        }
    }
}

/// One entry of `managedFields` without its key: the fields that a manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) api_version: String,
    pub(super) fields: FieldSet,
    pub(super) time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managers {
    pub(super) entries: BTreeMap<Identity, Entry>,
}

impl Managers {
    /// Decodes `metadata.managedFields` of an object. The error names the invalid entry.
    pub(super) fn decode(object: &Value) -> Result<Self, String> {
        let mut managers = Self::default();
        let list = object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array);
        for (index, entry) in list.into_iter().flatten().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => {
                    return Err(format!(
                        "missing fieldsType in managed fields entry {index}"
                    ));
                }
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {index}"
                    ));
                }
            }
            let manager = Manager {
                name: text("manager"),
                api_version: text("apiVersion"),
                subresource: text("subresource"),
            };
            let empty = Value::Object(Map::new());
            let fields = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&empty))
                .ok_or_else(|| format!("invalid fieldsV1 in managed fields entry {index}"))?;
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            let entry = Entry {
                api_version: manager.api_version.to_owned(),
                fields,
                time,
            };
            managers
                .entries
                .insert(Identity::new(&manager, operation), entry);
        }
        Ok(managers)
    }

    /// Writes `metadata.managedFields` of `object`, with the entries in Kubernetes' order. Removes
    /// `managedFields` if there are no managers.
    pub(super) fn encode(&self, object: &mut Value) {
        let mut entries: Vec<(&Identity, &Entry)> = self.entries.iter().collect();
        entries.sort_by(|(a, a_entry), (b, b_entry)| {
            let a = (
                a.operation,
                &a_entry.time,
                &a.manager,
                &a_entry.api_version,
                &a.subresource,
            );
            let b = (
                b.operation,
                &b_entry.time,
                &b.manager,
                &b_entry.api_version,
                &b.subresource,
            );
            a.cmp(&b)
        });
        let list: Vec<Value> = entries
            .into_iter()
            .map(|(identity, entry)| encode_entry(identity, entry))
            .collect();
        strip(object);
        if list.is_empty() {
            return;
        }
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut();
        if let Some(metadata) = metadata {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes `fields` from all managers but `keeper`, and then removes the managers that own no
    /// fields.
    pub(super) fn take(&mut self, fields: &FieldSet, keeper: Option<&Identity>) {
        for (identity, entry) in &mut self.entries {
            if Some(identity) != keeper {
                entry.fields.remove_all(fields);
            }
        }
        self.entries.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Merges the oldest managers with the operation `Update` that have the same API version, until
    /// at most [`UPDATE_MANAGERS_MAX`] managers remain.
    pub(super) fn cap(&mut self) {
        let mut oldest: Vec<(Option<String>, Identity)> = self
            .entries
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, entry)| (entry.time.clone(), identity.clone()))
            .collect();
        let mut excess = oldest.len().saturating_sub(UPDATE_MANAGERS_MAX);
        oldest.sort();
        let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
        for (time, identity) in oldest {
            if excess == 0 {
                return;
            }
            let version = identity.api_version.clone();
            let Some(first) = first_of.get(&version).cloned() else {
                first_of.insert(version, identity);
                continue;
            };
            let bucket = Identity {
                manager: ANCIENT.to_owned(),
                operation: Operation::Update,
                api_version: version,
                subresource: String::new(),
            };
            if !self.entries.contains_key(&bucket)
                && let Some(entry) = self.entries.remove(&first)
            {
                self.entries.insert(bucket.clone(), entry);
            }
            if let Some(merged) = self.entries.remove(&identity)
                && let Some(entry) = self.entries.get_mut(&bucket)
            {
                entry.fields = entry.fields.union(&merged.fields);
                entry.time = time;
                excess -= 1;
            }
        }
    }
}

/// Removes `metadata.managedFields` from an object.
pub(super) fn strip(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

fn encode_entry(identity: &Identity, entry: &Entry) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("apiVersion", entry.api_version.as_str().into());
    set("fieldsType", "FieldsV1".into());
    set("fieldsV1", entry.fields.to_fields_v1());
    if !identity.manager.is_empty() {
        set("manager", identity.manager.as_str().into());
    }
    set("operation", identity.operation.as_str().into());
    if !identity.subresource.is_empty() {
        set("subresource", identity.subresource.as_str().into());
    }
    if let Some(time) = &entry.time {
        set("time", time.as_str().into());
    }
    Value::Object(fields)
}
