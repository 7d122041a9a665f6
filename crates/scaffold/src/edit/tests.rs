use super::*;
use crate::{AddApi, Dependency, NewProject, golden};

fn project() -> Tree {
    let opkit = Dependency::Version("0.1".into());
    NewProject::new("robot-operator", opkit, 2026)
        .tree()
        .unwrap()
}

#[test]
fn switches_are_changed() {
    let edit = Edit {
        namespaced: Some(true),
        domain: Some("example.com".into()),
        image: Some("registry.example.com:5000/team/robot".into()),
    };
    let (before, outcome) = (project(), edit.apply(&project()).unwrap());
    golden::check("edit.diff", &outcome.changes.diff());
    let after = golden::after(&before, &outcome);
    golden::check_format(&after);
    assert!(edit.apply(&after).unwrap().changes.is_empty());
    assert!(Edit::default().apply(&before).unwrap().changes.is_empty());
}

#[test]
fn an_operator_of_one_namespace_has_no_cluster_scoped_kind() {
    let mut api = AddApi::new("Planet");
    api.cluster_scoped = true;
    let edit = Edit {
        namespaced: Some(true),
        ..Edit::default()
    };
    let (before, outcome) = (project(), api.apply(&project()).unwrap());
    let error = edit.apply(&golden::after(&before, &outcome)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("objects of the kind Planet are in no namespace")
    );
    let namespaced = golden::after(&before, &edit.apply(&before).unwrap());
    let error = api.apply(&namespaced).unwrap_err().to_string();
    assert!(error.starts_with("--cluster-scoped \"Planet\": the operator watches one namespace"));
}

#[test]
fn values_that_are_not_valid() {
    for (image, expected) in [
        ("robot:v1", "the tag is the version of the package"),
        ("Robot", "an image is lower-case letters"),
        ("", "an image is lower-case letters"),
        ("a/", "an image is lower-case letters"),
    ] {
        let edit = Edit {
            image: Some(image.into()),
            ..Edit::default()
        };
        let error = edit.apply(&project()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
