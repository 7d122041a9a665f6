//! Events in the final form that the server stores.

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::rbac::v1::Role;
use opkit::client::{Client, ListOptions};
use opkit::events::EventApi;
use opkit::prelude::*;
use serde_json::json;

/// Returns an operator that creates events about each ConfigMap: the data contain reasons and
/// counts, with one note or with many.
fn operator(api: EventApi) -> Operator {
    Operator::new("teller")
        .event_api(api)
        .controller(Controller::new(create_events))
}

async fn create_events(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    for (reason, times) in map.data.iter().flatten() {
        for number in 0..times.parse::<u32>().unwrap_or_default() {
            let note = match reason.starts_with("Many") {
                true => format!("note {number}"),
                false => "note".to_owned(),
            };
            cx.event(Warning, reason, note);
        }
    }
    Ok(Action::await_change())
}

/// Returns the events about a ConfigMap with these data, once `is_enough` returns true.
async fn events_of(
    plane: &ControlPlane,
    api: EventApi,
    data: serde_json::Value,
    is_enough: impl Fn(&[Event]) -> bool,
) -> opkit::Result<Vec<Event>> {
    plane.start(operator(api)).await?;
    let map = json!({"metadata": {"name": "subject"}, "data": data});
    plane
        .apply(serde_json::from_value::<ConfigMap>(map)?)
        .await?;
    let client = Client::new(plane.client());
    let mut options = ListOptions::new();
    options.namespace = Some(plane.namespace().to_owned());
    let mut events = Vec::new();
    for _ in 0..500 {
        events = client.list::<Event>(&options).await?.items;
        events.retain(|event| event.involved_object.name.as_deref() == Some("subject"));
        if is_enough(&events) {
            return Ok(events);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{events:#?}")
}

#[opkit::test]
async fn repetitions_are_a_series(plane: ControlPlane) -> opkit::Result {
    let data = json!({"Broken": "5"});
    let events = events_of(&plane, EventApi::EventsV1, data, |events| {
        events.iter().any(|event| event.series.is_some())
    })
    .await?;
    assert_eq!(events.len(), 1, "{events:#?}");
    let event = &events[0];
    // The second occurrence is sent immediately, the others later.
    assert_eq!(event.series.as_ref().unwrap().count, Some(2));
    assert_eq!(event.reporting_component.as_deref(), Some("teller"));
    assert!(event.event_time.is_some());
    assert_eq!(event.message.as_deref(), Some("note"));
    Ok(())
}

#[opkit::test]
async fn repetitions_are_a_count_in_core(plane: ControlPlane) -> opkit::Result {
    let data = json!({"Broken": "5"});
    let events = events_of(&plane, EventApi::CoreV1, data, |events| {
        events.iter().any(|event| event.count == Some(5))
    })
    .await?;
    assert_eq!(events.len(), 1, "{events:#?}");
    let event = &events[0];
    assert!(event.series.is_none() && event.event_time.is_none());
    assert!(event.first_timestamp.is_some() && event.last_timestamp.is_some());
    assert_eq!(
        event.source.as_ref().unwrap().component.as_deref(),
        Some("teller")
    );
    Ok(())
}

#[opkit::test]
async fn many_similar_events_are_combined(plane: ControlPlane) -> opkit::Result {
    let data = json!({"ManyNotes": "30"});
    let events = events_of(&plane, EventApi::EventsV1, data, |events| {
        events.iter().any(|event| event.series.is_some())
    })
    .await?;
    assert_eq!(events.len(), 10, "{events:#?}");
    let is_combined = |event: &&Event| {
        let note = event.message.as_deref().unwrap_or_default();
        note.starts_with("(combined from similar events): ")
    };
    assert_eq!(events.iter().filter(is_combined).count(), 1);
    Ok(())
}

#[opkit::test]
async fn many_similar_events_are_combined_in_core(plane: ControlPlane) -> opkit::Result {
    // 25 requests are sent: nine events, and the combined one sixteen times.
    let data = json!({"ManyNotes": "40"});
    let events = events_of(&plane, EventApi::CoreV1, data, |events| {
        events.iter().any(|event| event.count == Some(16))
    })
    .await?;
    assert_eq!(events.len(), 10, "{events:#?}");
    let combined = events.iter().find(|event| event.count == Some(16));
    let note = combined.and_then(|event| event.message.as_deref());
    assert_eq!(note, Some("(combined from similar events): note 24"));
    Ok(())
}

/// Names of roles may contain characters that names of events must not.
#[opkit::test]
async fn an_event_about_a_role_with_colons_is_created(plane: ControlPlane) -> opkit::Result {
    async fn create_event_of_role(role: Arc<Role>, cx: Context) -> Result<Action> {
        if role.name_any() == "robot:walker" {
            cx.event(Normal, "Seen".repeat(40), "note");
        }
        Ok(Action::await_change())
    }
    plane
        .start(Operator::new("teller").controller(Controller::new(create_event_of_role)))
        .await?;
    let role = json!({"metadata": {"name": "robot:walker"}, "rules": []});
    plane.apply(serde_json::from_value::<Role>(role)?).await?;
    let client = Client::new(plane.client());
    let mut options = ListOptions::new();
    options.namespace = Some(plane.namespace().to_owned());
    let is_of_role = |event: &Event| event.involved_object.name.as_deref() == Some("robot:walker");
    for _ in 0..500 {
        let events = client.list::<Event>(&options).await?.items;
        if events.iter().any(is_of_role) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there is no event about the role")
}
