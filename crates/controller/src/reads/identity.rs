//! The names of a controller.

use std::sync::Arc;

use opkit_client::Kind;

/// Names of a controller, determined once when its manager starts. All tasks of the controller
/// share one instance.
#[derive(Debug)]
pub(crate) struct ControllerIdentity {
    /// Name of the controller.
    pub(crate) name: Arc<str>,
    /// The reconciled kind.
    pub(crate) kind: Arc<Kind>,
    /// Name of the reconciled kind in records and logs.
    pub(crate) kind_name: Arc<str>,
    /// Field manager of the controller's writes: `<operator>.<controller>`.
    pub(crate) field_manager: Arc<str>,
}
