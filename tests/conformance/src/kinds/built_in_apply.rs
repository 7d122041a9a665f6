//! Apply configurations of built-in kinds.

use opkit::client::{ApplyConfiguration, Client};
use opkit::prelude::*;

opkit::apply_types!(Service);

#[opkit::test]
async fn an_apply_configuration_of_a_service_owns_only_its_fields(
    plane: ControlPlane,
) -> opkit::Result {
    let mine = Client::new(plane.client()).field_manager("mine");
    let theirs = Client::new(plane.client()).field_manager("theirs");
    let service = || ServiceApply::new("shop").namespace(plane.namespace());
    let port = ServicePortApply::new().name("web").port(80);
    let spec = ServiceSpecApply::new().ports([port]);
    theirs.apply_configuration(&service().spec(spec)).await?;

    // The Rust type of a Service has no way to leave the ports out of its spec and to keep them.
    let spec = ServiceSpecApply::new()
        .session_affinity("ClientIP")
        .selector(BTreeMap::from([("app".to_owned(), "shop".to_owned())]));
    let applied = mine
        .apply_configuration(&service().label("team", "a").spec(spec))
        .await?;
    let spec = applied.spec.clone().unwrap_or_default();
    assert_eq!(spec.session_affinity.as_deref(), Some("ClientIP"));
    assert_eq!(spec.ports.unwrap_or_default().len(), 1);

    let extracted = ServiceApply::extract(&applied, "mine")?;
    let spec = extracted.spec.clone().unwrap_or_default();
    assert_eq!(spec.session_affinity.as_deref(), Some("ClientIP"));
    assert_eq!(spec.ports, None);
    // Applying the extracted fields again changes nothing.
    let again = mine.apply_configuration(&extracted).await?;
    assert_eq!(
        again.metadata.resource_version,
        applied.metadata.resource_version
    );
    Ok(())
}
