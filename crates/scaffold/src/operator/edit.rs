//! Edits of the method chain in `operator()`.

use std::ops::Range;

use syn::ItemFn;

use super::chain::{Chain, Link};
use super::{Call, Place, calls, editable};
use crate::render::CHAIN_MAX;
use crate::source::{Edits, Source};
use crate::tree::Tree;
use crate::{Result, parse};

/// Adds a method call such as `.crd::<Arm>()` to the chain: after the calls of the same method, or
/// else where a reader expects it.
pub(crate) fn add_link(tree: &mut Tree, place: &Place, method: &str, link: &str) -> Result<()> {
    let source = parse(tree, &place.file)?;
    let before = calls(tree, place)?.len();
    let chains = editable(&source, place, &format!("add `{link}`"))?;
    let mut edits = Edits::default();
    insert(&source, &chains, method, link, &mut edits);
    commit(
        tree,
        &source,
        edits,
        place,
        before + 1,
        &format!("add `{link}`"),
    )
}

/// Removes the method calls that `is_removed` selects, and returns their number.
pub(crate) fn remove_links(
    tree: &mut Tree,
    place: &Place,
    is_removed: impl Fn(&Call) -> bool,
) -> Result<usize> {
    let all = calls(tree, place)?;
    let count = all.iter().filter(|call| is_removed(call)).count();
    if count == 0 {
        return Ok(0);
    }
    let source = parse(tree, &place.file)?;
    let hint = "remove the call by hand";
    let chains = editable(&source, place, hint)?;
    let mut edits = Edits::default();
    let links = chains.iter().flat_map(|chain| &chain.links);
    for link in links.filter(|link| is_removed(&link.call)) {
        edits.delete(removed(&source, &link.range));
    }
    commit(tree, &source, edits, place, all.len() - count, hint)?;
    Ok(count)
}

/// Adds method calls to the end of the chain that is the body of a function.
pub(crate) fn append_to_chain(
    source: &Source,
    function: &ItemFn,
    links: &[String],
    edits: &mut Edits,
) -> Result<()> {
    let Some(chain) = Chain::of_function(function) else {
        let (name, calls) = (&function.sig.ident, links.concat());
        let reason = format!("{name}() is not one chain of methods: add `{calls}` by hand");
        return Err(source.refuse(name.span(), reason));
    };
    let chains = [chain];
    let mut whole = Edits::default();
    insert(source, &chains, "", &links.concat(), &mut whole);
    if !whole.has_line_break() {
        *edits = whole;
        return Ok(());
    }
    for (index, link) in links.iter().enumerate() {
        let mut own = Edits::default();
        insert(source, &chains, "", link, &mut own);
        match index {
            // Only the first call breaks a chain that was on one line.
            0 => *edits = own,
            _ => edits.append_first(own),
        }
    }
    Ok(())
}

/// Removes calls from the chain that is the body of a function. Returns whether a call is left.
pub(crate) fn remove_from_chain(
    source: &Source,
    function: &ItemFn,
    methods: &[&str],
    edits: &mut Edits,
) -> bool {
    let chain = Chain::of_function(function);
    let links = chain.map(|it| it.links).unwrap_or_default();
    let is_removed = |method: &str| methods.contains(&method);
    for link in links.iter().filter(|link| is_removed(&link.call.method)) {
        edits.delete(removed(source, &link.range));
    }
    links.iter().any(|link| !is_removed(&link.call.method))
}

/// Methods after which a call is inserted if the chain does not have the same method yet.
fn neighbours(method: &str) -> &'static [&'static str] {
    match method {
        "controller" => &["crd", "namespaced"],
        "webhook" => &["controller", "crd", "namespaced"],
        "crd" => &["namespaced"],
        _ => &[],
    }
}

fn insert(source: &Source, chains: &[Chain<'_>], method: &str, link: &str, edits: &mut Edits) {
    let with_method = chains.iter().rfind(|it| it.after(&[method]).is_some());
    let with_links = || chains.iter().rfind(|chain| !chain.links.is_empty());
    let Some(chain) = with_method.or_else(with_links).or(chains.last()) else {
        return;
    };
    let index = chain.after(&[method]);
    let index = index.or_else(|| chain.after(neighbours(method)));
    let index = index.unwrap_or(match (method, chain.has_constructor) {
        // First the kinds of the operator, then everything else.
        ("crd" | "namespaced", true) => 0,
        _ => chain.links.len(),
    });
    let end = match index.checked_sub(1).and_then(|it| chain.links.get(it)) {
        Some(link) => link.range.end,
        None => source.range(&chain.root).end,
    };
    let position = source.comment_end(end).unwrap_or(end);
    let starts = |link: &&Link| source.is_first_on_line(link.range.start);
    if let Some(link_on_line) = chain.links.iter().find(starts) {
        let indent = source.indent(link_on_line.range.start);
        return edits.insert(position, format!("\n{indent}{link}"));
    }
    let start = source.range(&chain.root).start;
    let last = chain.links.last().map_or(end, |link| link.range.end);
    if last - start + link.len() <= CHAIN_MAX && position == end {
        return edits.insert(end, link);
    }
    // The chain was on one line: each call gets a line.
    let line = source.line_start(start);
    let text = source.text.get(line..).unwrap_or_default();
    let code = text.trim_start_matches([' ', '\t']);
    let indent = text.get(..text.len() - code.len()).unwrap_or_default();
    edits.insert(position, format!("\n{indent}    {link}"));
    for link in &chain.links {
        edits.insert(link.range.start, format!("\n{indent}    "));
    }
}

/// Returns the bytes that go with a method call: the line break before it, and a comment behind it.
fn removed(source: &Source, range: &Range<usize>) -> Range<usize> {
    let end = source.comment_end(range.end).unwrap_or(range.end);
    let before = source.text.get(..range.start).unwrap_or_default();
    match source.is_first_on_line(range.start) {
        true => before.trim_end().len()..end,
        false => range.start..end,
    }
}

/// Stores the edited file, if the function still has the expected number of calls.
fn commit(
    tree: &mut Tree,
    source: &Source,
    edits: Edits,
    place: &Place,
    expected: usize,
    hint: &str,
) -> Result<()> {
    let mut edited = tree.clone();
    edited.insert(&source.path, edits.apply(&source.text));
    let found = calls(&edited, place).map(|calls| calls.len());
    if found.ok() != Some(expected) {
        let span = super::function(source, place)?.sig.ident.span();
        let reason = format!("a comment or a macro is in the way in operator(): {hint} by hand");
        return Err(source.refuse(span, reason));
    }
    *tree = edited;
    Ok(())
}
