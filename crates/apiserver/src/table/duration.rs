//! Durations as kubectl prints them: two or three significant figures.

use jiff::Timestamp;

/// Returns the duration from `since` to `now` in the format of kubectl, or `<invalid>` if `since`
/// is over a second later than `now`.
pub(super) fn human(since: Timestamp, now: Timestamp) -> String {
    human_seconds(now.as_second().saturating_sub(since.as_second()))
}

/// Returns a number of seconds as a duration in the format of kubectl.
pub(super) fn human_seconds(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        // The clocks of two machines may differ by a second.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2_920 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// Returns a duration in two units such as `3m21s`, or in one unit such as `3m` if `small` is 0.
fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}
