//! The binary of the demo operator.

#[opkit::main]
async fn main() -> opkit::Result {
    demo_operator::operator().run().await
}
