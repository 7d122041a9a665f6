use serde_json::{Value, json};

use super::*;
use crate::golden::check_format;
use crate::{Tree, golden};

/// Returns a CRD whose spec has these fields.
fn crd(properties: Value, required: &[&str]) -> Value {
    json!({
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Robot", "plural": "robots", "singular": "robot"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "required": ["spec"],
                "properties": {"spec": {
                    "type": "object", "properties": properties, "required": required,
                }},
            }}}],
        },
    })
}

/// Generates the types of fields of a spec. Returns what follows the attribute of the kind.
fn generate(properties: Value, required: &[&str]) -> (String, Vec<String>) {
    let crd = crd(properties, required);
    let types = CrdTypes::new(&crd).generate().unwrap();
    let mut tree = Tree::default();
    tree.insert("src/robot.rs", &types.source);
    check_format(&tree);
    let (_, code) = types.source.split_once("namespaced)]\n").unwrap();
    (code.to_owned(), types.notes)
}

/// Checks the types of fields of a spec.
fn check(properties: Value, required: &[&str], expected: &str) {
    let (code, notes) = generate(properties, required);
    assert_eq!(code, expected);
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn a_field_is_an_option_unless_it_is_required_or_has_a_default_or_is_a_collection() {
    check(
        json!({
            "a": {"type": "string", "description": "Text."},
            "b": {"type": "integer", "format": "int32"},
            "c": {"type": "boolean", "default": true},
            "d": {"type": "array", "items": {"type": "string"}},
            "e": {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}},
            "f": {"type": "string", "nullable": true},
        }),
        &["b", "e"],
        "\
pub struct RobotSpec {
    /// Text.
    pub a: Option<String>,
    pub b: i32,
    #[opkit(default = true)]
    pub c: bool,
    pub d: Vec<String>,
    #[opkit(required)]
    pub e: BTreeMap<String, i64>,
    #[opkit(nullable)]
    pub f: Option<String>,
}
",
    );
}

#[test]
fn names_of_fields_are_those_of_rust() {
    check(
        json!({
            "_private": {"type": "string"},
            "apiURL": {"type": "string"},
            "clusterIPs": {"type": "array", "items": {"type": "string"}},
            "fooBar": {"type": "string"},
            "foo-bar": {"type": "string"},
            "type": {"type": "string"},
        }),
        &[],
        "\
pub struct RobotSpec {
    #[opkit(rename = \"_private\")]
    pub private: Option<String>,
    #[opkit(rename = \"apiURL\")]
    pub api_url: Option<String>,
    #[opkit(rename = \"clusterIPs\")]
    pub cluster_ips: Vec<String>,
    #[opkit(rename = \"foo-bar\")]
    pub foo_bar: Option<String>,
    #[opkit(rename = \"fooBar\")]
    pub foo_bar_2: Option<String>,
    pub type_: Option<String>,
}
",
    );
}

#[test]
fn an_enum_has_the_case_of_its_values_or_their_names() {
    check(
        json!({
            "a": {"type": "string", "enum": ["always", "never"], "default": "never"},
            "b": {"type": "string", "enum": ["TCP", "1.2", ""]},
        }),
        &[],
        "\
pub struct RobotSpec {
    #[opkit(default = RobotA::Never)]
    pub a: RobotA,
    pub b: Option<RobotB>,
}

#[opkit::schema]
#[opkit(rename_all = \"lowercase\")]
pub enum RobotA {
    Always,
    Never,
}

#[opkit::schema]
pub enum RobotB {
    TCP,
    #[opkit(rename = \"1.2\")]
    V12,
    #[opkit(rename = \"\")]
    Empty,
}
",
    );
}

#[test]
fn equal_types_are_one_type() {
    let reference = |description: &str| {
        json!({
            "type": "object", "description": description, "required": ["name"],
            "properties": {"name": {"type": "string"}},
        })
    };
    let nested = json!({"type": "object", "properties": {"secretRef": reference("Third.")}});
    check(
        json!({
            "backup": nested,
            "keys": {"type": "array", "items": reference("Second.")},
            "secretRef": reference("First."),
        }),
        &[],
        "\
pub struct RobotSpec {
    pub backup: Option<RobotBackup>,
    pub keys: Vec<RobotKey>,
    /// First.
    pub secret_ref: Option<RobotSecretRef>,
}

#[opkit::schema]
pub struct RobotSecretRef {
    pub name: String,
}

#[opkit::schema]
pub struct RobotBackup {
    /// Third.
    pub secret_ref: Option<RobotSecretRef>,
}

/// Second.
#[opkit::schema]
pub struct RobotKey {
    pub name: String,
}
",
    );
}

