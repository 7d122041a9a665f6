//! exec, attach and port-forward, as far as an API server without kubelets responds.

use k8s_openapi::api::core::v1::Pod;
use opkit::client::{Api, AttachParams, ClientOptions, ClusterSelection};
use opkit::prelude::*;

/// Returns the code with which the server refuses the request instead of upgrading it.
fn refused<T>(request: &str, result: kube::Result<T>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{request}: {error}"),
        Ok(_) => panic!("{request}: connected"),
    }
}

/// Checks that each request for streams of a pod that does not exist is refused with this code.
async fn check(client: kube::Client, namespace: &str, code: u16) {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let params = AttachParams::default().stdin(true);
    let exec = pods.exec("no-such-pod", ["true"], &params).await;
    assert_eq!(refused("exec", exec), code);
    let attach = pods.attach("no-such-pod", &params).await;
    assert_eq!(refused("attach", attach), code);
    let forward = pods.portforward("no-such-pod", &[80]).await;
    assert_eq!(refused("portforward", forward), code);
}

#[opkit::test]
async fn streams_need_a_pod_and_a_permission(plane: ControlPlane) -> opkit::Result {
    check(plane.client(), plane.namespace(), 404).await;
    // As an operator connects: over TLS, with credentials, and with HTTP/1.1 for the upgrade.
    let kubeconfig = plane.listen("127.0.0.1:0".parse()?).await?;
    let path = std::env::temp_dir().join(format!("opkit-{}-streams", std::process::id()));
    std::fs::write(&path, kubeconfig)?;
    let mut selection = ClusterSelection::default();
    selection.kubeconfig = Some(path.clone());
    let cluster = selection.connect(ClientOptions::default()).await?;
    check(cluster.client, plane.namespace(), 404).await;
    selection.impersonate_user = Some("jane".into());
    let cluster = selection.connect(ClientOptions::default()).await?;
    check(cluster.client, plane.namespace(), 403).await;
    std::fs::remove_file(path)?;
    Ok(())
}
