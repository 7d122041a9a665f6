//! The screen of a terminal as an SVG.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// Size of a character in pixels.
const CELL: (f64, f64) = (8.0, 18.0);
/// Space around the screen in pixels.
const MARGIN: f64 = 16.0;

const BACKGROUND: &str = "#1e2430";
const TEXT: &str = "#d8dee9";

/// Part of a line with one style.
struct Run {
    column: u16,
    text: String,
    style: Style,
}

#[derive(Clone, PartialEq)]
struct Style {
    colour: &'static str,
    is_bold: bool,
    is_dim: bool,
    is_inverse: bool,
}

/// Draws a screen.
pub(super) fn draw(screen: &Screen) -> String {
    let (lines, columns) = screen.size();
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(lines) * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Menlo, Consolas, 'DejaVu Sans Mono', \
         monospace\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for line in 0..lines {
        for run in runs(screen, line, columns) {
            draw_run(&mut svg, line, &run);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_run(svg: &mut String, line: u16, run: &Run) {
    let x = MARGIN + f64::from(run.column) * CELL.0;
    let y = MARGIN + f64::from(line) * CELL.1;
    let characters = run.text.chars().count();
    let width = characters as f64 * CELL.0;
    let Style {
        colour,
        is_bold,
        is_dim,
        is_inverse,
    } = run.style;
    let mut colour = colour;
    if is_inverse {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill=\"{TEXT}\"/>",
            CELL.1
        );
        colour = BACKGROUND;
    }
    // Spaces at the ends are left out: not every program keeps their width.
    let shown = run.text.trim();
    if shown.is_empty() {
        return;
    }
    let before = run.text.chars().take_while(|char| *char == ' ').count();
    let x = x + before as f64 * CELL.0;
    let width = shown.chars().count() as f64 * CELL.0;
    let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
    let opacity = if is_dim { " opacity=\"0.6\"" } else { "" };
    let text = shown.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;");
    // The length keeps the columns where they are in any font.
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{colour}\"{weight}{opacity}>{text}</text>",
        y + CELL.1 - 5.0
    );
}

/// Returns the parts of a line that have one style each.
fn runs(screen: &Screen, line: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(line, column) else {
            continue;
        };
        let text = match cell.contents() {
            "" => " ",
            text => text,
        };
        let style = style(cell);
        match runs.last_mut().filter(|run| run.style == style) {
            Some(run) => run.text.push_str(text),
            None => runs.push(Run {
                column,
                text: text.to_owned(),
                style,
            }),
        }
    }
    runs
}

fn style(cell: &Cell) -> Style {
    let colour = match cell.fgcolor() {
        Color::Idx(1) => "#e06c75",
        Color::Idx(2) => "#98c379",
        Color::Idx(3) => "#e5c07b",
        _ => TEXT,
    };
    Style {
        colour,
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_inverse: cell.inverse(),
    }
}
