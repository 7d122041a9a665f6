//! The binary of the namespace operator.

#[opkit::main]
async fn main() -> opkit::Result {
    namespace_operator::operator().run().await
}
