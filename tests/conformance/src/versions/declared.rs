//! The CRD of several versions, and the checks of the conversions.

use kube::CustomResourceExt;
use opkit::testing::TestError;
use serde_json::{Value, json};

use super::operator;
use super::rover::{Rover, v1alpha1};

#[test]
fn one_crd_has_all_versions() {
    let crd = serde_json::to_value(&operator().crds()[0]).unwrap();
    let versions: Vec<Value> = crd["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            json!([
                version["name"],
                version["served"],
                version["storage"],
                version["deprecationWarning"],
            ])
        })
        .collect();
    assert_eq!(
        versions,
        [
            json!(["v1", true, false, null]),
            json!(["v1beta1", true, true, null]),
            json!([
                "v1alpha1",
                true,
                false,
                "fleet.opkit.dev/v1alpha1 Rover ends with 2.0: use v1"
            ]),
        ]
    );
    assert_eq!(crd["spec"]["versions"][2]["deprecated"], json!(true));
    let columns = &crd["spec"]["versions"][2]["additionalPrinterColumns"];
    assert_eq!(columns[0]["jsonPath"], ".spec.size");
    assert_eq!(
        crd["spec"]["conversion"],
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {
                "namespace": "rover-operator-system", "name": "rover-operator-webhook-service",
                "path": "/convert",
            }},
        }})
    );
    assert_eq!(v1alpha1::Rover::crd_name(), "rovers.fleet.opkit.dev");
    assert_eq!(v1alpha1::Rover::crd(), Rover::crd());
}

#[test]
fn the_conversions_lose_nothing() {
    opkit::testing::check(&operator()).unwrap();
}

/// A version whose conversions lose values without a declaration.
mod lossy {
    use opkit::prelude::*;

    #[opkit::kind(
        group = "fleet.opkit.dev",
        version = "v1",
        namespaced,
        versions(v1alpha1::Buggy)
    )]
    pub(crate) struct BuggySpec {
        pub port: u16,
        pub names: Vec<String>,
    }

    pub(crate) mod v1alpha1 {
        #[opkit::version(of = super::Buggy, version = "v1alpha1")]
        pub(crate) struct BuggySpec {
            #[opkit(changed_with(clamped, plain), min = 0, max = 100_000)]
            pub port: i32,
            pub names: Vec<String>,
        }

        fn clamped(port: i32) -> u16 {
            u16::try_from(port).unwrap_or(u16::MAX)
        }

        fn plain(port: u16) -> i32 {
            i32::from(port)
        }
    }

    pub(super) fn operator() -> Operator {
        Operator::new("buggy-operator").crd::<Buggy>()
    }
}

#[test]
fn a_conversion_that_loses_a_value_is_reported_with_the_smallest_object() {
    let error = opkit::testing::check(&lossy::operator()).unwrap_err();
    let Some(TestError::Unsound { report, .. }) = error.downcast_ref() else {
        panic!("{error}");
    };
    let lines: Vec<&str> = report.lines().collect();
    let [head, change] = lines.as_slice() else {
        panic!("{report}");
    };
    assert!(
        head.starts_with("Buggy v1alpha1 -> v1 -> v1alpha1 is not the identity (seed "),
        "{report}"
    );
    assert!(
        change.starts_with("   .spec.port  65536 -> 65535        changed_with(clamped, plain), "),
        "{report}"
    );
    assert!(change.contains("versions/declared.rs:"), "{report}");
}
