//! The function `operator()` of a project, and the method chain in it that builds the operator.

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ItemFn, ReturnType, Stmt};

use crate::source::{Source, tokens};
use crate::tree::Tree;
use crate::{Error, Result, sources};

mod chain;
mod edit;

pub(crate) use chain::Chain;
pub(crate) use edit::{add_link, append_to_chain, remove_from_chain, remove_links};

/// Methods of `Operator` that commands write.
const METHODS: [&str; 4] = ["crd", "controller", "webhook", "namespaced"];

/// Place of the function `operator()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Path of its file.
    pub(crate) file: String,
    /// Modules within the file around it.
    pub(crate) inline: Vec<String>,
}

/// Finds the function `operator()`. If there are several, it is the one of the crate's root.
pub(crate) fn find(tree: &Tree, root: &str) -> Result<Place> {
    let mut places = Vec::new();
    let mut failure = None;
    for (path, text) in sources(tree) {
        match Source::parse(path, text) {
            Ok(source) => search(&source.file.items, path, &mut Vec::new(), &mut places),
            Err(error) => failure = Some(error),
        }
    }
    let is_root = |it: &Place| it.file == root && it.inline.is_empty();
    if let Some(place) = places.iter().find(|it| is_root(it)) {
        return Ok(place.clone());
    }
    match (places.as_slice(), failure) {
        ([place], _) => Ok(place.clone()),
        ([], Some(error)) => Err(error),
        ([], None) => {
            let reason = "there is no `fn operator() -> Operator`, which opkit edits: write it, \
                          and call it in src/main.rs";
            Err(Error::source(root, 1, reason))
        }
        (several, _) => {
            let files: Vec<_> = several.iter().map(|it| it.file.as_str()).collect();
            let reason = format!(
                "there are several functions `operator()`, in {}: move one to {root}, or make the \
                 change by hand",
                files.join(" and ")
            );
            Err(Error::source(root, 1, reason))
        }
    }
}

fn search(items: &[syn::Item], file: &str, inline: &mut Vec<String>, found: &mut Vec<Place>) {
    for item in items {
        match item {
            syn::Item::Fn(function) if is_operator(function) => found.push(Place {
                file: file.to_owned(),
                inline: inline.clone(),
            }),
            syn::Item::Mod(module) if !is_test(&module.attrs) => {
                if let Some((_, items)) = &module.content {
                    inline.push(module.ident.to_string());
                    search(items, file, inline, found);
                    inline.pop();
                }
            }
            _ => {}
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| tokens(it) == "#[cfg(test)]")
}

/// Reports whether a function is `fn operator()` with a return type that names `Operator`.
fn is_operator(function: &ItemFn) -> bool {
    let ReturnType::Type(_, ty) = &function.sig.output else {
        return false;
    };
    let mentions = ty.to_token_stream().into_iter();
    function.sig.ident == "operator"
        && function.sig.inputs.is_empty()
        && flat(mentions).iter().any(|it| it == "Operator")
}

fn flat(tokens: impl Iterator<Item = proc_macro2::TokenTree>) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Group(group) => found.extend(flat(group.stream().into_iter())),
            token => found.push(token.to_string()),
        }
    }
    found
}

/// Returns the items of the module around the function.
pub(crate) fn items<'a>(source: &'a Source, inline: &[String]) -> &'a [syn::Item] {
    let mut items = source.file.items.as_slice();
    for name in inline {
        let inner = items.iter().find_map(|item| match item {
            syn::Item::Mod(module) if module.ident == name => module.content.as_ref(),
            _ => None,
        });
        items = inner.map_or(&[], |(_, items)| items.as_slice());
    }
    items
}

/// Returns the function at a place.
fn function<'a>(source: &'a Source, place: &Place) -> Result<&'a ItemFn> {
    let mut items = items(source, &place.inline).iter();
    let found = items.find_map(|item| match item {
        syn::Item::Fn(function) if is_operator(function) => Some(function),
        _ => None,
    });
    found.ok_or_else(|| Error::source(&source.path, 1, "there is no `fn operator()`"))
}

/// Call of a method in `operator()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// The last segment of its type argument.
    pub(crate) ty: Option<String>,
    /// Its arguments, without spaces.
    pub(crate) arguments: String,
}

