//! `cx.fetch` and `cx.fetch_list`: kinds that are not cached, or only in part.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit::cache::InformerOptions;
use opkit::controller::UndeclaredReads;
use opkit::prelude::*;
use serde_json::json;

use super::{Rig, object, secret, seen};

/// Starts an operator that reconciles the config map `owner`. The Secret `token` exists.
async fn start(
    plane: &ControlPlane,
    declare: impl FnOnce(Operator, Controller<ConfigMap>) -> Operator,
) -> opkit::Result<Rig<ConfigMap>> {
    let owner = object(json!({"metadata": {"name": "owner"}}));
    plane.apply::<ConfigMap>(owner).await?;
    plane.apply(secret("token", &[("a", "1")])).await?;
    let namespaces = vec![plane.namespace().to_owned()];
    Rig::start_in(plane, namespaces, declare).await
}

/// Returns the verbs of the requests for Secrets since the last call.
fn verbs(rig: &Rig<ConfigMap>) -> Vec<String> {
    let exchanges = rig.seam.exchanges();
    rig.seam.forget();
    let secrets = exchanges.iter().map(|exchange| &exchange.info);
    let secrets = secrets.filter(|info| info.plural == "secrets");
    secrets.map(|info| info.verb.to_string()).collect()
}

fn names(secrets: &[Arc<Secret>]) -> Vec<String> {
    let mut names: Vec<_> = secrets.iter().map(|secret| secret.name_any()).collect();
    names.sort();
    names
}

#[opkit::test]
async fn each_read_of_an_uncached_kind_is_a_request(plane: ControlPlane) -> opkit::Result {
    let declare = |operator: Operator, controller: Controller<ConfigMap>| {
        operator.controller(controller.uncached::<Secret>())
    };
    let mut rig = start(&plane, declare).await?;
    let (_, cx) = rig.run().await?;
    assert_eq!(
        verbs(&rig),
        ["list"],
        "the check before the start, and no watch"
    );
    for _ in 0..3 {
        assert!(cx.fetch::<Secret>("token").await?.is_some());
    }
    assert!(cx.fetch::<Secret>("none").await?.is_none());
    assert_eq!(verbs(&rig), ["get"; 4]);
    plane.apply(secret("later", &[])).await?;
    assert_eq!(
        names(&cx.fetch_list::<Secret>(()).await?),
        ["later", "token"]
    );
    assert_eq!(verbs(&rig), ["list"]);

    let error = cx.get::<Secret>("token").unwrap_err().to_string();
    let want = "controller configmap does not cache the kind Secret, which it reads from the server: use .fetch(..).await or .fetch_list(..).await";
    assert_eq!(error, want);
    assert_eq!(cx.list::<Secret>(()).unwrap_err().to_string(), want);
    assert_eq!(verbs(&rig), [""; 0]);
    // A kind that is cached needs no request.
    let owner = cx.fetch::<ConfigMap>("owner").await?;
    assert!(owner.is_some_and(|owner| Some(owner) == cx.get("owner").unwrap()));
    rig.stop().await
}

#[opkit::test]
async fn what_a_partial_cache_does_not_have_is_read_from_the_server(
    plane: ControlPlane,
) -> opkit::Result {
    let options = InformerOptions::default().labels("cached=yes")?;
    let mut cached = secret("cached", &[]);
    cached.metadata.labels = Some([("cached".to_owned(), "yes".to_owned())].into());
    let cached = plane.apply(cached).await?;
    let declare = |operator: Operator, controller: Controller<ConfigMap>| {
        let controller = controller
            .watches::<Secret>(|_, _| Vec::new())
            .cached_or_live::<Secret>();
        operator.cache::<Secret>(options).controller(controller)
    };
    let mut rig = start(&plane, declare).await?;
    let (_, cx) = rig.run().await?;
    seen(&cx, &cached).await?;
    verbs(&rig);
    assert!(cx.fetch::<Secret>("cached").await?.is_some());
    assert_eq!(verbs(&rig), [""; 0]);
    for _ in 0..2 {
        assert!(cx.get::<Secret>("token")?.is_none());
        assert!(cx.fetch::<Secret>("token").await?.is_some());
    }
    assert_eq!(verbs(&rig), ["get"; 2]);
    assert_eq!(names(&cx.list::<Secret>(())?), ["cached"]);
    assert_eq!(
        names(&cx.fetch_list::<Secret>(()).await?),
        ["cached", "token"]
    );
    assert_eq!(verbs(&rig), ["list"]);
    rig.stop().await
}

async fn other(_: Arc<Secret>, _: Context) -> Result<Action> {
    Ok(Action::await_change())
}

#[opkit::test]
async fn the_cache_of_another_controller_is_read(plane: ControlPlane) -> opkit::Result {
    let declare = |operator: Operator, controller: Controller<ConfigMap>| {
        let operator = operator.cached_or_live::<Secret>();
        operator
            .controller(controller)
            .controller(Controller::new(other))
    };
    let mut rig = start(&plane, declare).await?;
    let (_, cx) = rig.run().await?;
    verbs(&rig);
    assert!(cx.fetch::<Secret>("token").await?.is_some());
    assert_eq!(names(&cx.fetch_list::<Secret>(()).await?), ["token"]);
    assert_eq!(verbs(&rig), [""; 0]);
    assert!(cx.fetch::<Secret>("none").await?.is_none());
    assert_eq!(verbs(&rig), ["get"]);
    // The cache has only the operator's namespace.
    let everywhere = Selection::default().all_namespaces();
    cx.fetch_list::<Secret>(everywhere).await?;
    assert_eq!(verbs(&rig), ["list"]);
    rig.stop().await
}

