use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use opkit_controller::{Action, Cleanup, Context, Controller, Error};

use super::*;

fn controllers() -> Vec<AnyController> {
    let maps = Controller::new(|_: Arc<ConfigMap>, _: Context| async {
        Ok::<_, Error>(Action::await_change())
    })
    .owns::<Deployment>()
    .creates_once::<ServiceAccount>()
    .watches_metadata::<Secret>(|_, _| Vec::new())
    .finalizer("opkit.dev/test", |_, _| async {
        Ok::<_, Error>(Cleanup::Done)
    });
    let namespaces = Controller::new(|_: Arc<Namespace>, _: Context| async {
        Ok::<_, Error>(Action::await_change())
    });
    vec![maps.into(), namespaces.into()]
}

#[test]
fn rules_cover_the_declarations_and_no_more() {
    let controllers = controllers();
    let declared = Declared {
        controllers: &controllers,
        with_status: [("configmaps".to_owned(), String::new())].into(),
        read: Vec::new(),
        kinds: &[],
        uncached: &[],
        sharded: false,
        rules: &[PolicyRule::new("apps", ["deployments/scale"], ["get"])],
        event_api: EventApi::EventsV1,
    };
    let expected = [
        PolicyRule::new("", ["configmaps"], ["get", "list", "patch", "watch"]),
        PolicyRule::new("", ["configmaps/finalizers"], ["update"]),
        PolicyRule::new("", ["configmaps/status"], ["patch"]),
        PolicyRule::new("", ["namespaces"], CACHE).cluster_scoped(),
        PolicyRule::new("", ["secrets"], CACHE),
        PolicyRule::new("", ["serviceaccounts"], ["create", "get", "list", "watch"]),
        PolicyRule::new("apps", ["deployments"], CACHE.into_iter().chain(WRITE)),
        PolicyRule::new("apps", ["deployments/scale"], ["get"]),
        PolicyRule::new("events.k8s.io", ["events"], ["create", "patch"]).cluster_scoped(),
    ];
    assert_eq!(declared.rules(), merge(&expected));
    let asked: Vec<_> = declared
        .permissions()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        asked
            .iter()
            .any(|one| one.contains("\"deployments\"], verbs [\"delete\"]"))
    );
    assert!(
        asked
            .iter()
            .all(|one| !one.contains("events") && !one.contains("\"list\""))
    );
}

#[test]
fn events_in_the_core_api_need_another_permission() {
    let declared = Declared {
        controllers: &[],
        with_status: BTreeSet::new(),
        read: Vec::new(),
        kinds: &[],
        uncached: &[],
        sharded: false,
        rules: &[],
        event_api: EventApi::CoreV1,
    };
    let expected = PolicyRule::new("", ["events"], ["create", "patch"]);
    assert_eq!(declared.rules(), merge(&[expected]));
}

/// Checks that a replica of a sharded operator may read objects that others cache.
#[test]
fn a_sharded_operator_may_get_what_it_watches() {
    let controllers = controllers();
    let declared = |sharded| Declared {
        controllers: &controllers,
        with_status: BTreeSet::new(),
        read: Vec::new(),
        kinds: &[],
        uncached: &[],
        sharded,
        rules: &[],
        event_api: EventApi::EventsV1,
    };
    let may_get = |sharded: bool| {
        let rules = declared(sharded).rules();
        let of = |rule: &PolicyRule| rule.resources.iter().any(|it| it == "secrets");
        let rule = rules.iter().find(|rule| of(rule)).unwrap();
        rule.verbs.iter().any(|verb| verb == "get")
    };
    assert_eq!((may_get(false), may_get(true)), (false, true));
}

