//! The figures of the cache, what they are compared with, and what they must be.

use serde_json::{Value, json};

/// One figure.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// Our measurement: which, and what of it.
    pub(crate) ours: (&'static str, Figure),
    pub(crate) limit: Limit,
}

/// What to take of a measurement.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    Field(&'static str),
    /// One field divided by another.
    Of(&'static str, &'static str),
}

/// What a figure is held against.
pub(crate) enum Limit {
    /// Another measurement, which must be so many times worse; without a number it is only shown.
    Peer {
        peer: &'static str,
        measurement: &'static str,
        must: Option<f64>,
        /// Whether more is better.
        more: bool,
    },
    /// A number that must not be passed.
    Most(f64),
}

/// How a figure is printed.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    PerSecond,
    Nanoseconds,
    Microseconds,
    Ratio,
    Count,
}

/// Several runs of one measurement.
#[derive(Default)]
pub(crate) struct Runs(pub(crate) Vec<Value>);

impl Runs {
    /// Median, least and most of a figure; `None` if it was not measured.
    pub(crate) fn figure(&self, figure: Figure) -> Option<[f64; 3]> {
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

/// A row with its figures.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) ours: Option<[f64; 3]>,
    pub(crate) peer: Option<&'static str>,
    pub(crate) peer_value: Option<[f64; 3]>,
    pub(crate) ratio: Option<f64>,
    pub(crate) must: Option<f64>,
    pub(crate) holds: Option<bool>,
}

impl Row {
    pub(crate) fn outcome(&self, runs: impl Fn(&str) -> Runs) -> Outcome {
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
    pub(crate) fn json(&self) -> Value {
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
        })
    }

