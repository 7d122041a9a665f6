use k8s_openapi::api::core::v1::ConfigMap;
use opkit_webhook::{Admission, Webhook};

use super::*;
use crate::Operator;
use crate::operator::RunOptions;

fn operator() -> Operator {
    let webhook = Webhook::<ConfigMap>::new()
        .defaulting(|_| {})
        .validating(|_, _| Admission::allowed());
    Operator::new("map-operator").webhook(webhook)
}

fn keeper(options: &RunOptions) -> KeeperOptions {
    operator()
        .own_certificates(options, "maps")
        .unwrap()
        .keeper()
}

#[test]
fn the_certificate_is_for_the_service_and_further_hosts() {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    let service = [
        "map-operator-webhook-service.maps.svc",
        "map-operator-webhook-service.maps.svc.cluster.local",
    ];
    assert_eq!(keeper(&options).names, service);
    options.own_certificates.hosts = vec!["127.0.0.1".to_owned(), "maps.example".to_owned()];
    let kept = keeper(&options);
    assert_eq!(kept.names[..2], service);
    assert_eq!(kept.names[2..], ["127.0.0.1", "maps.example"]);
    assert_eq!(kept.secret, "map-operator-webhook-certificates");

    options.own_certificates.namespace = Some("other".to_owned());
    options.own_certificates.secret = Some("certificates".to_owned());
    options.own_certificates.hosts.clear();
    let kept = keeper(&options);
    assert_eq!(kept.names[0], "map-operator-webhook-service.other.svc");
    assert_eq!(
        (kept.namespace.as_str(), kept.secret.as_str()),
        ("other", "certificates")
    );
}

/// The operator keeps, and may write, the configurations that it prints.
#[test]
fn renamed_configurations_are_printed_kept_and_permitted() {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    options.webhook_configuration_prefix = Some("blue".to_owned());
    let expected = [
        "blue-mutating-webhook-configuration",
        "blue-validating-webhook-configuration",
    ];
    let printed = operator().webhook_manifests(&options).unwrap();
    let printed: Vec<Value> = printed.configurations();
    let printed = printed.iter().map(|it| it["metadata"]["name"].as_str());
    assert!(printed.eq(expected.map(Some)));
    let kept = keeper(&options).targets;
    assert!(kept.iter().map(|it| it.name.as_str()).eq(expected));
    let rules = operator()
        .own_certificates(&options, "maps")
        .unwrap()
        .rules();
    let names = rules.iter().flat_map(|rule| &rule.names);
    assert!(names.eq(expected));
}

#[test]
fn a_host_is_an_address_or_a_dns_name() {
    for host in ["127.0.0.1", "::1", "maps.example", "localhost"] {
        assert_eq!(check_host(host), Ok(()), "{host}");
    }
    for host in ["", "https://maps", "maps:9443", "[::1]", "a b", "Maps"] {
        assert!(check_host(host).is_err(), "{host}");
    }
    let mut options = OwnCertificateOptions::default();
    assert!(options.check().is_ok());
    options.hosts = vec!["maps:9443".to_owned()];
    let error = options.check().unwrap_err().to_string();
    assert!(
        error.starts_with("the webhook host \"maps:9443\" is not valid: it is no IP address"),
        "{error}"
    );
    options.hosts.clear();
    options.secret = Some("Upper".to_owned());
    let error = options.check().unwrap_err().to_string();
    assert!(
        error.contains("the Secret of the webhook certificates"),
        "{error}"
    );
}
