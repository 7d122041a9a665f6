//! Metrics of the process, with the names that Prometheus' clients give them. Linux tells them in
//! `/proc`; where there is none, there are no such metrics.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of times in `/proc`: Linux has it fixed at a hundredth of a second on what operators
/// run on.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct ProcessMetrics;

/// What `/proc` tells.
#[derive(Debug, Default, PartialEq)]
struct Process {
    cpu_seconds: f64,
    start_time_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    open_fds: f64,
    max_fds: Option<f64>,
}

impl Process {
    fn read() -> Option<Self> {
        let fds = fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Self {
            // Without the one that the question itself has open.
            open_fds: fds.saturating_sub(1) as f64,
            ..Self::parse(
                &fs::read_to_string("/proc/self/stat").ok()?,
                &fs::read_to_string("/proc/self/status").ok()?,
                &fs::read_to_string("/proc/self/limits").ok()?,
                &fs::read_to_string("/proc/stat").ok()?,
            )?
        })
    }

    fn parse(stat: &str, status: &str, limits: &str, system: &str) -> Option<Self> {
        // The name of the binary, in brackets, may hold anything; the third field follows it.
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
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            start_time_seconds: boot?.trim().parse::<f64>().ok()? + field(22)? / TICKS,
            resident_bytes: kilobytes("VmRSS:")? * 1024.0,
            virtual_bytes: kilobytes("VmSize:")? * 1024.0,
            open_fds: 0.0,
            max_fds: max,
        })
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(process) = Process::read() else {
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
