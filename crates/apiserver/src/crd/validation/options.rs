//! The rules from which an update of a CRD is exempt, because the stored CRD breaks them already.

use serde_json::{Value, json};

use super::internal::Spec;
use super::props::Props;
use super::{conversion, defaults, openapi, selectable, structural};
use crate::crd::conditions;
use crate::object;

/// The rules that a CRD must follow.
#[derive(Debug)]
pub(super) struct Options {
    /// Whether a conversion webhook must accept a known version of ConversionReview.
    pub(super) requires_known_review: bool,
    /// Whether scope and kind cannot be changed.
    pub(super) requires_immutable_names: bool,
    /// Whether each version must have a schema.
    pub(super) requires_schema: bool,
    /// Whether each type must be one of OpenAPI v3.
    pub(super) requires_valid_types: bool,
    pub(super) requires_structural_schema: bool,
    /// Whether defaults may not have unknown fields.
    pub(super) requires_pruned_defaults: bool,
    /// Whether the items of a set must be atomic.
    pub(super) requires_atomic_sets: bool,
    /// Whether the keys of list maps must be required or have defaults.
    pub(super) requires_map_keys: bool,
    /// The versions whose schemas an update does not change.
    pub(super) unchanged_schemas: Vec<String>,
    pub(super) allows_invalid_ca_bundle: bool,
    /// The versions that may have too many selectable fields. Empty for the fields of all versions.
    pub(super) too_many_selectable_fields: Vec<String>,
}

impl Options {
    /// Returns the options for a new CRD: all rules, except that the CA bundle may be invalid until
    /// the CRD is established.
    pub(super) fn for_create() -> Self {
        Self {
            requires_known_review: true,
            requires_immutable_names: false,
            requires_schema: true,
            requires_valid_types: true,
            requires_structural_schema: true,
            requires_pruned_defaults: true,
            requires_atomic_sets: true,
            requires_map_keys: true,
            unchanged_schemas: Vec::new(),
            allows_invalid_ca_bundle: true,
            too_many_selectable_fields: Vec::new(),
        }
    }

    /// Returns the options for the replacement of `old` by `new`.
    pub(super) fn for_update(old: &Value, new: &Value) -> Self {
        let spec = Spec::of(old);
        let schemas: Vec<Props<'_>> = spec.schemas().collect();
        let has = |is_wanted: &dyn Fn(Props<'_>) -> bool| {
            let mut schemas = schemas.iter();
            schemas.any(|schema| schema.any(&mut |part| is_wanted(part)))
        };
        let is_structural = |schema: &Props<'_>| {
            structural::init_error(*schema).is_none()
                && structural::validate(*schema, "").is_empty()
        };
        let versions = object::items(old, &["spec", "versions"]);
        let has_schema =
            |version: &Value| !object::at(version, &["schema", "openAPIV3Schema"]).is_null();
        Self {
            requires_known_review: conversion::has_known_review(old),
            requires_immutable_names: conditions::is_true(old, "Established"),
            requires_schema: versions.iter().all(has_schema),
            requires_valid_types: !has(&|part| !openapi::has_valid_type(part)),
            requires_structural_schema: schemas.iter().all(is_structural),
            requires_pruned_defaults: !schemas
                .iter()
                .any(|schema| is_structural(schema) && defaults::has_unpruned_defaults(*schema)),
            requires_atomic_sets: !has(&|part| openapi::atomic_set_error(part, "").is_some()),
            requires_map_keys: !has(&|part| !openapi::map_key_errors(part, "").is_empty()),
            unchanged_schemas: unchanged_versions(old, new, "schema"),
            allows_invalid_ca_bundle: !conditions::is_true(old, "Established")
                || conversion::has_invalid_ca_bundle(old),
            too_many_selectable_fields: too_many_selectable_fields(old, new),
        }
    }
}

/// Returns the names of the versions in which both CRDs have the same value of a field.
fn unchanged_versions(old: &Value, new: &Value, field: &str) -> Vec<String> {
    let versions = |crd| object::items(crd, &["spec", "versions"]).iter();
    let is_unchanged = |version: &&Value| {
        let mut before = versions(old);
        before.any(|old| {
            let is_same = |field: &str| object::at(old, &[field]) == object::at(version, &[field]);
            is_same("name") && is_same(field)
        })
    };
    versions(new)
        .filter(is_unchanged)
        .map(|version| object::text(version, &["name"]).to_owned())
        .collect()
}

fn too_many_selectable_fields(old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (Spec::of(old), Spec::of(new));
    let is_excess = |fields: &Value| fields.as_array().map_or(0, Vec::len) > selectable::MAX;
    let mut found = Vec::new();
    let fields = old.shared.selectable_fields;
    if is_excess(fields) && fields == new.shared.selectable_fields {
        found.push(String::new());
    }
    for version in &new.versions {
        let name = object::at(version.version, &["name"]);
        let before = old
            .versions
            .iter()
            .find(|old| object::at(old.version, &["name"]) == name && name != &json!(null));
        let is_same = before.is_some_and(|old| {
            is_excess(old.own.selectable_fields)
                && old.own.selectable_fields == version.own.selectable_fields
        });
        if is_same {
            found.push(name.as_str().unwrap_or_default().to_owned());
        }
    }
    found
}
