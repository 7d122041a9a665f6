//! Steps of a deployment, which are reported while they happen.

use std::time::Duration;

use serde::Serialize;

use crate::{ObjectReference, RolloutState};

/// Effect of applying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Change {
    /// The object did not exist.
    Created,
    /// The object existed and differs now.
    Changed,
    /// The object was as it should be.
    Unchanged,
    /// The object was deleted.
    Deleted,
}

/// Step of a deployment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// An object was applied.
    Applied {
        /// The object.
        object: ObjectReference,
        /// Effect on the object.
        change: Change,
    },
    /// A CRD is served.
    Established {
        /// Name of the CRD.
        name: String,
        /// Effect on the CRD.
        change: Change,
        /// Versions that the CRD serves.
        versions: Vec<String>,
        /// Time since the CRD was applied.
        elapsed: Duration,
    },
    /// The state of a rollout changed.
    Rollout {
        /// The Deployment.
        deployment: ObjectReference,
        /// State of its rollout.
        state: RolloutState,
        /// Time since the wait began.
        elapsed: Duration,
    },
    /// An object was deleted.
    Deleted {
        /// The object.
        object: ObjectReference,
    },
    /// A CRD was kept, because objects of its kind exist.
    Kept {
        /// Name of the CRD.
        name: String,
        /// Number of objects; `None` if they cannot be listed.
        instances: Option<u64>,
    },
}

/// Function that receives the steps.
pub(crate) type Report<'a> = &'a mut (dyn FnMut(Progress) + Send);
