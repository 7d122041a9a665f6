//! The binary of the controller: `crd` prints the CRD, and without an argument the controller runs.

use std::io::Write;

use hand_written_controller::{Foo, run};
use opkit::cache::Scope;
use opkit::kube::CustomResourceExt;
use opkit::operator::until_signal;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        let crd = serde_json::to_string_pretty(&Foo::crd())?;
        writeln!(std::io::stdout(), "{crd}")?;
        return Ok(());
    }
    tracing_subscriber::fmt().init();
    let client = opkit::client::connect(None).await?;
    until_signal(|stop| async { Ok(run(client, Scope::All, stop).await?) }).await
}
