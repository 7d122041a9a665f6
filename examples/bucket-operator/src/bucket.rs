//! The kind.

use opkit::prelude::*;

/// A bucket in the object store, of the same name as the object.
#[opkit::kind(group = "bucket.opkit.dev", version = "v1", namespaced, status = BucketStatus)]
#[opkit(
    printcolumn("Ready", condition = "Ready"),
    printcolumn("Reason", path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn("URL", path = ".status.url")
)]
pub struct BucketSpec {
    /// Whether former versions of its objects are kept.
    #[opkit(default = false)]
    pub versioning: bool,
    /// How much may be in it.
    #[opkit(default = 10, min = 1)]
    pub quota_gib: i32,
}

/// What is known of a bucket.
#[opkit::status]
pub struct BucketStatus {
    /// Where it is.
    pub url: Option<String>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the bucket is as asked for, and why not.
    pub conditions: Conditions,
}