impl Call {
    /// Reports whether the call registers the kind.
    pub(crate) fn is_crd(&self, kind: &str) -> bool {
        self.method == "crd" && self.ty.as_deref() == Some(kind)
    }

    /// Reports whether the call passes the result of a function, such as `arm::controller()`, with
    /// any path in front of it.
    pub(crate) fn passes(&self, method: &str, function: &str) -> bool {
        let argument = &self.arguments;
        self.method == method
            && (argument == function || argument.ends_with(&format!("::{function}")))
    }
}

/// Returns all method calls in `operator()`, also those in branches.
pub(crate) fn calls(tree: &Tree, place: &Place) -> Result<Vec<Call>> {
    let source = crate::parse(tree, &place.file)?;
    let mut visitor = Calls::default();
    visitor.visit_block(&function(&source, place)?.block);
    Ok(visitor.calls)
}

#[derive(Default)]
struct Calls {
    calls: Vec<Call>,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        self.calls.push(chain::call(call));
    }
}

/// Returns the place and the chain to edit: the last straight one in the function.
fn editable<'a>(source: &'a Source, place: &Place, hint: &str) -> Result<Vec<Chain<'a>>> {
    let function = function(source, place)?;
    let refuse = |span, reason: &str| {
        let reason = format!("{reason}, where opkit does not edit: {hint} there");
        Err(source.refuse(span, reason))
    };
    let mut shape = Shape::default();
    shape.visit_block(&function.block);
    let span = function.sig.span();
    if shape.constructors > 1 {
        return refuse(span, "operator() builds operators in several places");
    }
    if shape.nested_return {
        return refuse(span, "operator() returns in several places");
    }
    let statements = function.block.stmts.iter();
    let chains: Vec<_> = statements.filter_map(chain_of).collect();
    if chains.is_empty() {
        let is_macro = shape.has_macro;
        return match is_macro {
            true => refuse(span, "operator() is built inside a macro"),
            false => refuse(span, "operator() is not one chain of methods of `Operator`"),
        };
    }
    Ok(chains)
}

/// What is in the body of `operator()`.
#[derive(Default)]
struct Shape {
    constructors: usize,
    nested_return: bool,
    has_macro: bool,
    depth: usize,
}

impl<'ast> Visit<'ast> for Shape {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.depth += 1;
        visit::visit_block(self, block);
        self.depth -= 1;
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        self.constructors += usize::from(chain::is_constructor(&call.func));
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_return(&mut self, call: &'ast syn::ExprReturn) {
        self.nested_return |= self.depth > 1;
        visit::visit_expr_return(self, call);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        // A `return` in a closure or in an async block does not return from operator().
        let is_nested = self.nested_return;
        visit::visit_expr_closure(self, closure);
        self.nested_return = is_nested;
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        let is_nested = self.nested_return;
        visit::visit_expr_async(self, block);
        self.nested_return = is_nested;
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {
        // An item within the function is not part of its flow.
    }

    fn visit_macro(&mut self, _: &'ast syn::Macro) {
        self.has_macro = true;
    }
}

/// Returns the chain that a statement of the function builds, unless an attribute such as `cfg` is
/// on the statement.
fn chain_of(statement: &Stmt) -> Option<Chain<'_>> {
    let expression = match statement {
        Stmt::Local(local) if local.attrs.is_empty() => &local.init.as_ref()?.expr,
        Stmt::Expr(expression, _) => expression,
        _ => return None,
    };
    Chain::of(inner(expression)?).filter(|chain| {
        let mut links = chain.links.iter();
        chain.has_constructor || links.any(|link| METHODS.contains(&link.call.method.as_str()))
    })
}

/// Returns the expression within `return`, an assignment, `Ok(..)`, parentheses and `?`.
fn inner(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::Return(it) if it.attrs.is_empty() => inner(it.expr.as_ref()?),
        Expr::Assign(it) if it.attrs.is_empty() => inner(&it.right),
        Expr::Paren(it) => inner(&it.expr),
        Expr::Try(it) => inner(&it.expr),
        Expr::Call(it) if !chain::is_constructor(&it.func) && it.args.len() == 1 => {
            let name = tokens(&it.func);
            ["Ok", "Some"]
                .contains(&name.as_str())
                .then(|| inner(it.args.first()?))?
        }
        Expr::MethodCall(it) if !it.attrs.is_empty() => None,
        other => Some(other),
    }
}