#[test]
fn a_union_is_an_enum_if_a_rule_is_about_all_fields() {
    let source = |rules: Value| {
        json!({"source": {
            "type": "object",
            "properties": {
                "git": {"type": "object", "properties": {"url": {"type": "string"}}},
                "inline": {"type": "string", "maxLength": 9},
            },
            "x-kubernetes-validations": rules,
        }})
    };
    let one_of = "[has(self.git),has(self.inline)].filter(x,x==true).size() == 1";
    let message = "exactly one of the fields in [git inline] must be set";
    check(
        source(json!([{"rule": one_of, "message": message}])),
        &[],
        "\
pub struct RobotSpec {
    pub source: Option<RobotSource>,
}

#[opkit::schema]
pub struct RobotSourceGit {
    pub url: Option<String>,
}

#[opkit::schema]
#[opkit(max_length = 9)]
pub struct RobotSourceInline(pub String);

#[opkit::schema]
pub enum RobotSource {
    Git(RobotSourceGit),
    Inline(RobotSourceInline),
}
",
    );
    let one = json!([{"rule": "has(self.git)"}]);
    let (code, _) = generate(source(one), &[]);
    assert!(code.contains("pub struct RobotSource {"), "{code}");
    assert!(code.contains("rule(\"has(self.git)\")"), "{code}");
}

#[test]
fn a_discriminated_union_has_a_rule_for_each_field() {
    let filter = |rules: &[&str]| {
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
        json!({"filter": {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {"type": "string", "enum": ["None", "Mirror"]},
                "mirror": {"type": "object", "properties": {"port": {"type": "integer", "format": "int32"}}},
            },
            "x-kubernetes-validations": rules,
        }})
    };
    let union = "#[opkit::schema(union = \"type\")]\npub enum RobotFilter {\n    None,\n    Mirror(RobotFilterMirror),\n}\n";
    for rules in [
        &["(self.type == 'Mirror') == has(self.mirror)"][..],
        &["self.type == 'Mirror' ? has(self.mirror) : !has(self.mirror)"],
        &[
            "!(has(self.mirror) && self.type != 'Mirror')",
            "!(!has(self.mirror) && self.type == 'Mirror')",
        ],
    ] {
        let (code, _) = generate(filter(rules), &[]);
        assert!(code.contains(union), "{rules:?}: {code}");
    }
    let half = ["!(has(self.mirror) && self.type != 'Mirror')"];
    let (code, _) = generate(filter(&half), &[]);
    assert!(code.contains("pub struct RobotFilter {"), "{code}");
}

#[test]
fn other_rules_for_the_alternatives_are_notes() {
    let notes = |rule: Value| {
        let (_, notes) = generate(
            json!({"filter": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"type": "string", "enum": ["None", "Mirror"], "description": "Type."},
                    "mirror": {"type": "object"},
                },
                "x-kubernetes-validations": [rule],
            }}),
            &[],
        );
        notes
    };
    let tag = ".spec.filter.type: the keyword description is left out";
    let rules = ".spec.filter: the rules of the alternatives have another form";
    let own = json!({
        "rule": "(self.type == 'Mirror') == has(self.mirror)",
        "message": "mirror must be set if type is Mirror, and only then",
        "fieldPath": ".mirror",
    });
    assert_eq!(notes(own), [tag]);
    let other = json!({"rule": "self.type == 'Mirror' ? has(self.mirror) : !has(self.mirror)"});
    assert_eq!(notes(other), [rules, tag]);
}

#[test]
fn the_format_of_an_item_without_one_is_a_note() {
    let (code, notes) = generate(
        json!({
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"type": "array", "items": {"type": "integer", "format": "int64"}},
        }),
        &[],
    );
    assert!(
        code.contains("pub a: Vec<i64>,\n    pub b: Vec<i64>,"),
        "{code}"
    );
    assert_eq!(notes, [".spec.a[*]: the format int64 is added"]);
}

#[test]
fn a_spec_without_a_description_does_not_get_that_of_the_object() {
    let mut crd = crd(json!({}), &[]);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("A robot.");
    let source = CrdTypes::new(&crd).generate().unwrap().source;
    assert!(
        source.contains("    description = \"A robot.\"\n)]\npub struct"),
        "{source}"
    );
    assert!(!source.contains("/// A robot."), "{source}");
}

