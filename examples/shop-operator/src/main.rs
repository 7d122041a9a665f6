//! The binary of the shop operator.

#[opkit::main]
async fn main() -> opkit::Result {
    shop_operator::operator().run().await
}
