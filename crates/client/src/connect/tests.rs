use std::io::Write;

use super::*;

async fn message(content: &str) -> (PathBuf, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    let error = connect(Some(file.path())).await.err().unwrap();
    (file.path().to_owned(), error.to_string())
}

#[tokio::test]
async fn a_missing_kubeconfig_is_named() {
    let error = connect(Some(Path::new("/does/not/exist")))
        .await
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "cannot read the kubeconfig /does/not/exist"
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn a_broken_kubeconfig_is_named_in_one_line() {
    for content in [
        "{ not: [yaml",
        "apiVersion: v1\nkind: Config\n",
        "just text",
    ] {
        let (path, message) = message(content).await;
        let start = format!("cannot use the kubeconfig {}: ", path.display());
        assert!(message.starts_with(&start), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
