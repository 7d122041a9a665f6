use std::cmp::Ordering;
use std::fmt::{Debug, Display};

use super::*;

fn check<T>(text: &str, expected: T)
where
    T: FromStr<Err = IdentityError> + Display + Debug + PartialEq,
{
    assert_eq!(expected.to_string(), text);
    assert_eq!(text.parse::<T>(), Ok(expected));
}

fn check_error<T: FromStr<Err = IdentityError> + Debug>(text: &str, expected: &str) {
    assert_eq!(text.parse::<T>().unwrap_err().to_string(), expected);
}

#[test]
fn texts_are_those_of_kubernetes() {
    check("v1", GroupVersion::new("", "v1"));
    check("apps/v1", GroupVersion::new("apps", "v1"));
    check("Pod", GroupKind::new("", "Pod"));
    check(
        "Role.rbac.authorization.k8s.io",
        GroupKind::new("rbac.authorization.k8s.io", "Role"),
    );
    check("pods", GroupResource::new("", "pods"));
    check(
        "deployments.apps",
        GroupResource::new("apps", "deployments"),
    );
    check("/v1, Kind=Pod", GroupVersionKind::new("", "v1", "Pod"));
    check(
        "apps/v1, Kind=Deployment",
        GroupVersionKind::new("apps", "v1", "Deployment"),
    );
    check(
        "/v1, Resource=pods",
        GroupVersionResource::new("", "v1", "pods"),
    );
}

#[test]
fn invalid_texts_are_rejected() {
    check_error::<GroupVersion>("", "\"\" is not a group and a version, such as \"apps/v1\"");
    check_error::<GroupVersion>(
        "a/b/c",
        "\"a/b/c\" is not a group and a version, such as \"apps/v1\"",
    );
    check_error::<GroupVersion>(
        "a/",
        "\"a/\" is not a group and a version, such as \"apps/v1\"",
    );
    check_error::<GroupKind>(
        ".apps",
        "\".apps\" is not a name and a group, such as \"deployments.apps\"",
    );
    check_error::<GroupVersionKind>(
        "apps/v1",
        "\"apps/v1\" is not a group, a version and a name, such as \"apps/v1, Kind=NAME\"",
    );
    check_error::<GroupVersionResource>(
        "apps/v1, Resource=",
        "\"apps/v1, Resource=\" is not a group, a version and a name, such as \"apps/v1, Resource=NAME\"",
    );
}

#[test]
fn versions_in_kubernetes_order() {
    let order = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
        "v1gamma1",
        "v1beta",
        "vbeta1",
    ];
    // The example of Kubernetes' documentation, and names that only look like versions.
    let mut sorted = order;
    sorted.sort_by(|left, right| compare_versions(right, left));
    assert_eq!(sorted[..10], order[..10]);
    assert_eq!(compare_versions("v1", "v1"), Ordering::Equal);
    assert_eq!(compare_versions("v1", "v1beta"), Ordering::Greater);
    assert_eq!(compare_versions("v+1", "v1alpha1"), Ordering::Less);
}

#[test]
fn verbs_have_the_same_name_in_json_and_in_text() {
    for verb in [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
    ] {
        assert_eq!(serde_json::json!(verb), serde_json::json!(verb.to_string()));
    }
    assert_eq!(Verb::DeleteCollection.to_string(), "deletecollection");
}
