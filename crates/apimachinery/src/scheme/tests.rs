use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RobotV1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    spec: Spec,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Spec {
    arms: u32,
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tool {
    name: String,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
enum Mode {
    #[default]
    Idle,
    Work {
        hours: u8,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RobotV1beta1 {
    arms: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RobotV1alpha1 {
    limbs: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

fn robot(version: &str) -> GroupVersionKind {
    GroupVersionKind::new("example.com", version, "Robot")
}

fn scheme() -> Scheme {
    let mut scheme = Scheme::new();
    scheme.register::<RobotV1>(robot("v1")).unwrap();
    scheme.register::<RobotV1beta1>(robot("v1beta1")).unwrap();
    scheme.register::<RobotV1alpha1>(robot("v1alpha1")).unwrap();
    let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
    scheme.register::<ConfigMap>(config_map).unwrap();
    scheme.set_hub(&robot("v1")).unwrap();
    let v1 = |arms| RobotV1 {
        metadata: None,
        spec: Spec {
            arms,
            tools: Vec::new(),
            mode: Mode::Idle,
        },
    };
    scheme.add_conversion(move |old: &RobotV1beta1| old.arms.parse().map(v1));
    scheme.add_conversion(move |old: &RobotV1alpha1| Ok::<_, String>(v1(old.limbs / 2)));
    scheme.add_conversion(|hub: &RobotV1| {
        let arms = hub.spec.arms.to_string();
        Ok::<_, String>(RobotV1beta1 { arms })
    });
    scheme
}

fn check_error(bytes: &[u8], expected: &str) {
    let error = scheme().decode(bytes).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn every_format_is_decoded_and_encoded() {
    let object = ConfigMap {
        data: [("a".to_owned(), "b".to_owned())].into(),
    };
    for format in [Format::Json, Format::Yaml, Format::Protobuf] {
        let bytes = scheme().encode(&object, format).unwrap();
        assert_eq!(Format::of(&bytes), format);
        let decoded = scheme().decode(&bytes).unwrap();
        assert_eq!(decoded.gvk().to_string(), "/v1, Kind=ConfigMap");
        assert_eq!(decoded.downcast_ref::<ConfigMap>(), Some(&object));
        assert_eq!(scheme().encode_decoded(&decoded, format).unwrap(), bytes);
    }
    let value = scheme().to_value(&object).unwrap();
    assert_eq!(
        value,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
    );
}

#[test]
fn errors_name_kind_and_field() {
    check_error(
        br#"{"apiVersion": "example.com/v2", "kind": "Robot"}"#,
        "no type is registered for example.com/v2, Kind=Robot",
    );
    check_error(b"kind: Robot", "the object has no apiVersion");
    check_error(b"apiVersion: v1", "the object has no kind");
    check_error(
        b"{apiVersion: a/b/c, kind: Robot}",
        "the object has an invalid apiVersion",
    );
    check_error(b"{", "cannot decode the object from JSON");
    check_error(
        b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 1, tools: [{name: a}, {name: b, size: 1}]}}",
        "example.com/v1, Kind=Robot has no field spec.tools[1].size",
    );
    check_error(
        b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 1, mode: {Work: {hours: 1, days: 2}}}}",
        "example.com/v1, Kind=Robot has no field spec.mode.Work.days",
    );
    check_error(
        b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 1, tools: [{name: 1}]}}",
        "example.com/v1, Kind=Robot does not fit its type at spec.tools[0].name",
    );
    check_error(
        b"{apiVersion: example.com/v1, kind: Robot}",
        "example.com/v1, Kind=Robot does not fit its type",
    );
}

#[test]
fn a_kind_has_one_type() {
    let mut scheme = scheme();
    scheme.register::<RobotV1>(robot("v1")).unwrap();
    let error = scheme.register::<ConfigMap>(robot("v1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot register example.com/v1, Kind=Robot as opkit_apimachinery::scheme::tests::ConfigMap: \
         it is registered as opkit_apimachinery::scheme::tests::RobotV1"
    );
}

#[test]
fn decoding_as_another_type_fails() {
    let bytes = b"{apiVersion: v1, kind: ConfigMap}";
    assert!(scheme().decode_as::<ConfigMap>(bytes).is_ok());
    assert_eq!(
        scheme()
            .decode_as::<RobotV1>(bytes)
            .unwrap_err()
            .to_string(),
        "/v1, Kind=ConfigMap is not a opkit_apimachinery::scheme::tests::RobotV1"
    );
    assert_eq!(
        scheme().to_value(&1).unwrap_err().to_string(),
        "the type i32 is not registered"
    );
}

#[test]
fn defaults_run_in_order() {
    let mut scheme = scheme();
    scheme.add_defaulting(|robot: &mut RobotV1| robot.spec.arms += 1);
    scheme.add_defaulting(|robot: &mut RobotV1| robot.spec.arms *= 10);
    let bytes = b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 1}}";
    let arms = |decoded: Decoded| decoded.downcast::<RobotV1>().unwrap().spec.arms;
    assert_eq!(arms(scheme.decode(bytes).unwrap()), 1);
    assert_eq!(arms(scheme.decode_with_defaults(bytes).unwrap()), 20);
}

#[test]
fn versions_have_an_order() {
    let mut scheme = scheme();
    let kind = GroupKind::new("example.com", "Robot");
    assert_eq!(
        scheme.versions(&kind),
        [robot("v1"), robot("v1beta1"), robot("v1alpha1")]
    );
    scheme.prefer(&robot("v1beta1")).unwrap();
    assert_eq!(scheme.preferred(&kind), Some(robot("v1beta1")));
    assert!(scheme.prefer(&robot("v3")).is_err());
    assert_eq!(scheme.preferred(&GroupKind::new("", "Nothing")), None);
}

#[test]
fn spokes_convert_through_the_hub() {
    let scheme = scheme();
    let old = || Decoded::new(robot("v1alpha1"), RobotV1alpha1 { limbs: 4 });
    let beta: RobotV1beta1 = scheme.convert(old()).unwrap();
    assert_eq!(beta.arms, "2");
    let hub = scheme.convert_to(old(), &robot("v1")).unwrap();
    assert_eq!(hub.gvk(), &robot("v1"));
    assert_eq!(hub.downcast::<RobotV1>().unwrap().spec.arms, 2);
    let same = scheme.convert_to(old(), &robot("v1alpha1")).unwrap();
    assert!(same.is::<RobotV1alpha1>());
}

#[test]
fn conversions_that_fail() {
    let scheme = scheme();
    let beta = |arms: &str| {
        let arms = arms.to_owned();
        Decoded::new(robot("v1beta1"), RobotV1beta1 { arms })
    };
    let check = |decoded: Decoded, gvk: &GroupVersionKind, expected: &str| {
        let error = scheme.convert_to(decoded, gvk).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        beta("many"),
        &robot("v1"),
        "cannot convert example.com/v1beta1, Kind=Robot to example.com/v1, Kind=Robot",
    );
    check(
        beta("2"),
        &robot("v1alpha1"),
        "there is no conversion from example.com/v1, Kind=Robot to example.com/v1alpha1, Kind=Robot",
    );
    check(
        beta("2"),
        &robot("v7"),
        "no type is registered for example.com/v7, Kind=Robot",
    );
    check(
        beta("2"),
        &GroupVersionKind::new("", "v1", "ConfigMap"),
        "there is no conversion from example.com/v1beta1, Kind=Robot to /v1, Kind=ConfigMap",
    );
}
