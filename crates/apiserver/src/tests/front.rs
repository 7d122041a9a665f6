use std::net::{Ipv4Addr, SocketAddr};

use super::*;
use crate::StartError;

#[tokio::test]
async fn the_error_has_the_port_that_is_in_use() {
    let api = Api::start();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let taken = api.server.listen(address).await.unwrap().address();
    let error = api.server.listen(taken).await.unwrap_err();
    assert!(matches!(error, StartError::AddressInUse { address } if address == taken));
    api.server.shutdown().await;
}

#[tokio::test]
async fn the_kubeconfig_has_everything_inline() {
    let api = Api::start();
    let endpoint = api
        .server
        .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .await
        .unwrap();
    let config: Value = serde_saphyr::from_str(&endpoint.kubeconfig()).unwrap();
    let server = &config["clusters"][0]["cluster"]["server"];
    assert_eq!(*server, json!(format!("https://{}", endpoint.address())));
    for field in ["client-certificate-data", "client-key-data", "token"] {
        assert!(
            config["users"][0]["user"][field]
                .as_str()
                .is_some_and(|t| !t.is_empty()),
            "{field}"
        );
    }
    api.server.shutdown().await;
}
