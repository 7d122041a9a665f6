//! Figures, their peers and their limits.

use serde_json::{Value, json};

/// One figure.
pub struct Row {
    pub name: &'static str,
    pub unit: Unit,
    /// Name of opkit's measurement, and the figure to take from it.
    pub ours: (&'static str, Figure),
    pub limit: Limit,
    /// Aim for the ratio; shown, but not required.
    pub stretch: Option<f64>,
}

/// Head of the table whose lines [`Outcome::text`] returns.
pub const TABLE_HEAD: &str = "| what | opkit | peer | ratio | limit |\n|---|---|---|---|---|";

/// Part of a measurement.
#[derive(Clone, Copy)]
pub enum Figure {
    Field(&'static str),
    /// Quotient of two fields.
    Of(&'static str, &'static str),
}

/// Limit of a figure.
pub enum Limit {
    /// Another measurement, which must be worse by this factor; without a factor it is only shown.
    Peer {
        peer: &'static str,
        measurement: &'static str,
        must: Option<f64>,
        /// Whether a higher value is better.
        more: bool,
    },
    /// Maximum value.
    Most(f64),
}

/// Unit in which a figure is printed.
#[derive(Clone, Copy)]
pub enum Unit {
    Seconds,
    Bytes,
    PerSecond,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Ratio,
    Count,
}

/// Results of several runs of one measurement.
#[derive(Default)]
pub struct Runs(pub Vec<Value>);

impl Runs {
    /// Returns median, minimum and maximum of a figure; `None` if it was not measured.
    pub fn figure(&self, figure: Figure) -> Option<[f64; 3]> {
        let value = |run: &Value| match figure {
            Figure::Field(name) => run[name].as_f64(),
            Figure::Of(name, by) => Some(run[name].as_f64()? / run[by].as_f64()?),
        };
        let mut values: Vec<f64> = self.0.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some([*values.get(values.len() / 2)?, least, most])
    }
}

/// Row with its figures.
pub struct Outcome {
    pub name: &'static str,
    pub unit: Unit,
    pub ours: Option<[f64; 3]>,
    pub peer: Option<&'static str>,
    pub peer_value: Option<[f64; 3]>,
    pub ratio: Option<f64>,
    pub must: Option<f64>,
    pub holds: Option<bool>,
    pub stretch: Option<f64>,
}

impl Row {
    /// Returns the row with an aim beyond its limit.
    pub const fn stretch(mut self, stretch: f64) -> Self {
        self.stretch = Some(stretch);
        self
    }

    /// Evaluates the row with the measurements.
    pub fn outcome(&self, runs: impl Fn(&str) -> Runs) -> Outcome {
        let (measurement, figure) = self.ours;
        let ours = runs(measurement).figure(figure);
        let mut outcome = Outcome {
            name: self.name,
            unit: self.unit,
            ours,
            peer: None,
            peer_value: None,
            ratio: None,
            must: None,
            holds: None,
            stretch: self.stretch,
        };
        match self.limit {
            Limit::Peer {
                peer,
                measurement,
                must,
                more,
            } => {
                outcome.peer = Some(peer);
                outcome.peer_value = runs(measurement).figure(figure);
                outcome.must = must;
                let both = ours.zip(outcome.peer_value);
                outcome.ratio = both.map(|(ours, theirs)| match more {
                    true => ours[0] / theirs[0],
                    false => theirs[0] / ours[0],
                });
                outcome.holds = outcome.ratio.zip(must).map(|(ratio, must)| ratio >= must);
            }
            Limit::Most(most) => {
                outcome.must = Some(most);
                outcome.holds = ours.map(|ours| ours[0] <= most);
            }
        }
        outcome
    }
}

impl Outcome {
    /// Returns the outcome as a JSON object.
    pub fn json(&self) -> Value {
        let median = |figure: Option<[f64; 3]>| figure.map(|figure| figure[0]);
        let spread = |figure: Option<[f64; 3]>| figure.map(|[_, least, most]| [least, most]);
        json!({
            "name": self.name,
            "ours": median(self.ours),
            "ours_spread": spread(self.ours),
            "peer": self.peer,
            "peer_value": median(self.peer_value),
            "peer_spread": spread(self.peer_value),
            "ratio": self.ratio,
            "must": self.must,
            "holds": self.holds,
            "stretch": self.stretch,
        })
    }

    /// Returns the outcome as a line of a table in Markdown.
    pub fn text(&self) -> String {
        let figure = |figure: Option<[f64; 3]>| match figure {
            Some([median, least, most]) => {
                let unit = |value| self.unit.text(value);
                format!("{} [{} .. {}]", unit(median), unit(least), unit(most))
            }
            None => "not measured".to_owned(),
        };
        let peer = self
            .peer
            .map(|peer| format!("{peer}: {}", figure(self.peer_value)));
        let ratio = self.ratio.map(|ratio| format!("{ratio:.1}x"));
        format!(
            "| {:<46} | {:<34} | {:<58} | {:<6} | {} |",
            self.name,
            figure(self.ours),
            peer.unwrap_or_default(),
            ratio.unwrap_or_default(),
            self.limit()
        )
    }

    /// Returns the required value, and whether it is reached.
    fn limit(&self) -> String {
        let Some(must) = self.must else {
            return String::new();
        };
        let must = match self.peer {
            Some(_) => format!("{must}x"),
            None => self.unit.text(must),
        };
        let holds = match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not counted",
        };
        let mut text = format!("must {must}: {holds}");
        if let Some((ratio, stretch)) = self.ratio.zip(self.stretch) {
            let reached = match ratio >= stretch {
                true => "reached",
                false => "not reached",
            };
            text.push_str(&format!("; stretch {stretch}x: {reached}"));
        }
        text
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{value:.2} s"),
            Self::Bytes => format!("{value:.0} B"),
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Nanoseconds => format!("{value:.0} ns"),
            Self::Microseconds => format!("{value:.1} us"),
            Self::Milliseconds => format!("{value:.1} ms"),
            Self::Ratio => format!("{value:.2}"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// Returns a row that compares a figure with that of a peer, which must be worse by the factor
/// `must`.
pub const fn against(
    name: &'static str,
    unit: Unit,
    (measurement, field): (&'static str, &'static str),
    (peer, theirs): (&'static str, &'static str),
    must: Option<f64>,
) -> Row {
    Row {
        name,
        unit,
        ours: (measurement, Figure::Field(field)),
        limit: Limit::Peer {
            peer,
            measurement: theirs,
            must,
            more: matches!(unit, Unit::PerSecond),
        },
        stretch: None,
    }
}

/// Returns a row with an upper bound.
pub const fn at_most(
    name: &'static str,
    unit: Unit,
    measurement: &'static str,
    figure: Figure,
    most: f64,
) -> Row {
    Row {
        name,
        unit,
        ours: (measurement, figure),
        limit: Limit::Most(most),
        stretch: None,
    }
}
