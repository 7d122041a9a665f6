//! The controller that is written by hand from the parts.

use hand_written_controller::{Foo, FooSpec, run};
use k8s_openapi::api::apps::v1::Deployment;
use opkit::cache::Scope;
use opkit::operator::CancellationToken;
use opkit::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;

use super::{merge, object};

/// The controller, which runs until it is dropped or stopped.
struct Running {
    stop: CancellationToken,
    task: JoinSet<Result<(), hand_written_controller::RunError>>,
}

impl Running {
    async fn start(plane: &ControlPlane) -> opkit::Result<Self> {
        // Only the CRD: the controller is not an operator.
        plane.install(&Operator::new("sample").crd::<Foo>()).await?;
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let scope = Scope::Namespaces(vec![plane.namespace().to_owned()]);
        task.spawn(run(plane.client(), scope, stop.clone()));
        Ok(Self { stop, task })
    }

    async fn stop(mut self) -> opkit::Result {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn website(name: &str, deployment_name: &str, replicas: i32) -> Foo {
    let spec = FooSpec {
        deployment_name: deployment_name.to_owned(),
        replicas,
    };
    Foo::new(name, spec)
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref().and_then(|spec| spec.replicas)
}

#[opkit::test]
async fn a_foo_keeps_its_deployment(plane: ControlPlane) -> opkit::Result {
    let running = Running::start(&plane).await?;
    plane.apply(website("one", "web", 2)).await?;
    let web = plane
        .eventually("web", |web: &Deployment| replicas(web) == Some(2))
        .await?;
    assert!(web.metadata.owner_references.is_some());
    plane.eventually_event::<Foo>("one", "Synced").await?;

    // A change of the spec, and of the Deployment by another client.
    merge::<Foo>(&plane, "one", json!({"spec": {"replicas": 1}})).await?;
    plane
        .eventually("web", |web: &Deployment| replicas(web) == Some(1))
        .await?;
    merge::<Deployment>(&plane, "web", json!({"spec": {"replicas": 5}})).await?;
    plane
        .eventually("web", |web: &Deployment| replicas(web) == Some(1))
        .await?;
    // A Deployment that is deleted comes back with another UID.
    plane.delete::<Deployment>("web").await?;
    plane
        .eventually("web", |other: &Deployment| {
            other.metadata.uid != web.metadata.uid && replicas(other) == Some(1)
        })
        .await?;

    plane.delete::<Foo>("one").await?;
    // The garbage collector of Kubernetes looks for new kinds, such as this one, every 30 s.
    let patient = plane.with_timeout(Duration::from_secs(180));
    patient.eventually_gone::<Deployment>("web").await?;
    running.stop().await
}

#[opkit::test]
async fn the_status_follows_the_deployment(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let running = Running::start(&plane).await?;
    plane.apply(website("one", "web", 2)).await?;
    let available = |number: i32| {
        move |foo: &Foo| {
            let status = foo.status.as_ref();
            status.is_some_and(|status| status.available_replicas == number)
        }
    };
    plane.eventually("one", available(2)).await?;
    merge::<Foo>(&plane, "one", json!({"spec": {"replicas": 0}})).await?;
    plane.eventually("one", available(0)).await?;
    running.stop().await
}

#[opkit::test]
async fn a_deployment_of_another_owner_is_left_alone(plane: ControlPlane) -> opkit::Result {
    let labels = json!({"app": "theirs"});
    let theirs = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    plane.apply::<Deployment>(object(theirs)).await?;
    let running = Running::start(&plane).await?;
    plane.apply(website("one", "web", 2)).await?;
    plane
        .eventually_event::<Foo>("one", "ErrResourceExists")
        .await?;
    let web = plane.get::<Deployment>("web").await?.expect("theirs");
    assert_eq!(replicas(&web), Some(0));

    // The work is repeated until the name is free, without any change of the foo.
    plane.delete::<Deployment>("web").await?;
    plane
        .eventually("web", |web: &Deployment| replicas(web) == Some(2))
        .await?;
    running.stop().await
}
