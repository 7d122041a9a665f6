//! The table of the types of built-in kinds.
//!
//! Each line is the name of a type, a tab, and its fields with their types, separated by commas:
//! `core.v1.Container args:[string],image:string,ports:[@core.v1.ContainerPort]`. The name of a
//! kind ends with `!`. `@` precedes the name of another type, `[T]` is a list and `{T}` a map.

use std::collections::BTreeMap;

const TEXT: &str = include_str!("../data/v1.36/types.txt");

/// All types by name.
pub(crate) struct Table(BTreeMap<&'static str, Definition>);

/// A type with fields.
pub(crate) struct Definition {
    pub(crate) is_kind: bool,
    /// Names of the fields in JSON, with their types as the table has them.
    pub(crate) fields: Vec<(&'static str, &'static str)>,
}

impl Table {
    pub(crate) fn read() -> Self {
        Self(TEXT.lines().filter_map(definition).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Definition> {
        self.0.get(name)
    }

    /// Returns the names of the kinds that end with the segments `wanted`, such as
    /// `apps.v1.Deployment` for `Deployment`.
    pub(crate) fn kinds(&self, wanted: &str) -> Vec<&'static str> {
        let is_wanted = |name: &str| match name.strip_suffix(wanted) {
            Some(rest) => rest.is_empty() || rest.ends_with('.'),
            None => false,
        };
        let kinds = self.0.iter().filter(|(_, definition)| definition.is_kind);
        let names = kinds.map(|(name, _)| *name);
        names.filter(|name| is_wanted(name)).collect()
    }
}

fn definition(line: &'static str) -> Option<(&'static str, Definition)> {
    let (name, fields) = line.split_once('\t')?;
    let is_kind = name.ends_with('!');
    let fields = fields.split(',').filter_map(|field| field.split_once(':'));
    let definition = Definition {
        is_kind,
        fields: fields.collect(),
    };
    Some((name.trim_end_matches('!'), definition))
}

/// A type in the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FieldType<'a> {
    /// A type with fields, by name.
    Fields(&'a str),
    List(&'a str),
    Map(&'a str),
    /// A type without fields, such as `string`.
    Leaf(&'a str),
}

impl<'a> FieldType<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(item) = inside('[', ']') {
            Self::List(item)
        } else if let Some(value) = inside('{', '}') {
            Self::Map(value)
        } else if let Some(name) = text.strip_prefix('@') {
            Self::Fields(name)
        } else {
            Self::Leaf(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_a_field_is_known() {
        fn check(table: &Table, ty: &str) {
            match FieldType::of(ty) {
                FieldType::Fields(name) => assert!(table.get(name).is_some(), "{name}"),
                FieldType::List(inner) | FieldType::Map(inner) => check(table, inner),
                FieldType::Leaf(leaf) => assert!(crate::generate::leaf(leaf).is_some(), "{leaf}"),
            }
        }
        let table = Table::read();
        assert!(table.0.values().filter(|it| it.is_kind).count() > 50);
        for definition in table.0.values() {
            for (_, ty) in &definition.fields {
                check(&table, ty);
            }
        }
    }

    #[test]
    fn kinds_are_found_by_name() {
        let table = Table::read();
        assert_eq!(table.kinds("Deployment"), ["apps.v1.Deployment"]);
        assert_eq!(table.kinds("core.v1.Pod"), ["core.v1.Pod"]);
        assert!(table.kinds("HorizontalPodAutoscaler").len() > 1);
        // A type that is not a kind, and the end of a name.
        assert!(table.kinds("PodSpec").is_empty());
        assert!(table.kinds("od").is_empty());
    }
}
