use serde_json::json;

use super::*;

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Robot", "plural": "robots", "shortNames": ["rb"]},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "additionalPrinterColumns": [{"name": "Ready"}, {"name": "Age"}],
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "description": "A robot. It <walks>.",
                        "required": ["spec"],
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
                            "spec": spec(),
                        },
                    }},
                },
                {
                    "name": "v1beta1", "served": true, "deprecated": true,
                    "deprecationWarning": "use v1",
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                },
                {"name": "v1alpha1", "served": false},
            ],
        },
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "description": "Desired state.",
        "required": ["image"],
        "x-kubernetes-validations": [{"rule": "self.size > 0 || true", "message": "size | any"}],
        "properties": {
            "image": {"type": "string", "description": "Image\nof it.", "pattern": "a|b", "maxLength": 255},
            "size": {"type": "integer", "format": "int32", "default": 1, "minimum": 0.0},
            "region": {"type": "string", "enum": ["Eu", "Us"], "default": ""},
            "port": {"x-kubernetes-int-or-string": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tools": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string"}},
                },
            },
        },
    })
}

#[test]
fn a_page_has_a_table_for_each_object() {
    let pages = reference(&[crd()]).unwrap();
    let expected = "\
# Robot

A robot. It &lt;walks>.

`example.com`, namespaced, plural `robots`, short `rb`

| version | | stored | columns of `kubectl get` |
|---|---|---|---|
| v1 | served | yes | Ready, Age |
| v1beta1 | deprecated: use v1 |  |  |
| v1alpha1 | not served |  |  |

## v1

| field | type | |
|---|---|---|
| `spec` | [object](#v1-spec), required | Desired state. |

### v1 .spec

Rule: size \\| any (`self.size > 0 || true`)

| field | type | |
|---|---|---|
| `image` | string, required | Image of it.<br>Maximum length: `255`.<br>Pattern: `a\\|b`. |
| `labels` | map of string |  |
| `port` | integer or string |  |
| `region` | string | Default: `\"\"`.<br>One of `Eu`, `Us`. |
| `size` | integer (int32) | Default: `1`.<br>Minimum: `0`. |
| `tools` | list of [object](#v1-spectools) | Unique by `name`. |

### v1 .spec.tools[*]

| field | type | |
|---|---|---|
| `name` | string, required |  |

## v1beta1
";
    assert_eq!(pages[1].path, "robots.example.com.md");
    assert_eq!(pages[1].text, expected);
}

#[test]
fn the_first_page_lists_all_kinds_by_name() {
    let mut arm = crd();
    arm["metadata"]["name"] = json!("arms.example.com");
    arm["spec"]["names"]["kind"] = json!("Arm");
    let pages = reference(&[crd(), arm]).unwrap();
    let paths: Vec<_> = pages.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(
        paths,
        ["README.md", "arms.example.com.md", "robots.example.com.md"]
    );
    let rows: Vec<_> = pages[0].text.lines().skip(4).collect();
    assert_eq!(
        rows,
        [
            "| [Arm](arms.example.com.md) | example.com | v1, v1beta1 | A robot. |",
            "| [Robot](robots.example.com.md) | example.com | v1, v1beta1 | A robot. |",
        ]
    );
    assert!(reference(&[json!({"kind": "Pod"})]).is_err());
}
