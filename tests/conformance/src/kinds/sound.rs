//! `opkit::testing::check` on the example operators, and on an operator with mistakes.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;
use opkit::webhook::{Admission, ValidatingPolicy, Webhook};

/// A kind whose mistakes only the check can find: the macros see one struct, and no costs.
#[opkit::kind(group = "sound.opkit.dev", version = "v1", namespaced)]
#[opkit(rule("self.node.size > 'a'"))]
pub(crate) struct WrongSpec {
    pub(crate) node: Node,
    #[opkit(items(rule("self.matches('^a+$')")))]
    pub(crate) names: Vec<String>,
}

/// A kind with a default that its own pattern forbids. API servers do not compile rules then.
#[opkit::kind(group = "sound.opkit.dev", version = "v1", namespaced)]
pub(crate) struct DefaultedSpec {
    #[opkit(default = "b", pattern = "^a$")]
    pub(crate) letter: String,
}

#[opkit::schema]
pub(crate) struct Node {
    pub(crate) size: i32,
}

#[test]
fn the_examples_are_sound() -> opkit::Result {
    for operator in [
        bucket_operator::operator(),
        catalog_operator::operator(),
        database_operator::operator(),
        demo_operator::operator(),
        namespace_operator::operator(),
        robot_operator::operator(),
        secret_operator::operator(),
        shop_operator::operator(),
    ] {
        opkit::testing::check(&operator)?;
    }
    Ok(())
}

#[test]
fn mistakes_are_found_with_their_fields() {
    let operator = Operator::new("wrong-operator")
        .crd::<Wrong>()
        .crd::<Defaulted>();
    let error = opkit::testing::check(&operator).unwrap_err().to_string();
    for expected in [
        "wrongs.sound.opkit.dev/v1 .spec: x-kubernetes-validations[0].rule: Invalid value",
        "found no matching overload for '_>_' applied to '(int, string)'",
        "wrongs.sound.opkit.dev/v1 .spec.names[*]: x-kubernetes-validations[0].rule: Forbidden",
        "defaulteds.sound.opkit.dev/v1 .spec.letter: default: Invalid value",
    ] {
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
}

#[test]
fn mistakes_in_webhooks_and_policies_are_found() {
    let policy = ValidatingPolicy::of::<ConfigMap>("small-maps")
        .validation("object.data.size() <", "too many entries");
    let webhook = Webhook::<ConfigMap>::new()
        .validating(|_, _| Admission::allowed())
        .match_condition("small", "request.name.startsWith(");
    let operator = Operator::new("wrong-operator")
        .webhook(webhook)
        .validating_policy(policy);
    let error = opkit::testing::check(&operator).unwrap_err().to_string();
    for expected in [
        "webhook validate.configmap.v1.core: webhooks[0].matchConditions[0].expression: Invalid",
        "ValidatingAdmissionPolicy small-maps: spec.validations[0].expression: Invalid",
    ] {
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
}
