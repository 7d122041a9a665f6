//! A kind with every attribute argument that reaches a CRD. `controller-gen/types.go` declares the
//! same kind for controller-gen.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use opkit::prelude::*;
use serde_json::Value;

/// Torture has every argument that reaches a CRD.
#[opkit::kind(
    group = "torture.opkit.dev",
    version = "v1",
    namespaced,
    status = TortureStatus,
    plural = "tortures",
    singular = "torture",
    shortname = "to",
    shortname = "tt",
    category = "test",
    category = "pain",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    selectable = ".spec.image",
    deprecated = "torture.opkit.dev/v1 ends: use v2",
    annotation("example.com/note", "a b"),
    label("example.com/team", "pain")
)]
#[opkit(
    printcolumn(
        "Replicas",
        path = ".spec.replicas",
        type_ = "integer",
        format = "int32",
        description = "Number of replicas.",
        priority = 1
    ),
    printcolumn("Ready", condition = "Ready"),
    printcolumn(age)
)]
#[opkit(object_rule("self.metadata.name.size() < 50", message = "the name is too long"))]
#[opkit(rule(
    "!has(self.first) || self.first != self.image",
    message = "first is the image",
    reason = FieldValueInvalid,
    field = ".first"
))]
#[opkit(
    at_most_one_of(first, second),
    exactly_one_of(left, right),
    at_least_one_of(second, third)
)]
#[derive(Default)]
pub(crate) struct TortureSpec {
    #[opkit(
        min_length = 1,
        max_length = 255,
        pattern = "^[a-z0-9./:@_-]+$",
        title = "The image"
    )]
    pub(crate) image: String,
    #[opkit(default = 1, min = 0, max = 100)]
    pub(crate) replicas: i32,
    #[opkit(exclusive_min = 0, exclusive_max = 10)]
    pub(crate) open: Option<i32>,
    #[opkit(multiple_of = 5)]
    pub(crate) step: Option<i64>,
    #[opkit(allow_float, min = 0.5, max = 1.5)]
    pub(crate) ratio: Option<f64>,
    #[opkit(min_properties = 1, max_properties = 4, map_type = "atomic")]
    pub(crate) labels: BTreeMap<String, String>,
    #[opkit(values(min_length = 1, max_length = 63))]
    pub(crate) notes: BTreeMap<String, String>,
    #[opkit(
        min_items = 1,
        max_items = 8,
        list_set,
        items(
            min_length = 1,
            max_length = 63,
            pattern = "^[a-z]+$",
            format = "hostname",
            enum("a", "b"),
            rule("self != 'c'", message = "c is not a name")
        )
    )]
    pub(crate) names: Vec<String>,
    #[opkit(
        list_atomic,
        items(exclusive_min = 1, exclusive_max = 9, multiple_of = 2)
    )]
    pub(crate) numbers: Vec<i64>,
    #[opkit(items(min = 1, max = 9))]
    pub(crate) digits: Vec<i32>,
    #[opkit(items(min_properties = 1, max_properties = 3))]
    pub(crate) maps: Vec<BTreeMap<String, String>>,
    #[opkit(items(min_items = 1, max_items = 3))]
    pub(crate) matrix: Vec<Vec<String>>,
    #[opkit(items(type_ = "object", preserve_unknown_fields))]
    pub(crate) anything: Vec<Value>,
    #[opkit(items(embedded_resource))]
    pub(crate) manifests: Vec<Value>,
    #[opkit(items(int_or_string))]
    pub(crate) ports: Vec<Value>,
    pub(crate) color: Color,
    #[opkit(default = Color::Green)]
    pub(crate) shade: Color,
    #[opkit(enum(1, 2, 3))]
    pub(crate) level: Option<i32>,
    #[opkit(format = "date-time")]
    pub(crate) built: Option<String>,
    #[opkit(type_ = "string", format = "byte")]
    pub(crate) custom: Option<Value>,
    #[opkit(preserve_unknown_fields)]
    pub(crate) kept: Option<Part>,
    #[opkit(embedded_resource)]
    pub(crate) manifest: Option<Value>,
    pub(crate) port: Option<IntOrString>,
    #[opkit(int_or_string)]
    pub(crate) flexible: Option<Value>,
    pub(crate) size: Option<Quantity>,
    #[opkit(rule(
        "!oldSelf.hasValue() || self >= oldSelf.value()",
        message_expression = "self > 9 ? 'may not shrink' : 'must grow'",
        reason = FieldValueForbidden,
        optional_old_self
    ))]
    pub(crate) grows: Option<i32>,
    #[opkit(nullable)]
    pub(crate) absent: Option<String>,
    #[opkit(default = "x", example = "y")]
    pub(crate) letter: String,
    #[opkit(default = ["a", "b"])]
    pub(crate) letters: Vec<String>,
    #[opkit(schemaless, type_ = "object", preserve_unknown_fields)]
    pub(crate) schemaless: Option<Value>,
    #[opkit(immutable)]
    pub(crate) fixed: String,
    pub(crate) first: Option<String>,
    pub(crate) second: Option<String>,
    pub(crate) third: Option<String>,
    pub(crate) left: Option<String>,
    pub(crate) right: Option<String>,
    #[opkit(
        title = "Documented",
        external_docs(url = "https://example.com", description = "More.")
    )]
    pub(crate) documented: Option<String>,
    #[opkit(list_map = ["name", "size"], max_items = 16)]
    pub(crate) parts: Vec<Part>,
    #[opkit(struct_type = "atomic")]
    pub(crate) part: Option<Part>,
    pub(crate) name: Option<Name>,
    #[opkit(required)]
    pub(crate) hosts: Vec<Name>,
    pub(crate) power: Option<Power>,
    pub(crate) source: Option<Source>,
    #[opkit(rename = "kind")]
    pub(crate) other_kind: Option<String>,
    pub(crate) small: Option<u8>,
    pub(crate) on: bool,
}

