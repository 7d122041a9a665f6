//! Checks the conversions between the versions of a kind, with random objects of its schemas.
//!
//! Two properties are checked. An object that [`KindVersions::convert`] converts to another version
//! and back is the same again. And the declared conversions alone, without the annotation that
//! keeps lost values, lose only the fields that the declaration names as `removed` or `added`:
//! otherwise controllers, which use the hub, would not see the value that a user wrote.

mod pattern;
mod random_object;
mod shrink;
#[cfg(test)]
mod tests;

use opkit_apimachinery::conversion::{
    Convert, FieldNote, Fields, KindVersions, Notes, Spoke, Step, differences,
};
use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural::fill_defaults;
use opkit_operator::Operator;
use serde_json::{Map, Value, json};

use self::random_object::RandomObjects;
use self::shrink::Smallest;

/// Environment variable with the number of random objects for each pair of versions.
const COUNT_VARIABLE: &str = "OPKIT_ROUND_TRIPS";
/// Number of random objects for each pair of versions.
const COUNT: u64 = 200;

/// Returns the problems of the conversions of an operator's kinds: for each pair of versions, the
/// conversion to the other version and back must be the identity for 200 random objects of the
/// schema, or for as many as the environment variable `OPKIT_ROUND_TRIPS` sets. The objects are the
/// same in every run. A problem has the smallest object that was found.
pub(crate) fn operator_problems(operator: &Operator) -> Vec<String> {
    let count = std::env::var(COUNT_VARIABLE).ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let kinds = operator.versions().iter();
    kinds.flat_map(|kind| problems(kind, count)).collect()
}

/// Returns the problems of a kind's conversions, at most one for each pair of versions.
pub(crate) fn problems(kind: &KindVersions, count: u64) -> Vec<String> {
    let mut found = Vec::new();
    let names: Vec<&str> = kind.names().collect();
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            let Some(schema) = kind.schema(from) else {
                continue;
            };
            let pair = Pair {
                kind,
                from,
                to,
                schema,
                bare: Bare::of(kind, from, to),
            };
            found.extend(pair.problem(count));
        }
    }
    found
}

/// Two versions of a kind.
struct Pair<'a> {
    kind: &'a KindVersions,
    from: &'a str,
    to: &'a str,
    schema: &'a Schema,
    bare: Option<Bare<'a>>,
}

/// The declared conversions between a version and the hub.
struct Bare<'a> {
    spoke: &'a Spoke,
    convert: Convert,
    is_to_hub: bool,
}

/// Result of the conversion of one object to another version and back.
enum Outcome {
    Same,
    /// The object cannot be converted.
    Error(String),
    /// The fields differ.
    Different(Vec<Change>),
}

/// A field with another value after the conversion to another version and back.
struct Change {
    path: String,
    before: Option<Value>,
    after: Option<Value>,
    note: Option<&'static FieldNote>,
}

impl<'a> Bare<'a> {
    /// Returns the declared conversion, if one of the versions is the hub.
    fn of(kind: &'a KindVersions, from: &str, to: &str) -> Option<Self> {
        let find = |name: &str| kind.spokes().iter().find(|spoke| spoke.name == name);
        match (from == kind.hub(), to == kind.hub()) {
            (true, _) => find(to).map(|spoke| Self {
                spoke,
                convert: spoke.functions.from_hub,
                is_to_hub: false,
            }),
            (_, true) => find(from).map(|spoke| Self {
                spoke,
                convert: spoke.functions.to_hub,
                is_to_hub: true,
            }),
            _ => None,
        }
    }

    fn notes(&self, field: &str) -> Option<Notes> {
        (self.spoke.functions.notes)(field)
    }

    /// Removes what the other version cannot express.
    fn comparable(&self, mut fields: Fields) -> Fields {
        for (name, value) in &mut fields {
            match (self.notes(name), self.is_to_hub) {
                (Some(notes), true) => notes.remove_removed(value),
                (Some(notes), false) => notes.remove_added(value),
                (None, _) => *value = Value::Null,
            }
        }
        without_empty(&mut fields);
        fields
    }

    /// Returns the note about the field that contains a path.
    fn note(&self, path: &[Step]) -> Option<&'static FieldNote> {
        let mut names = path.iter().filter_map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item(_) => None,
        });
        let mut notes = self.notes(names.next()?)?;
        let mut found = None;
        let names: Vec<&str> = names.collect();
        let mut at = names.as_slice();
        while let Some((first, rest)) = at.split_first() {
            let note = match self.is_to_hub {
                true => notes.of_field(first),
                false => notes.of_hub(&at.join(".")),
            };
            found = Some(note?);
            notes = (note?.nested)();
            at = rest;
            if notes.fields.is_empty() {
                break;
            }
        }
        found
    }
}

