//! Metrics of the process, with the names of Prometheus' client libraries. The values are read from
//! `/proc`. On a system without `/proc` there are no such metrics.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks per second, the unit of times in `/proc`. Linux has a fixed value of 100 on all
/// architectures that operators run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collector of the metrics of the process.
#[derive(Debug)]
pub(crate) struct ProcessMetrics;

/// Values that are read from `/proc`.
#[derive(Debug, Default, PartialEq)]
struct ProcessStats {
    cpu_seconds: f64,
    start_time_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    open_fds: f64,
    max_fds: Option<f64>,
}

impl ProcessStats {
    /// Reads the values of this process; `None` if `/proc` cannot be read.
    fn read() -> Option<Self> {
        let fds = fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Self {
            // The directory itself is open during the count, so it is subtracted.
            open_fds: fds.saturating_sub(1) as f64,
            ..Self::parse(
                &fs::read_to_string("/proc/self/stat").ok()?,
                &fs::read_to_string("/proc/self/status").ok()?,
                &fs::read_to_string("/proc/self/limits").ok()?,
                &fs::read_to_string("/proc/stat").ok()?,
            )?
        })
    }

    /// Parses the contents of `/proc/self/stat`, `/proc/self/status`, `/proc/self/limits` and
    /// `/proc/stat`.
    fn parse(stat: &str, status: &str, limits: &str, system: &str) -> Option<Self> {
        // The second field is the name of the binary in brackets, which may contain any character.
        // So the fields are counted from the third, after the last bracket.
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "));
        let max = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))
            .and_then(|line| line.split_whitespace().next()?.parse().ok());
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
            start_time_seconds: boot?.trim().parse::<f64>().ok()? + field(22)? / TICKS_PER_SECOND,
            resident_bytes: kilobytes("VmRSS:")? * 1024.0,
            virtual_bytes: kilobytes("VmSize:")? * 1024.0,
            open_fds: 0.0,
            max_fds: max,
        })
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(process) = ProcessStats::read() else {
            return Ok(());
        };
        let row = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds.",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(process.cpu_seconds).encode(row)?;
        let gauges = [
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                Some(process.start_time_seconds),
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
                Some(process.resident_bytes),
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
                Some(process.virtual_bytes),
            ),
            (
                "process_open_fds",
                "Number of open file descriptors.",
                Some(process.open_fds),
            ),
            (
                "process_max_fds",
                "Maximum number of open file descriptors.",
                process.max_fds,
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let row = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
