//! Warnings and audit annotations of one request.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// What admission adds to the response and to the audit event of a request. Webhooks that run at
/// the same time share it.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    warnings: Mutex<Vec<String>>,
    annotations: Mutex<BTreeMap<String, String>>,
    /// Annotations that are only in events with the request object.
    request_annotations: Mutex<BTreeMap<String, String>>,
}

impl Notes {
    /// Adds a warning for the client, unless the same warning is there.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        let warning = warning.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Adds an annotation to the audit event. As in Kubernetes, an annotation is not overwritten.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let mut annotations = self.annotations.lock();
        annotations
            .entry(key.into())
            .or_insert_with(|| value.into());
    }

    /// Adds an annotation to the audit event, if that has the request object.
    pub(crate) fn annotate_request(&self, key: String, value: String) {
        self.request_annotations.lock().entry(key).or_insert(value);
    }

    /// Returns the annotations that are only in events with the request object.
    pub(crate) fn request_annotations(&self) -> BTreeMap<String, String> {
        self.request_annotations.lock().clone()
    }

    /// Returns the warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Returns the audit annotations.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        self.annotations.lock().clone()
    }
}
