//! The field managers of a Scale: Kubernetes keeps them in the object that is scaled, and maps the
//! path of the replicas in both directions.

use opkit_apimachinery::managedfields::{FieldSet, PathElement};
use serde_json::{Value, json};

use crate::object;

/// The API version of a Scale.
pub(super) const API_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in the scaled object, and the API versions in which it is known.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    /// Steps of the path, such as `spec` and `replicas`.
    pub(super) path: &'a [&'a str],
    /// API version of the scaled object in the request.
    pub(super) api_version: &'a str,
}

impl Mapping<'_> {
    fn replicas(&self) -> FieldSet {
        set_of(self.path)
    }

    /// Reports whether an entry is of the scaled resource. Versions of one group share the path.
    fn knows(&self, entry: &Value) -> bool {
        let group = |version: &str| match version.rsplit_once('/') {
            Some((group, _)) => group.to_owned(),
            None => String::new(),
        };
        group(object::text(entry, &["apiVersion"])) == group(self.api_version)
    }

    /// Returns the managers of the replicas among the managers `parent` of the scaled object, as
    /// managers of the Scale.
    pub(super) fn to_scale(&self, parent: &[Value]) -> Vec<Value> {
        let owners = parent
            .iter()
            .filter(|entry| self.knows(entry) && has(entry, &self.replicas()));
        let entries = owners.map(|entry| {
            let mut entry = entry.clone();
            object::set_field(&mut entry, "apiVersion", json!(API_VERSION));
            let fields = set_of(&["spec", "replicas"]).to_fields_v1();
            object::set_field(&mut entry, "fieldsV1", fields);
            entry
        });
        sorted(entries.collect())
    }

    /// Returns the managers of the scaled object after the managers of its Scale have become
    /// `scale`.
    pub(super) fn to_parent(&self, parent: &[Value], scale: &[Value]) -> Vec<Value> {
        let replicas = self.replicas();
        let mut left: Vec<&Value> = scale.iter().collect();
        let mut entries = Vec::new();
        for entry in parent.iter().filter(|entry| self.knows(entry)) {
            if !has(entry, &replicas) {
                entries.push(entry.clone());
                continue;
            }
            let own = identity(entry);
            if let Some(place) = left.iter().position(|other| identity(other) == own) {
                left.remove(place);
                entries.push(entry.clone());
                continue;
            }
            let rest = fields(entry).difference(&replicas);
            if !rest.is_empty() {
                let mut entry = entry.clone();
                object::set_field(&mut entry, "fieldsV1", rest.to_fields_v1());
                entries.push(entry);
            }
        }
        for entry in left {
            if !has(entry, &set_of(&["spec", "replicas"])) {
                continue;
            }
            let mut entry = entry.clone();
            object::set_field(&mut entry, "apiVersion", json!(self.api_version));
            object::set_field(&mut entry, "fieldsV1", replicas.to_fields_v1());
            // Kubernetes looks for the time among the managers of the parent, where the entry is
            // not.
            object::set(&mut entry, &["time"], Value::Null);
            entries.push(entry);
        }
        sorted(entries)
    }
}

fn set_of(path: &[&str]) -> FieldSet {
    let mut set = FieldSet::default();
    let steps: Vec<PathElement> = path
        .iter()
        .map(|step| PathElement::Field((*step).to_owned()))
        .collect();
    set.insert(&steps);
    set
}

fn fields(entry: &Value) -> FieldSet {
    FieldSet::from_fields_v1(object::at(entry, &["fieldsV1"])).unwrap_or_default()
}

fn has(entry: &Value, set: &FieldSet) -> bool {
    !fields(entry).intersection(set).is_empty()
}

/// Returns the fields that distinguish managers. The API version does not distinguish the managers
/// of server-side apply.
fn identity(entry: &Value) -> [String; 4] {
    let text = |field: &str| object::text(entry, &[field]).to_owned();
    let version = match object::text(entry, &["operation"]) {
        "Apply" => String::new(),
        _ => text("apiVersion"),
    };
    [
        text("manager"),
        text("operation"),
        version,
        text("subresource"),
    ]
}

/// Returns the entries in the order in which Kubernetes stores them.
fn sorted(mut entries: Vec<Value>) -> Vec<Value> {
    entries.sort_by_key(|entry| {
        let text = |field: &str| object::text(entry, &[field]).to_owned();
        [
            text("operation"),
            text("time"),
            text("manager"),
            text("apiVersion"),
            text("subresource"),
        ]
    });
    entries
}
