//! Sets of fields, such as the fields that a manager owns or that a change modifies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::PathElement;

/// A set of paths into an object, as a tree.
///
/// A path is in the set if it is a *member*. A path that is not a member may still have children
/// that are members. FieldsV1 writes a member without children as `{}`, and marks a member with
/// children by `.`.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::managedfields::FieldSet;
/// use serde_json::json;
///
/// let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}});
/// let set = FieldSet::from_fields_v1(&fields).unwrap();
/// assert_eq!(set.paths(), [".metadata.labels", ".metadata.labels.app"]);
/// assert_eq!(set.to_fields_v1(), fields);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, Self>,
}

impl FieldSet {
    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Returns the paths in the set as Kubernetes prints them, such as `.spec.replicas`.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        paths.extend(
            self.members
                .iter()
                .map(|member| format!("{prefix}{member}")),
        );
        for (element, child) in &self.children {
            child.collect_paths(&format!("{prefix}{element}"), paths);
        }
    }

    /// Adds a path. An empty path is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut set = self;
        for parent in parents {
            // Most parents exist, and need no copy of the element.
            if !set.children.contains_key(parent) {
                set.children.insert(parent.clone(), Self::default());
            }
            let Some(child) = set.children.get_mut(parent) else {
                return;
            };
            set = child;
        }
        set.members.insert(last.clone());
    }

    /// Adds all paths of another set.
    pub(crate) fn extend(&mut self, other: Self) {
        if self.members.is_empty() && self.children.is_empty() {
            *self = other;
            return;
        }
        self.members.extend(other.members);
        for (element, child) in other.children {
            self.children.entry(element).or_default().extend(child);
        }
    }

    /// Removes all paths that are in another set.
    pub(crate) fn remove_all(&mut self, other: &Self) {
        for member in &other.members {
            self.members.remove(member);
        }
        for (element, child) in &other.children {
            if let Some(own) = self.children.get_mut(element) {
                own.remove_all(child);
                if own.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    /// Returns the paths that are in either set.
    ///
    /// ```
    /// use opkit_apimachinery::managedfields::FieldSet;
    /// use serde_json::json;
    ///
    /// let set = |fields| FieldSet::from_fields_v1(&fields).unwrap();
    /// let union = set(json!({"f:a": {}})).union(&set(json!({"f:a": {"f:b": {}}})));
    /// assert_eq!(union.paths(), [".a", ".a.b"]);
    /// ```
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other.clone());
        union
    }

    /// Returns the paths that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, child)| {
            let both = child.intersection(other.children.get(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self {
            members,
            children: children.collect(),
        }
    }

    /// Returns the paths that are in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.remove_all(other);
        difference.children.retain(|_, child| !child.is_empty());
        difference
    }

    /// Reports whether the set contains the path that consists of this one element.
    pub(crate) fn has(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// Returns the paths of the set below this element, relative to the element, or `None` if there
    /// are none.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element).filter(|child| !child.is_empty())
    }

    /// Returns the set, to which each path element that has children is added as a member if `add`
    /// returns `true` for the element. `context` is passed to `add`; `below` returns the context
    /// for the children of an element.
    pub(crate) fn with_parents<T>(
        &self,
        context: Option<&T>,
        add: &impl Fn(&T, &PathElement) -> bool,
        below: &impl Fn(&T, &PathElement) -> Option<T>,
    ) -> Self {
        let mut set = Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (element, child) in &self.children {
            if context.is_some_and(|context| add(context, element)) {
                set.members.insert(element.clone());
            }
            let context = context.and_then(|context| below(context, element));
            set.children.insert(
                element.clone(),
                child.with_parents(context.as_ref(), add, below),
            );
        }
        set
    }

    /// Decodes the `fieldsV1` of a managed fields entry. Returns `None` if `fields` is malformed.
    pub fn from_fields_v1(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (name, below) in fields.as_object()? {
            if name == "." {
                continue;
            }
            let element = PathElement::parse(name)?;
            let below_fields = below.as_object()?;
            if below_fields.is_empty() || below_fields.contains_key(".") {
                set.members.insert(element.clone());
            }
            let child = Self::from_fields_v1(below)?;
            if !child.is_empty() {
                set.children.insert(element, child);
            }
        }
        Some(set)
    }

    /// Encodes the set as the `fieldsV1` of a managed fields entry.
    pub fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        for (element, child) in &self.children {
            let mut below = match child.to_fields_v1() {
                Value::Object(below) if !below.is_empty() => below,
                _ => continue,
            };
            if self.members.contains(element) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.encode(), Value::Object(below));
        }
        for member in &self.members {
            fields
                .entry(member.encode())
                .or_insert_with(|| Value::Object(Map::new()));
        }
        Value::Object(fields)
    }
}
