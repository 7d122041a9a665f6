//! The HTTP stack, over TLS.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use opkit::client::{Client, ClientOptions, Effect, FieldValidation, Patch, Rule, Seam, Warnings};
use opkit::prelude::*;
use serde_json::json;

use super::{here, map};

/// Returns a client that connects as an operator does.
async fn connect(plane: &ControlPlane, options: ClientOptions) -> opkit::Result<Client> {
    let kubeconfig = plane.listen("127.0.0.1:0".parse()?).await?;
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig)?;
    let context = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &context).await?;
    Ok(Client::new(options.client(config)?).field_manager("conformance"))
}

/// Returns the value of the first metrics line with this prefix.
fn metric(text: &str, start: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(start));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no {start} in\n{text}"))
}

#[opkit::test]
async fn requests_are_counted_and_large_responses_compressed(plane: ControlPlane) -> opkit::Result {
    let options = ClientOptions::default();
    let metrics = options.metrics.clone();
    let client = connect(&plane, options).await?;
    for number in 0..4 {
        let mut map = map(&format!("large-{number}"));
        map.data = Some([("a".to_owned(), "large ".repeat(20_000))].into());
        client.create(&map).await?;
    }
    let created = metric(
        &metrics.encode(),
        r#"rest_client_requests_total{code="201",method="POST""#,
    );
    assert_eq!(created, 4.0);
    let list = client.list::<ConfigMap>(&here(&plane).labels("of")).await?;
    assert_eq!(list.items.len(), 4);
    assert_eq!(list.items[3].data.as_ref().unwrap()["a"].len(), 120_000);
    let received = metric(
        &metrics.encode(),
        r#"rest_client_response_size_bytes_sum{verb="GET""#,
    );
    assert!(received < 100_000.0, "{received} bytes for 480,000");
    Ok(())
}

#[opkit::test]
async fn a_warning_is_reported_once(plane: ControlPlane) -> opkit::Result {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let mut options = ClientOptions::default();
    options.warnings =
        Warnings::handled(move |warning| log.lock().unwrap().push(warning.text.clone()));
    let client = connect(&plane, options).await?;
    let client = client.field_validation(FieldValidation::Warn);
    client.create(&map("one")).await?;
    for value in 0..3 {
        let patch = json!({"nonsense": value});
        client
            .patch::<ConfigMap>("one", Patch::Merge(&patch))
            .await?;
    }
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [r#"unknown field "nonsense""#]);
    Ok(())
}

#[opkit::test]
async fn a_read_survives_a_broken_connection_and_a_write_does_not_repeat(
    plane: ControlPlane,
) -> opkit::Result {
    let seam = Seam::new();
    let mut options = ClientOptions::default();
    options.seam = Some(seam.layer());
    let client = connect(&plane, options).await?;
    client.create(&map("one")).await?;
    seam.forget();
    seam.add(Rule::new(Effect::DropResponse).verb("get").times(2));
    client.get::<ConfigMap>("one").await?;
    assert_eq!(seam.exchanges().len(), 3, "the read was repeated");
    seam.forget();
    seam.add(Rule::new(Effect::DropResponse).verb("create").times(1));
    assert!(
        client
            .create(&map("two"))
            .await
            .unwrap_err()
            .is_unreachable()
    );
    assert_eq!(seam.exchanges().len(), 1, "the write was not");
    assert!(client.get_opt::<ConfigMap>("two").await?.is_some());
    Ok(())
}

#[opkit::test]
async fn many_watches_do_not_block_a_read(plane: ControlPlane) -> opkit::Result {
    let client = connect(&plane, ClientOptions::default()).await?;
    client.create(&map("one")).await?;
    let list = client.list::<ConfigMap>(&here(&plane)).await?;
    let from = here(&plane).version(list.resource_version(), Default::default());
    // More streams than a server accepts on one connection.
    let mut watches = Vec::new();
    for _ in 0..130 {
        watches.push(client.watch::<ConfigMap>(&from).await?);
    }
    let read = client.get::<ConfigMap>("one");
    tokio::time::timeout(Duration::from_secs(10), read).await??;
    Ok(())
}
