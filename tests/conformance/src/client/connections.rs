//! Kubeconfigs and the flags that select a cluster and a user.

use std::path::PathBuf;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, UserInfo};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use opkit::client::{Client, ClientOptions, ClusterSelection, ListOptions};
use opkit::prelude::*;
use serde_json::{Value, json};

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
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig)?;
    kubeconfig["users"][0]["user"] = json!({});
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

/// Creates a ServiceAccount and returns its name as a user, and a token.
async fn service_account(plane: &ControlPlane, name: &str) -> opkit::Result<(String, String)> {
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.to_owned());
    let namespace = plane.namespace();
    let api: kube::Api<ServiceAccount> = kube::Api::namespaced(plane.client(), namespace);
    api.create(&Default::default(), &account).await?;
    let request = TokenRequest::default();
    let request = api
        .create_token_request(name, &Default::default(), &request)
        .await?;
    let token = request
        .status
        .and_then(|status| status.token)
        .expect("a token");
    Ok((format!("system:serviceaccount:{namespace}:{name}"), token))
}

/// A kubeconfig whose user is replaced.
struct Rewritten {
    selection: ClusterSelection,
    path: PathBuf,
    /// File with the credentials of the user.
    file: PathBuf,
}

impl Rewritten {
    async fn new(
        plane: &ControlPlane,
        test: &str,
        user: impl FnOnce(&str) -> Value,
    ) -> opkit::Result<Self> {
        let (selection, path) = selection(plane, test).await?;
        let file = path.with_extension("credentials");
        let mut kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
        kubeconfig["users"][0]["user"] = user(file.to_str().expect("text"));
        std::fs::write(&path, kubeconfig.to_string())?;
        Ok(Self {
            selection,
            path,
            file,
        })
    }

    /// Returns the user that the server sees, or the error.
    async fn user(&self, client: &kube::Client) -> Result<Option<String>, String> {
        let user = user(client.clone()).await;
        user.map(|it| it.username)
            .map_err(|error| error.to_string())
    }
}

impl Drop for Rewritten {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.file);
    }
}

#[opkit::test]
async fn a_token_in_a_file_rotates(plane: ControlPlane) -> opkit::Result {
    let (one, two) = ("rotates-one", "rotates-two");
    let (one, first) = service_account(&plane, one).await?;
    let (two, second) = service_account(&plane, two).await?;
    let user = |file: &str| json!({"tokenFile": file});
    let rewritten = Rewritten::new(&plane, "file", user).await?;
    std::fs::write(&rewritten.file, first + "\n")?;
    let client = rewritten
        .selection
        .connect(ClientOptions::default())
        .await?
        .client;
    assert_eq!(rewritten.user(&client).await, Ok(Some(one)));
    // The server refuses this token, so the file is read again.
    std::fs::write(&rewritten.file, "wrong")?;
    let client = rewritten
        .selection
        .connect(ClientOptions::default())
        .await?
        .client;
    std::fs::write(&rewritten.file, second)?;
    let error = rewritten.user(&client).await.unwrap_err();
    assert!(error.contains("Unauthorized"), "{error}");
    assert_eq!(rewritten.user(&client).await, Ok(Some(two)));
    Ok(())
}

#[opkit::test]
async fn a_credential_plugin_is_asked_again_after_401(plane: ControlPlane) -> opkit::Result {
    let (name, token) = service_account(&plane, "plugin").await?;
    let version = "client.authentication.k8s.io/v1";
    let user = |file: &str| {
        json!({"exec": {
            "apiVersion": version, "command": "cat", "args": [file], "interactiveMode": "Never",
        }})
    };
    let rewritten = Rewritten::new(&plane, "plugin", user).await?;
    let print = |token: &str| {
        let credential = json!({
            "apiVersion": version, "kind": "ExecCredential", "status": {"token": token},
        });
        std::fs::write(&rewritten.file, credential.to_string())
    };
    print("wrong")?;
    let client = rewritten
        .selection
        .connect(ClientOptions::default())
        .await?
        .client;
    for _ in 0..2 {
        let error = rewritten.user(&client).await.unwrap_err();
        assert!(error.contains("Unauthorized"), "{error}");
    }
    print(&token)?;
    // The plugin ran after the last refusal, before the new token: refused once more.
    assert!(rewritten.user(&client).await.is_err());
    assert_eq!(rewritten.user(&client).await, Ok(Some(name)));
    Ok(())
}
