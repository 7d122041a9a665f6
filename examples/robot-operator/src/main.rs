//! The binary of the robot operator.

#[opkit::main]
async fn main() -> opkit::Result {
    robot_operator::operator().run().await
}