    pub(crate) fn text(&self) -> String {
        let figure = |figure: Option<[f64; 3]>| match figure {
            Some([median, least, most]) => {
                let unit = |value| self.unit.text(value);
                format!("{} [{} .. {}]", unit(median), unit(least), unit(most))
            }
            None => "not measured".to_owned(),
        };
        let mut text = format!("{:<46} {:<34}", self.name, figure(self.ours));
        if let Some(peer) = self.peer {
            text.push_str(&format!(" {peer}: {:<34}", figure(self.peer_value)));
        }
        if let Some(ratio) = self.ratio {
            text.push_str(&format!(" {ratio:.1}x"));
        }
        if let Some(must) = self.must {
            let must = match self.peer {
                Some(_) => format!("{must}x"),
                None => self.unit.text(must),
            };
            let holds = match self.holds {
                Some(true) => "holds",
                Some(false) => "DOES NOT HOLD",
                None => "not counted",
            };
            text.push_str(&format!(" (must {must}: {holds})"));
        }
        text
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::Nanoseconds => format!("{value:.0} ns"),
            Unit::Microseconds => format!("{value:.1} us"),
            Unit::Ratio => format!("{value:.2}"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

const KUBE: &str = "kube-runtime 5.0.0";
const CLEARED: &str = "kube-runtime 5.0.0, managedFields cleared";
const STREAMED: &str = "kube-runtime 5.0.0, streaming list";
const GO: &str = "client-go 0.36.3";

const fn against(
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
    }
}

const fn at_most(
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
    }
}

/// All figures.
pub(crate) const ROWS: &[Row] = &[
    against(
        "first sync, Pods, JSON",
        Unit::Seconds,
        ("ours pods", "sync_seconds"),
        (KUBE, "kube pods"),
        Some(2.0),
    ),
    against(
        "first sync, Pods, JSON",
        Unit::Seconds,
        ("ours pods", "sync_seconds"),
        (CLEARED, "kube pods cleared"),
        None,
    ),
    against(
        "first sync, Pods, JSON",
        Unit::Seconds,
        ("ours pods", "sync_seconds"),
        (STREAMED, "kube pods streaming"),
        None,
    ),
    against(
        "first sync, Pods, JSON",
        Unit::Seconds,
        ("ours pods", "sync_seconds"),
        (GO, "go pods"),
        Some(8.0),
    ),
    against(
        "first sync, custom resources, JSON",
        Unit::Seconds,
        ("ours robots", "sync_seconds"),
        (KUBE, "kube robots"),
        Some(2.5),
    ),
    against(
        "first sync, custom resources, JSON",
        Unit::Seconds,
        ("ours robots", "sync_seconds"),
        (CLEARED, "kube robots cleared"),
        None,
    ),
    against(
        "first sync, custom resources, JSON",
        Unit::Seconds,
        ("ours robots", "sync_seconds"),
        (GO, "go robots"),
        Some(8.0),
    ),
    against(
        "first sync, Pods, real server, protobuf",
        Unit::Seconds,
        ("ours real", "sync_seconds"),
        (GO, "go real"),
        Some(1.0),
    ),
    against(
        "first sync, Pods, real server, protobuf",
        Unit::Seconds,
        ("ours real", "sync_seconds"),
        ("the server's own list", "server alone"),
        None,
    ),
    against(
        "memory per Pod",
        Unit::Bytes,
        ("ours pods", "bytes_per_object"),
        (KUBE, "kube pods"),
        Some(20.0),
    ),
    against(
        "memory per Pod",
        Unit::Bytes,
        ("ours pods", "bytes_per_object"),
        (CLEARED, "kube pods cleared"),
        None,
    ),
    against(
        "memory per Pod",
        Unit::Bytes,
        ("ours pods", "bytes_per_object"),
        (GO, "go pods"),
        Some(6.0),
    ),
    against(
        "memory per custom resource",
        Unit::Bytes,
        ("ours robots", "bytes_per_object"),
        (KUBE, "kube robots"),
        Some(20.0),
    ),
    against(
        "memory per custom resource",
        Unit::Bytes,
        ("ours robots", "bytes_per_object"),
        (CLEARED, "kube robots cleared"),
        None,
    ),
    against(
        "memory per custom resource",
        Unit::Bytes,
        ("ours robots", "bytes_per_object"),
        (GO, "go robots"),
        Some(6.0),
    ),
    against(
        "memory per Pod, real server, protobuf",
        Unit::Bytes,
        ("ours real", "bytes_per_object"),
        (GO, "go real"),
        Some(6.0),
    ),
    at_most(
        "peak at first sync over steady, Pods",
        Unit::Ratio,
        "ours pods",
        Figure::Of("peak_bytes", "steady_bytes"),
        1.2,
    ),
    at_most(
        "peak at relist over steady, Pods",
        Unit::Ratio,
        "ours pods",
        Figure::Of("relist_peak_bytes", "steady_bytes"),
        1.2,
    ),
    at_most(
        "peak at first sync over steady, custom res.",
        Unit::Ratio,
        "ours robots",
        Figure::Of("peak_bytes", "steady_bytes"),
        1.2,
    ),
    at_most(
        "peak at relist over steady, custom res.",
        Unit::Ratio,
        "ours robots",
        Figure::Of("relist_peak_bytes", "steady_bytes"),
        1.2,
    ),
    against(
        "events into the store, Pods",
        Unit::PerSecond,
        ("ours pods", "events_per_second"),
        (KUBE, "kube pods"),
        Some(2.2),
    ),
    against(
        "events into the store, Pods",
        Unit::PerSecond,
        ("ours pods", "events_per_second"),
        (CLEARED, "kube pods cleared"),
        None,
    ),
    against(
        "events into the store, Pods",
        Unit::PerSecond,
        ("ours pods", "events_per_second"),
        (GO, "go pods"),
        Some(7.0),
    ),
    against(
        "events into the store, custom resources",
        Unit::PerSecond,
        ("ours robots", "events_per_second"),
        (KUBE, "kube robots"),
        Some(2.2),
    ),
    against(
        "events into the store, custom resources",
        Unit::PerSecond,
        ("ours robots", "events_per_second"),
        (GO, "go robots"),
        Some(7.0),
    ),
    at_most(
        "get of a hot Pod",
        Unit::Nanoseconds,
        "ours pods",
        Figure::Field("hot_read_ns"),
        200.0,
    ),
    at_most(
        "allocations of a million hot gets",
        Unit::Count,
        "ours pods",
        Figure::Field("hot_read_allocations"),
        0.0,
    ),
    at_most(
        "get of a cold Pod",
        Unit::Microseconds,
        "ours pods",
        Figure::Field("cold_read_us"),
        25.0,
    ),
    at_most(
        "get of a cold custom resource",
        Unit::Microseconds,
        "ours robots",
        Figure::Field("cold_read_us"),
        25.0,
    ),
    at_most(
        "objects decoded by a list by index",
        Unit::Count,
        "ours pods",
        Figure::Field("list_decodes"),
        0.0,
    ),
];
