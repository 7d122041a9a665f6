//! The plugins `CertificateApproval`, `CertificateSigning` and `CertificateSubjectRestriction`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Operation};
use crate::authentication::organizations_of_request;
use crate::authorization::Attributes as AccessAttributes;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;

/// The signer of client certificates of the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Checks a write of a CertificateSigningRequest by one of the plugins.
pub(super) async fn check(
    plugin: AdmissionPlugin,
    registry: &Registry,
    attributes: &Attributes<'_>,
    request: &Value,
) -> ApiResult<()> {
    let subresource = attributes.target.subresource.as_str();
    match (plugin, attributes.operation, subresource, attributes.old) {
        (AdmissionPlugin::CertificateApproval, Operation::Update, "approval", Some(old)) => {
            check_signer(registry, attributes, "approve", old).await
        }
        (AdmissionPlugin::CertificateSigning, Operation::Update, "status", Some(old)) => {
            let is_same = ["certificate", "conditions"].iter().all(|field| {
                object::at(old, &["status", field]) == object::at(request, &["status", field])
            });
            match is_same {
                true => Ok(()),
                false => check_signer(registry, attributes, "sign", old).await,
            }
        }
        (AdmissionPlugin::CertificateSubjectRestriction, Operation::Create, "", _) => {
            check_subject(attributes, request)
        }
        _ => Ok(()),
    }
}

/// Checks that the user may approve or sign the requests for a signer.
async fn check_signer(
    registry: &Registry,
    attributes: &Attributes<'_>,
    verb: &str,
    request: &Value,
) -> ApiResult<()> {
    // The control plane's own controllers may use every signer.
    let Some(user) = &attributes.write.user else {
        return Ok(());
    };
    let signer = object::text(request, &["spec", "signerName"]);
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let mut access =
            AccessAttributes::of_resource(verb, "certificates.k8s.io", "signers").named(&name);
        access.version = "*".into();
        let authorizer = &registry.authorizer;
        let decision = authorizer.authorize(&registry.store, user, &access).await;
        if decision.is_allowed() {
            return Ok(());
        }
    }
    Err(attributes.forbid(format!(
        "user not permitted to {verb} requests with signerName {signer:?}"
    )))
}

/// Refuses a request for a client certificate of the group that may do everything.
fn check_subject(attributes: &Attributes<'_>, request: &Value) -> ApiResult<()> {
    if object::text(request, &["spec", "signerName"]) != CLIENT_SIGNER {
        return Ok(());
    }
    let text = object::text(request, &["spec", "request"]);
    let pem = BASE64_STANDARD.decode(text).unwrap_or_default();
    let groups = organizations_of_request(&pem);
    match groups.iter().any(|group| group == "system:masters") {
        true => Err(attributes.forbid(format!(
            "use of {CLIENT_SIGNER} signer with system:masters group is not allowed"
        ))),
        false => Ok(()),
    }
}
