//! The four forms of a patch.

use serde_json::Value;

/// Body of a PATCH request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Patch<'a> {
    /// Server-side apply of a whole configuration. Fails with a conflict if another field manager
    /// owns one of the fields, unless [`WriteOptions::force`](crate::WriteOptions::force) is set.
    Apply(&'a Value),
    /// RFC 7386 merge patch.
    Merge(&'a Value),
    /// RFC 6902 JSON patch.
    Json(&'a Value),
    /// Strategic merge patch, for built-in kinds only.
    Strategic(&'a Value),
}

impl Patch<'_> {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Patch::Apply(_) => "application/apply-patch+yaml",
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Json(_) => "application/json-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }

    pub(crate) fn body(&self) -> &Value {
        match self {
            Patch::Apply(body)
            | Patch::Merge(body)
            | Patch::Json(body)
            | Patch::Strategic(body) => body,
        }
    }
}
