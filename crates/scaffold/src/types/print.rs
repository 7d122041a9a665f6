//! Prints types as Rust source, as rustfmt formats it.

use std::fmt::Write;

use super::arguments::literal;
use super::model::{Body, Field, Item, Ty, Variant};

/// Greatest width of a line, as rustfmt has it by default.
const WIDTH: usize = 100;
/// Greatest width of the arguments of an attribute on one line, as rustfmt has it by default.
const ATTRIBUTE_WIDTH: usize = 70;

/// Returns the source of a type. `attribute` is the name of the attribute above it.
pub(super) fn item(item: &Item, attribute: &str) -> String {
    let mut text = docs(item.description.as_deref(), "");
    text += &self::attribute(attribute, &item.attribute);
    text += &opkit(&item.arguments, "");
    for more in &item.more {
        let _ = writeln!(text, "#[{more}]");
    }
    let name = &item.name;
    match &item.body {
        Body::Newtype(ty) => {
            let _ = writeln!(text, "pub struct {name}(pub {});", ty.rust());
        }
        Body::Struct(fields) if fields.is_empty() => {
            let _ = writeln!(text, "pub struct {name} {{}}");
        }
        Body::Struct(fields) => {
            text += &start(&format!("pub struct {name}"));
            text.extend(fields.iter().map(field));
            text += "}\n";
        }
        Body::Enum(variants) => {
            text += &start(&format!("pub enum {name}"));
            text.extend(variants.iter().map(variant));
            text += "}\n";
        }
    }
    text
}

/// Returns a note about a path, with the path as code.
pub(super) fn code(note: &str) -> String {
    match note.split_once(": ") {
        Some((path, text)) if path.starts_with('.') => format!("`{path}`: {text}"),
        _ => note.to_owned(),
    }
}

fn field(field: &Field) -> String {
    let mut text = docs(field.description.as_deref(), "    ");
    text += &opkit(&field.arguments, "    ");
    let ty = match field.is_option {
        true => format!("Option<{}>", field.ty.rust()),
        false => field.ty.rust(),
    };
    let line = format!("    pub {}: {ty},", field.name);
    let below = format!("        {ty},");
    let argument = ty.split_once('<').zip(ty.strip_suffix('>'));
    let _ = match argument {
        _ if line.chars().count() <= WIDTH => writeln!(text, "{line}"),
        Some(((outer, _), inner)) if below.chars().count() > WIDTH && outer != "BTreeMap" => {
            let inner = inner.get(outer.len().saturating_add(1)..);
            let inner = inner.unwrap_or_default();
            let name = &field.name;
            writeln!(text, "    pub {name}: {outer}<\n        {inner},\n    >,")
        }
        _ => writeln!(text, "    pub {}:\n{below}", field.name),
    };
    text
}

/// Returns the first line of a type, whose brace is on a line of its own after a long name.
fn start(line: &str) -> String {
    let space = match line.chars().count().saturating_add(2) <= WIDTH {
        true => " ",
        false => "\n",
    };
    format!("{line}{space}{{\n")
}

fn variant(variant: &Variant) -> String {
    let mut text = docs(variant.description.as_deref(), "    ");
    let rename = format!("rename = {}", literal(&variant.json));
    let rename = variant.is_renamed.then_some(rename);
    let arguments = rename.into_iter().chain(variant.arguments.iter().cloned());
    text += &opkit(&arguments.collect::<Vec<_>>(), "    ");
    let data = variant.data.as_ref().map(|ty| format!("({})", ty.rust()));
    let _ = writeln!(text, "    {}{},", variant.name, data.unwrap_or_default());
    text
}

/// Returns doc comments. Code in a description is not Rust: neither a fence nor an indented block
/// may become a test of the documentation.
pub(super) fn docs(description: Option<&str>, indent: &str) -> String {
    let mut text = String::new();
    let mut is_fenced = false;
    for line in description.unwrap_or_default().lines() {
        let line = line.trim_end().replace('\t', "  ");
        let inner = line.trim_start();
        if inner.is_empty() {
            let _ = writeln!(text, "{indent}///");
            continue;
        }
        let spaces = line.len().saturating_sub(inner.len());
        let spaces = match is_fenced {
            true => spaces,
            false => spaces.min(3),
        };
        let mut inner = inner.to_owned();
        if inner.starts_with("```") {
            is_fenced = !is_fenced;
            if is_fenced && inner.trim_matches('`').trim().is_empty() {
                inner.push_str("text");
            }
        }
        let _ = writeln!(text, "{indent}/// {:spaces$}{inner}", "");
    }
    if is_fenced {
        let _ = writeln!(text, "{indent}/// ```");
    }
    text
}

/// Returns the attributes `#[opkit(...)]` with these arguments, with as many arguments in each as
/// fit on a line.
fn opkit(arguments: &[String], indent: &str) -> String {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for argument in arguments {
        if let Some(last) = groups.last_mut() {
            last.push(argument.clone());
            if is_short(last, indent) {
                continue;
            }
            last.pop();
        }
        groups.push(vec![argument.clone()]);
    }
    let attributes = groups.iter().map(|group| {
        let inner = list(group, indent);
        format!("{indent}#[opkit{inner}]\n")
    });
    attributes.collect()
}

