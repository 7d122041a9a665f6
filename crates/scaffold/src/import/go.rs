//! Finds functions, imports and calls in Go source.
//!
//! This is no parser of Go: it matches braces, and knows comments, strings and runes, so that a
//! brace in one of them does not count.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Function or method at the top level of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    /// Type of the receiver, without its pointer.
    pub(super) receiver: Option<&'a str>,
    pub(super) name: &'a str,
    /// Text between the braces.
    pub(super) body: &'a str,
    /// Line of the word `func`.
    pub(super) line: usize,
}

/// Call in a chain of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    /// Text between the parentheses.
    pub(super) arguments: &'a str,
}

/// Returns the position after the comment, string or rune that starts at `at`, if one does.
fn literal_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let end_of = |start: usize, end: &str| {
        let inner = rest.get(start..).unwrap_or_default();
        let found = inner.find(end).map(|it| it + end.len());
        at + start + found.unwrap_or(inner.len())
    };
    if rest.starts_with("//") {
        // The line break is not part of the comment.
        return Some(at + rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(end_of(2, "*/"));
    }
    if rest.starts_with('`') {
        return Some(end_of(1, "`"));
    }
    let quote = rest.chars().next().filter(|it| ['"', '\''].contains(it))?;
    let mut is_escaped = false;
    for (offset, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' => return Some(at + offset),
            letter if letter == quote => return Some(at + offset + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns positions and letters of the code from `at` on, without comments, strings and runes.
fn code(text: &str, at: usize) -> impl Iterator<Item = (usize, char)> {
    let mut next = at;
    std::iter::from_fn(move || {
        while let Some(end) = literal_end(text, next) {
            next = end;
        }
        let letter = text.get(next..)?.chars().next()?;
        let position = next;
        next += letter.len_utf8();
        Some((position, letter))
    })
}

/// Returns the position of the bracket that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (position, letter) in code(text, open) {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(position);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the functions of a file.
pub(super) fn functions(text: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let (mut depth, mut end) = (0_usize, 0);
    for (position, letter) in code(text, 0) {
        if position < end {
            continue;
        }
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            'f' if depth == 0 => {
                let is_start =
                    position == 0 || text.get(..position).is_some_and(|it| it.ends_with('\n'));
                if let Some((function, after)) =
                    is_start.then(|| function(text, position)).flatten()
                {
                    found.push(function);
                    end = after;
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the function that starts at a position, and the position after it.
fn function(text: &str, start: usize) -> Option<(Function<'_>, usize)> {
    let rest = text.get(start..)?.strip_prefix("func ")?;
    let mut at = text.len() - rest.trim_start().len();
    let mut receiver = None;
    if text.get(at..)?.starts_with('(') {
        let end = closing(text, at)?;
        receiver = text.get(at + 1..end).and_then(receiver_type);
        let rest = text.get(end + 1..)?;
        at = text.len() - rest.trim_start().len();
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let rest = text.get(at..)?;
    let name = rest.get(..rest.find(|it| !is_word(it))?)?;
    let (mut skipped, mut word) = (at, String::new());
    for (position, letter) in code(text, at) {
        if position < skipped {
            continue;
        }
        match letter {
            '(' | '[' => skipped = closing(text, position)?,
            // The result of the function, not its body.
            '{' if ["interface", "struct"].contains(&word.as_str()) => {
                skipped = closing(text, position)? + 1;
            }
            '{' => {
                let end = closing(text, position)?;
                let function = Function {
                    receiver,
                    name,
                    body: text.get(position + 1..end)?,
                    line: text.get(..start)?.matches('\n').count() + 1,
                };
                return Some((function, end + 1));
            }
            '\n' => return None,
            _ => {}
        }
        match is_word(letter) {
            true => word.push(letter),
            false => word.clear(),
        }
    }
    None
}

/// Returns the type of a receiver, such as `RobotReconciler` for `r *RobotReconciler`.
fn receiver_type(text: &str) -> Option<&str> {
    let last = text.split_whitespace().last()?;
    let name = last.trim_start_matches('*');
    Some(name.split('[').next().unwrap_or(name))
}

/// Returns the import paths of a file by the names of their packages in it.
pub(super) fn imports(text: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    let mut is_block = false;
    for line in text.lines().map(str::trim) {
        let spec = match (is_block, line.strip_prefix("import")) {
            (true, _) if line.starts_with(')') => {
                is_block = false;
                continue;
            }
            (true, _) => line,
            (false, Some(rest)) if rest.trim_start().starts_with('(') => {
                is_block = true;
                continue;
            }
            (false, Some(rest)) => rest.trim(),
            (false, None) if line.starts_with("func ") => break,
            (false, None) => continue,
        };
        let mut quoted = spec.split('"');
        let (Some(name), Some(path)) = (quoted.next(), quoted.next()) else {
            continue;
        };
        // A line of a comment is not an import.
        if name.contains("//") {
            continue;
        }
        let name = match name.trim() {
            "" => package(path),
            name => name,
        };
        found.insert(name, path);
    }
    found
}

/// Returns the name that a package has unless an import gives it another one.
fn package(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    let is_version = |name: &str| {
        name.strip_prefix('v')
            .is_some_and(|it| it.parse::<u32>().is_ok())
    };
    match is_version(last) && !path.contains("k8s.io/api") {
        true => path.rsplit('/').nth(1).unwrap_or(last),
        false => last,
    }
}

/// Returns the calls of methods in the code of a body, but not those in the arguments of others.
pub(super) fn calls(body: &str) -> Vec<Call<'_>> {
    let mut found = Vec::new();
    // The position of a name after a dot, between which line breaks and comments may be.
    let (mut end, mut is_after_dot, mut name) = (0, false, None);
    for (position, letter) in code(body, 0) {
        if position < end {
            continue;
        }
        match letter {
            '.' => (is_after_dot, name) = (true, None),
            '(' => {
                let close = closing(body, position).unwrap_or(body.len());
                if let Some(start) = name.take() {
                    found.push(Call {
                        name: body.get(start..position).unwrap_or_default().trim(),
                        arguments: body.get(position + 1..close).unwrap_or_default(),
                    });
                    end = close + 1;
                }
            }
            letter if letter.is_alphanumeric() || letter == '_' => {
                if std::mem::take(&mut is_after_dot) {
                    name = Some(position);
                }
            }
            letter if letter.is_whitespace() => {}
            _ => (is_after_dot, name) = (false, None),
        }
    }
    found
}

/// Returns package and type of the first argument of a call, such as `appsv1` and `Deployment` for
/// `&appsv1.Deployment{}`.
pub(super) fn type_of(arguments: &str) -> Option<(&str, &str)> {
    let rest = arguments.trim_start().strip_prefix('&')?;
    let (name, rest) = rest.split_once('{')?;
    let is_alone = rest.trim_start().starts_with('}');
    let (package, kind) = name.split_once('.').unwrap_or(("", name));
    let is_word = |text: &str| text.chars().all(|it| it.is_alphanumeric() || it == '_');
    (is_alone && is_word(package) && is_word(kind) && !kind.is_empty()).then_some((package, kind))
}

/// Returns the text of a string literal.
pub(super) fn string(arguments: &str) -> Option<&str> {
    let rest = arguments.trim().strip_prefix('"')?;
    let text = rest.strip_suffix('"')?;
    (!text.contains(['"', '\\'])).then_some(text)
}

/// Reports whether a body only has what kubebuilder writes: comments, a logger and a return.
pub(super) fn is_scaffold(body: &str) -> bool {
    let mut lines = String::new();
    let mut last = 0;
    for (position, letter) in code(body, 0) {
        // A string stays in the text as a quote.
        let skipped = body.get(last..position).unwrap_or_default();
        if skipped.contains('"') {
            lines.push('"');
        }
        lines.push(letter);
        last = position + letter.len_utf8();
    }
    let mut lines = lines.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.all(|line| {
        line.starts_with("_ = ")
            || line == "return nil"
            || line == "return nil, nil"
            || line == "return ctrl.Result{}, nil"
            || line == "dst.ObjectMeta = src.ObjectMeta"
            || line.contains("log.Info(")
            || line.contains("log.Printf(")
            || line.starts_with('"')
            || line.contains(":= dstRaw.(")
            || line.contains(":= srcRaw.(")
    })
}

/// Returns a text of Go as the lines of a Rust comment. `indent` is that of the comment.
pub(super) fn comment(text: &str, indent: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().replace('\t', "    "))
        .collect();
    let is_empty = |line: &&String| line.is_empty();
    let start = lines.iter().take_while(is_empty).count();
    let end = lines.len() - lines.iter().rev().take_while(is_empty).count();
    let lines = lines.get(start..end).unwrap_or_default();
    let depth = |line: &String| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.is_empty());
    let common = filled.map(depth).min().unwrap_or_default();
    let lines = lines.iter().map(|line| match line.get(common..) {
        Some(line) if !line.is_empty() => format!("{indent}//     {line}\n"),
        _ => format!("{indent}//\n"),
    });
    lines.collect()
}
