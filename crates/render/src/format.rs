//! Formats numbers and names for users.

use quipu_conversation::price::base_name;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

#[cfg(test)]
mod tests;

/// A whole number with thousands separators: `12,399`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in bytes, for example `212 KB` or `1.4 GB`.
pub fn bytes(n: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match units.into_iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) if n >= 10 * size => format!("{} {unit}", n / size),
        Some((size, unit)) => format!("{}.{} {unit}", n / size, n % size * 10 / size),
        None => format!("{n} bytes"),
    }
}

/// A number with its noun: `1 session`, `2,000 sessions`. The plural of `thing` ends in s or es.
pub fn count(n: usize, thing: &str) -> String {
    let plural = match thing {
        _ if n == 1 => "",
        _ if thing.ends_with("ch") || thing.ends_with('s') || thing.ends_with('x') => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", thousands(n as u64))
}

/// A token count in at most six characters: `950`, `186.4k`, `12.3M`, `1.2B`.
pub fn tokens(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..999_950 => format!("{:.1}k", n as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.1}B", n as f64 / 1e9),
    }
}

/// Dollars and cents, such as `$18,591.30`; `<$0.01` for less than half a cent.
pub fn money(usd: f64) -> String {
    let cents = (usd.abs() * 100.0).round() as u64;
    if cents == 0 {
        return if usd == 0.0 { "$0.00".to_owned() } else { "<$0.01".to_owned() };
    }
    let sign = if usd < 0.0 { "-" } else { "" };
    format!("{sign}${}.{:02}", thousands(cents / 100), cents % 100)
}

/// A cost of which part may be unknown: `$1.20`, `$1.20 + ?`.
pub fn cost(usd: f64, unpriced_models: usize) -> String {
    if unpriced_models == 0 { money(usd) } else { format!("{} + ?", money(usd)) }
}

/// The two largest units that are not zero: `2 d 3 h`, `12 min`, `8 s`; `0 s` for less than a
/// second.
pub fn duration(seconds: f64) -> String {
    let total = seconds.max(0.0) as u64;
    let units = [("d", total / 86_400), ("h", total / 3_600 % 24), ("min", total / 60 % 60), ("s", total % 60)];
    let largest = units.iter().position(|(_, n)| *n > 0).unwrap_or(units.len() - 1);
    let shown = units[largest..].iter().take(2).enumerate().filter(|(at, (_, n))| *at == 0 || *n > 0);
    shown.map(|(_, (unit, n))| format!("{n} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Minutes as hours and minutes, shorter than [`duration`] for tables and status lines: `2h 10m`.
pub fn hours(minutes: f64) -> String {
    let minutes = minutes.floor() as u64;
    if minutes < 60 { format!("{minutes}m") } else { format!("{}h {:02}m", minutes / 60, minutes % 60) }
}

/// Name of a model without vendor and date: `opus-4-5`.
pub fn model(name: &str) -> &str {
    let name = base_name(name);
    name.strip_prefix("claude-").unwrap_or(name)
}

/// Short name of a project: the last folder of its path, with its parents if it is only a number
/// (`cli/.worktrees/3`).
pub fn project<'a>(cwd: Option<&'a str>, folder: &'a str) -> &'a str {
    let Some(cwd) = cwd.map(|cwd| cwd.trim_end_matches(['/', '\\'])).filter(|cwd| !cwd.is_empty()) else {
        return folder;
    };
    let says_nothing = |part: &str| part.ends_with("worktrees") || part.chars().all(|c| c.is_ascii_digit());
    let mut start = cwd.len();
    while let Some(before) = cwd[..start].rfind(['/', '\\']) {
        let part = cwd[before + 1..start].trim_end_matches(['/', '\\']);
        if !says_nothing(part) {
            return &cwd[before + 1..];
        }
        start = before;
    }
    cwd
}

/// Truncates a text to a width in terminal cells, with `…` at the end if something is left out.
pub fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut used, mut out) = (1, String::new());
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used > width {
            break;
        }
        out.push_str(grapheme);
    }
    out.truncate(out.trim_end().len());
    if width > 0 { out + "…" } else { out }
}
