//! Kubeconfigs and the flags that select a cluster and a user.

use std::path::PathBuf;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::api::core::v1::ConfigMap;
use opkit::client::{Client, ClientOptions, ClusterSelection, ListOptions};
use opkit::prelude::*;

/// Writes the kubeconfig of the control plane to a file, and returns a selection of the file.
async fn selection(plane: &ControlPlane, test: &str) -> opkit::Result<(ClusterSelection, PathBuf)> {
    let kubeconfig = plane.listen("127.0.0.1:0".parse()?).await?;
    let name = format!("opkit-{}-{test}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, kubeconfig)?;
    let mut selection = ClusterSelection::default();
    selection.kubeconfig = Some(path.clone());
    Ok((selection, path))
}

/// Returns the user as the server sees it.
async fn user(client: kube::Client) -> opkit::Result<UserInfo> {
    let api: kube::Api<SelfSubjectReview> = kube::Api::all(client);
    let review = api
        .create(&Default::default(), &SelfSubjectReview::default())
        .await?;
    Ok(review.status.and_then(|it| it.user_info).expect("a user"))
}

#[opkit::test]
async fn a_selected_user_is_impersonated(plane: ControlPlane) -> opkit::Result {
    let (mut selection, path) = selection(&plane, "as").await?;
    selection.impersonate_user = Some("jane".into());
    selection.impersonate_groups = vec!["staff".into()];
    selection.impersonate_uid = Some("7".into());
    let cluster = selection.connect(ClientOptions::default()).await?;
    let jane = user(cluster.client.clone()).await?;
    assert_eq!(jane.username.as_deref(), Some("jane"));
    assert_eq!(jane.uid.as_deref(), Some("7"));
    assert_eq!(
        jane.groups,
        Some(vec!["staff".into(), "system:authenticated".into()])
    );
    let client = Client::new(cluster.client);
    let error = client
        .list::<ConfigMap>(&ListOptions::new())
        .await
        .unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    std::fs::remove_file(path)?;
    Ok(())
}

#[opkit::test]
async fn a_token_is_sent_instead_of_the_credentials(plane: ControlPlane) -> opkit::Result {
    let (mut selection, path) = selection(&plane, "token").await?;
    // The user of the kubeconfig may have a client certificate, which precedes any token.
    let kubeconfig = std::fs::read_to_string(&path)?;
    let mut kubeconfig: serde_json::Value = serde_saphyr::from_str(&kubeconfig)?;
    kubeconfig["users"][0]["user"] = serde_json::json!({});
    std::fs::write(&path, kubeconfig.to_string())?;
    selection.token = Some("wrong".into());
    let cluster = selection.connect(ClientOptions::default()).await?;
    let client = Client::new(cluster.client);
    let error = client
        .list::<ConfigMap>(&ListOptions::new())
        .await
        .unwrap_err();
    assert_eq!(
        error.status().map(|status| status.code),
        Some(401),
        "{error}"
    );
    std::fs::remove_file(path)?;
    Ok(())
}
