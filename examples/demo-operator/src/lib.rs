//! An operator that applies a ConfigMap for each Demo. It shows renaming, a name that is taken, and
//! a finalizer.
#![allow(
    clippy::duplicated_attributes,
    reason = "several printer columns have the same type"
)]

mod demo;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit::prelude::*;

pub use demo::{Demo, DemoSpec, DemoStatus};

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("demo-operator").crd::<Demo>().controller(
        Controller::new(reconcile)
            .owns::<ConfigMap>()
            .watches::<ConfigMap>(demos_with_name)
            .finalizer("demo.opkit.dev/cleanup", clean_up),
    )
}

/// Applies the ConfigMap of one demo and deletes those of its previous names.
async fn reconcile(demo: Arc<Demo>, cx: Context) -> Result<Action> {
    let written = match cx.apply(desired_config_map(&demo)).await {
        Err(error) if error.is_not_ours() => {
            cx.event(Warning, "NameTaken", error.to_string());
            Condition::new("Ready", false)
                .reason("NameTaken")
                .message(error.to_string())
        }
        Err(error) => return Err(error.into()),
        Ok(_) => {
            for former in cx.children::<ConfigMap>()? {
                if former.name_any() != demo.spec.config_map_name {
                    cx.delete(&former).await?;
                    cx.event(Normal, "Renamed", format!("deleted {}", former.name_any()));
                }
            }
            Condition::new("Ready", true).reason("Written")
        }
    };
    cx.update_status(&demo, |status| status.conditions.set(&written))
        .await?;
    Ok(Action::await_change())
}

/// Deletes the objects of one demo before the demo is deleted.
async fn clean_up(demo: Arc<Demo>, cx: Context) -> Result<Cleanup> {
    for map in cx.children::<ConfigMap>()? {
        cx.delete(&map).await?;
    }
    cx.event(
        Normal,
        "CleanedUp",
        format!("cleaned up after {}", demo.name_any()),
    );
    Ok(Cleanup::Done)
}

/// Maps a ConfigMap to the demos that use its name: if another controller owns it, its deletion
/// frees the name.
fn demos_with_name(map: &ConfigMap, cx: &MapContext) -> Vec<ObjectKey> {
    let selection = Selection::default().namespace(map.namespace().unwrap_or_default());
    let demos = cx.list::<Demo>(selection).unwrap_or_default();
    let wanting = demos
        .iter()
        .filter(|demo| demo.spec.config_map_name == map.name_any());
    wanting.map(|demo| demo.name_any().into()).collect()
}

fn desired_config_map(demo: &Demo) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(demo.spec.config_map_name.clone()),
            ..Default::default()
        },
        data: Some(BTreeMap::from([
            ("size".to_owned(), demo.spec.size.to_string()),
            ("type".to_owned(), demo.spec.type_.clone()),
        ])),
        ..Default::default()
    }
}
