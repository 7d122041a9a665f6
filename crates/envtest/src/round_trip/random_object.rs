//! Random objects of a structural schema.

use opkit_apimachinery::schema::{
    AdditionalProperties, ListType, NoDefinitions, Schema, SchemaType, Typed,
};
use opkit_apimachinery::structural::validate;
use opkit_random::Random;
use serde_json::{Map, Value, json};

use super::pattern;

/// Number of attempts to create an object that fits the schema.
const ATTEMPTS: usize = 50;
/// Depth below which optional fields are left out.
const DEPTH_MAX: usize = 8;
/// Number of items or properties above the minimum.
const MORE_MAX: u64 = 3;

/// Creates random objects of a structural schema, the same for the same seed.
#[derive(Debug)]
pub(super) struct RandomObjects(Random);

/// Reports whether spec and status of an object fit the schema of the object.
pub(super) fn is_valid(object: &Value, schema: &Schema) -> bool {
    let typed = Typed::new(schema, &NoDefinitions);
    validate(object, &typed).is_empty()
}

impl RandomObjects {
    pub(super) fn new(seed: u64) -> Self {
        // The numbers of neighbouring seeds must not be the same ones, one step apart.
        Self(Random::new(Random::new(seed).bits()))
    }

    /// Returns an object with metadata. If no attempt fits the schema, returns the first error of
    /// the last one, with its field.
    pub(super) fn object(&mut self, schema: &Schema) -> Result<Value, String> {
        let typed = Typed::new(schema, &NoDefinitions);
        let mut reason = "the schema is not that of an object".to_owned();
        for _ in 0..ATTEMPTS {
            let mut object = self.value(schema, 0);
            let errors = validate(&object, &typed);
            match (errors.first(), object.as_object_mut()) {
                (Some(error), _) => reason = error.to_string(),
                (None, None) => {}
                (None, Some(fields)) => {
                    fields.insert("metadata".to_owned(), self.metadata());
                    return Ok(object);
                }
            }
        }
        Err(reason)
    }

    fn metadata(&mut self) -> Value {
        let mut metadata = json!({"name": "random", "namespace": "default"});
        if let (Value::Object(metadata), true) = (&mut metadata, self.0.percent(30)) {
            metadata.insert("labels".to_owned(), json!({"app": self.word()}));
            metadata.insert("annotations".to_owned(), json!({"note": self.word()}));
        }
        metadata
    }

    fn value(&mut self, schema: &Schema, depth: usize) -> Value {
        if schema.nullable && self.0.percent(10) {
            return Value::Null;
        }
        if let Some(values) = &schema.enum_ {
            return self.0.one_of(values).cloned().unwrap_or_default();
        }
        if schema.int_or_string {
            // A string that is valid as a quantity and as an integer or a percentage.
            return json!(self.0.below(1000).to_string());
        }
        match schema.type_ {
            Some(SchemaType::Object) => self.fields(schema, depth),
            Some(SchemaType::Array) => self.items(schema, depth),
            Some(SchemaType::String) => json!(self.string(schema)),
            Some(SchemaType::Integer) => json!(self.integer(schema)),
            Some(SchemaType::Number) => self.number(schema),
            Some(SchemaType::Boolean) => json!(self.0.percent(50)),
            _ => self.anything(),
        }
    }

