//! The guides of the repository's folder `docs`.
//!
//! They are part of the documentation only. A guide links to another one by a reference, which is
//! a file in the repository and a module here.

#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/cache.md")]
pub mod cache {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/client.md")]
pub mod client {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/controller.md")]
pub mod controller {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/kinds.md")]
pub mod kinds {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/observability.md")]
pub mod observability {}
#[doc = include_str!("guides/links.md")]
#[doc = include_str!("../../../docs/testing.md")]
pub mod testing {}
