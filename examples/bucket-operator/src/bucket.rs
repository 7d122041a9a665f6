//! The kind `Bucket`.

use opkit::prelude::*;

/// A bucket in the object store, with the name of the object.
#[opkit::kind(group = "bucket.opkit.dev", version = "v1", namespaced, status = BucketStatus)]
#[opkit(
    printcolumn("Ready", condition = "Ready"),
    printcolumn("Reason", path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn("URL", path = ".status.url")
)]
pub struct BucketSpec {
    /// Whether previous versions of objects are kept.
    #[opkit(default = false)]
    pub versioning: bool,
    /// Maximum size of the bucket's content, in GiB.
    #[opkit(default = 10, min = 1)]
    pub quota_gib: i32,
}

/// Observed state of a bucket.
#[opkit::status]
pub struct BucketStatus {
    /// URL of the bucket.
    pub url: Option<String>,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the bucket matches the spec, with a reason.
    pub conditions: Conditions,
}
