//! What the fields of a version declare about the hub.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, ExprLit, Fields, Lit, Member, Path, Token, Type};

use super::{segments, two_functions};
use crate::arguments::{Argument, Value};
use crate::errors::Errors;
use crate::names;

/// Arguments on a field of a version.
const OF_FIELD: [&str; 7] = [
    "renamed",
    "moved",
    "split",
    "with",
    "removed",
    "changed_with",
    "lossy",
];

/// Declarations of all fields of a version.
pub(super) struct Declared {
    pub(super) fields: Vec<DeclaredField>,
    pub(super) added: Vec<Added>,
}

/// Declaration of a field of a version.
pub(super) struct DeclaredField {
    pub(super) ident: Ident,
    pub(super) ty: Type,
    /// JSON name of the field.
    pub(super) json: String,
    /// Whether the field has a default, which the macros of opkit turn into a function.
    pub(super) has_default: bool,
    pub(super) fate: Fate,
    /// Functions that convert the value to the hub and back.
    pub(super) changed: Option<(Path, Path)>,
    /// Whether the functions lose values.
    pub(super) is_lossy: bool,
    /// The declaration as written, for messages.
    pub(super) text: String,
}

/// What became of a field in the hub.
pub(super) enum Fate {
    /// The value is in a field of the hub, which may be inside of other fields.
    At(Vec<Ident>),
    /// The value is in several fields of the hub.
    Split {
        hub: Vec<Ident>,
        to_hub: Path,
        from_hub: Path,
    },
    /// The hub does not have the value. Objects of the hub have this value in the version.
    Removed(Option<Expr>),
}

/// Field that only the hub has.
pub(super) struct Added {
    pub(super) path: Vec<Ident>,
    /// Value for objects of the version; the default of the type if there is none.
    pub(super) value: Option<Expr>,
}

impl Declared {
    /// Removes the declarations from the attributes of a struct.
    pub(super) fn take(input: &mut DeriveInput) -> syn::Result<Self> {
        let mut errors = Errors::default();
        let own = segments::take_from(&mut input.attrs, &["added"])?;
        let mut added = Vec::new();
        for argument in &own {
            added.extend(errors.take(Added::parse(argument)).into_iter().flatten());
        }
        let Data::Struct(data) = &mut input.data else {
            return Err(Error::new_spanned(&input.ident, "expected a struct"));
        };
        let Fields::Named(named) = &mut data.fields else {
            let message = "expected a struct with named fields";
            return Err(Error::new_spanned(&input.ident, message));
        };
        let fields = named.named.iter_mut();
        let fields = fields.filter_map(|field| errors.take(DeclaredField::take(field)));
        let fields = fields.collect();
        errors.none_or(Self { fields, added })
    }
}

impl DeclaredField {
    fn take(field: &mut syn::Field) -> syn::Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "a field needs a name"));
        };
        let arguments = segments::take_from(&mut field.attrs, &OF_FIELD)?;
        let (json, has_default) = json_name(&ident, field)?;
        let fate = Fate::parse(&ident, &arguments)?;
        let changed = match find(&arguments, "changed_with") {
            Some(argument) if !matches!(fate, Fate::At(_)) => {
                let message = "`changed_with` applies to a field with one value in the hub";
                return Err(Error::new(argument.name.span(), message));
            }
            Some(argument) => Some(two_functions(argument)?),
            None => None,
        };
        let is_lossy = match find(&arguments, "lossy") {
            Some(argument) if changed.is_none() && !matches!(fate, Fate::Split { .. }) => {
                let message = "`lossy` belongs to `changed_with(...)` or `split(...)`";
                return Err(Error::new(argument.name.span(), message));
            }
            Some(argument) => argument.flag().map(|()| true)?,
            None => false,
        };
        Ok(Self {
            is_lossy,
            ident,
            ty: field.ty.clone(),
            json,
            has_default,
            fate,
            changed,
            text: text(&arguments),
        })
    }

    pub(super) fn span(&self) -> Span {
        self.ty.span()
    }
}

