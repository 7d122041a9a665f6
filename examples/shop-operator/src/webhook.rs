//! Webhooks of shops: rules that the schema cannot express.

use opkit::prelude::*;

use crate::Shop;

/// Domain of a host name that has none.
const DOMAIN: &str = "shops.example.com";

/// Returns the webhooks of shops.
pub(crate) fn webhook() -> Webhook<Shop> {
    Webhook::new()
        .defaulting(set_defaults)
        .validating(check)
        .validating_with(check_host)
        .reads::<Shop>()
}

/// Adds the domain to a host name without one. A schema's default cannot depend on the value.
fn set_defaults(shop: &mut Shop) {
    if let Some(host) = &mut shop.spec.host
        && !host.is_empty()
        && !host.contains('.')
    {
        *host = format!("{host}.{DOMAIN}");
    }
}

/// Keeps a shop from losing most of its web servers at once.
fn check(shop: &Shop, old: Option<&Shop>) -> Admission {
    let mut admission = Admission::allowed();
    if old.is_some_and(|old| shop.spec.replicas < old.spec.replicas / 2) {
        admission.invalid(
            "spec.replicas",
            shop.spec.replicas,
            "may shrink by half at most",
        );
    }
    if shop.spec.image.ends_with(":latest") {
        admission.warn("spec.image: this tag moves");
    }
    admission
}

/// Refuses the host name of another shop. No schema and no CEL rule can read other objects. Two
/// shops that are created at the same moment are not found; the ingress of one of them then fails.
async fn check_host(request: AdmissionRequest<Shop>, cx: WebhookContext) -> Result<Admission> {
    let shop = request.object();
    let mut admission = Admission::allowed();
    let Some(host) = &shop.spec.host else {
        return Ok(admission);
    };
    let is_same = |other: &Shop| {
        other.name_any() == request.name()
            && other.namespace().as_deref() == Some(request.namespace())
    };
    let others = cx.list::<Shop>(Selection::default().all_namespaces())?;
    let mut others = others.iter().filter(|other| !is_same(other));
    if others.any(|other| other.spec.host.as_ref() == Some(host)) {
        admission.duplicate("spec.host", host);
    }
    Ok(admission)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShopSpec;

    fn shop(replicas: i32, image: &str, host: &str) -> Shop {
        let spec = ShopSpec {
            image: image.to_owned(),
            replicas,
            sale: false,
            config_map: "settings".to_owned(),
            database: None,
            host: Some(host.to_owned()),
        };
        Shop::new("one", spec)
    }

    #[test]
    fn a_shop_shrinks_by_half_at_most() {
        let old = shop(10, "nginx:1.27", "a.example");
        let new = |replicas| shop(replicas, "nginx:1.27", "a.example");
        assert_eq!(
            check(&new(4), Some(&old)).invalid_fields(),
            ["spec.replicas"]
        );
        assert!(check(&new(5), Some(&old)).is_allowed());
        assert!(check(&new(1), None).is_allowed());
    }

    #[tokio::test]
    async fn a_host_belongs_to_one_shop() -> Result<()> {
        let mut other = shop(1, "nginx:1.27", "a.example");
        other.metadata.name = Some("other".to_owned());
        other.metadata.namespace = Some("shops".to_owned());
        let cx = WebhookContext::for_test(()).with([other]);
        let create = |host| AdmissionRequest::create(shop(1, "nginx:1.27", host));
        let taken = check_host(create("a.example"), cx.clone()).await?;
        assert_eq!(taken.invalid_fields(), ["spec.host"]);
        assert!(check_host(create("b.example"), cx).await?.is_allowed());
        Ok(())
    }

    #[test]
    fn a_tag_that_moves_is_a_warning() {
        let admission = check(&shop(1, "nginx:latest", "a.example"), None);
        assert_eq!(admission.warnings(), ["spec.image: this tag moves"]);
        assert!(admission.is_allowed());
    }

    #[test]
    fn a_host_gets_the_domain() {
        for (host, expected) in [("one", "one.shops.example.com"), ("a.example", "a.example")] {
            let mut shop = shop(1, "nginx:1.27", host);
            set_defaults(&mut shop);
            assert_eq!(shop.spec.host.as_deref(), Some(expected));
        }
    }
}
