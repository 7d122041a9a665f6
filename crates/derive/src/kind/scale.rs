//! The subresource `scale` of a kind.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr};

use crate::arguments::{Argument, SCALE};

/// Paths of the subresource `scale`.
pub(super) struct Scale {
    spec_replicas_path: LitStr,
    status_replicas_path: LitStr,
    label_selector_path: Option<LitStr>,
}

impl Scale {
    pub(super) fn parse(argument: &Argument) -> syn::Result<Self> {
        let (mut spec, mut status, mut selector) = (None, None, None);
        for argument in argument.list(SCALE)? {
            let (part, place) = match argument.is("spec_replicas_path") {
                true => (&mut spec, ".spec."),
                false if argument.is("status_replicas_path") => (&mut status, ".status."),
                false => (&mut selector, "."),
            };
            let path = argument.string()?;
            if !path.value().starts_with(place) {
                let message = format!("`{}` must start with `{place}`", argument.name);
                return Err(Error::new_spanned(path, message));
            }
            if !opkit_syntax::jsonpath::is_simple(&path.value()) {
                let message = format!("`{}` must consist of field names only", argument.name);
                return Err(Error::new_spanned(path, message));
            }
            *part = Some(path);
        }
        match (spec, status) {
            (Some(spec_replicas_path), Some(status_replicas_path)) => Ok(Self {
                spec_replicas_path,
                status_replicas_path,
                label_selector_path: selector,
            }),
            _ => Err(argument.expected(
                "scale(spec_replicas_path = \".spec.replicas\", status_replicas_path = \".status.readyReplicas\")",
            )),
        }
    }

    pub(super) fn tokens(&self) -> TokenStream {
        let (spec, status) = (
            self.spec_replicas_path.value(),
            self.status_replicas_path.value(),
        );
        let selector = match self.label_selector_path.as_ref().map(LitStr::value) {
            Some(path) => quote!(::core::option::Option::Some(#path)),
            None => quote!(::core::option::Option::None),
        };
        quote!(::opkit::__private::kinds::Scale {
            spec_replicas_path: #spec,
            status_replicas_path: #status,
            label_selector_path: #selector,
        })
    }

    /// Returns the paths, each with the name of its argument.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&'static str, &LitStr)> {
        let selector = self.label_selector_path.as_ref();
        [
            ("spec_replicas_path", &self.spec_replicas_path),
            ("status_replicas_path", &self.status_replicas_path),
        ]
        .into_iter()
        .chain(selector.map(|path| ("label_selector_path", path)))
    }
}
