//! Field ownership and server-side apply.
//!
//! Every write is attributed: [`update`] after a create, update or patch, [`apply`] for a
//! server-side apply. The algorithm is that of `structured-merge-diff`, in its shape: sets of
//! field paths, a merge, a comparison and a removal, all directed by the list and map types of
//! the schema. `metadata` of a custom resource has ObjectMeta's types whatever its schema says.
//!
//! Never owned are `apiVersion`, `kind` and, of `metadata`, `name`, `namespace`,
//! `creationTimestamp`, `selfLink`, `uid`, `clusterName`, `generation`, `managedFields` and
//! `resourceVersion`: what Kubernetes leaves out, and no more (`generateName` is owned).
//!
//! Not modelled: conversion between versions (all managers are judged by the schema passed
//! in), the reset fields of subresources (the caller drops `status`), and schemas that change
//! between atomic and granular.

mod apply;
mod last_applied;
mod managers;
mod path;
mod set;
mod topology;
mod update;
mod walk;

use std::sync::LazyLock;

pub use crate::error::{ApplyError, Conflict};
pub use apply::apply;
pub use path::PathElement;
pub use set::FieldSet;
pub use update::{keep_times, update};

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// The version the request is written in, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource the request goes to; empty for the object itself.
    pub subresource: &'a str,
}

/// What nobody owns.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    const METADATA: [&str; 9] = [
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    let field = |name: &str| PathElement::Field(name.to_owned());
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[field(name)]);
    }
    for name in METADATA {
        set.insert(&[field("metadata"), field(name)]);
    }
    set
});

#[cfg(test)]
mod tests;
