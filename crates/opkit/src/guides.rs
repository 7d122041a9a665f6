//! The guides of the repository's folder `docs`.
//!
//! The modules contain no code, only documentation. A link from one guide to another works in the
//! repository, as a file, and in this documentation, as a module.

#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/cache.md")]
pub mod cache {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/client.md")]
pub mod client {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/coming-from-client-go.md")]
pub mod coming_from_client_go {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/coming-from-kube-rs.md")]
pub mod coming_from_kube_rs {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/coming-from-kubebuilder.md")]
pub mod coming_from_kubebuilder {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/controller.md")]
pub mod controller {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/envtest.md")]
pub mod envtest {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/kinds.md")]
pub mod kinds {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/observability.md")]
pub mod observability {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/testing.md")]
pub mod testing {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../docs/versions.md")]
pub mod versions {}
#[doc = include_str!("../docs/webhooks.md")]
pub mod webhooks {}
