use super::*;

/// Writes a new certificate for `name` and returns it.
fn write(directory: &Path, name: &str) -> CertificateDer<'static> {
    let generated = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    std::fs::write(directory.join("tls.crt"), generated.cert.pem()).unwrap();
    std::fs::write(
        directory.join("tls.key"),
        generated.signing_key.serialize_pem(),
    )
    .unwrap();
    generated.cert.der().clone()
}

fn current(certificates: &ServerCertificate) -> CertificateDer<'static> {
    certificates.current.read().cert[0].clone().into_owned()
}

#[test]
fn a_certificate_that_changes_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let first = write(directory.path(), "first");
    let certificates = ServerCertificate::read(directory.path()).unwrap();
    assert_eq!(current(&certificates), first);
    certificates.reload();
    assert_eq!(current(&certificates), first);

    // A change of one file of two is an error; the certificate stays.
    std::fs::write(directory.path().join("tls.crt"), "nothing").unwrap();
    certificates.reload();
    assert_eq!(current(&certificates), first);
    let second = write(directory.path(), "second");
    certificates.reload();
    assert_eq!(current(&certificates), second);
    std::fs::remove_file(directory.path().join("tls.key")).unwrap();
    certificates.reload();
    assert_eq!(current(&certificates), second);

    let mut registry = Registry::default();
    certificates.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains("certwatcher_read_certificate_total 5\n"),
        "{text}"
    );
    assert!(
        text.contains("certwatcher_read_certificate_errors_total 2\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn files_are_polled_every_10_seconds() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "first");
    let certificates = Arc::new(ServerCertificate::read(directory.path()).unwrap());
    let mut watch = tokio::task::JoinSet::new();
    watch.spawn(certificates.clone().watch());
    let second = write(directory.path(), "second");
    while current(&certificates) != second {
        tokio::time::advance(POLL_INTERVAL).await;
        tokio::task::yield_now().await;
    }
}

#[test]
fn errors_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        directory.path().join("tls.crt"),
        directory.path().join("tls.key"),
    );
    let check = |expected: String| {
        let error = ServerCertificate::read(directory.path()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(format!("cannot read {}", certificate.display()));
    write(directory.path(), "a");
    let other = rcgen::generate_simple_self_signed(["b".to_owned()]).unwrap();
    std::fs::write(&key, "").unwrap();
    check(format!("cannot read a private key from {}", key.display()));
    std::fs::write(&key, other.signing_key.serialize_pem()).unwrap();
    check(format!(
        "cannot use the certificate in {}",
        certificate.display()
    ));
    std::fs::write(&certificate, "").unwrap();
    check(format!(
        "cannot read a certificate from {}",
        certificate.display()
    ));
}

#[test]
fn a_self_signed_certificate_is_created() {
    let certificates = Arc::new(ServerCertificate::self_signed("metrics").unwrap());
    certificates.acceptor(false).unwrap();
    let mut registry = Registry::default();
    certificates.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert_eq!(text, "# EOF\n");
}
