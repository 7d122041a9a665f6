//! The reporter of events: the names of the controller and of its instance.

use opkit_client::hostname;

use crate::EventApi;
use crate::event::{CONTROLLER_MAX_BYTES, INSTANCE_MAX_BYTES, truncate};

/// Values of the fields `reportingController` and `reportingInstance` of events, and the API in
/// which the events are created.
///
/// # Examples
/// ```
/// use opkit_events::{EventApi, Reporter};
///
/// let reporter = Reporter::new("shop-operator", EventApi::default());
/// assert!(format!("{reporter:?}").contains("shop-operator"));
/// ```
#[derive(Debug)]
pub struct Reporter {
    pub(crate) controller: String,
    pub(crate) instance: String,
    pub(crate) api: EventApi,
}

impl Reporter {
    /// Creates the reporter of the operator with the name `operator`. The instance is the host
    /// name, or `operator` if the host name is not known.
    pub fn new(operator: &str, api: EventApi) -> Self {
        let instance = hostname().unwrap_or_else(|| operator.to_owned());
        // A truncated name must not end in a dash.
        let controller = truncate(operator, CONTROLLER_MAX_BYTES).trim_end_matches(['-', '_', '.']);
        Self {
            controller: controller.to_owned(),
            instance: truncate(&instance, INSTANCE_MAX_BYTES).to_owned(),
            api,
        }
    }
}
