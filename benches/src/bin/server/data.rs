//! The objects that the benchmark creates.

use opkit_random::Random;
use serde_json::json;

/// The resource that a measurement uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Resource {
    ConfigMaps,
    Pods,
}

impl Resource {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::ConfigMaps => "/api/v1/namespaces/default/configmaps",
            Self::Pods => "/api/v1/namespaces/default/pods",
        }
    }

    pub(crate) fn object_path(self, number: usize) -> String {
        format!("{}/{}", self.path(), name(number))
    }

    /// Returns the JSON of an object. A ConfigMap is 1 KB long in a response.
    pub(crate) fn object(self, number: usize) -> String {
        let metadata = json!({
            "name": name(number), "labels": {"app": format!("a{}", number % 100)},
        });
        let text = text(number);
        let object = match self {
            Self::ConfigMaps => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": text},
            }),
            Self::Pods => json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"containers": [{
                    "name": "c", "image": "nginx:1.27", "env": [{"name": "A", "value": text}],
                    "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
                }]},
            }),
        };
        object.to_string()
    }
}

fn name(number: usize) -> String {
    format!("o{number:07}")
}

/// Returns 700 characters of random hexadecimal numbers, so that compression is neither free nor
/// useless.
fn text(number: usize) -> String {
    let mut random = Random::new(number as u64);
    let mut text = String::with_capacity(720);
    while text.len() < 700 {
        text.push_str(&format!("{:x} ", random.bits() & 0xff_ffff));
    }
    text.truncate(700);
    text
}
