//! The compared part of the compiler's output: the messages, their positions, and opkit's notes.
//! The rest of rustc's output (other types that implement a trait, the position of a bound) differs
//! between versions.

use serde_json::Value;

/// Returns the messages as text, in the compiler's order.
pub(crate) fn text(reported: &str) -> String {
    let diagnostics = reported
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let texts = diagnostics.filter_map(|diagnostic| one(&diagnostic));
    texts.collect::<Vec<_>>().join("\n")
}

fn one(diagnostic: &Value) -> Option<String> {
    let level = diagnostic["level"].as_str()?;
    let message = diagnostic["message"].as_str()?;
    // Summaries, such as "aborting due to 2 previous errors".
    let is_summary = message.starts_with("aborting due") || message.ends_with("emitted");
    if is_summary || !["error", "warning"].contains(&level) {
        return None;
    }
    // The compiler decides how much of a long type it prints.
    let message = message
        .split_once("`fn(")
        .map_or(message, |(before, _)| before.trim_end());
    let code = diagnostic["code"]["code"].as_str();
    let code = code.filter(|code| code.starts_with('E'));
    let code = code.map(|code| format!("[{code}]")).unwrap_or_default();
    let mut text = format!("{level}{code}: {message}\n");
    let spans = diagnostic["spans"].as_array();
    for span in spans
        .into_iter()
        .flatten()
        .filter(|span| span["is_primary"] == true)
    {
        let code = &span["text"][0];
        let line = code["text"].as_str().unwrap_or_default();
        let (start, end) = (
            code["highlight_start"].as_u64(),
            code["highlight_end"].as_u64(),
        );
        let marked: String = line
            .chars()
            .skip(start.unwrap_or(1) as usize - 1)
            .take((end.unwrap_or(1) - start.unwrap_or(1)) as usize)
            .collect();
        text += &format!("  line {}: {marked}\n", span["line_start"]);
        if let Some(label) = span["label"].as_str().filter(|label| !label.is_empty()) {
            text += &format!("  {label}\n");
        }
    }
    let notes = diagnostic["children"].as_array();
    for note in notes.into_iter().flatten() {
        let is_bare = note["spans"].as_array().is_some_and(Vec::is_empty);
        let message = note["message"].as_str().unwrap_or_default();
        let level = note["level"].as_str().unwrap_or_default();
        // The only help that is compared: "within this future, `Send` is not implemented for
        // `Rc<..>`".
        let is_needed = (level == "note" && !is_rustcs(message)) || message.starts_with("within");
        if is_bare && is_needed {
            text += &format!("  {level}: {message}\n");
        }
    }
    Some(text)
}

/// Reports whether a note is the compiler's own.
fn is_rustcs(note: &str) -> bool {
    const OWN: [&str; 6] = [
        "the full name for the type",
        "the full type name",
        "consider using `--verbose`",
        "this error originates",
        "required for",
        "`#[warn(",
    ];
    OWN.iter().any(|start| note.starts_with(start))
}
