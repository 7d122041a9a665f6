use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::*;

fn child(api_version: &str, kind: &str, controller: bool) -> ObjectMeta {
    let owner = OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: "one".into(),
        controller: controller.then_some(true),
        ..Default::default()
    };
    ObjectMeta {
        namespace: Some("d".into()),
        owner_references: Some(vec![owner]),
        ..Default::default()
    }
}

#[test]
fn the_owner_is_found_by_group_and_kind() {
    let robot = Kind {
        group: "robot.opkit.dev".into(),
        version: "v1".into(),
        kind: "Robot".into(),
        ..Kind::of::<ConfigMap>()
    };
    let check = |owner: &Kind, child: ObjectMeta, expected: Option<&str>| {
        let keys: Vec<_> = owners_of(owner, &Meta::from(&child), false)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(keys, Vec::from_iter(expected));
    };
    check(
        &robot,
        child("robot.opkit.dev/v1", "Robot", true),
        Some("d/one"),
    );
    check(
        &robot,
        child("robot.opkit.dev/v1beta1", "Robot", true),
        Some("d/one"),
    );
    check(&robot, child("robot.opkit.dev/v1", "Robot", false), None);
    check(&robot, child("other.dev/v1", "Robot", true), None);
    check(
        &robot,
        child("robot.opkit.dev/v1", "Deployment", true),
        None,
    );
    check(
        &Kind::of::<Namespace>(),
        child("v1", "Namespace", true),
        Some("one"),
    );
}
