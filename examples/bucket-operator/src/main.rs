//! The binary of the bucket operator.

#[opkit::main]
async fn main() -> opkit::Result {
    bucket_operator::operator().run().await
}
