//! The binary of the catalog operator.

#[opkit::main]
async fn main() -> opkit::Result {
    catalog_operator::operator().run().await
}
