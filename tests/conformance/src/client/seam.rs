//! The seam on a real server.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;
use opkit::client::{Client, DeleteOptions, Effect, Rule, Seam};
use opkit::prelude::*;
use serde_json::json;

use super::{here, map};

#[opkit::test]
async fn a_lost_response_is_an_error_after_the_server_has_acted(
    plane: ControlPlane,
) -> opkit::Result {
    let seam = Seam::new();
    let client = Client::new(seam.wrap(plane.client()));
    seam.add(
        Rule::new(Effect::DropResponse)
            .verb("create")
            .resource("configmaps")
            .times(1),
    );
    let error = client.create(&map("one")).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(client.get_opt::<ConfigMap>("one").await?.is_some());

    seam.add(Rule::new(Effect::Refuse).verb("update"));
    assert!(
        client
            .update(&map("one"))
            .await
            .unwrap_err()
            .is_unreachable()
    );
    let status = Status::failure("busy", "TooManyRequests").with_code(429);
    seam.add(
        Rule::new(Effect::Fail(Box::new(status)))
            .verb("delete")
            .nth(1),
    );
    let options = DeleteOptions::default();
    let busy = client
        .delete_with::<ConfigMap>("one", &options)
        .await
        .unwrap_err();
    assert!(busy.is_too_many_requests(), "{busy}");
    client.delete_with::<ConfigMap>("one", &options).await?;

    let lines: Vec<String> = seam.exchanges().iter().map(|it| it.to_string()).collect();
    assert!(lines[0].starts_with("#1 create configmaps"), "{lines:?}");
    assert!(lines[4].ends_with("-> 200"), "{lines:?}");
    Ok(())
}

#[opkit::test]
async fn a_record_contains_no_secrets(plane: ControlPlane) -> opkit::Result {
    let seam = Seam::new();
    let kube = seam.wrap(plane.client());
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "one"}, "stringData": {"password": "open-sesame"},
    }))?;
    // Requests of kube's own types pass the seam as well.
    let api: Api<Secret> = Api::default_namespaced(kube.clone());
    api.create(&PostParams::default(), &secret).await?;
    let client = Client::new(kube);
    client.list::<Secret>(&here(&plane)).await?;
    let read: Secret = client.get("one").await?;
    assert_eq!(read.data.unwrap()["password"].0, b"open-sesame");
    let record = format!("{:?}", seam.exchanges());
    // Also in base64.
    for text in ["open-sesame", "b3Blbi1zZXNhbWU"] {
        assert!(!record.contains(text), "{record}");
    }
    assert!(record.contains("REDACTED"));
    Ok(())
}

#[opkit::test]
async fn a_plan_changes_nothing(plane: ControlPlane) -> opkit::Result {
    let real = Client::new(plane.client()).field_manager("conformance");
    real.create(&map("kept")).await?;
    real.create(&map("doomed")).await?;
    let seam = Seam::new();
    let client = Client::new(seam.wrap(plane.client())).field_manager("conformance");
    seam.start_plan();
    client.create(&map("new")).await?;
    client.apply(&map("applied")).await?;
    let mut kept: ConfigMap = client.get("kept").await?;
    kept.data = Some([("n".to_owned(), "9".to_owned())].into());
    client.update(&kept).await?;
    assert!(client.update(&kept).await.unwrap_err().is_conflict());
    client
        .delete_with::<ConfigMap>("doomed", &DeleteOptions::default())
        .await?;
    assert!(client.get_opt::<ConfigMap>("doomed").await?.is_none());
    assert!(
        client
            .create(&map("kept"))
            .await
            .unwrap_err()
            .is_already_exists()
    );
    let labelled = here(&plane).labels("of");
    let list = client.list::<ConfigMap>(&labelled).await?;
    let mut names: Vec<String> = list.into_iter().map(|map| map.name_any()).collect();
    names.sort();
    assert_eq!(names, ["applied", "kept", "new"]);

    let list = real.list::<ConfigMap>(&labelled).await?;
    let names: Vec<String> = list.items.iter().map(|map| map.name_any()).collect();
    assert_eq!(names, ["doomed", "kept"], "the server has not changed");
    assert_eq!(list.items[1].data.as_ref().unwrap()["n"], "0");
    let verbs: Vec<String> = seam
        .end_plan()
        .iter()
        .map(|it| it.info.verb.to_string())
        .collect();
    assert_eq!(verbs, ["create", "patch", "update", "delete"]);
    Ok(())
}
