//! Reduces an object that fails a check to a small one that fails it too.

use serde_json::Value;

/// Maximum number of candidates.
const CANDIDATES_MAX: usize = 3000;

/// Search for the smallest failing object.
pub(super) struct Smallest<F> {
    is_failing: F,
    /// Number of failing objects.
    found: usize,
    candidates: usize,
}

impl<F: Fn(&Value) -> bool> Smallest<F> {
    pub(super) fn new(is_failing: F) -> Self {
        Self {
            is_failing,
            found: 1,
            candidates: 0,
        }
    }

    /// Returns the number of failing objects that were found.
    pub(super) fn tried(&self) -> usize {
        self.found
    }

    /// Returns the smallest failing object that is found from `object`.
    pub(super) fn of(&mut self, mut object: Value) -> Value {
        while let Some(smaller) = self.smaller(&object) {
            object = smaller;
        }
        object
    }

    /// Returns an object that is a little smaller and still fails.
    fn smaller(&mut self, object: &Value) -> Option<Value> {
        for path in paths(object) {
            for change in changes(object.pointer(&path)) {
                if self.candidates >= CANDIDATES_MAX {
                    return None;
                }
                let Some(candidate) = changed(object, &path, &change) else {
                    continue;
                };
                self.candidates = self.candidates.saturating_add(1);
                if (self.is_failing)(&candidate) {
                    self.found = self.found.saturating_add(1);
                    return Some(candidate);
                }
            }
        }
        None
    }
}

/// One way to reduce a value.
enum Change {
    Remove,
    Replace(Value),
}

/// Returns the JSON pointers of all values below the object's own fields, outer values first.
fn paths(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["metadata", "status", "spec"] {
        if let Some(value) = object.get(name) {
            let path = format!("/{name}");
            if name != "metadata" {
                found.push(path.clone());
            }
            add_paths(value, &path, &mut found);
        }
    }
    found.retain(|path| !["/metadata/name", "/metadata/namespace"].contains(&path.as_str()));
    found.sort_by_key(|path| path.matches('/').count());
    found
}

fn add_paths(value: &Value, path: &str, found: &mut Vec<String>) {
    let mut add = |name: String, value: &Value| {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(path.clone());
        add_paths(value, &path, found);
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| add(name.clone(), value)),
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.for_each(|(at, item)| add(at.to_string(), item));
        }
        _ => {}
    }
}

fn changes(value: Option<&Value>) -> Vec<Change> {
    let mut changes = vec![Change::Remove];
    match value {
        Some(Value::String(text)) if !text.is_empty() => {
            let characters: Vec<char> = text.chars().collect();
            let half = characters.len() / 2;
            let texts = [
                String::new(),
                characters.iter().take(half).collect(),
                characters.iter().skip(half.max(1)).collect(),
                characters.iter().skip(1).collect(),
                characters.iter().take(characters.len() - 1).collect(),
                characters.iter().map(|_| 'a').collect(),
            ];
            let smaller = texts.into_iter().filter(|new| is_smaller(new, text));
            changes.extend(smaller.map(|text| Change::Replace(Value::String(text))));
        }
        Some(Value::Number(number)) => {
            let number = number.as_i64().unwrap_or_default();
            // Towards zero in steps that become smaller, down to 1.
            let steps = (0..62).map(|shift| number / (1_i64 << shift));
            let steps = steps.take_while(|step| *step != 0);
            let smaller = steps.map(|step| number.saturating_sub(step));
            changes.extend(smaller.map(|number| Change::Replace(number.into())));
        }
        Some(Value::Bool(true)) => changes.push(Change::Replace(Value::Bool(false))),
        _ => {}
    }
    changes
}

/// Reports whether a text is shorter, or as long with fewer other characters than `a`.
fn is_smaller(new: &str, old: &str) -> bool {
    let size = |text: &str| {
        let others = text.chars().filter(|c| *c != 'a').count();
        (text.chars().count(), others)
    };
    size(new) < size(old)
}

fn changed(object: &Value, path: &str, change: &Change) -> Option<Value> {
    let mut object = object.clone();
    match change {
        Change::Replace(value) => *object.pointer_mut(path)? = value.clone(),
        Change::Remove => {
            let (parent, name) = path.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            match object.pointer_mut(parent)? {
                Value::Object(fields) => drop(fields.remove(&name)?),
                Value::Array(items) => {
                    let at = name.parse::<usize>().ok()?;
                    (at < items.len()).then(|| items.remove(at))?;
                }
                _ => return None,
            }
        }
    }
    Some(object)
}
