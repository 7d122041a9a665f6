//! The names that events are reported under.

use opkit_client::hostname;

use crate::EventApi;
use crate::event::{CONTROLLER, INSTANCE, cut};

/// The reporting controller and instance of events, and the API that they are posted in.
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
    /// Creates the reporter of the operator with this name. The instance is the host name, or the
    /// name of the operator if that is not known.
    pub fn new(operator: &str, api: EventApi) -> Self {
        let instance = hostname().unwrap_or_else(|| operator.to_owned());
        // A name that is cut must not end in a dash.
        let controller = cut(operator, CONTROLLER).trim_end_matches(['-', '_', '.']);
        Self {
            controller: controller.to_owned(),
            instance: cut(&instance, INSTANCE).to_owned(),
            api,
        }
    }
}
