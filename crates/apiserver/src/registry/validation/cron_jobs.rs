//! Validation of CronJobs: their schedules and time zones, and the template of their Jobs.

mod schedule;

use opkit_apimachinery::structural::FieldError;

use super::field::{Errors, Field};
use super::jobs;

/// Names of all time zones of the IANA database, one per line and sorted.
const TIME_ZONES: &str = include_str!("../../../data/time-zones.txt");
/// Maximum length of the name of a CronJob in bytes: those of its Jobs have 11 more characters.
const NAME_MAX: usize = 52;

/// Adds the errors in a CronJob. `live` is the stored CronJob, if there is one.
pub(super) fn cron_job(object: &Field<'_>, live: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    let old = live.map(|live| live.get("spec"));
    let (text, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if text.is_empty() {
        errors.required(&text, "");
    } else {
        let old = old.as_ref().map(|old| old.get("schedule").text());
        let had_zone = old.is_some_and(|old| old.contains("TZ"));
        if let Err(error) = schedule::check(text.text()) {
            errors.invalid(&text, &error);
        }
        if text.text().contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            match had_zone {
                false => errors.invalid(&text, detail),
                true if zone.is_set() => {
                    let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                    errors.invalid(&text, detail);
                }
                true => {}
            }
        }
    }
    errors.not_negative(&spec.get("startingDeadlineSeconds"));
    let is_new_zone = old.is_none_or(|old| old.get("timeZone").value != zone.value);
    if zone.is_set() && is_new_zone {
        time_zone(&zone, errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    errors.required_of(&spec.get("concurrencyPolicy"), &policies);
    let template = spec.at(&["jobTemplate", "spec"]);
    jobs::job_spec(&template, errors);
    let selector = template.get("selector");
    if selector.is_set() {
        errors.invalid(&selector, "`selector` will be auto-generated");
    }
    let manual = template.get("manualSelector");
    if manual.is_true() {
        let supported = ["nil", "false"];
        let error = FieldError::not_supported(&manual.path, manual.value, &supported);
        errors.0.push(error);
    }
    errors.not_negative(&spec.get("successfulJobsHistoryLimit"));
    errors.not_negative(&spec.get("failedJobsHistoryLimit"));
    let name = object.at(&["metadata", "name"]);
    if live.is_none() && name.text().len() > NAME_MAX {
        errors.invalid(&name, "must be no more than 52 characters");
    }
}

/// Reports whether a time zone with the name exists.
fn is_time_zone(name: &str) -> bool {
    matches!(name, "UTC" | "Local") || TIME_ZONES.lines().any(|known| known == name)
}

fn time_zone(zone: &Field<'_>, errors: &mut Errors) {
    let name = zone.text();
    if name.is_empty() {
        return errors.invalid(zone, "timeZone must be nil or non-empty string");
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    let is_valid = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.chars().all(is_part)
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(is_valid) {
        return errors.invalid(zone, &unknown);
    }
    if name.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        errors.invalid(zone, detail);
    }
    if !is_time_zone(name) {
        errors.invalid(zone, &unknown);
    }
}

#[cfg(test)]
mod tests;
