//! Requests to the servers of an operator over the network.

use std::net::SocketAddr;

use http::{Request, header};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::client::Body;
use opkit::operator::{RunOptions, ServerAddresses};
use opkit::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Runs an operator of ConfigMaps while `test` sends requests to its servers.
async fn serve<T>(
    plane: &ControlPlane,
    operator: Operator,
    secure: Option<bool>,
    test: impl AsyncFnOnce(ServerAddresses) -> opkit::Result<T>,
) -> opkit::Result<T> {
    let reconcile =
        |_: Arc<ConfigMap>, _: Context| std::future::ready(Ok::<_, Error>(Action::await_change()));
    let operator = operator.controller(Controller::new(reconcile));
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    options.metrics_bind_address = Some(HERE);
    options.metrics_secure = secure;
    options.health_probe_bind_address = Some(HERE);
    let (mut ready, servers) = (options.ready.subscribe(), options.servers.clone());
    let stop = CancellationToken::new();
    let client = plane.operator_client(&operator, &options).await?;
    let run = operator.run_with(client, options, stop.clone());
    let (ran, tested) = tokio::join!(run, async {
        let _stop = stop.drop_guard();
        ready.wait_for(|ready| *ready).await?;
        let addresses = *servers.borrow();
        test(addresses).await
    });
    ran?;
    tested
}

/// Returns a client that accepts any certificate.
fn client(scheme: &str, address: SocketAddr) -> opkit::Result<kube::Client> {
    let mut config = kube::Config::new(format!("{scheme}://{address}").parse()?);
    config.accept_invalid_certs = true;
    Ok(opkit::client::ClientOptions::default().client(config)?)
}

