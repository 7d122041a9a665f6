use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation, JSON,
    JSONSchemaProps,
};
use opkit_manifests::Part;
use serde_json::{Value, json};

use super::*;

/// Returns the YAML of a model that has only these CRDs.
fn crds_yaml(crds: &[CustomResourceDefinition]) -> String {
    let mut model = Model::new("test", "1.0.0", "test-system");
    for crd in crds {
        model.add(Part::Crd, serde_json::to_value(crd).unwrap());
    }
    yaml(&model).unwrap()
}

/// Returns a CRD with texts that YAML 1.1, which kubectl reads, parses as another type if not
/// quoted.
fn tricky() -> CustomResourceDefinition {
    let texts = [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "null",
        "~",
        "1",
        "1.0",
        "0x1f",
        "012",
        "1e3",
        "true",
        "",
        " padded ",
        "a: b",
        "a #b",
        "- a",
        "{a}",
        "[a]",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "\"quoted\"",
        "it's",
        "two\nlines",
        "ends with newline\n",
        "2026-01-01",
        "12:30:45",
        "\ttab",
        "ünïcödé",
        "=",
        "<<",
        ".inf",
        ".nan",
        "0o17",
        "1_000",
        "+1",
    ];
    let mut crd = CustomResourceDefinition::default();
    crd.spec.versions.push(CustomResourceDefinitionVersion {
        schema: Some(CustomResourceValidation {
            open_api_v3_schema: Some(JSONSchemaProps {
                description: Some("First: line\n\nSecond # line\n".to_owned()),
                enum_: Some(texts.iter().map(|text| JSON(json!(text))).collect()),
                ..Default::default()
            }),
        }),
        ..Default::default()
    });
    crd
}

#[test]
fn the_yaml_decodes_to_the_same_crd() {
    let crd = tricky();
    let yaml = crds_yaml(&[crd.clone(), crd.clone()]);
    let documents: Vec<_> = yaml
        .split("---\n")
        .filter(|part| !part.is_empty())
        .collect();
    assert_eq!(documents.len(), 2);
    let read: Value = serde_saphyr::from_str(documents[0]).unwrap();
    assert_eq!(read, serde_json::to_value(&crd).unwrap());
}

#[test]
fn words_that_yaml_1_1_parses_as_booleans_are_quoted() {
    let yaml = crds_yaml(&[tricky()]);
    let bare: Vec<_> = yaml
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
        .filter(|item| {
            [
                "yes", "no", "on", "off", "y", "n", "012", "1_000", "12:30:45", "=", "<<",
            ]
            .contains(item)
        })
        .collect();
    assert_eq!(bare, [""; 0]);
}
