use serde_json::Value;

use super::*;

#[test]
fn the_authority_is_added_to_webhooks_and_conversions() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().join("certs");
    let authority = write_certificate(&certificates, "a.b.svc").unwrap();
    for file in ["tls.crt", "tls.key"] {
        let text = fs::read_to_string(certificates.join(file)).unwrap();
        assert!(text.starts_with("-----BEGIN "), "{text}");
    }
    let webhooks = DevWebhooks {
        port: 7,
        certificates,
        authority,
    };
    let expected = json!(ByteString(webhooks.authority.clone().into_bytes()));
    let trusted = |object: Value, pointer: &str| {
        let mut object: Unstructured = serde_json::from_value(object).unwrap();
        webhooks.trust(&mut object);
        let object = serde_json::to_value(object).unwrap();
        assert_eq!(object.pointer(pointer), Some(&expected), "{object}");
    };
    let service = json!({"service": {"name": "a", "namespace": "b"}});
    let configuration = json!({"kind": "C", "webhooks": [{"clientConfig": service}]});
    trusted(configuration, "/webhooks/0/clientConfig/caBundle");
    let crd = json!({"spec": {"conversion": {"webhook": {"clientConfig": service}}}});
    trusted(crd, "/spec/conversion/webhook/clientConfig/caBundle");
    let flags = webhooks.arguments(&[]);
    assert_eq!(flags[..2], ["--webhook-port", "7"]);
    assert_eq!(flags[4..], ["--webhook-shutdown-delay", "0"]);
    let flags = webhooks.arguments(&["--webhook-shutdown-delay=2".into()]);
    assert_eq!(flags.len(), 4, "{flags:?}");
    webhooks.remove();
    assert!(!webhooks.certificates.exists());
}
