//! The webhooks of the shop operator.

use opkit::prelude::*;
use shop_operator::{Shop, ShopSpec, operator};

fn shop(name: &str, replicas: i32, host: &str) -> Shop {
    let spec = ShopSpec {
        image: "nginx:1.27".into(),
        replicas,
        sale: false,
        config_map: "settings".into(),
        database: None,
        host: Some(host.into()),
    };
    Shop::new(name, spec)
}

#[opkit::test]
async fn shops_are_admitted_by_their_webhooks(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    // Unique on a control plane that other tests use.
    let host = format!("{}-one", plane.namespace());
    let created = plane.apply(shop("one", 10, &host)).await?;
    let full = format!("{host}.shops.example.com");
    assert_eq!(created.spec.host.as_ref(), Some(&full));
    let refusal = plane.apply(shop("one", 4, &full)).await.unwrap_err();
    assert!(
        refusal.is_invalid() && refusal.to_string().contains("spec.replicas"),
        "{refusal}"
    );
    plane.apply(shop("one", 5, &full)).await?;
    plane
        .eventually("one", |shop: &Shop| shop.status.is_some())
        .await?;
    let refusal = plane.apply(shop("two", 1, &full)).await.unwrap_err();
    assert!(
        refusal.to_string().contains("spec.host: Duplicate value"),
        "{refusal}"
    );
    Ok(())
}