#[test]
fn children_without_owner_references_are_written_and_recorded() {
    let controller = Controller::new(|_: Arc<ConfigMap>, _: Context| async {
        Ok::<_, opkit_controller::Error>(Action::await_change())
    })
    .applies_unowned::<Namespace>()
    .applies_unowned::<Secret>();
    let declared = Declared {
        controllers: &[controller.into()],
        with_status: BTreeSet::new(),
        read: Vec::new(),
        kinds: &[],
        uncached: &[],
        sharded: false,
        rules: &[],
        event_api: EventApi::EventsV1,
    };
    let written = || CACHE.into_iter().chain(WRITE);
    let expected = [
        // The record and the finalizer are patched; no child has an owner reference.
        PolicyRule::new("", ["configmaps"], ["get", "list", "patch", "watch"]),
        PolicyRule::new("", ["namespaces"], written()).cluster_scoped(),
        PolicyRule::new("", ["secrets"], written()),
        PolicyRule::new("events.k8s.io", ["events"], ["create", "patch"]),
    ];
    assert_eq!(declared.rules(), merge(&expected));
}

#[test]
fn kinds_that_are_read_from_the_server_are_not_watched() {
    let reconcile = |_: Arc<ConfigMap>, _: Context| async {
        Ok::<_, opkit_controller::Error>(Action::await_change())
    };
    let controllers = [
        Controller::new(reconcile).uncached::<Secret>().into(),
        Controller::new(reconcile)
            .named("second")
            .watches::<ServiceAccount>(|_, _| Vec::new())
            .cached_or_live::<ServiceAccount>()
            .into(),
    ];
    let declared = Declared {
        controllers: &controllers,
        with_status: BTreeSet::new(),
        read: Vec::new(),
        kinds: &[],
        uncached: &[Kind::of::<Namespace>()],
        sharded: false,
        rules: &[],
        event_api: EventApi::EventsV1,
    };
    let expected = [
        PolicyRule::new("", ["configmaps"], CACHE),
        PolicyRule::new("", ["namespaces"], READ).cluster_scoped(),
        PolicyRule::new("", ["secrets"], READ),
        PolicyRule::new("", ["serviceaccounts"], ["get", "list", "watch"]),
        PolicyRule::new("events.k8s.io", ["events"], ["create", "patch"]),
    ];
    assert_eq!(declared.rules(), merge(&expected));
    let asked: Vec<_> = declared
        .permissions()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(
        asked.iter().all(|one| one.contains("[\"get\"]")),
        "{asked:?}"
    );
}

#[test]
fn a_condition_of_any_kind_is_written_to_its_status() {
    let reconcile = |_: Arc<Deployment>, _: Context| async {
        Ok::<_, opkit_controller::Error>(Action::await_change())
    };
    let stalled = opkit_controller::Condition::new("Stalled", true);
    let rules = |controller: Controller<Deployment>| {
        let declared = Declared {
            controllers: &[controller.into()],
            with_status: BTreeSet::new(),
            read: Vec::new(),
            kinds: &[],
            uncached: &[],
            sharded: false,
            rules: &[],
            event_api: EventApi::EventsV1,
        };
        declared.rules()
    };
    let events = PolicyRule::new("events.k8s.io", ["events"], ["create", "patch"]);
    let expected = [
        PolicyRule::new("apps", ["deployments"], ["get", "list", "watch"]),
        PolicyRule::new("apps", ["deployments/status"], ["patch"]),
        events.clone(),
    ];
    let controller = Controller::new(reconcile);
    assert_eq!(rules(controller.max_retries(3, stalled)), merge(&expected));
    let expected = [PolicyRule::new("apps", ["deployments"], CACHE), events];
    assert_eq!(
        rules(Controller::new(reconcile).max_retries(3, None)),
        merge(&expected)
    );
}

#[test]
fn kinds_for_reading_are_listed_and_watched() {
    let declared = Declared {
        controllers: &[],
        with_status: BTreeSet::new(),
        read: Vec::new(),
        kinds: &[Kind::of::<ConfigMap>()],
        uncached: &[],
        sharded: false,
        rules: &[],
        event_api: EventApi::EventsV1,
    };
    let events = PolicyRule::new("events.k8s.io", ["events"], ["create", "patch"]);
    let expected = [PolicyRule::new("", ["configmaps"], CACHE), events.clone()];
    assert_eq!(declared.rules(), merge(&expected));
    assert!(
        declared.permissions().is_empty(),
        "the start lists and watches"
    );

    // Events about a cluster-scoped object are in the namespace `default`.
    let declared = Declared {
        kinds: &[Kind::of::<Namespace>()],
        ..declared
    };
    assert!(declared.rules().contains(&events.cluster_scoped()));
}
