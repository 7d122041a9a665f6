//! `Context::update_status` against the test server.

use super::robot::Robot;
use super::*;
use crate::source::predicate;

const ROBOT: &str = "/apis/robot.opkit.dev/v1/namespaces/d/robots/one";

fn robot(name: &str, generation: i64, status: Value) -> Value {
    json!({"apiVersion": "robot.opkit.dev/v1", "kind": "Robot", "spec": {}, "status": status,
        "metadata": {"namespace": "d", "name": name, "generation": generation}})
}

#[tokio::test(start_paused = true)]
async fn a_second_update_of_one_reconcile_starts_from_the_first() {
    let server = Server::new(&["robots"]);
    let status = json!({"ready": 1, "observedGeneration": 1, "conditions": []});
    server.put(ROBOT, robot("one", 1, status));
    async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
        cx.update_status(&robot, |status| status.ready = 0).await?;
        cx.update_status(&robot, |status| status.ready = 1).await?;
        Ok(Action::await_change())
    }
    let controller =
        Controller::new(reconcile).primary(|it| it.only(predicate::generation_changed()));
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(server.writes().len(), 2, "without a conflict");
    assert_eq!(server.get(ROBOT).unwrap()["status"]["ready"], 1);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_objects_status_has_that_objects_generation() {
    let server = Server::new(&["robots"]);
    let status = json!({"ready": 0, "conditions": []});
    server.put(ROBOT, robot("one", 7, status.clone()));
    let other = "/apis/robot.opkit.dev/v1/namespaces/d/robots/two";
    server.put(other, robot("two", 2, status));
    async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
        if robot.metadata.name.as_deref() == Some("one") {
            let other = cx.get::<Robot>("two")?.unwrap();
            cx.update_status(&other, |status| status.ready = 1).await?;
        }
        Ok(Action::await_change())
    }
    let run = Run::start(&server, Controller::new(reconcile)).await;
    run.settle(Duration::from_secs(1)).await;
    let status = server.get(other).unwrap()["status"].clone();
    assert_eq!(
        (&status["ready"], &status["observedGeneration"]),
        (&json!(1), &json!(2))
    );
    run.stop().await.unwrap();
}