#[opkit::test]
async fn undeclared_kinds_are_refused_unless_the_operator_reads_them(
    plane: ControlPlane,
) -> opkit::Result {
    let refused = "controller configmap does not declare the kind Secret: declare it with .uncached::<Secret>() to read it from the server, with .owns::<Secret>() or .watches::<Secret>(..) to cache it";
    let cases = [
        (UndeclaredReads::Refused, false, Err(refused)),
        (
            UndeclaredReads::Uncached,
            false,
            Ok(["get", "list"].as_slice()),
        ),
        (
            UndeclaredReads::Uncached,
            true,
            Ok(["get", "list"].as_slice()),
        ),
        (
            UndeclaredReads::CachedOrLive,
            false,
            Ok(["get", "list"].as_slice()),
        ),
        (UndeclaredReads::CachedOrLive, true, Ok([].as_slice())),
    ];
    for (reads, is_cached, expected) in cases {
        let declare = |operator: Operator, controller: Controller<ConfigMap>| {
            let operator = operator.undeclared_reads(reads).controller(controller);
            match is_cached {
                true => operator.controller(Controller::new(other)),
                false => operator,
            }
        };
        let mut rig = start(&plane, declare).await?;
        let (_, cx) = rig.run().await?;
        verbs(&rig);
        let found = cx.fetch::<Secret>("token").await;
        let listed = cx.fetch_list::<Secret>(()).await;
        match expected {
            Ok(requests) => {
                assert!(found?.is_some());
                assert_eq!(names(&listed?), ["token"]);
                assert_eq!(verbs(&rig), requests, "{reads:?} {is_cached}");
            }
            Err(message) => {
                assert_eq!(found.unwrap_err().to_string(), message);
                assert_eq!(listed.unwrap_err().to_string(), message);
            }
        }
        rig.stop().await?;
    }
    Ok(())
}

/// Reads each Secret of the namespace, and one by its name.
async fn reading(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    if map.name_any() == "owner" {
        let token = cx.fetch::<Secret>("token").await?;
        let all = cx.fetch_list::<Secret>(()).await?;
        cx.event(
            Normal,
            "Read",
            format!("{} of {}", token.iter().len(), all.len()),
        );
    }
    Ok(Action::await_change())
}

fn reading_operator() -> Operator {
    let controller = Controller::new(reading).uncached::<Secret>();
    Operator::new("reading-operator").controller(controller)
}

/// Runs the operator with the roles that it prints.
async fn read(plane: &ControlPlane) -> opkit::Result {
    plane.apply(secret("token", &[])).await?;
    let owner = object(json!({"metadata": {"name": "owner"}}));
    plane.apply::<ConfigMap>(owner).await?;
    plane.start(reading_operator()).await?;
    plane.eventually_event::<ConfigMap>("owner", "Read").await?;
    Ok(())
}

#[opkit::test]
async fn the_printed_role_is_sufficient(plane: ControlPlane) -> opkit::Result {
    read(&plane).await
}

#[opkit::test]
async fn each_permission_of_the_printed_role_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    let rules = reading_operator().rules();
    let secrets = rules
        .iter()
        .filter(|rule| rule.resources.contains("secrets"));
    let verbs: Vec<_> = secrets.flat_map(|rule| rule.verbs.clone()).collect();
    assert_eq!(verbs, ["get", "list"]);
    for verb in verbs {
        let whole = ControlPlane::embedded()?;
        let without = whole.withhold("", "secrets", &verb).expect_denials();
        let without = without.with_timeout(Duration::from_secs(10));
        let is_denied = || without.denied().iter().any(|denied| denied.verb == verb);
        let denied = async {
            while !is_denied() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = denied => {}
            ended = read(&without) => panic!("without {verb}: {ended:?}"),
        }
        whole.shutdown().await?;
    }
    Ok(())
}

/// A missing permission is an error of the start, not of the first read.
#[opkit::test]
async fn a_missing_permission_is_found_before_the_start(plane: ControlPlane) -> opkit::Result {
    let options = {
        let mut options = opkit::operator::RunOptions::default();
        options.namespaces = vec![plane.namespace().to_owned()];
        options
    };
    // The role of an operator that reads no Secrets.
    let without = Operator::new("reading-operator").controller(Controller::new(reading));
    let plane = plane.expect_denials();
    let client = plane.operator_client(&without, &options).await?;
    let stop = opkit::operator::CancellationToken::new();
    let ran = reading_operator().run_with(client, options, stop).await;
    let error = ran.unwrap_err().to_string();
    assert!(error.contains("permissions are missing"), "{error}");
    assert!(
        error.contains("\"secrets\"], verbs [\"list\", \"get\"]"),
        "{error}"
    );
    Ok(())
}
