//! The version that is stored. Functions convert whole objects: a label became a field.

use std::collections::BTreeMap;

use super::{Network, Power, Tool, Waypoint};

#[opkit::version(of = super::Rover, version = "v1beta1", with(to_hub, from_hub))]
#[derive(PartialEq)]
pub(crate) struct RoverSpec {
    #[opkit(min_length = 1, max_length = 40)]
    pub image: String,
    #[opkit(min = 0, max = 100)]
    pub replicas: i32,
    #[opkit(max_length = 60, pattern = "^[a-z]+$")]
    pub host: String,
    pub port: u16,
    pub network: Option<Network>,
    pub power: Power,
    #[opkit(list_map = "name")]
    pub tools: Vec<Tool>,
    #[opkit(list_atomic)]
    pub route: Vec<Waypoint>,
    pub labels: BTreeMap<String, String>,
    /// Gone in v1.
    pub nickname: Option<String>,
}

/// The label that v1beta1 has in place of the field `paused`.
const PAUSED: &str = "fleet.opkit.dev/paused";

fn to_hub(rover: Rover) -> super::Rover {
    let Rover {
        mut metadata,
        spec,
        status,
    } = rover;
    let paused = metadata
        .labels
        .as_mut()
        .and_then(|labels| labels.remove(PAUSED));
    if metadata.labels.as_ref().is_some_and(BTreeMap::is_empty) {
        metadata.labels = None;
    }
    let spec = super::RoverSpec {
        image: spec.image,
        replicas: spec.replicas,
        host: spec.host,
        port: spec.port,
        paused: paused.is_some(),
        network: spec.network,
        power: spec.power,
        tools: spec.tools,
        route: spec.route,
        labels: spec.labels,
        timeout_seconds: None,
    };
    super::Rover {
        metadata,
        spec,
        status,
    }
}

fn from_hub(rover: super::Rover) -> Rover {
    let super::Rover {
        mut metadata,
        spec,
        status,
    } = rover;
    if spec.paused {
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(PAUSED.to_owned(), "true".to_owned());
    }
    let spec = RoverSpec {
        image: spec.image,
        replicas: spec.replicas,
        host: spec.host,
        port: spec.port,
        network: spec.network,
        power: spec.power,
        tools: spec.tools,
        route: spec.route,
        labels: spec.labels,
        nickname: None,
    };
    Rover {
        metadata,
        spec,
        status,
    }
}
