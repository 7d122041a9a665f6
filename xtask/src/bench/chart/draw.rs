//! A table of ratios as an SVG.

use std::fmt::Write;

use super::table::{Row, Table};

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 20.0;
/// Width of the names of rows.
const NAMES: f64 = 330.0;
/// Height of a row.
const ROW: f64 = 22.0;
/// Height of the title, and of a line of the legend.
const TITLE: f64 = 32.0;
const LEGEND: f64 = 18.0;
/// Space to the right of the longest bar for its number.
const NUMBER: f64 = 56.0;

const BACKGROUND: &str = "#1e2430";
const TEXT: &str = "#d8dee9";
const DIM: &str = "#7b8494";
const WORSE: &str = "#e06c75";
/// Colours of the peers, in the order in which the table names them.
const PEERS: [&str; 5] = ["#61afef", "#98c379", "#e5c07b", "#c678dd", "#56b6c2"];

/// Draws a bar for each row. The scale is logarithmic, and starts at the smallest ratio or at 1.
pub(super) fn chart(title: &str, table: &Table) -> String {
    let rows = &table.rows;
    let peers = peers(rows);
    let (legend, lines) = legend(&peers);
    let head = TITLE + f64::from(lines) * LEGEND + 12.0;
    let height = head + rows.len() as f64 * ROW + MARGIN;
    let scale = Scale::of(rows);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', \
         sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    let heading = format!(
        "{title}: how many times better opkit is (logarithmic scale; the white line is the limit)"
    );
    text(&mut svg, (MARGIN, 26.0), TEXT, "start", &heading);
    svg.push_str(&legend);
    line(
        &mut svg,
        scale.at(1.0),
        (head - 4.0, height - MARGIN + 4.0),
        DIM,
    );
    for (index, row) in rows.iter().enumerate() {
        let colour = peers.iter().find(|(peer, _)| *peer == row.peer);
        let colour = colour.map_or(DIM, |(_, colour)| colour);
        bar(&mut svg, head + index as f64 * ROW, row, colour, &scale);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the colours of the peers, and returns the number of lines that they take.
fn legend(peers: &[(&str, &str)]) -> (String, u8) {
    let (mut svg, mut x, mut lines) = (String::new(), MARGIN, 1);
    for (peer, colour) in peers {
        let width = 34.0 + 6.4 * peer.chars().count() as f64;
        if x > MARGIN && x + width > WIDTH - MARGIN {
            (x, lines) = (MARGIN, lines + 1);
        }
        let baseline = TITLE + f64::from(lines) * LEGEND - 3.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            baseline - 9.0
        );
        text(&mut svg, (x + 15.0, baseline), DIM, "start", peer);
        x += width;
    }
    (svg, lines)
}

fn bar(svg: &mut String, y: f64, row: &Row, colour: &str, scale: &Scale) {
    let baseline = y + ROW - 7.0;
    text(
        svg,
        (MARGIN + NAMES - 10.0, baseline),
        TEXT,
        "end",
        &row.what,
    );
    let (one, end) = (scale.at(1.0), scale.at(row.ratio));
    let (left, right) = (one.min(end), one.max(end));
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
        y + 3.0,
        (right - left).max(1.0),
        ROW - 6.0
    );
    if let Some(must) = row.must {
        line(svg, scale.at(must), (y + 1.0, y + ROW - 1.0), TEXT);
    }
    let is_good = row.holds && row.ratio >= 1.0;
    let colour = if is_good { TEXT } else { WORSE };
    let number = format!("{}x", row.ratio);
    // Beside the bar and the limit, whichever is longer.
    let x = right.max(row.must.map_or(right, |must| scale.at(must)));
    text(svg, (x + 6.0, baseline), colour, "start", &number);
}

/// Positions of ratios.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(rows: &[Row]) -> Self {
        let values = rows.iter().flat_map(|row| [Some(row.ratio), row.must]);
        let values: Vec<f64> = values.flatten().collect();
        Self {
            least: values.iter().copied().fold(1.0, f64::min).max(0.1),
            most: values.iter().copied().fold(2.0, f64::max),
        }
    }

    fn at(&self, ratio: f64) -> f64 {
        let (left, right) = (MARGIN + NAMES, WIDTH - MARGIN - NUMBER);
        let part = (ratio.max(self.least) / self.least).ln() / (self.most / self.least).ln();
        left + part * (right - left)
    }
}

/// Returns the peers of a table with their colours.
fn peers(rows: &[Row]) -> Vec<(&str, &'static str)> {
    let mut peers: Vec<(&str, &'static str)> = Vec::new();
    for row in rows {
        if !peers.iter().any(|(peer, _)| *peer == row.peer) {
            let colour = PEERS.get(peers.len()).copied().unwrap_or(DIM);
            peers.push((&row.peer, colour));
        }
    }
    peers
}

fn line(svg: &mut String, x: f64, (top, bottom): (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"{colour}\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), colour: &str, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}
