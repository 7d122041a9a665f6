use http_body_util::BodyExt;

use super::*;

fn failing(reason: &'static str) -> impl Fn() -> BoxFuture<'static, Result<(), BoxError>> {
    move || std::future::ready(Err(reason.into())).boxed()
}

fn passing() -> std::future::Ready<Result<(), BoxError>> {
    std::future::ready(Ok(()))
}

/// Creates a server whose `respond` the tests call directly.
async fn server(healthz: Health) -> HealthServer {
    let mut options = HealthServerOptions::new(([127, 0, 0, 1], 0).into());
    options.healthz = healthz;
    HealthServer::listen(options).await.unwrap()
}

async fn get(server: &HealthServer, path: &str) -> (u16, String) {
    let request = http::Request::get(path).body(()).unwrap();
    let response = server.respond(&request.into_parts().0).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn responses_match_controller_runtime() {
    let good = server(Health::new().check("good", passing)).await;
    let bad = Health::new().check("good", passing);
    let bad = server(bad.check("bad", failing("no disk"))).await;
    let check = async |server: &HealthServer, path: &str, status: u16, body: &str| {
        assert_eq!(get(server, path).await, (status, body.to_owned()), "{path}");
    };
    check(&good, "/healthz", 200, "ok").await;
    check(&good, "/healthz/", 200, "ok").await;
    let all = "[+]good ok\n[+]ping ok\nhealthz check passed\n";
    check(&good, "/healthz?verbose", 200, all).await;
    check(&good, "/healthz?verbose=true", 200, all).await;
    check(&good, "/healthz/good", 200, "ok").await;
    check(&good, "/healthz/ping", 200, "ok").await;
    check(&good, "/healthz/none", 404, "404 page not found\n").await;
    check(&good, "/healthzx", 404, "404 page not found\n").await;
    check(&good, "/", 404, "404 page not found\n").await;
    check(&good, "/readyz", 200, "ok").await;
    check(&good, "/readyz/good", 404, "404 page not found\n").await;

    // A failure lists all checks; the reason is only at the path of the check.
    let failed = "[-]bad failed: reason withheld\n[+]good ok\n[+]ping ok\nhealthz check failed\n";
    check(&bad, "/healthz", 500, failed).await;
    let reason = "internal server error: no disk\n";
    check(&bad, "/healthz/bad", 500, reason).await;
    check(&bad, "/healthz?exclude=bad", 200, "ok").await;
    check(
        &bad,
        "/healthz?exclude=bad&verbose",
        200,
        "[+]bad excluded: ok\n[+]good ok\n[+]ping ok\nhealthz check passed\n",
    )
    .await;
    check(
        &bad,
        "/healthz?exclude=other&exclude=bad&exclude=one&verbose",
        200,
        "[+]bad excluded: ok\n[+]good ok\n[+]ping ok\n\
         warn: some health checks cannot be excluded: no matches for \"one\",\"other\"\n\
         healthz check passed\n",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_fails_after_the_timeout() {
    let hanging = || std::future::pending::<Result<(), BoxError>>();
    let server = server(Health::new().check("hanging", hanging)).await;
    let start = tokio::time::Instant::now();
    let (status, body) = get(&server, "/healthz/hanging").await;
    assert_eq!(status, 500);
    assert_eq!(body, "internal server error: no response within 5 s\n");
    assert_eq!(start.elapsed(), CHECK_TIMEOUT);
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let first = server(Health::new()).await;
    let options = HealthServerOptions::new(first.address());
    let error = HealthServer::listen(options).await.unwrap_err();
    let expected = format!("cannot listen on {} for health probes", first.address());
    assert_eq!(error.to_string(), expected);
}