/// Name has its limits on the type.
#[opkit::schema]
#[opkit(
    min_length = 2,
    max_length = 20,
    pattern = "^[a-z]+$",
    title = "A name"
)]
pub(crate) struct Name(pub(crate) String);

/// Color is an enum.
#[opkit::schema]
#[derive(Default)]
pub(crate) enum Color {
    #[default]
    Red,
    Green,
    #[opkit(other)]
    Other(String),
}

/// Part of the torture.
#[opkit::schema]
#[opkit(
    struct_type = "granular",
    min_properties = 1,
    max_properties = 5,
    external_docs(url = "https://example.com/part")
)]
pub(crate) struct Part {
    pub(crate) name: String,
    #[opkit(default = 1)]
    pub(crate) size: i32,
}

/// Loose keeps fields that it does not know.
#[opkit::schema]
#[opkit(preserve_unknown_fields)]
pub(crate) struct Loose {
    pub(crate) name: Option<String>,
}

/// Power is a union with a discriminator.
#[opkit::schema(union = "type")]
pub(crate) enum Power {
    Mains,
    Battery(Part),
    Solar(Loose),
}

/// Source is exactly one of its fields.
#[opkit::schema]
pub(crate) enum Source {
    Git(Part),
    Inline(Name),
}

/// TortureStatus is the observed state.
#[opkit::status]
pub(crate) struct TortureStatus {
    pub(crate) replicas: i32,
    pub(crate) selector: Option<String>,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Conditions,
}

/// Retired is a cluster-scoped kind.
#[opkit::kind(
    group = "torture.opkit.dev",
    version = "v1",
    cluster,
    plural = "retireds",
    deprecated
)]
#[derive(Default)]
pub(crate) struct RetiredSpec {
    pub(crate) name: String,
}

/// Parked is a kind that is no longer served. controller-gen refuses to print a CRD without a
/// served version, so this is not among those that are compared with it.
#[opkit::kind(
    group = "torture.opkit.dev",
    version = "v1",
    namespaced,
    plural = "parkeds",
    unserved
)]
#[derive(Default)]
pub(crate) struct ParkedSpec {
    pub(crate) name: String,
}