/// Reports whether arguments fit on one line, by the rules of rustfmt.
fn is_short(arguments: &[String], indent: &str) -> bool {
    let line = arguments.join(", ");
    let fits = indent.len() + "#[opkit()]".len() + line.chars().count() <= WIDTH;
    // The limit is for lists: a single value may fill the line.
    let list = match arguments {
        [only] => nested(only).map_or("", |(_, inner)| inner),
        _ => &line,
    };
    fits && list.chars().count() <= ATTRIBUTE_WIDTH
}

/// Returns the name and the text in the parentheses of an argument such as `items(min = 1)`.
fn nested(argument: &str) -> Option<(&str, &str)> {
    let (name, inner) = argument.split_once('(')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let inner = inner.strip_suffix(')')?;
    name.chars().all(is_name).then_some((name, inner))
}

/// Returns arguments in parentheses, on several lines if they do not fit on one. The last line has
/// the indentation `indent`.
fn list(arguments: &[String], indent: &str) -> String {
    if is_short(arguments, indent) {
        return format!("({})", arguments.join(", "));
    }
    // A single list stays on the line of the parentheses around it.
    if let [only] = arguments
        && let Some((name, inner)) = nested(only)
    {
        return format!("({name}{})", list(&split(inner), indent));
    }
    let below = format!("{indent}    ");
    let lines = arguments.iter().map(|argument| {
        let inner = nested(argument).filter(|_| {
            let width = below.len() + argument.chars().count();
            width > WIDTH
        });
        match inner {
            Some((name, inner)) => format!("{below}{name}{}", list(&split(inner), &below)),
            None => format!("{below}{argument}"),
        }
    });
    format!("(\n{}\n{indent})", lines.collect::<Vec<_>>().join(",\n"))
}

/// Splits arguments at the commas between them.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quote, mut is_escaped) = (0_usize, Quote::None, false);
    let letters: Vec<char> = text.chars().collect();
    for (at, letter) in letters.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at)).copied();
        let after = letters.get(at.saturating_add(1)).copied();
        match quote {
            Quote::None => match letter {
                '"' => {
                    quote = match before {
                        Some('r') => Quote::Raw,
                        Some('#') => Quote::Hash,
                        _ => Quote::Plain,
                    };
                }
                '(' | '[' | '{' => depth = depth.saturating_add(1),
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            },
            Quote::Plain if is_escaped => is_escaped = false,
            Quote::Plain if letter == '\\' => is_escaped = true,
            Quote::Plain | Quote::Raw if letter == '"' => quote = Quote::None,
            Quote::Hash if letter == '"' && after == Some('#') => quote = Quote::None,
            _ => {}
        }
        if letter == ',' && depth == 0 && quote == Quote::None {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    let parts = parts.iter().map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// String literal that a position is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Plain,
    Raw,
    Hash,
}

/// Returns an attribute with its arguments.
fn attribute(name: &str, arguments: &[String]) -> String {
    match arguments {
        [] => format!("#[{name}]\n"),
        arguments => format!("#[{name}{}]\n", list(arguments, "")),
    }
}

/// Returns the paths of the imports that types need.
pub(super) fn used<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<&'static str> {
    let mut used = Vec::new();
    let mut see = |ty: &Ty| ty.visit(&mut |ty| used.extend(import(ty)));
    for item in items {
        match &item.body {
            Body::Struct(fields) => fields.iter().for_each(|field| see(&field.ty)),
            Body::Enum(variants) => {
                let data = variants.iter().filter_map(|it| it.data.as_ref());
                data.for_each(&mut see);
            }
            Body::Newtype(ty) => see(ty),
        }
    }
    used
}

/// Returns the lines that import paths.
pub(crate) fn imports(paths: &[&str]) -> String {
    let mut used = paths.to_vec();
    used.sort_unstable();
    used.dedup();
    // Names of one module are one line, in the order in which rustfmt sorts them.
    let mut modules: Vec<(&str, Vec<&str>)> = Vec::new();
    for path in used {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        match modules.iter_mut().find(|(known, _)| *known == module) {
            Some((_, names)) => names.push(name),
            None => modules.push((module, vec![name])),
        }
    }
    let line = |(module, names): &(&str, Vec<&str>)| match names.as_slice() {
        [name] => format!("use {module}::{name};\n"),
        names => format!("use {module}::{{{}}};\n", names.join(", ")),
    };
    let is_std = |(module, _): &&(&str, Vec<&str>)| module.starts_with("std");
    let std: String = modules.iter().filter(is_std).map(line).collect();
    let others: String = modules.iter().filter(|it| !is_std(it)).map(line).collect();
    let parts = [std, others].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the path of the import that a type needs.
fn import(ty: &Ty) -> Option<&'static str> {
    match ty {
        Ty::Map(_) => Some("opkit::prelude::BTreeMap"),
        Ty::Quantity => Some("opkit::prelude::Quantity"),
        Ty::Conditions => Some("opkit::prelude::Conditions"),
        Ty::Any => Some("opkit::serde_json::Value"),
        Ty::Bytes => Some("opkit::k8s_openapi::ByteString"),
        Ty::Time => Some("opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time"),
        Ty::IntOrString => Some("opkit::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString"),
        _ => None,
    }
}
