//! `cargo xtask picture`: draws the picture of `opkit dev` in the README.
//!
//! `--record` runs the example of the README in a pseudo-terminal and writes what the terminal
//! shows to `docs/pictures/dev.ansi`. The picture is always drawn from that file, so that it shows
//! a real run.

mod record;
mod svg;

use std::path::Path;

use anyhow::{Context, Result};

/// Size of the recorded terminal.
const COLUMNS: u16 = 100;
const LINES: u16 = 26;

const RECORDED: &str = "docs/pictures/dev.ansi";
const PICTURE: &str = "docs/pictures/dev.svg";

/// Whether to record a run first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Record a run of `opkit dev robot-operator`
    #[arg(long)]
    record: bool,
}

/// Records a run, if requested, and draws the picture.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let recorded = root.join(RECORDED);
    if args.record {
        let shown = record::record(root, COLUMNS, LINES)?;
        std::fs::write(&recorded, shown).context("cannot write the recorded run")?;
    }
    let picture = root.join(PICTURE);
    std::fs::write(&picture, draw(root)?).context("cannot write the picture")
}

/// Draws the recorded run.
fn draw(root: &Path) -> Result<String> {
    let shown = std::fs::read(root.join(RECORDED)).context("cannot read the recorded run")?;
    let mut parser = vt100::Parser::new(LINES, COLUMNS, 0);
    parser.process(&shown);
    Ok(svg::draw(parser.screen()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_drawn_from_the_recorded_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let picture = std::fs::read_to_string(root.join(PICTURE)).unwrap();
        assert!(picture == draw(&root).unwrap(), "run `cargo xtask picture`");
        assert!(picture.contains("reconciles of robot-one"));
    }
}
