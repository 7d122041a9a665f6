//! The text of metrics: families put together, and Prometheus' older format made from OpenMetrics.

use std::collections::HashMap;
use std::fmt::Write;

/// Puts the lines of each family together, which OpenMetrics asks for: several collectors, such as the
/// caches of several clusters, may have families of one name.
pub(super) fn merged(openmetrics: String) -> String {
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

/// The same in Prometheus' text format 0.0.4. It has the whole name of a counter in HELP and TYPE, no
/// units, no exemplars, no end, and fewer types.
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
