use std::fs;

use super::*;

/// Returns a self-signed certificate and its key.
fn pair() -> (String, String) {
    let signed = rcgen::generate_simple_self_signed(vec!["me".to_owned()]).unwrap();
    (signed.cert.pem(), signed.signing_key.serialize_pem())
}

fn certificate(identity: &Identity) -> Option<Vec<u8>> {
    let key = identity.state.lock().key.clone();
    key.map(|key| key.cert[0].to_vec())
}

fn der(pem: &str) -> Option<Vec<u8>> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    Some(der.to_vec())
}

/// Returns a user with these files.
fn user(folder: &tempfile::TempDir) -> AuthInfo {
    let path = |name: &str| Some(folder.path().join(name).to_str().unwrap().to_owned());
    AuthInfo {
        client_certificate: path("tls.crt"),
        client_key: path("tls.key"),
        ..AuthInfo::default()
    }
}

fn write(folder: &tempfile::TempDir, (certificate, key): &(String, String)) {
    fs::write(folder.path().join("tls.crt"), certificate).unwrap();
    fs::write(folder.path().join("tls.key"), key).unwrap();
}

#[tokio::test(start_paused = true)]
async fn files_that_rotate_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, newest) = (pair(), pair(), pair());
    write(&folder, &old);
    let identity = Identity::new(&user(&folder)).unwrap();
    assert!(identity.has_certs());
    assert_eq!(certificate(&identity), der(&old.0));

    // Only one of the files is new: the last pair stays in use.
    fs::write(folder.path().join("tls.crt"), &new.0).unwrap();
    tokio::time::advance(READ_AFTER).await;
    assert_eq!(identity.changes(), 0);
    assert_eq!(certificate(&identity), der(&old.0));

    write(&folder, &new);
    tokio::time::advance(READ_AFTER - Duration::from_secs(1)).await;
    assert_eq!(identity.changes(), 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(identity.changes(), 1);
    assert_eq!(certificate(&identity), der(&new.0));

    // Unchanged files are no change.
    tokio::time::advance(READ_AFTER).await;
    assert_eq!(identity.changes(), 1);
    // A new connection does not wait.
    write(&folder, &newest);
    let resolved = identity.resolve(&[], &[]).unwrap();
    assert_eq!(Some(resolved.cert[0].to_vec()), der(&newest.0));
    assert_eq!(identity.changes(), 2);
}

#[test]
fn texts_have_precedence_over_files() {
    let folder = tempfile::tempdir().unwrap();
    let (inline, file) = (pair(), pair());
    write(&folder, &file);
    let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let user = AuthInfo {
        client_certificate_data: Some(base64(&inline.0)),
        client_key_data: Some(base64(&inline.1).into()),
        ..user(&folder)
    };
    let identity = Identity::new(&user).unwrap();
    assert_eq!(certificate(&identity), der(&inline.0));
    assert!(!identity.has_files());
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |user: &AuthInfo, expected: &str| {
        let error = Identity::new(user).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let gone = format!(
        "cannot read the client certificate {}",
        folder.path().join("tls.crt").display()
    );
    check(&user(&folder), &gone);
    write(&folder, &("text".to_owned(), pair().1));
    check(
        &user(&folder),
        "the client certificate is not valid: there is no PEM",
    );
    write(&folder, &(pair().0, "text".to_owned()));
    check(
        &user(&folder),
        "the key of the client certificate is not valid: ",
    );
    write(&folder, &(pair().0, pair().1));
    check(
        &user(&folder),
        "the key of the client certificate is not valid: keys may not be consistent",
    );
    let user = AuthInfo {
        client_certificate: Some("tls.crt".to_owned()),
        ..AuthInfo::default()
    };
    check(&user, "the client certificate is not valid: it has no key");
}
