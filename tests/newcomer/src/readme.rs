//! The files in the README.

/// Path and content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the files in a Markdown text: code blocks after a line with a path in backticks, and a
/// colon.
pub(crate) fn files(markdown: &str) -> Vec<File> {
    let mut files = Vec::new();
    let mut named = None;
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(path) = named.take() {
                let text = block.join("\n") + "\n";
                files.push(File { path, text });
            }
        } else if !line.is_empty() {
            named = file_name(line).map(str::to_owned);
        }
    }
    files
}

/// Returns the path in a line that names a file.
pub(crate) fn file_name(line: &str) -> Option<&str> {
    let path = line.strip_prefix('`')?.strip_suffix("`:")?;
    (!path.contains(['`', ' '])).then_some(path)
}

#[test]
fn a_file_is_a_block_below_its_path() {
    let markdown = "Text with `code`:\n```rust\nnot a file\n```\n`src/lib.rs`:\n\n```rust\nlet a;\n\nlet b;\n```\n`x`:\ntext\n```\nno\n```\n";
    let expected = File {
        path: "src/lib.rs".into(),
        text: "let a;\n\nlet b;\n".into(),
    };
    assert_eq!(files(markdown), [expected]);
}