mod tests {
    use kube::CustomResourceExt;
    use kube::api::{Api, PostParams};
    use opkit::prelude::*;
    use serde_json::{Value, json};

    use super::{Color, Parked, Power, Retired, Source, Torture};

    fn operator() -> Operator {
        Operator::new("torture-operator")
            .crd::<Torture>()
            .crd::<Retired>()
    }

    fn valid() -> Value {
        json!({
            "image": "a", "color": "Red", "fixed": "a", "hosts": ["abc"], "on": true,
            "left": "l", "third": "t",
        })
    }

    #[test]
    fn an_unserved_version_is_stored_and_not_served() {
        let crd = serde_json::to_value(Parked::crd()).unwrap();
        let version = &crd["spec"]["versions"][0];
        assert_eq!(
            (&version["served"], &version["storage"]),
            (&json!(false), &json!(true))
        );
    }

    #[test]
    fn the_kinds_are_sound() -> opkit::Result {
        opkit::testing::check(&operator())
    }

    #[test]
    fn unions_have_one_field_for_each_alternative() {
        let check = |value: Value, shown: &str| {
            let power: Power = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(format!("{power:?}"), shown);
            assert_eq!(serde_json::to_value(power).unwrap(), value);
        };
        check(json!({"type": "Mains"}), "Mains");
        check(
            json!({"type": "Battery", "battery": {"name": "a", "size": 2}}),
            "Battery(Part { name: \"a\", size: 2 })",
        );
        let source = json!({"inline": "abc"});
        let read: Source = serde_json::from_value(source.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), source);
        let error = |value: Value| {
            serde_json::from_value::<Power>(value)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(json!({"type": "Battery"})), "missing field `battery`");
        assert_eq!(
            error(json!({"type": "Wind"})),
            "unknown variant `Wind`, expected one of `Mains`, `Battery`, `Solar`"
        );
        let error = |value: Value| {
            serde_json::from_value::<Source>(value)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(json!({})), "exactly one of git, inline must be set");
        let both = json!({"git": {"name": "a"}, "inline": "abc"});
        assert_eq!(error(both), "exactly one of git, inline must be set");
    }

    /// A union that an older operator reads although a newer CRD has more alternatives.
    #[opkit::schema(union = "type")]
    enum Signal {
        Off,
        Lamp(u8),
        #[opkit(other)]
        Other(Value),
    }

    /// Exactly one of its fields, or a field that is not known.
    #[opkit::schema]
    enum Target {
        Lamp(u8),
        Off,
        #[opkit(other)]
        Other(Value),
    }

    #[test]
    fn an_unknown_alternative_of_a_union_is_kept() {
        let read = |value: &Value| serde_json::from_value::<Signal>(value.clone()).unwrap();
        let radio = json!({"type": "Radio", "radio": {"channel": 3}});
        assert!(matches!(read(&radio), Signal::Other(value) if value == radio));
        assert_eq!(serde_json::to_value(read(&radio)).unwrap(), radio);
        assert!(matches!(read(&json!({"type": "Off"})), Signal::Off));
        assert!(matches!(
            read(&json!({"type": "Lamp", "lamp": 3})),
            Signal::Lamp(3)
        ));

        let read = |value: &Value| serde_json::from_value::<Target>(value.clone()).unwrap();
        let radio = json!({"radio": {"channel": 3}});
        assert_eq!(serde_json::to_value(read(&radio)).unwrap(), radio);
        for known in [json!({"lamp": 3}), json!({"off": {}})] {
            assert!(!matches!(read(&known), Target::Other(_)));
            assert_eq!(serde_json::to_value(read(&known)).unwrap(), known);
        }
    }

    #[test]
    fn an_unknown_value_of_an_enum_is_read() {
        let color: Color = serde_json::from_value(json!("Blue")).unwrap();
        assert_eq!(color, Color::Other("Blue".to_owned()));
        assert_eq!(serde_json::to_value(color).unwrap(), json!("Blue"));
        assert_eq!(
            serde_json::from_value::<Color>(json!("Red")).unwrap(),
            Color::Red
        );
    }

    /// The server accepts the CRDs, and enforces the limits of each field.
    #[opkit::test]
    async fn a_server_enforces_every_argument(plane: ControlPlane) -> opkit::Result {
        plane.install(&operator()).await?;
        let api: Api<Torture> = Api::default_namespaced(plane.client());
        let object = |name: &str, spec: Value| {
            json!({
                "apiVersion": "torture.opkit.dev/v1",
                "kind": "Torture",
                "metadata": {"name": name},
                "spec": spec,
            })
        };
        let typed = |object: Value| serde_json::from_value::<Torture>(object);
        let created = typed(object("one", valid()))?;
        let created = api.create(&PostParams::default(), &created).await?;
        assert_eq!(created.spec.replicas, 1);
        assert_eq!(created.spec.letters, ["a", "b"]);
        assert_eq!(created.spec.shade, Color::Green);

        for (field, value) in [
            ("image", json!("A")),
            ("replicas", json!(101)),
            ("open", json!(0)),
            ("open", json!(10)),
            ("step", json!(7)),
            ("ratio", json!(0.25)),
            ("labels", json!({})),
            ("notes", json!({"a": ""})),
            ("names", json!(["c"])),
            ("names", json!(["a", "a"])),
            ("numbers", json!([3])),
            ("digits", json!([0])),
            ("maps", json!([{}])),
            ("matrix", json!([[]])),
            ("manifests", json!([{"kind": "A"}])),
            ("ports", json!([true])),
            ("color", json!("Blue")),
            ("level", json!(4)),
            ("built", json!("yesterday")),
            ("custom", json!(1)),
            ("manifest", json!({"a": 1})),
            ("port", json!(true)),
            ("parts", json!([{"name": "a"}, {"name": "a"}])),
            ("name", json!("A")),
            ("hosts", json!(["A"])),
            ("power", json!({"type": "Battery"})),
            ("power", json!({"type": "Mains", "solar": {}})),
            ("source", json!({})),
            ("small", json!(256)),
            ("first", json!("a")),
        ] {
            let mut wrong = object("wrong", valid());
            wrong["spec"][field] = value.clone();
            let request = http::Request::post(format!(
                "/apis/torture.opkit.dev/v1/namespaces/{}/tortures",
                plane.namespace()
            ));
            let request = request.header("content-type", "application/json");
            let request = request.body(serde_json::to_vec(&wrong).map_err(Error::from)?)?;
            let refusal = plane.client().request::<Value>(request).await;
            let refusal = refusal.err().map(|error| error.to_string());
            let refusal = refusal.unwrap_or_default();
            assert!(
                refusal.contains(&format!("spec.{field}")),
                "{field} = {value}: {refusal:?}"
            );
        }
        for (change, message) in [
            (
                json!({"first": "x", "second": "y"}),
                "at most one of the fields in [first second]",
            ),
            (
                json!({"right": "r"}),
                "exactly one of the fields in [left right]",
            ),
            (
                json!({"third": null}),
                "at least one of the fields in [second third]",
            ),
        ] {
            let mut spec = valid();
            for (name, value) in change.as_object().into_iter().flatten() {
                match value.is_null() {
                    true => drop(spec.as_object_mut().map(|spec| spec.remove(name))),
                    false => spec[name] = value.clone(),
                }
            }
            let wrong = typed(object("wrong", spec))?;
            let refusal = api
                .create(&PostParams::default(), &wrong)
                .await
                .unwrap_err();
            assert!(refusal.to_string().contains(message), "{refusal}");
        }
        let long = typed(object(&"a".repeat(60), valid()))?;
        let refusal = api.create(&PostParams::default(), &long).await.unwrap_err();
        assert!(
            refusal.to_string().contains("the name is too long"),
            "{refusal}"
        );
        Ok(())
    }
}
