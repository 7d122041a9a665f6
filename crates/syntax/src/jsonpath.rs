//! Syntax of Kubernetes' JSONPath, as printer columns of a CRD use it: fields, indexes, slices,
//! wildcards, filters and recursive descent.

/// Error of a path, with the column where the error is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// Column in code points, from 1.
    pub column: usize,
    /// Message about the error.
    pub message: String,
}

/// Returns the error of a path, or `None` if the path is valid.
///
/// # Examples
/// ```
/// use opkit_syntax::jsonpath;
///
/// assert_eq!(jsonpath::error(".status.conditions[?(@.type=='Ready')].status"), None);
/// let error = jsonpath::error(".status.nodes[0").unwrap();
/// assert_eq!((error.column, error.message.as_str()), (14, "missing closing ]"));
/// ```
pub fn error(path: &str) -> Option<PathError> {
    let mut parser = Parser { path, rest: path };
    parser.parse().err()
}

/// Returns the names of the fields at the start of a path, up to the first part that is not the
/// name of a field.
///
/// # Examples
/// ```
/// use opkit_syntax::jsonpath;
///
/// let fields = jsonpath::leading_fields(".status.conditions[0].type");
/// assert_eq!(fields, ["status", "conditions"]);
/// ```
pub fn leading_fields(path: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut rest = path;
    while let Some(after) = rest.strip_prefix('.') {
        let (name, next) = name(after);
        if name.is_empty() || name == "*" {
            break;
        }
        fields.push(name);
        rest = next;
    }
    fields
}

/// Reports whether a path consists only of the names of fields, as the paths of the subresource
/// `scale` and of selectable fields must.
pub fn is_simple(path: &str) -> bool {
    !path.is_empty()
        && path.split('.').skip(1).all(|name| {
            let is_first = |letter: char| letter == '_' || letter.is_ascii_alphabetic();
            let is_inner =
                |letter: char| is_first(letter) || letter.is_ascii_digit() || letter == '-';
            name.starts_with(is_first) && name.chars().all(is_inner)
        })
        && path.starts_with('.')
}

/// Reads the name of a field, in which a backslash escapes a character, and returns the text after
/// the name.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            '.' | '[' | ']' | '{' | '}' | '(' | ')' | ' ' | ',' | '|' | '@' | '\'' | '"' => {
                return (name, text.get(at..).unwrap_or_default());
            }
            letter => name.push(letter),
        }
    }
    (name, "")
}

struct Parser<'a> {
    path: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn parse(&mut self) -> Result<(), PathError> {
        if !self.rest.starts_with('.') {
            return self.fail("a path starts with a dot");
        }
        while !self.rest.is_empty() {
            if self.rest.starts_with("..") {
                self.skip(2);
                self.field()?;
            } else if self.rest.starts_with('.') {
                self.skip(1);
                if !self.rest.starts_with('[') {
                    self.field()?;
                }
            } else if self.rest.starts_with('[') {
                self.bracket()?;
            } else {
                return self.fail("expected a dot or a bracket");
            }
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn fail<T>(&self, message: &str) -> Result<T, PathError> {
        let length = self.path.len().saturating_sub(self.rest.len());
        let before = self.path.get(..length).unwrap_or_default();
        Err(PathError {
            column: before.chars().count().saturating_add(1),
            message: message.to_owned(),
        })
    }

    fn field(&mut self) -> Result<(), PathError> {
        let (field, rest) = name(self.rest);
        if field.is_empty() {
            return self.fail("expected the name of a field");
        }
        let length = self.rest.len().saturating_sub(rest.len());
        self.skip(length);
        Ok(())
    }

    fn bracket(&mut self) -> Result<(), PathError> {
        let Some(inside) = inside(self.rest) else {
            return self.fail("missing closing ]");
        };
        let part = inside.trim();
        let is_index = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
        };
        let is_bound = |text: &str| text.is_empty() || is_index(text);
        let is_valid = if let Some(filter) = part.strip_prefix('?') {
            let filter = filter.trim();
            let filter = filter.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            filter.is_some_and(is_filter)
        } else {
            part == "*"
                || is_quoted(part)
                || part
                    .split(',')
                    .all(|it| is_index(it.trim()) || is_quoted(it.trim()))
                || (part.contains(':')
                    && part.split(':').count() <= 3
                    && part.split(':').all(is_bound))
        };
        if !is_valid {
            return self.fail("expected an index, a range, '*', a quoted name or a filter such as [?(@.type=='Ready')]");
        }
        let length = inside.len().saturating_add(2);
        self.skip(length);
        Ok(())
    }
}

/// Returns the text between an opening bracket at the start and its closing bracket.
fn inside(text: &str) -> Option<&str> {
    let text = text.strip_prefix('[')?;
    let (mut depth, mut quote) = (0_u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth = depth.saturating_add(1),
            (None, ']') if depth == 0 => return text.get(..at),
            (None, ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn is_quoted(text: &str) -> bool {
    ['\'', '"'].into_iter().any(|quote| {
        let inner = text
            .strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(quote))
    })
}

/// Reports whether the text in `[?(...)]` is a path from `@`, optionally compared with a literal.
fn is_filter(text: &str) -> bool {
    const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
    let is_path = |side: &str| {
        let path = side.trim().strip_prefix('@');
        path.is_some_and(|path| path.is_empty() || error(path).is_none())
    };
    let is_literal = |side: &str| {
        let side = side.trim();
        is_quoted(side) || side == "true" || side == "false" || side.parse::<f64>().is_ok()
    };
    let found = OPERATORS
        .iter()
        .filter_map(|operator| text.find(operator).map(|at| (at, operator)))
        .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())));
    match found {
        None => is_path(text),
        Some((at, operator)) => {
            let (left, right) = text.split_at(at);
            let right = right.get(operator.len()..).unwrap_or_default();
            let is_side = |side: &str| is_path(side) || is_literal(side);
            is_side(left) && is_side(right)
        }
    }
}

#[cfg(test)]
mod tests;
