use super::*;

fn robot(name: &str, replicas: i32) -> Robot {
    let image = "nginx:1.27".to_owned();
    Robot::new(
        name,
        RobotSpec {
            image,
            replicas,
            command: None,
        },
    )
}

#[opkit::test]
async fn a_robot_becomes_ready(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;
    plane
        .eventually("robot-one", |robot: &Robot| robot.is_ready())
        .await?;

    plane.delete::<Robot>("robot-one").await?;
    plane.eventually_gone::<Deployment>("robot-one").await
}

#[test]
fn the_operator_is_sound() -> opkit::Result {
    opkit::testing::check(&operator())
}
