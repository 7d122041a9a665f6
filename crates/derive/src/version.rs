//! `#[opkit::version(...)]`: an older or newer version of a kind, or of a type within it, with its
//! conversions to the hub.
//!
//! The macro does not see the fields of the hub. The generated conversions therefore contain a
//! struct literal and a pattern without `..`, so that the compiler reports a field of the hub that
//! the version does not mention.

mod conversion;
mod declared;
mod segments;
mod variants;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Expr, ExprLit, Lit, LitStr, Path};

use self::declared::Declared;
pub(crate) use self::segments::take;
use crate::arguments::{Argument, Value};

/// Arguments of `#[opkit::version(...)]` that are about the version. The other arguments are those
/// of `#[opkit::kind(...)]` or `#[opkit::schema]`.
const OWN: [&str; 6] = ["of", "version", "deprecated", "served", "status", "with"];

/// Arguments of `#[opkit::version(...)]`.
pub(crate) struct Version {
    /// Type of the hub: a kind, or a type within it.
    pub(crate) of: Path,
    /// Name of the version. `None` for a type within a kind.
    pub(crate) name: Option<LitStr>,
    /// Text of the warning that clients of the version get. An empty text is the text of
    /// Kubernetes.
    pub(crate) deprecated: Option<String>,
    pub(crate) is_served: bool,
    status: Status,
    /// Functions to the hub and from the hub, for whole objects.
    with: Option<(Path, Path)>,
}

/// The argument `status`.
enum Status {
    None,
    /// `status`: the struct is a status.
    Own(Span),
    /// `status = RobotStatus`: the kind has a status of its own.
    Of(Path),
}

pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    let (own, rest) = segments::take(attribute, &OWN)?;
    let version = Version::parse(&own)?;
    let ident = input.ident.clone();
    let conversion = match (&version.with, &input.data) {
        (Some(functions), _) => version.whole(&ident, functions)?,
        (None, Data::Enum(_)) => variants::expand(&version, &mut input)?,
        (None, _) => {
            let declared = Declared::take(&mut input)?;
            conversion::expand(&version, &ident, &declared)
        }
    };
    let declaration = match (&version.name, &version.status) {
        (Some(_), Status::None | Status::Of(_)) => {
            crate::kind::versions::expand(&version, rest, input)?
        }
        (None, Status::Own(_)) => crate::status::expand(rest, input)?,
        (None, Status::None) => crate::schema::expand(rest, input)?,
        (Some(_), Status::Own(span)) => {
            let message =
                "write `status = RobotStatus`, or leave it out: the status of the hub is used";
            return Err(Error::new(*span, message));
        }
        (None, Status::Of(path)) => {
            let message = "only a kind has a status: add `version = \"v1alpha1\"`";
            return Err(Error::new_spanned(path, message));
        }
    };
    Ok(quote! {
        #declaration
        #conversion
    })
}

impl Version {
    fn parse(arguments: &[Argument]) -> syn::Result<Self> {
        crate::arguments::reject_repeats(arguments)?;
        let (mut of, mut name, mut deprecated) = (None, None, None);
        let (mut is_served, mut status, mut with) = (true, Status::None, None);
        for argument in arguments {
            match argument.name.to_string().as_str() {
                "of" => of = Some(path(argument, "of = super::Robot")?),
                "version" => name = Some(argument.string()?),
                "deprecated" => {
                    deprecated = Some(match &argument.value {
                        Value::None => String::new(),
                        _ => argument.string()?.value(),
                    });
                }
                "served" => is_served = bool_of(argument)?,
                "with" => with = Some(two_functions(argument)?),
                _ => {
                    status = match &argument.value {
                        Value::None => Status::Own(argument.name.span()),
                        _ => Status::Of(path(argument, "status = RobotStatus")?),
                    }
                }
            }
        }
        let missing = "missing hub: write `of = super::Robot`, the type that this is a version of";
        let version = Self {
            of: of.ok_or_else(|| Error::new(Span::call_site(), missing))?,
            name,
            deprecated,
            is_served,
            status,
            with,
        };
        if version.name.is_none() {
            let kind_only = ["deprecated", "served"];
            let found = arguments
                .iter()
                .find(|it| kind_only.iter().any(|name| it.is(name)));
            if let Some(argument) = found {
                let message = format!(
                    "`{}` applies to a kind: add `version = \"v1alpha1\"`",
                    argument.name
                );
                return Err(Error::new(argument.name.span(), message));
            }
        }
        Ok(version)
    }

    /// Returns the type of the hub that corresponds to the struct: the spec of a kind, or a type
    /// within a kind.
    fn hub(&self) -> TokenStream {
        let of = &self.of;
        match &self.name {
            Some(_) => quote!(<#of as ::opkit::__private::kinds::versions::Hub>::Spec),
            None => quote!(#of),
        }
    }

    /// Returns the status of the kind if the version has its own.
    pub(crate) fn status(&self) -> Option<&Path> {
        match &self.status {
            Status::Of(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn has_functions(&self) -> bool {
        self.with.is_some()
    }

    /// Generates the conversions of a version with two functions. The functions of a kind convert
    /// whole objects.
    fn whole(&self, ident: &Ident, functions: &(Path, Path)) -> syn::Result<TokenStream> {
        let of = &self.of;
        let ty = match &self.name {
            Some(_) => crate::kind::versions::kind_of(ident)?,
            None => ident.clone(),
        };
        let (to_hub, from_hub) = functions;
        // Nothing is known about the functions.
        Ok(quote! {
            #[automatically_derived]
            impl ::opkit::__private::kinds::versions::Version for #ty {
                type Hub = #of;

                fn to_hub(self) -> #of {
                    #to_hub(self)
                }

                fn from_hub(hub: #of) -> Self {
                    #from_hub(hub)
                }

                fn notes() -> ::opkit::__private::kinds::versions::Notes {
                    ::opkit::__private::kinds::versions::Notes {
                        has_removed_values: true,
                        has_added_values: true,
                        ..::opkit::__private::kinds::versions::Notes::NONE
                    }
                }
            }
        })
    }
}

/// Parses an argument such as `of = super::Robot`.
fn path(argument: &Argument, shape: &str) -> syn::Result<Path> {
    match argument.expr()? {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path.clone()),
        _ => Err(argument.expected(shape)),
    }
}

/// Parses the two paths of an argument such as `with(split, join)`.
fn two_functions(argument: &Argument) -> syn::Result<(Path, Path)> {
    let shape = || argument.expected(&format!("{}(to_hub, from_hub)", argument.name));
    let Value::List(tokens) = &argument.value else {
        return Err(shape());
    };
    let parser = syn::punctuated::Punctuated::<Path, syn::Token![,]>::parse_terminated;
    let paths = syn::parse::Parser::parse2(parser, tokens.clone())?;
    match paths.into_iter().collect::<Vec<_>>().as_slice() {
        [up, down] => Ok((up.clone(), down.clone())),
        _ => Err(shape()),
    }
}

fn bool_of(argument: &Argument) -> syn::Result<bool> {
    match argument.expr()? {
        Expr::Lit(ExprLit {
            lit: Lit::Bool(value),
            ..
        }) => Ok(value.value),
        _ => Err(argument.expected(&format!("{} = false", argument.name))),
    }
}
