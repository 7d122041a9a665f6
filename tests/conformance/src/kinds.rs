//! Kinds that are declared with opkit's attributes: their wire format, and that a server accepts
//! them.

mod built_in_apply;
mod clients;
mod controller_gen;
mod declared;
mod generated;
mod sound;
mod torture;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt};
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::{Value, json};

use self::declared::{Mode, Mower, MowerSpec, MowerStatus, Region, Tool};

/// Returns the schema of the spec in the CRD.
fn schema<K: CustomResourceExt>(pointer: &str) -> Value {
    let crd = serde_json::to_value(K::crd()).unwrap();
    let pointer = format!("/spec/versions/0/schema/openAPIV3Schema/properties{pointer}");
    crd.pointer(&pointer).cloned().unwrap_or(Value::Null)
}

fn mower(name: &str) -> Mower {
    Mower::new(name, MowerSpec::default())
}

#[test]
fn unset_fields_are_not_written() {
    let written = serde_json::to_value(mower("one")).unwrap();
    assert_eq!(
        written,
        json!({
            "apiVersion": "garden.opkit.dev/v1",
            "kind": "Mower",
            "metadata": {"name": "one"},
            "spec": {
                "model": "",
                "blades": 3,
                "type": "Cordless",
                "region": "Eu",
                "port": 0,
                "memory": "64Mi",
                "surge": "25%",
                "quiet": true,
                "channels": ["stable"],
                "lawns": [],
                "mode": "self-driving",
            },
        })
    );
}

#[test]
fn an_object_is_read_with_its_defaults() {
    let read: Mower = serde_json::from_value(json!({
        "metadata": {"name": "one"},
        "spec": {"model": "m", "region": "us-east", "port": 80, "lawns": [], "mode": "pushed"},
        "status": {},
    }))
    .unwrap();
    let expected = MowerSpec {
        model: "m".into(),
        region: Region::UsEast,
        port: 80,
        mode: Mode::Pushed,
        ..MowerSpec::default()
    };
    assert_eq!(read.spec, expected);
    assert_eq!(expected.blades, 3);
    assert_eq!(read.status.unwrap().mowed, 0);
    assert!(serde_json::from_value::<Mower>(json!({"spec": {"model": "m"}})).is_err());
}