    fn fields(&mut self, schema: &Schema, depth: usize) -> Value {
        if schema.embedded_resource {
            let name = self.word();
            return json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        }
        let mut fields = Map::new();
        let excluded = self.excluded(schema);
        for (name, property) in &schema.properties {
            let is_required = schema.required.contains(name);
            let is_chosen = is_required || (depth < DEPTH_MAX && self.0.percent(60));
            if is_chosen && !excluded.contains(name) {
                fields.insert(name.clone(), self.value(property, depth.saturating_add(1)));
            }
        }
        if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
            let count = self.count(schema.min_properties, schema.max_properties);
            for _ in 0..count {
                let value = self.value(values, depth.saturating_add(1));
                fields.insert(self.word(), value);
            }
        } else if schema.preserve_unknown_fields && self.0.percent(30) {
            fields.insert(format!("x-{}", self.word()), self.anything());
        }
        Value::Object(fields)
    }

    /// Chooses one of the alternatives of `oneOf` and returns the fields of the others.
    fn excluded(&mut self, schema: &Schema) -> Vec<String> {
        let chosen = self.0.below(schema.one_of.len() as u64);
        let mut excluded = Vec::new();
        for (at, alternative) in schema.one_of.iter().enumerate() {
            if at as u64 != chosen {
                excluded.extend(alternative.required.iter().cloned());
            }
        }
        let chosen = usize::try_from(chosen).ok();
        if let Some(chosen) = chosen.and_then(|at| schema.one_of.get(at)) {
            excluded.retain(|name| !chosen.required.contains(name));
        }
        excluded
    }

    fn items(&mut self, schema: &Schema, depth: usize) -> Value {
        let Some(item) = &schema.items else {
            return json!([]);
        };
        let is_nested = depth >= DEPTH_MAX;
        let count = match is_nested {
            true => schema.min_items.unwrap_or_default(),
            false => self.count(schema.min_items, schema.max_items),
        };
        let mut items: Vec<Value> = Vec::new();
        // Items that are equal, or have equal keys, are left out where they must be distinct.
        for _ in 0..count.saturating_mul(4) {
            if items.len() as u64 >= count {
                break;
            }
            let new = self.value(item, depth.saturating_add(1));
            let is_same = |old: &Value| match schema.list_type {
                Some(ListType::Map) => {
                    let mut keys = schema.list_map_keys.iter();
                    keys.all(|key| old.get(key) == new.get(key))
                }
                Some(ListType::Set) => *old == new,
                _ => false,
            };
            if !items.iter().any(is_same) {
                items.push(new);
            }
        }
        Value::Array(items)
    }

    fn count(&mut self, min: Option<u64>, max: Option<u64>) -> u64 {
        let min = min.unwrap_or_default();
        let most = max.unwrap_or(u64::MAX).min(min.saturating_add(MORE_MAX));
        min.saturating_add(self.0.below(most.saturating_sub(min).saturating_add(1)))
    }

    fn string(&mut self, schema: &Schema) -> String {
        let min = usize::try_from(schema.min_length.unwrap_or_default()).unwrap_or(usize::MAX);
        let max = schema.max_length.and_then(|max| usize::try_from(max).ok());
        let most = max.unwrap_or(usize::MAX);
        let pattern = schema.pattern.as_ref().map(|it| it.as_str());
        // A text of the format may not match the pattern, and the other way round; the object is
        // validated as a whole.
        let is_formatted = pattern.is_none() || self.0.percent(50);
        if let Some(format) = schema.format.as_deref().filter(|_| is_formatted)
            && let Some(text) = self.formatted(format)
        {
            return text;
        }
        if let Some(pattern) = pattern {
            let mut texts =
                (0..ATTEMPTS).map_while(|_| pattern::random_match(pattern, &mut self.0));
            let fits = |text: &String| (min..=most).contains(&text.chars().count());
            if let Some(text) = texts.find(fits) {
                return text;
            }
        }
        let most = most.min(min.saturating_add(12));
        let more = most.saturating_sub(min).saturating_add(1) as u64;
        let length = min.saturating_add(usize::try_from(self.0.below(more)).unwrap_or_default());
        (0..length).map(|_| self.character()).collect()
    }

    fn character(&mut self) -> char {
        const CHARACTERS: &[char] = &[
            'a', 'b', 'z', 'A', 'Z', '0', '1', '9', '-', '.', '_', '/', ':', '@', ',', ';', '=',
            ' ', '"', '\\', '\n', 'é', '中', '🤖',
        ];
        self.0.one_of(CHARACTERS).copied().unwrap_or('a')
    }

    fn word(&mut self) -> String {
        let length = 1_u64.saturating_add(self.0.below(6));
        let letters = "abcdefghijklmnopqrstuvwxyz".as_bytes();
        let letter = |random: &mut Random| random.one_of(letters).copied().unwrap_or(b'a');
        (0..length)
            .map(|_| char::from(letter(&mut self.0)))
            .collect()
    }

    /// Returns a random text of a format that Kubernetes checks.
    fn formatted(&mut self, format: &str) -> Option<String> {
        let mut number = |below: u64| self.0.below(below);
        Some(match format.replace('-', "").as_str() {
            "datetime" => format!(
                "20{:02}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                number(100),
                number(12) + 1,
                number(28) + 1,
                number(24),
                number(60),
                number(60),
            ),
            "date" => format!(
                "20{:02}-{:02}-{:02}",
                number(100),
                number(12) + 1,
                number(28) + 1
            ),
            "duration" => format!("{}s", number(10_000)),
            "ipv4" | "ip" => format!("10.{}.{}.{}", number(256), number(256), number(256)),
            "ipv6" => format!("fd00::{:x}", number(65_536)),
            "cidr" => format!("10.{}.0.0/16", number(256)),
            "uuid" | "uuid4" => self.0.uuid(),
            "byte" => ["", "YQ==", "YWI=", "b3BraXQ="]
                .get(number(4) as usize)?
                .to_string(),
            "email" => format!("{}@example.com", self.word()),
            "hostname" | "k8slongname" => format!("{}.example.com", self.word()),
            "k8sshortname" => self.word(),
            "uri" => format!("https://example.com/{}", self.word()),
            "mac" => format!("00:00:5e:00:53:{:02x}", number(256)),
            "hexcolor" => format!("#{:06x}", number(0x0100_0000)),
            _ => return None,
        })
    }

    fn integer(&mut self, schema: &Schema) -> i64 {
        let (low, high) = match schema.format.as_deref() {
            Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
            // Larger integers are not exact in JavaScript, and limits in schemas are floats.
            _ => (-(1 << 53), 1 << 53),
        };
        let limit = |limit: f64| limit as i64;
        let low = schema.minimum.map_or(low, |min| limit(min.ceil()).max(low));
        let high = schema
            .maximum
            .map_or(high, |max| limit(max.floor()).min(high));
        let low = low.saturating_add(i64::from(schema.exclusive_minimum));
        let high = high.saturating_sub(i64::from(schema.exclusive_maximum));
        let step = schema.multiple_of.map_or(1, |step| limit(step).max(1));
        let chosen = match self.0.below(4) {
            0 => low,
            1 => high,
            2 => {
                let small = i64::try_from(self.0.below(20)).unwrap_or_default();
                small.clamp(low, high.max(low))
            }
            _ => {
                let range = high.saturating_sub(low).max(0) as u64;
                low.saturating_add_unsigned(self.0.below(range.saturating_add(1)))
            }
        };
        chosen.saturating_sub(chosen.checked_rem(step).unwrap_or_default())
    }

    fn number(&mut self, schema: &Schema) -> Value {
        let low = schema.minimum.unwrap_or(-1000.0);
        let high = schema.maximum.unwrap_or(low + 2000.0);
        // A quarter is exact in every representation.
        let chosen = ((low + self.0.unit() * (high - low)) * 4.0).floor() / 4.0;
        json!(chosen.clamp(low, high.max(low)))
    }

    fn anything(&mut self) -> Value {
        match self.0.below(4) {
            0 => json!(self.word()),
            1 => json!(self.0.below(100)),
            2 => json!({self.word(): true}),
            _ => json!([self.word()]),
        }
    }
}
