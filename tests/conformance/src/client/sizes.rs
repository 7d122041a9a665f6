//! Size limits of objects.

use k8s_openapi::api::rbac::v1::Role;
use opkit::client::Patch;

use super::*;

/// Returns a role, which has no size limit of its own, unlike a config map.
fn role(length: usize) -> Role {
    let rule = json!({"apiGroups": [""], "resources": ["x".repeat(length)], "verbs": ["get"]});
    serde_json::from_value(json!({"metadata": {"name": "long"}, "rules": [rule]})).unwrap()
}

#[opkit::test]
async fn the_size_of_an_object_is_limited(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let error = client.create(&role(1_600_000)).await.unwrap_err();
    let status = error.status().unwrap();
    assert_eq!(status.code, 500, "{error}");
    assert_eq!(status.message, "etcdserver: request is too large");
    client.create(&role(800_000)).await?;
    Ok(())
}

#[opkit::test]
async fn the_result_of_a_patch_is_limited(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let stored = client.create(&role(800_000)).await?;
    let copy = json!({"op": "copy", "from": "/rules/0", "path": "/rules/-"});
    for (copies, code) in [(1, 500), (300, 422)] {
        let patch = json!(vec![copy.clone(); copies]);
        let patched = client.patch::<Role>("long", Patch::Json(&patch)).await;
        let error = patched.unwrap_err();
        assert_eq!(error.status().unwrap().code, code, "{copies}: {error}");
    }
    assert_eq!(client.get::<Role>("long").await?, stored);
    Ok(())
}