/// Returns status and body of the response to a GET request.
async fn get(
    client: &kube::Client,
    path: &str,
    token: Option<&str>,
) -> opkit::Result<(u16, String)> {
    let mut request = Request::get(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = client.send(request.body(Body::empty())?).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await?;
    Ok((status, String::from_utf8(body.to_vec())?))
}

#[opkit::test]
async fn probes_and_metrics_are_served(plane: ControlPlane) -> opkit::Result {
    let backups = opkit::metrics::Counter::new("backups", "Backups", ["engine", "result"]);
    backups.with(["postgres", "ok"]).inc();
    let operator = Operator::new("servers")
        .metric(&backups)
        .health_check("good", || async { Ok::<_, Error>(()) })
        .ready_check("bad", || std::future::ready(Err(Error::msg("not yet"))));
    serve(&plane, operator, None, async |addresses| {
        let health = client("http", addresses.health.unwrap())?;
        let ok = (200, "ok".to_owned());
        assert_eq!(get(&health, "/healthz", None).await?, ok);
        let verbose = "[+]good ok\n[+]ping ok\nhealthz check passed\n";
        let (status, body) = get(&health, "/healthz?verbose", None).await?;
        assert_eq!((status, body.as_str()), (200, verbose));
        let (status, body) = get(&health, "/readyz", None).await?;
        let failed = "[-]bad failed: reason withheld\n[+]caches ok\n[+]ping ok\n\
                      healthz check failed\n";
        assert_eq!((status, body.as_str()), (500, failed));
        assert_eq!(get(&health, "/readyz/caches", None).await?, ok);
        assert_eq!(get(&health, "/readyz?exclude=bad", None).await?, ok);

        // Metrics on loopback need no protection.
        let metrics = client("http", addresses.metrics.unwrap())?;
        let (status, text) = get(&metrics, "/metrics", None).await?;
        assert_eq!(status, 200);
        for line in [
            r#"controller_runtime_max_concurrent_reconciles{controller="configmap"} 1"#,
            "# TYPE controller_runtime_reconcile_total counter",
            r#"workqueue_adds_total{name="configmap",controller="configmap"}"#,
            r#"opkit_cache_objects{group="",version="v1",kind="ConfigMap""#,
            r#"opkit_events_dropped_total{reason="full"} 0"#,
            "# TYPE process_cpu_seconds_total counter",
            r#"backups_total{engine="postgres",result="ok"} 1"#,
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
        assert!(!text.contains("# EOF"), "{text}");
        Ok(())
    })
    .await
}

#[opkit::test]
async fn protected_metrics_need_authentication(plane: ControlPlane) -> opkit::Result {
    let operator = Operator::new("servers");
    serve(&plane, operator, Some(true), async |addresses| {
        let metrics = client("https", addresses.metrics.unwrap())?;
        let refused = (401, "Unauthorized\n".to_owned());
        assert_eq!(get(&metrics, "/metrics", None).await?, refused);
        let (status, _) = get(&metrics, "/metrics", Some("nobody")).await?;
        assert_eq!(status, 401);
        // A client without TLS gets no response.
        let plain = client("http", addresses.metrics.unwrap())?;
        assert!(get(&plain, "/metrics", None).await.is_err());
        Ok(())
    })
    .await
}

/// Creates a service account, and returns a token for it.
async fn token(plane: &ControlPlane, name: &str) -> opkit::Result<String> {
    let account = json!({"metadata": {"name": name}});
    plane
        .apply(serde_json::from_value::<ServiceAccount>(account)?)
        .await?;
    let path = format!(
        "/api/v1/namespaces/{}/serviceaccounts/{name}/token",
        plane.namespace()
    );
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(serde_json::to_vec(&body)?)?;
    let response: serde_json::Value = plane.client().request(request).await?;
    Ok(response["status"]["token"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

#[opkit::test]
async fn protected_metrics_need_authorization(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Tokens)?;
    // Cluster roles are shared with other tests.
    let role = format!("metrics-reader-{}", plane.namespace());
    let stranger = token(&plane, "stranger").await?;
    let reader = token(&plane, "reader").await?;
    plane
        .apply(serde_json::from_value::<ClusterRole>(json!({
            "metadata": {"name": role},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }))?)
        .await?;
    plane
        .apply(serde_json::from_value::<ClusterRoleBinding>(json!({
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [
                {"kind": "ServiceAccount", "name": "reader", "namespace": plane.namespace()},
            ],
        }))?)
        .await?;
    let tested = serve(
        &plane,
        Operator::new("servers"),
        Some(true),
        async |addresses| {
            let metrics = client("https", addresses.metrics.unwrap())?;
            assert_eq!(get(&metrics, "/metrics", None).await?.0, 401);
            assert_eq!(get(&metrics, "/metrics", Some("nobody")).await?.0, 401);
            let (status, body) = get(&metrics, "/metrics", Some(&stranger)).await?;
            let user = format!("system:serviceaccount:{}:stranger", plane.namespace());
            let denied = format!("Authorization denied for user {user}\n");
            assert_eq!((status, body), (403, denied));
            // New rules take a moment to take effect, and a refusal is cached for 30 s.
            let mut response = get(&metrics, "/metrics", Some(&reader)).await?;
            for _ in 0..70 {
                if response.0 == 200 {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                response = get(&metrics, "/metrics", Some(&reader)).await?;
            }
            assert_eq!(response.0, 200, "{}", response.1);
            assert!(
                response.1.contains("controller_runtime_reconcile_total"),
                "{}",
                response.1
            );
            // The permission is for one path only.
            assert_eq!(get(&metrics, "/other", Some(&reader)).await?.0, 403);
            Ok(())
        },
    )
    .await;
    plane.delete::<ClusterRoleBinding>(role.as_str()).await?;
    plane.delete::<ClusterRole>(role.as_str()).await?;
    tested
}

#[opkit::test]
async fn an_address_in_use_is_an_error_before_anything_starts(
    plane: ControlPlane,
) -> opkit::Result {
    let taken = std::net::TcpListener::bind(HERE)?;
    let mut options = RunOptions::default();
    options.health_probe_bind_address = Some(taken.local_addr()?);
    let stop = CancellationToken::new();
    let run = Operator::new("servers").run_with(plane.client(), options, stop);
    let error = run.await.unwrap_err().to_string();
    let expected = format!(
        "cannot listen on {} for health probes: ",
        taken.local_addr()?
    );
    assert!(error.starts_with(&expected), "{error}");
    Ok(())
}
