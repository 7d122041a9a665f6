//! The macro `apply_types!`, which generates apply configurations of chosen built-in kinds.
//!
//! Twins of all built-in types would be several times the code of k8s-openapi, in every operator.
//! The macro generates only the kinds that are named, with the types of their fields, from the
//! table of types of Kubernetes 1.36 in `data`, which `cargo xtask apply-types` writes.

mod generate;
mod names;
mod table;

use proc_macro::TokenStream;

/// Generates the apply configurations of built-in kinds, and of the types of their fields: structs
/// such as `DeploymentApply` and `DeploymentSpecApply`, in which all fields are optional, with a
/// method for each field.
///
/// A kind is a name, such as `Deployment`, or if several groups or versions have the name, a path
/// as in k8s-openapi, such as `autoscaling::v2::HorizontalPodAutoscaler`. Types that several kinds
/// have in common are generated once for each call of the macro.
#[proc_macro]
pub fn apply_types(input: TokenStream) -> TokenStream {
    let kinds = syn::parse_macro_input!(input with generate::Kinds::parse_terminated);
    generate::generate(&kinds)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