#[test]
fn parts_that_the_attributes_do_not_have_are_notes() {
    let (code, notes) = generate(
        json!({
            "a": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"b": {"type": "string"}}},
            "c": {"type": "string", "format": "date-time", "default": "2026-01-02T03:04:05Z"},
            "d": {"type": "string", "not": {"enum": ["x"]}},
        }),
        &[],
    );
    assert_eq!(
        notes,
        [
            ".spec.a: the fields have no types, because unknown fields are kept",
            ".spec.c: the default is left out",
            ".spec.d: the keyword not is left out",
        ]
    );
    assert!(code.contains("pub a: Option<Value>,"), "{code}");
    let crd = crd(json!({"d": {"type": "string", "not": {}}}), &[]);
    let types = CrdTypes::new(&crd).generate().unwrap();
    let head = "//! The kind `Robot` of example.com/v1, generated from its CRD.\n//!\n//! Differences from the CRD:\n//! - `.spec.d`: the keyword not is left out\n\n";
    assert!(types.source.starts_with(head), "{}", types.source);
    assert!(GeneratedTypes::is_generated(&types.source));
    assert!(!GeneratedTypes::is_generated("//! The kind robot."));
}

#[test]
fn long_names_are_formatted() {
    let (one, two) = ("a".repeat(60), "b".repeat(35));
    let leaf = json!({"type": "object", "properties": {"c": {"type": "string"}}});
    let list = json!({"type": "array", "items": leaf});
    let inner =
        json!({"type": "object", "properties": {two.clone(): leaf, format!("{two}s"): list}});
    let enumeration = json!({"type": "string", "enum": ["A", "B"]});
    let other = json!({"type": "object", "properties": {two: enumeration}});
    generate(json!({one.clone(): inner, format!("{one}b"): other}), &[]);
}

#[test]
fn code_in_a_description_is_no_test_of_the_documentation() {
    let (code, _) = generate(
        json!({"a": {"type": "string", "description": "An example:\n\n    a: 1\n\n```\nb: 2\n```\nand\n```yaml\nc: 3"}}),
        &[],
    );
    let expected = "    /// An example:\n    ///\n    ///    a: 1\n    ///\n    /// ```text\n    /// b: 2\n    /// ```\n    /// and\n    /// ```yaml\n    /// c: 3\n    /// ```\n";
    assert!(code.contains(expected), "{code}");
}

#[test]
fn objects_without_a_spec_are_a_type_for_clients() {
    let mut crd = crd(json!({}), &[]);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"}, "name": {"type": "string"},
        },
    });
    let types = CrdTypes::new(&crd).generate().unwrap();
    let mut tree = Tree::default();
    tree.insert("src/robot.rs", &types.source);
    check_format(&tree);
    golden::check("types-object.rs.txt", &types.source);
}

#[test]
fn a_version_is_chosen_by_its_name() {
    let mut crd = crd(json!({"a": {"type": "string"}}), &[]);
    let mut old = crd["spec"]["versions"][0].clone();
    (old["name"], old["storage"]) = (json!("v1alpha1"), json!(false));
    crd["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .insert(0, old);
    assert_eq!(CrdTypes::new(&crd).generate().unwrap().version, "v1");
    let old = CrdTypes::new(&crd).version("v1alpha1").generate().unwrap();
    assert!(old.source.contains("version = \"v1alpha1\""));
    let missing = CrdTypes::new(&crd).version("v2").generate().unwrap_err();
    assert_eq!(
        missing.to_string(),
        "robots.example.com: there is no version v2: it has v1alpha1, v1"
    );
}

#[test]
fn a_value_that_is_not_a_crd_is_refused() {
    let check = |crd: Value, expected: &str| {
        let error = CrdTypes::new(&crd).generate().unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(json!({}), "the CRD: .kind is not CustomResourceDefinition");
    let mut broken = crd(json!({}), &[]);
    broken["spec"]["versions"][0]["schema"] = json!({});
    check(broken, "robots.example.com: version v1 has no schema");
    let mut broken = crd(json!({}), &[]);
    broken["spec"]["versions"] = Value::Null;
    check(
        broken,
        "robots.example.com: .spec.versions is missing: a CRD of apiextensions.k8s.io/v1 has it",
    );
    let mut broken = crd(json!({}), &[]);
    broken["spec"]["names"]["kind"] = json!("String");
    check(
        broken,
        "robots.example.com: the kind String has the name of a type that the code needs",
    );
}
