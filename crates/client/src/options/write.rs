//! Options of writes.

use crate::RestRequest;

/// Treatment of fields that are not in the schema of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// The server drops unknown fields.
    Ignore,
    /// The server drops unknown fields and sends a warning; the server's default.
    Warn,
    /// The server rejects a write with unknown fields.
    Strict,
}

/// Options of creates, updates, patches and deletions.
///
/// # Examples
/// ```
/// use opkit_client::{FieldValidation, WriteOptions};
/// let mut options = WriteOptions::for_manager("tidy").force();
/// options.field_validation = Some(FieldValidation::Strict);
/// assert!(options.force);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Field manager that owns the written fields. The server's default is the first part of the
    /// user agent. An apply requires a field manager.
    pub field_manager: Option<String>,
    /// Whether the server validates the write and does not store it.
    pub dry_run: bool,
    /// Treatment of unknown fields. `None` uses the server's default.
    pub field_validation: Option<FieldValidation>,
    /// Whether an apply takes fields from other field managers. If `false`, an apply of a field
    /// that another manager owns fails with a conflict. Writes other than applies ignore this
    /// option.
    pub force: bool,
}

impl WriteOptions {
    /// Returns the default options with a field manager.
    pub fn for_manager(name: impl Into<String>) -> Self {
        Self {
            field_manager: Some(name.into()),
            ..Self::default()
        }
    }

    /// Makes an apply take fields from other field managers instead of failing with a conflict.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    pub(crate) fn add_to(&self, mut request: RestRequest) -> RestRequest {
        if let Some(manager) = &self.field_manager {
            request = request.query("fieldManager", manager);
        }
        if self.dry_run {
            request = request.query("dryRun", "All");
        }
        match self.field_validation {
            Some(FieldValidation::Ignore) => request.query("fieldValidation", "Ignore"),
            Some(FieldValidation::Warn) => request.query("fieldValidation", "Warn"),
            Some(FieldValidation::Strict) => request.query("fieldValidation", "Strict"),
            None => request,
        }
    }
}
