//! Reads the struct tags of Go source: a field's protobuf number beside its JSON name.
//!
//! The files are as gofmt leaves them, one field per line, so lines are enough.

use std::collections::BTreeMap;

/// A struct: what its fields' tags say, by protobuf number.
pub(crate) type Struct = BTreeMap<u32, Tag>;

/// What one field says of its wire forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Whether the field is a pointer, which is on the wire only when it is set.
    pub(crate) pointer: bool,
    /// The JSON name, unless the type brings a JSON form of its own.
    pub(crate) json: Option<Json>,
}

/// A `json` tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Json {
    pub(crate) name: String,
    /// An empty scalar, list or map is left out; it says nothing of a struct.
    pub(crate) omit_empty: bool,
    /// The zero of any type is left out, that of a struct as well.
    pub(crate) omit_zero: bool,
    pub(crate) inline: bool,
}

/// The structs of a package, by name.
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

/// `Pod` of `type Pod struct {`, and whether that is all of the struct, as in `type None struct{}`.
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

/// The value of one key of a struct tag.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tags.split_once(&format!("{key}:\""))?;
    rest.split_once('"').map(|(value, _)| value)
}