impl Pair<'_> {
    fn problem(&self, count: u64) -> Option<String> {
        let (mut failed, mut reason) = (0_u64, String::new());
        for seed in 0..count {
            let object = match self.random(seed) {
                Ok(object) => object,
                Err(error) => {
                    (failed, reason) = (failed.saturating_add(1), error);
                    continue;
                }
            };
            if !matches!(self.outcome(&object), Outcome::Same) {
                let mut smallest = Smallest::new(|candidate| {
                    let is_valid = random_object::is_valid(candidate, self.schema);
                    is_valid && !matches!(self.outcome(candidate), Outcome::Same)
                });
                let object = smallest.of(object);
                return Some(self.report(&object, seed, smallest.tried()));
            }
        }
        // Few objects show little, so a check with few objects is not a passed one.
        let is_poor = failed.saturating_mul(2) > count;
        is_poor.then(|| {
            let (kind, from, to) = (self.kind.kind(), self.from, self.to);
            format!(
                "{kind} {from} -> {to} was not checked: {failed} of {count} random objects of \
                 {from} do not fit its schema, such as: {reason}"
            )
        })
    }

    /// Returns the random object with this seed, or the reason why no attempt fits the schema.
    fn random(&self, seed: u64) -> Result<Value, String> {
        let api_version = format!("{}/{}", self.kind.group(), self.from);
        let mut object = RandomObjects::new(seed).object(self.schema)?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), json!(api_version));
            fields.insert("kind".to_owned(), json!(self.kind.kind()));
        }
        Ok(object)
    }

    fn outcome(&self, object: &Value) -> Outcome {
        match self.convert_and_back(object) {
            Ok(changes) if !changes.is_empty() => Outcome::Different(changes),
            Ok(_) => match self.convert_bare(object) {
                Ok(changes) if !changes.is_empty() => Outcome::Different(changes),
                Ok(_) => Outcome::Same,
                Err(error) => Outcome::Error(error),
            },
            Err(error) => Outcome::Error(error),
        }
    }

    fn convert_and_back(&self, object: &Value) -> Result<Vec<Change>, String> {
        let converted = self.kind.convert(object.clone(), self.to).map_err(chain)?;
        let back = self
            .kind
            .convert(converted.object, self.from)
            .map_err(chain)?;
        let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
        Ok(self.changes(&fields(object), &fields(&back.object)))
    }

    /// Compares an object with the result of the declared conversions, without the annotation.
    fn convert_bare(&self, object: &Value) -> Result<Vec<Change>, String> {
        let Some(bare) = &self.bare else {
            return Ok(Vec::new());
        };
        // The server sets the defaults before it converts an object.
        let mut object = object.clone();
        fill_defaults(&mut object, &Typed::new(self.schema, &NoDefinitions));
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.retain(|name, _| bare.spoke.functions.fields.contains(&name.as_str()));
        let converted = (bare.convert)(&fields, true).map_err(|error| error.to_string())?;
        let (before, after) = (bare.comparable(fields), bare.comparable(converted.reversed));
        let mut changes = self.changes(&before, &after);
        // The Rust types have defaults that the schema does not have, as in a status.
        changes.retain(|change| change.before.is_some() || !change.after.iter().all(is_zero));
        Ok(changes)
    }

    fn changes(&self, before: &Fields, after: &Fields) -> Vec<Change> {
        let found = differences(after, before, self.schema).into_iter();
        found
            .map(|difference| Change {
                after: value_at(after, &difference.path),
                note: self.bare.as_ref().and_then(|it| it.note(&difference.path)),
                path: difference.path.iter().map(ToString::to_string).collect(),
                before: difference.value,
            })
            .collect()
    }

    fn report(&self, object: &Value, seed: u64, tried: usize) -> String {
        let Self { kind, from, to, .. } = self;
        let kind = kind.kind();
        let head = format!("{kind} {from} -> {to} -> {from} is not the identity");
        match self.outcome(object) {
            Outcome::Same => head,
            Outcome::Error(error) => format!(
                "{kind} {from} -> {to} fails (seed {seed}, smallest of {tried}): {error}\n   {}",
                shown(object.get("spec"))
            ),
            Outcome::Different(changes) => {
                let lines = changes.iter().map(Change::line).collect::<Vec<_>>();
                let lines = lines.join("\n   ");
                format!("{head} (seed {seed}, smallest of {tried})\n   {lines}")
            }
        }
    }
}

impl Change {
    fn line(&self) -> String {
        let (before, after) = (shown(self.before.as_ref()), shown(self.after.as_ref()));
        let mut line = format!("{}  {before} -> {after}", self.path);
        if let Some(note) = self.note {
            let declared = match note.declared {
                "" => "carried over",
                declared => declared,
            };
            line.push_str(&format!("        {declared}, {}:{}", note.file, note.line));
        }
        line
    }
}

/// Reports whether a value is the default of its type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), ToString::to_string)
}

fn value_at(fields: &Fields, path: &[Step]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let mut at = match first {
        Step::Field(name) => fields.get(name)?,
        Step::Item(_) => return None,
    };
    for step in rest {
        at = match step {
            Step::Field(name) => at.get(name)?,
            Step::Item(keys) => {
                let has =
                    |item: &&Value| keys.iter().all(|(name, key)| item.get(name) == Some(key));
                at.as_array()?.iter().find(has)?
            }
        };
    }
    Some(at.clone())
}

/// Removes null, empty lists and empty objects, which mean the same as an absent field.
fn without_empty(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| {
        match value {
            Value::Object(fields) => without_empty(fields),
            Value::Array(items) => {
                for item in items.iter_mut() {
                    if let Value::Object(fields) = item {
                        without_empty(fields);
                    }
                }
            }
            _ => {}
        }
        let is_empty = match value {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        !is_empty
    });
}

fn chain(error: opkit_apimachinery::conversion::ConversionError) -> String {
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
