//! The text of metrics: families put together, and Prometheus' older format made from OpenMetrics.

use std::collections::HashMap;
use std::fmt::Write;

/// Escapes helps, and puts the lines of each family together, which OpenMetrics asks for: several
/// collectors, such as the caches of several clusters, may have families of one name.
pub(super) fn merged(openmetrics: String) -> String {
    let openmetrics = with_escaped_help(openmetrics);
    let families = families(&openmetrics);
    let mut index: HashMap<&str, usize> = HashMap::new();
    let mut merged: Vec<Family<'_>> = Vec::new();
    let count = families.len();
    for family in families {
        let at = *index.entry(family.name).or_insert(merged.len());
        match merged.get_mut(at) {
            Some(known) => known.samples.extend(family.samples),
            None => merged.push(family),
        }
    }
    if merged.len() == count {
        return openmetrics;
    }
    let mut text = String::with_capacity(openmetrics.len());
    for family in &merged {
        let lines = family.header.iter().chain(&family.samples);
        lines.for_each(|line| push(&mut text, line));
    }
    text.push_str("# EOF\n");
    text
}

/// The same in Prometheus' text format 0.0.4. It has the whole name of a counter in HELP and TYPE,
/// no units, no exemplars, no end, and fewer types.
pub(super) fn prometheus(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    for Family {
        name,
        header,
        samples,
    } in families(openmetrics)
    {
        let kind = header.iter().find_map(|line| line.strip_prefix("# TYPE "));
        let kind = kind.and_then(|rest| rest.rsplit(' ').next());
        let (suffix, kind) = match kind.unwrap_or("unknown") {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            "stateset" => ("", "gauge"),
            "unknown" => ("", "untyped"),
            known => ("", known),
        };
        for line in header {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let help = help.strip_prefix(name).unwrap_or_default();
                // Quotes are escaped in OpenMetrics alone.
                let help = help.replace("\\\"", "\"");
                // Writing to a string does not fail.
                let _ = writeln!(text, "# HELP {name}{suffix}{help}");
            } else if line.starts_with("# TYPE ") {
                let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            }
        }
        for sample in samples {
            push(&mut text, without_exemplar(sample));
        }
    }
    text
}

/// The text with its helps escaped, which prometheus-client writes as they were given. It writes
/// the type behind each, so all lines before that are one help.
fn with_escaped_help(openmetrics: String) -> String {
    let is_odd = |line: &str| line.contains(['\\', '"']);
    let mut is_help = false;
    let needs_some = openmetrics.lines().any(|line| {
        let is_more = is_help && !line.starts_with("# TYPE ");
        is_help = line.starts_with("# HELP ");
        is_more || is_help && is_odd(line)
    });
    if !needs_some {
        return openmetrics;
    }
    let mut text = String::with_capacity(openmetrics.len());
    let mut help: Option<String> = None;
    for line in openmetrics.lines() {
        match help.take() {
            Some(mut begun) if !line.starts_with("# TYPE ") => {
                begun.push('\n');
                begun.push_str(line);
                help = Some(begun);
                continue;
            }
            Some(whole) => {
                let whole = whole.replace('\\', r"\\").replace('\n', r"\n");
                push(&mut text, &whole.replace('"', "\\\""));
            }
            None => {}
        }
        match line.starts_with("# HELP ") {
            true => help = Some(line.to_owned()),
            false => push(&mut text, line),
        }
    }
    text
}

/// The lines of one family.
struct Family<'a> {
    name: &'a str,
    header: Vec<&'a str>,
    samples: Vec<&'a str>,
}

fn families(openmetrics: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in openmetrics.lines() {
        let comment = line.strip_prefix("# ");
        let Some((word, rest)) = comment.and_then(|comment| comment.split_once(' ')) else {
            // The end, or a sample.
            if comment.is_none()
                && let Some(family) = families.last_mut()
            {
                family.samples.push(line);
            }
            continue;
        };
        let name = rest.split(' ').next().unwrap_or_default();
        let is_known = families.last().is_some_and(|last| last.name == name);
        // Each family begins with its help.
        if !is_known || word == "HELP" {
            families.push(Family {
                name,
                header: Vec::new(),
                samples: Vec::new(),
            });
        }
        if let Some(family) = families.last_mut() {
            family.header.push(line);
        }
    }
    families
}

/// A sample up to ` # `, unless that is within the value of a label.
fn without_exemplar(sample: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, char) in sample.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted => return sample.get(..at).unwrap_or(sample).trim_end(),
            _ => {}
        }
    }
    sample
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests;
