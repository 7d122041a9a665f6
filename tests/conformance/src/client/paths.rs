//! Requests reach the intended resource, whatever characters the names contain.

use k8s_openapi::api::rbac::v1::ClusterRole;
use opkit::client::RequestError;

use super::*;

#[opkit::test]
async fn a_name_reaches_the_server_unchanged(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    // Kubernetes accepts any path segment as the name of a role.
    let name = format!("system:{}:a b?c=d#\u{e9}+~", plane.namespace());
    let role: ClusterRole = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let role = client.create(&role).await?;
    assert_eq!(role.metadata.name.as_deref(), Some(name.as_str()));
    let read = client.get::<ClusterRole>(name.as_str()).await?;
    assert_eq!(read.metadata.uid, role.metadata.uid);
    client.delete(&role).await?;
    let after = client.get_opt::<ClusterRole>(name.as_str()).await?;
    assert!(after.is_none());
    Ok(())
}

#[opkit::test]
async fn a_namespace_cannot_change_the_path(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    client.create(&map("kept")).await?;
    let evil = format!("{}/configmaps/kept?", plane.namespace());
    let delete = DeleteOptions::default();
    let error = client
        .delete_with::<ConfigMap>((evil.as_str(), "x"), &delete)
        .await
        .unwrap_err();
    assert!(matches!(error, RequestError::Build { .. }), "{error}");
    client.get::<ConfigMap>("kept").await?;
    Ok(())
}
