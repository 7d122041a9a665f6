//! Conversions of OpenMetrics text: merging of metric families with the same name, and Prometheus'
//! older text format.

use std::collections::HashMap;
use std::fmt::Write;

/// Escapes help texts and merges metric families with the same name. Several collectors, such as
/// the caches of several clusters, may have families with the same name, which OpenMetrics does not
/// allow.
pub(super) fn merge_families(openmetrics: String) -> String {
    let openmetrics = escape_help(openmetrics);
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
        lines.for_each(|line| push_line(&mut text, line));
    }
    text.push_str("# EOF\n");
    text
}

/// Converts OpenMetrics text to Prometheus' text format 0.0.4. That format has the complete name of
/// a counter in HELP and TYPE, no units, no exemplars, no `# EOF`, and fewer types.
pub(super) fn to_prometheus(openmetrics: &str) -> String {
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
                // Quotes are escaped in OpenMetrics only.
                let help = help.replace("\\\"", "\"");
                // Writing to a string does not fail.
                let _ = writeln!(text, "# HELP {name}{suffix}{help}");
            } else if line.starts_with("# TYPE ") {
                let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            }
        }
        for sample in samples {
            push_line(&mut text, without_exemplar(sample));
        }
    }
    text
}

/// Escapes help texts, which prometheus-client does not do. The TYPE line follows each help
/// text, so all lines up to that line belong to the help text.
fn escape_help(openmetrics: String) -> String {
    let needs_escape = |line: &str| line.contains(['\\', '"']);
    let mut is_help = false;
    let needs_any = openmetrics.lines().any(|line| {
        let is_more = is_help && !line.starts_with("# TYPE ");
        is_help = line.starts_with("# HELP ");
        is_more || is_help && needs_escape(line)
    });
    if !needs_any {
        return openmetrics;
    }
    let mut text = String::with_capacity(openmetrics.len());
    let mut help: Option<String> = None;
    for line in openmetrics.lines() {
        match help.take() {
            Some(mut partial) if !line.starts_with("# TYPE ") => {
                partial.push('\n');
                partial.push_str(line);
                help = Some(partial);
                continue;
            }
            Some(complete) => {
                let complete = complete.replace('\\', r"\\").replace('\n', r"\n");
                push_line(&mut text, &complete.replace('"', "\\\""));
            }
            None => {}
        }
        match line.starts_with("# HELP ") {
            true => help = Some(line.to_owned()),
            false => push_line(&mut text, line),
        }
    }
    text
}

/// Lines of one metric family.
struct Family<'a> {
    name: &'a str,
    /// HELP, TYPE and UNIT lines.
    header: Vec<&'a str>,
    samples: Vec<&'a str>,
}

/// Splits OpenMetrics text into metric families.
fn families(openmetrics: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in openmetrics.lines() {
        let comment = line.strip_prefix("# ");
        let Some((word, rest)) = comment.and_then(|comment| comment.split_once(' ')) else {
            // `# EOF`, or a sample.
            if comment.is_none()
                && let Some(family) = families.last_mut()
            {
                family.samples.push(line);
            }
            continue;
        };
        let name = rest.split(' ').next().unwrap_or_default();
        let is_known = families.last().is_some_and(|last| last.name == name);
        // Each family starts with its HELP line.
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

/// Removes the exemplar of a sample: everything from the first `#` outside of label values.
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

/// Appends a line and its line feed.
fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests;
