use super::*;

fn bundle() -> Bundle {
    Bundle {
        certificates: "one".to_owned(),
        is_complete: true,
    }
}

fn encoded() -> String {
    STANDARD.encode("one")
}

fn target(kind: TargetKind) -> BundleTarget {
    BundleTarget {
        kind,
        name: "shops".to_owned(),
    }
}

#[test]
fn every_webhook_of_a_configuration_gets_the_bundle() {
    let target = target(TargetKind::Validating);
    let service = json!({"name": "shop-webhook", "namespace": "shops"});
    let mut object = json!({"metadata": {"resourceVersion": "7"}, "webhooks": [
        {"name": "a.opkit.dev", "clientConfig": {"service": service, "caBundle": encoded()}},
        {"name": "b.opkit.dev", "clientConfig": {"service": service, "caBundle": "ZWRpdGVk"}},
    ]});
    let expected = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shops", "resourceVersion": "7"},
        "webhooks": [
            {"name": "a.opkit.dev", "clientConfig": {"caBundle": encoded()}},
            {"name": "b.opkit.dev", "clientConfig": {"caBundle": encoded()}},
        ],
    });
    assert_eq!(target.patch(&object, &bundle()), Some(expected));
    object["webhooks"][1]["clientConfig"]["caBundle"] = json!(encoded());
    assert_eq!(target.patch(&object, &bundle()), None);
    assert_eq!(target.patch(&json!({}), &bundle()), None);
    assert!(target.has_bundle(&object) && !target.has_bundle(&json!({})));
}

#[test]
fn a_crd_gets_the_bundle_if_it_has_a_conversion_webhook() {
    let target = target(TargetKind::CustomResourceDefinition);
    let crd = |conversion: Value| json!({"spec": {"conversion": conversion}});
    let webhook = json!({"clientConfig": {"service": {"name": "shop-webhook"}}});
    let with_webhook = crd(json!({"strategy": "Webhook", "webhook": webhook}));
    assert_eq!(
        target.patch(&with_webhook, &bundle()),
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "shops", "resourceVersion": null},
            "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": encoded()}}}},
        }))
    );
    assert_eq!(
        target.patch(&crd(json!({"strategy": "None"})), &bundle()),
        None
    );
    assert!(!target.has_bundle(&with_webhook));
    let mut same = with_webhook;
    same["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(encoded());
    assert_eq!(target.patch(&same, &bundle()), None);
    assert!(target.has_bundle(&same));
}

/// After the Secret was restored from memory, an authority may be in use that the Secret lacks.
#[test]
fn certificates_stay_in_an_incomplete_bundle() {
    let pem = |name| crate::issue::authority(name, 0, 9).unwrap().certificate;
    let (old, new) = (pem("old"), pem("new"));
    let mut bundle = Bundle {
        certificates: old.clone(),
        is_complete: false,
    };
    let both = format!("{old}{new}");
    assert_eq!(bundle.merged(&both), both);
    assert_eq!(bundle.merged(&format!("{new}{old}")), both);
    assert_eq!(bundle.merged("-----BEGIN X-----\n-----END X-----\n"), old);
    bundle.is_complete = true;
    assert_eq!(bundle.merged(&both), old);
}
