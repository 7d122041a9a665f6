//! Search for places in a source file that can be changed so that it still compiles.

use std::fmt;
use std::ops::Range;

use anyhow::Result;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type, UnOp};

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) package: &'static str,
    pub(crate) file: String,
    pub(crate) line: usize,
    /// Byte range to replace; empty for an insertion.
    pub(crate) span: Range<usize>,
    /// New text, with `MUTANT` in place of the condition that enables the mutant.
    pub(crate) text: String,
    what: String,
}

impl Mutant {
    /// Reports whether both change the same text, so that only one of them can be compiled in.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.span, &other.span);
        self.file == other.file && (a.start < b.end && b.start < a.end || a == b)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Returns every mutant of a file.
pub(crate) fn find(package: &'static str, file: &str, source: &str) -> Result<Vec<Mutant>> {
    let parsed = syn::parse_file(source)?;
    let mut finder = Finder {
        package,
        file,
        source,
        mutants: Vec::new(),
    };
    finder.visit_file(&parsed);
    Ok(finder.mutants)
}

struct Finder<'a> {
    package: &'static str,
    file: &'a str,
    source: &'a str,
    mutants: Vec<Mutant>,
}

impl Finder<'_> {
    fn add(&mut self, at: Span, range: Range<usize>, text: String, what: impl Into<String>) {
        self.mutants.push(Mutant {
            package: self.package,
            file: self.file.to_owned(),
            line: at.start().line,
            span: range,
            text,
            what: what.into(),
        });
    }

    fn text(&self, of: &impl Spanned) -> &str {
        self.source.get(of.span().byte_range()).unwrap_or_default()
    }

    /// Adds a mutant that replaces an expression by one of the same type.
    fn replace(&mut self, expr: &Expr, by: &str, what: impl Into<String>) {
        let text = format!("(if MUTANT {{ {by} }} else {{ {} }})", self.text(expr));
        self.add(expr.span(), expr.span().byte_range(), text, what);
    }

    /// Adds mutants that make a function return immediately.
    fn return_early(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        let values: &[&str] = match &signature.output {
            ReturnType::Default => &[""],
            ReturnType::Type(_, of) => match self.text(of.as_ref()) {
                "bool" => &["true", "false"],
                of if of.starts_with("Option<") => &["None"],
                of if of.starts_with("Result<()") => &["Ok(())"],
                _ => &[],
            },
        };
        let inside = block.brace_token.span.open().byte_range().end;
        for value in values {
            let text = format!(" if MUTANT {{ return {value}; }}");
            let what = format!("fn {} returns {value} at once", signature.ident);
            self.add(signature.ident.span(), inside..inside, text, what);
        }
    }

    fn compare(&mut self, expr: &Expr, binary: &syn::ExprBinary) {
        let by = match binary.op {
            BinOp::Eq(_) => "!=",
            BinOp::Ne(_) => "==",
            BinOp::Lt(_) => "<=",
            BinOp::Le(_) => "<",
            BinOp::Gt(_) => ">=",
            BinOp::Ge(_) => ">",
            BinOp::And(_) if !has_let(expr) => "||",
            BinOp::Or(_) => "&&",
            _ => return,
        };
        let (left, right) = (
            self.text(binary.left.as_ref()),
            self.text(binary.right.as_ref()),
        );
        let text = format!("{left} {by} {right}");
        let what = format!("{} -> {by}", short(self.text(expr)));
        self.replace(expr, &text, what);
    }
}

/// Returns the start of an expression, in one line.
fn short(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(80).collect()
}

/// Reports whether a condition binds names, so that it cannot be put in parentheses.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test") || path.is_ident("cfg")
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_test(&function.attrs) && function.sig.constness.is_none() {
            self.return_early(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        // Output of `fmt` is not a guarantee.
        let is_fmt = function.sig.ident == "fmt";
        if !is_test(&function.attrs) && function.sig.constness.is_none() && !is_fmt {
            self.return_early(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => self.compare(expr, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let by = self.text(unary.expr.as_ref()).to_owned();
                let what = format!("{} -> without !", short(self.text(expr)));
                self.replace(expr, &by, what);
            }
            Expr::Call(call) if self.text(call.func.as_ref()) == "Some" => {
                let what = format!("{} -> None", short(self.text(expr)));
                self.replace(expr, "None", what);
            }
            Expr::If(branch) if !has_let(&branch.cond) => {
                if let Expr::Call(_) | Expr::MethodCall(_) | Expr::Path(_) | Expr::Field(_) =
                    *branch.cond
                {
                    let condition = self.text(branch.cond.as_ref()).to_owned();
                    let what = format!("if {} -> negated", short(&condition));
                    self.replace(&branch.cond, &format!("!({condition})"), what);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = stmt
            && let Expr::Call(_)
            | Expr::MethodCall(_)
            | Expr::Assign(_)
            | Expr::Try(_)
            | Expr::Await(_) = expr
        {
            let text = format!("if !MUTANT {{ {} }}", self.text(stmt));
            let what = format!("{} -> left out", short(self.text(stmt)));
            self.add(stmt.span(), stmt.span().byte_range(), text, what);
        }
        visit::visit_stmt(self, stmt);
    }
}