impl Fate {
    fn parse(ident: &Ident, arguments: &[Argument]) -> syn::Result<Self> {
        let alternatives = ["renamed", "moved", "split", "removed"];
        let mut found = arguments
            .iter()
            .filter(|argument| alternatives.iter().any(|name| argument.is(name)));
        let (first, second) = (found.next(), found.next());
        if let (Some(first), Some(second)) = (first, second) {
            let message = format!("a field is either `{}` or `{}`", first.name, second.name);
            return Err(Error::new(second.name.span(), message));
        }
        let with = find(arguments, "with");
        let Some(argument) = first else {
            if let Some(with) = with {
                let message =
                    "`with` belongs to `split(...)`: write `changed_with(to_hub, from_hub)`";
                return Err(Error::new(with.name.span(), message));
            }
            return Ok(Self::At(vec![ident.clone()]));
        };
        match argument.name.to_string().as_str() {
            "renamed" => match argument.expr()? {
                Expr::Path(path) if path.path.get_ident().is_some() => Ok(Self::At(
                    path.path.get_ident().into_iter().cloned().collect(),
                )),
                _ => Err(argument.expected("renamed = replicas")),
            },
            "moved" => match field_path(argument.expr()?) {
                Some(path) if path.len() > 1 => Ok(Self::At(path)),
                _ => Err(argument.expected("moved = network.port")),
            },
            "removed" => match &argument.value {
                Value::None => Ok(Self::Removed(None)),
                _ => Ok(Self::Removed(Some(argument.expr()?.clone()))),
            },
            _ => Self::split(argument, with),
        }
    }

    fn split(argument: &Argument, with: Option<&Argument>) -> syn::Result<Self> {
        let shape = "split(host, port), with(split_endpoint, join_endpoint)";
        let (Value::List(tokens), Some(with)) = (&argument.value, with) else {
            return Err(argument.expected(shape));
        };
        let parser = Punctuated::<Ident, Token![,]>::parse_terminated;
        let hub = syn::parse::Parser::parse2(parser, tokens.clone())?;
        if hub.len() < 2 {
            return Err(argument.expected(shape));
        }
        let (to_hub, from_hub) = two_functions(with)?;
        Ok(Self::Split {
            hub: hub.into_iter().collect(),
            to_hub,
            from_hub,
        })
    }
}

impl Added {
    /// Parses an argument such as `added(paused = false, network.dns)`.
    fn parse(argument: &Argument) -> syn::Result<Vec<Self>> {
        let shape = "added(paused = false)";
        let Value::List(tokens) = &argument.value else {
            return Err(argument.expected(shape));
        };
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let listed = syn::parse::Parser::parse2(parser, tokens.clone())?;
        let added = listed.into_iter().map(|expr| {
            let (path, value) = match &expr {
                Expr::Assign(assign) => (&*assign.left, Some((*assign.right).clone())),
                path => (path, None),
            };
            match field_path(path) {
                Some(path) => Ok(Self { path, value }),
                None => Err(Error::new_spanned(&expr, format!("write `{shape}`"))),
            }
        });
        added.collect()
    }
}

/// Returns the value of an expression for a field: a string literal is converted to the type of the
/// field.
pub(super) fn value(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => quote::quote_spanned!(text.span()=> ::core::convert::Into::into(#text)),
        expr => expr.to_token_stream(),
    }
}

fn find<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a Argument> {
    arguments.iter().find(|argument| argument.is(name))
}

/// Returns the names in an expression such as `network.port`.
fn field_path(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Path(path) => Some(vec![path.path.get_ident()?.clone()]),
        Expr::Field(field) => {
            let mut path = field_path(&field.base)?;
            match &field.member {
                Member::Named(name) => path.push(name.clone()),
                Member::Unnamed(_) => return None,
            }
            Some(path)
        }
        _ => None,
    }
}

/// Returns the JSON name of a field, and whether the field has a default.
fn json_name(ident: &Ident, field: &syn::Field) -> syn::Result<(String, bool)> {
    let mut attributes = field.attrs.clone();
    let arguments = segments::take_from(&mut attributes, &["rename", "default"])?;
    let json = match find(&arguments, "rename") {
        Some(argument) => argument.string()?.value(),
        None => names::camel_case(&ident.to_string()),
    };
    Ok((json, find(&arguments, "default").is_some()))
}

/// Returns arguments as the user wrote them, without the functions of `with`.
fn text(arguments: &[Argument]) -> String {
    let shown = arguments.iter().filter(|argument| !argument.is("with"));
    let shown = shown.map(|argument| match &argument.value {
        Value::None => argument.name.to_string(),
        Value::Expr(expr) => {
            let expr = expr.to_token_stream().to_string().replace(" . ", ".");
            format!("{} = {expr}", argument.name)
        }
        Value::List(tokens) => {
            let tokens = tokens.to_string().replace(" ,", ",").replace(" :: ", "::");
            format!("{}({tokens})", argument.name)
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}
