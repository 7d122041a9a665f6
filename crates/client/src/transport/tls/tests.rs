use std::fs;

use super::*;

/// Returns a self-signed certificate of `localhost`, in PEM and in DER.
fn certificate() -> (String, CertificateDer<'static>) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (signed.cert.pem(), signed.cert.der().clone())
}

#[tokio::test(start_paused = true)]
async fn certificate_authorities_in_a_file_rotate() {
    let (old, new) = (certificate(), certificate());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &old.0).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let path = file.path().to_owned();
    let authorities = Authorities::new(&read(&path).unwrap(), Some(path), provider).unwrap();
    let accepts = |certificate: &CertificateDer<'_>| {
        let name = ServerName::try_from("localhost").unwrap();
        let verified =
            authorities.verify_server_cert(certificate, &[], &name, &[], UnixTime::now());
        verified.is_ok()
    };
    assert!(accepts(&old.1) && !accepts(&new.1));
    fs::write(file.path(), &new.0).unwrap();
    tokio::time::advance(READ_AFTER - Duration::from_secs(1)).await;
    assert!(accepts(&old.1) && !accepts(&new.1));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(accepts(&new.1) && !accepts(&old.1));
    // A file without a certificate leaves the last authorities.
    fs::write(file.path(), "").unwrap();
    tokio::time::advance(READ_AFTER).await;
    assert!(accepts(&new.1) && !accepts(&old.1));
}
