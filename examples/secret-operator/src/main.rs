//! The binary of the secret operator.

#[opkit::main]
async fn main() -> opkit::Result {
    secret_operator::operator().run().await
}
