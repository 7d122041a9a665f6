//! Reader of the struct tags in Go source: a field's protobuf number and its JSON name.
//!
//! gofmt puts one field on each line, so reading line by line is enough.

use std::collections::BTreeMap;

/// Tags of a struct's fields, by protobuf number.
pub(crate) type Struct = BTreeMap<u32, Tag>;

/// Wire formats of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Whether the field is a pointer, which is on the wire only if it is set.
    pub(crate) pointer: bool,
    /// JSON name, unless the type has its own JSON form.
    pub(crate) json: Option<Json>,
}

/// Content of a `json` tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Json {
    pub(crate) name: String,
    /// Whether an empty scalar, list or map is omitted; it has no effect on a struct.
    pub(crate) omit_empty: bool,
    /// Whether the zero value of any type is omitted, also of a struct.
    pub(crate) omit_zero: bool,
    pub(crate) inline: bool,
}

/// Returns the structs of a package, by name.
pub(crate) fn parse(files: &[String]) -> BTreeMap<String, Struct> {
    let mut structs = BTreeMap::new();
    for file in files {
        let mut current: Option<(String, Struct)> = None;
        for line in file.lines() {
            if line == "}" {
                structs.extend(current.take());
            } else if let Some((name, is_empty)) = struct_name(line) {
                let started = (name.to_owned(), Struct::new());
                match is_empty {
                    true => structs.extend([started]),
                    false => current = Some(started),
                }
            } else if let Some((_, fields)) = &mut current {
                fields.extend(field(line));
            }
        }
    }
    structs
}

/// Returns `Pod` for `type Pod struct {`, and whether the struct ends on this line, as in
/// `type None struct{}`.
fn struct_name(line: &str) -> Option<(&str, bool)> {
    let (name, rest) = line.strip_prefix("type ")?.split_once(" struct")?;
    let rest = rest.trim();
    (rest == "{" || rest == "{}").then_some((name.trim(), rest == "{}"))
}

fn field(line: &str) -> Option<(u32, Tag)> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (declared, tags) = line.split_once('`')?;
    let mut protobuf = tag(tags, "protobuf")?.split(',').skip(1);
    let number = protobuf.next()?.parse().ok()?;
    let type_ = declared.split_whitespace().next_back()?;
    let json = tag(tags, "json").map(|json| {
        let mut parts = json.split(',');
        let name = parts.next().unwrap_or_default().to_owned();
        let options: Vec<&str> = parts.collect();
        Json {
            inline: options.contains(&"inline"),
            omit_empty: options.contains(&"omitempty"),
            omit_zero: options.contains(&"omitzero"),
            name,
        }
    });
    Some((
        number,
        Tag {
            pointer: type_.starts_with('*'),
            json,
        },
    ))
}

/// Returns the value of one key of a struct tag.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tags.split_once(&format!("{key}:\""))?;
    rest.split_once('"').map(|(value, _)| value)
}
