//! One operator with several clusters.

use super::*;
use crate::Request;

#[tokio::test(start_paused = true)]
async fn objects_of_each_cluster_are_reconciled_there() {
    let (home, east) = (
        Server::new(&["configmaps", "secrets"]),
        Server::new(&["configmaps", "secrets"]),
    );
    home.put(MAP, object("one"));
    east.put(MAP, object("one"));
    async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
        let mut secret = Secret::default();
        secret.metadata.name = Some("child".into());
        secret.type_ = Some(cx.cluster().unwrap_or("home").to_owned());
        cx.apply(secret).await?;
        cx.get::<ConfigMap>(map.metadata.name.clone().unwrap())?;
        Ok(Action::await_change())
    }
    let run = Run::start_manager(&home, |manager| {
        manager
            .cluster("east", east.client())
            .controller(Controller::new(reconcile).owns::<Secret>())
    })
    .await;
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(home.get(SECRET).unwrap()["type"], "home");
    assert_eq!(east.get(SECRET).unwrap()["type"], "east");
    let in_east = Request::from(("d", "one")).in_cluster("east");
    assert_eq!(in_east.to_string(), "east://d/one");
    run.stop().await.unwrap();

    let manager = Manager::new("test", home.client(), ManagerOptions::default())
        .cluster("east", east.client())
        .cluster("east", east.client());
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), r#"two clusters are named "east""#);
}
