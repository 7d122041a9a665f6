use serde::Deserialize;

use super::*;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct With {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct Without {
    ready: bool,
}

#[test]
fn the_generation_is_set_if_the_type_has_the_field() {
    let mut status = json!({});
    observe_generation::<With>(&mut status, 7);
    assert_eq!(status, json!({"observedGeneration": 7}));
    let mut status = json!({"ready": true});
    observe_generation::<Without>(&mut status, 7);
    assert_eq!(status, json!({"ready": true}));
}

/// A kind whose conditions have no `observedGeneration`.
mod plain {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "robot.opkit.dev", version = "v1", kind = "Plain", namespaced)]
    #[kube(status = "PlainStatus")]
    pub(super) struct PlainSpec {}

    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    pub(super) struct PlainStatus {
        pub(super) conditions: Vec<PlainCondition>,
    }

    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub(super) struct PlainCondition {
        pub(super) r#type: String,
        pub(super) status: String,
        pub(super) last_transition_time: Option<String>,
    }
}

#[test]
fn a_condition_has_only_the_fields_of_its_type() {
    let plain = plain::Plain::new("one", plain::PlainSpec {});
    let mut change = |status: &mut plain::PlainStatus| {
        status.conditions.push(plain::PlainCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_transition_time: None,
        });
    };
    let patch = status_patch(&plain, 7, "me", &mut change).unwrap().unwrap();
    let condition = &patch["status"]["conditions"][0];
    assert!(condition["lastTransitionTime"].is_string(), "{condition}");
    assert!(condition.get("observedGeneration").is_none(), "{condition}");
}
