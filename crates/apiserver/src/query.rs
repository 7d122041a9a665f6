//! The query of a request.

/// The query parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        // As in Go, a parameter with an invalid escape is ignored.
        let valid = text.split('&').filter(|pair| has_valid_escapes(pair));
        let pairs = valid.flat_map(|pair| form_urlencoded::parse(pair.as_bytes()));
        Self(
            pairs
                .map(|(k, v)| (k.into_owned(), v.into_owned()))
                .collect(),
        )
    }

    /// Reports whether the query has the parameter `name`, even if its value is empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Returns the last value of the parameter `name`, or `None` if the parameter is missing or
    /// empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().rev().find(|(key, _)| key == name)?;
        Some(value.1.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns all values of the parameter `name`.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let values = self.0.iter().filter(|(key, _)| key == name);
        values.map(|(_, value)| value.as_str()).collect()
    }

    /// Reports whether the boolean parameter `name` is set. As in Kubernetes, every value except
    /// `false` and `0` is true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self.0.iter().rev().find(|(key, _)| key == name);
        value.is_some_and(|(_, value)| !matches!(value.to_lowercase().as_str(), "false" | "0"))
    }
}

/// Reports whether each `%` in a parameter has two hexadecimal digits after it.
fn has_valid_escapes(pair: &str) -> bool {
    let mut parts = pair.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_parameter_is_missing() {
        let query = Query::parse("watch=true&labelSelector=a%3Db&limit=");
        assert!(query.flag("watch"));
        assert_eq!(query.get("labelSelector"), Some("a=b"));
        assert_eq!(query.get("limit"), None);
        assert!(query.has("limit") && !query.has("continue"));
    }

    #[test]
    fn a_parameter_with_an_invalid_escape_is_ignored() {
        let query = Query::parse("a=%zz&b=%20&c=%2");
        assert_eq!(
            (query.get("a"), query.get("b"), query.get("c")),
            (None, Some(" "), None)
        );
    }
}