#[test]
fn the_schema_matches_the_attributes() {
    let spec = schema::<Mower>("/spec");
    assert_eq!(
        spec["required"],
        json!(["lawns", "model", "port", "region"])
    );
    assert_eq!(spec["description"], "A machine that mows a lawn.");
    let expected = json!({
        "model": {
            "description": "Name in the catalogue.",
            "type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[a-z0-9-]+$",
        },
        "blades": {"type": "integer", "format": "int32", "default": 3, "minimum": 1.0, "maximum": 9.0},
        "type": {"type": "string", "default": "Cordless"},
        "region": {
            "description": "Region of sale.",
            "type": "string", "enum": ["Eu", "us-east"],
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "region is immutable"}],
        },
        "port": {"type": "integer", "format": "int32", "minimum": 0.0, "maximum": 65535.0},
        "memory": {"default": "64Mi", "x-kubernetes-int-or-string": true},
        "surge": {"default": "25%", "x-kubernetes-int-or-string": true},
        "quiet": {"type": "boolean", "default": true},
        "budget": {"nullable": true, "x-kubernetes-int-or-string": true},
        "owner": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "owner is immutable"}],
        },
        "backup": {"description": "Region of sale.", "type": "string", "enum": ["Eu", "us-east"]},
        "channels": {"type": "array", "items": {"type": "string"}, "default": ["stable"]},
        "tags": {
            "type": "array", "x-kubernetes-list-type": "set", "maxItems": 8,
            "items": {"type": "string", "maxLength": 63},
        },
        "labels": {
            "type": "object", "maxProperties": 4,
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "lawns": {"type": "array", "items": {"type": "string"}},
        "routes": {
            "type": "array", "items": {"type": "string"}, "minItems": 1,
            "x-kubernetes-list-type": "atomic",
        },
        "notes": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        "spare": {
            "description": "Accessory of a mower.",
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "size": {"type": "integer", "format": "int32", "minimum": 1.0},
            },
            "x-kubernetes-map-type": "atomic",
        },
        "built": {"type": "string", "format": "date"},
        "mode": {"type": "string", "enum": ["self-driving", "pushed"], "default": "self-driving"},
        "anything": {"x-kubernetes-preserve-unknown-fields": true},
        "manifest": {
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        },
    });
    let mut properties = spec["properties"].as_object().unwrap().clone();
    let tools = properties.remove("tools").unwrap();
    // Kubernetes' own types, unchanged.
    let resources = properties.remove("resources").unwrap();
    assert!(resources["properties"]["limits"].is_object());
    let template = properties.remove("template").unwrap();
    assert!(template["properties"]["spec"]["properties"]["containers"].is_object());
    for (name, expected) in expected.as_object().unwrap() {
        let mut found = properties.remove(name).unwrap_or_default();
        // Kubernetes' own types, whose descriptions are long.
        if ["memory", "surge", "budget"].contains(&name.as_str()) {
            found
                .as_object_mut()
                .map(|found| found.remove("description"));
        }
        assert_eq!(&found, expected, "{name}");
    }
    assert_eq!(properties.keys().collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(tools["x-kubernetes-list-type"], "map");
    assert_eq!(tools["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(tools["items"]["required"], json!(["name"]));
    assert_eq!(
        spec["x-kubernetes-validations"],
        json!([
            {"rule": "has(self.owner) == has(oldSelf.owner)", "message": "owner is immutable", "fieldPath": ".owner"},
            {"rule": "self.blades < 9 || self.quiet == false", "message": "nine blades are loud", "reason": "FieldValueForbidden", "fieldPath": ".quiet"},
        ])
    );
    let status = schema::<Mower>("/status");
    assert_eq!(status["required"], Value::Null);
    assert_eq!(status["nullable"], Value::Null);
    assert_eq!(
        status["properties"]["mowed"],
        json!({"type": "integer", "format": "int64", "minimum": 0.0, "maximum": 4_294_967_295.0_f64})
    );
}

#[test]
fn names_columns_and_subresources_are_in_the_crd() {
    let crd = serde_json::to_value(Mower::crd()).unwrap();
    assert_eq!(
        crd["spec"]["names"],
        json!({
            "kind": "Mower", "plural": "mowers", "singular": "mower",
            "shortNames": ["mo"], "categories": ["garden", "machines"],
        })
    );
    assert_eq!(Mower::crd_name(), "mowers.garden.opkit.dev");
    assert_eq!(Mower::shortnames(), ["mo"]);
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([
            {"name": "Model", "type": "string", "jsonPath": ".spec.model"},
            {"name": "Blades", "type": "integer", "jsonPath": ".spec.blades", "priority": 1},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
            {"name": "Mowed", "type": "integer", "jsonPath": ".status.mowed", "description": "Square metres."},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
    );
    assert_eq!(
        version["selectableFields"],
        json!([{"jsonPath": ".spec.model"}])
    );
    assert_eq!(
        version["subresources"],
        json!({
            "status": {},
            "scale": {"specReplicasPath": ".spec.blades", "statusReplicasPath": ".status.mowed"},
        })
    );
}

/// Compares a kind of an example with its former declaration by kube's derive.
#[test]
fn a_kind_differs_from_kubes_derive_in_four_ways() {
    let mut kubes = serde_json::to_value(declared::kubes::Robot::crd()).unwrap();
    let opkits = serde_json::to_value(robot_operator::Robot::crd()).unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    // The description is the spec's doc comment, and there is no title.
    let root = kubes.pointer_mut(schema).unwrap().as_object_mut().unwrap();
    root.remove("title");
    root.insert("description".into(), json!("A fleet of identical robots."));
    // Optional fields are not nullable.
    for optional in [
        "/spec/properties/command",
        "/status",
        "/status/properties/observedGeneration",
    ] {
        let pointer = format!("{schema}/properties{optional}");
        let optional = kubes
            .pointer_mut(&pointer)
            .unwrap()
            .as_object_mut()
            .unwrap();
        assert_eq!(optional.remove("nullable"), Some(json!(true)), "{pointer}");
    }
    // A status has no defaults.
    for field in ["readyReplicas", "conditions"] {
        let pointer = format!("{schema}/properties/status/properties/{field}");
        let field = kubes
            .pointer_mut(&pointer)
            .unwrap()
            .as_object_mut()
            .unwrap();
        assert!(field.remove("default").is_some(), "{pointer}");
    }
    // Columns of fields come first.
    let columns = kubes
        .pointer_mut("/spec/versions/0/additionalPrinterColumns")
        .unwrap();
    columns.as_array_mut().unwrap().rotate_right(1);
    assert_eq!(opkits, kubes);
}

/// The server accepts the CRD, fills in defaults and refuses values that the schema forbids.
#[opkit::test]
async fn a_server_accepts_a_declared_kind(plane: ControlPlane) -> opkit::Result {
    plane
        .install(&Operator::new("mower-operator").crd::<Mower>())
        .await?;
    let api: Api<Mower> = Api::default_namespaced(plane.client());
    let minimal = json!({
        "apiVersion": "garden.opkit.dev/v1",
        "kind": "Mower",
        "metadata": {"name": "one"},
        "spec": {"model": "m-1", "region": "Eu", "port": 80, "lawns": ["front"], "anything": {"deep": [1, "two"]}},
    });
    let apply = PatchParams::apply("test");
    let created = api.patch("one", &apply, &Patch::Apply(&minimal)).await?;
    assert_eq!(created.spec.blades, 3);
    assert_eq!(created.spec.memory, Quantity("64Mi".into()));
    assert_eq!(created.spec.surge, IntOrString::String("25%".into()));
    assert_eq!(created.spec.channels, ["stable"]);
    assert_eq!(created.spec.anything, Some(json!({"deep": [1, "two"]})));

    // Fields that a typed object omits are not sent as null.
    let typed = Mower::new(
        "two",
        MowerSpec {
            model: "m-2".into(),
            tools: vec![Tool {
                name: "rake".into(),
                size: None,
            }],
            labels: BTreeMap::from([("colour".into(), "green".into())]),
            ..MowerSpec::default()
        },
    );
    let created = api.create(&PostParams::default(), &typed).await?;
    assert_eq!(created.spec, typed.spec);

    for (field, value) in [
        ("blades", json!(10)),
        ("model", json!("")),
        ("model", json!("NO")),
        ("port", json!(70_000)),
        ("region", json!("Mars")),
        ("tags", json!(["a", "a"])),
        ("tools", json!([{"name": "a"}, {"name": "a"}])),
        ("labels", json!({"a": ""})),
        ("type", json!(1)),
    ] {
        let mut wrong = minimal.clone();
        wrong["metadata"]["name"] = json!("wrong");
        wrong["spec"][field] = value.clone();
        let created = plane
            .client()
            .request::<Value>(
                http::Request::post(format!(
                    "/apis/garden.opkit.dev/v1/namespaces/{}/mowers",
                    plane.namespace()
                ))
                .header("content-type", "application/json")
                .body(serde_json::to_vec(&wrong).map_err(Error::from)?)?,
            )
            .await;
        let refusal = created
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(refusal.contains(field), "{field} = {value}: {refusal:?}");
    }

    // The status is a subresource, and has the fields that the operator writes.
    let status = MowerStatus {
        mowed: 7,
        observed_generation: Some(1),
        conditions: Conditions::default(),
    };
    let written = api
        .patch_status("one", &apply, &Patch::Merge(json!({"status": status})))
        .await?;
    assert_eq!(written.status.map(|status| status.mowed), Some(7));
    let scale = api.get_scale("one").await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(3));
    Ok(())
}

/// A server that evaluates CEL enforces rules, also those of `immutable`.
#[opkit::test]
async fn rules_of_a_declared_kind_are_enforced(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Cel)?;
    plane
        .install(&Operator::new("mower-operator").crd::<Mower>())
        .await?;
    let api: Api<Mower> = Api::default_namespaced(plane.client());
    for owner in [Some("me"), None] {
        let name = owner.unwrap_or("nobody");
        let mut mower = mower(name);
        mower.spec.model = "m-1".into();
        mower.spec.owner = owner.map(str::to_owned);
        api.create(&PostParams::default(), &mower).await?;
        for (patch, refusal) in [
            (json!({"region": "us-east"}), Some("region is immutable")),
            (json!({"owner": "you"}), Some("owner is immutable")),
            (json!({"owner": null}), owner.map(|_| "owner is immutable")),
            (
                json!({"blades": 9}),
                Some("spec.quiet: Forbidden: nine blades are loud"),
            ),
            (json!({"blades": 9, "quiet": false}), None),
        ] {
            let patched = api
                .patch(
                    name,
                    &PatchParams::default(),
                    &Patch::Merge(json!({"spec": patch})),
                )
                .await;
            let found = patched.err().map(|error| error.to_string());
            match refusal {
                Some(refusal) => assert!(found.is_some_and(|it| it.contains(refusal)), "{patch}"),
                None => assert_eq!(found, None, "{patch}"),
            }
        }
    }
    Ok(())
}
