//! Charts as SVG inside a page: no script draws them, and screen readers get a sentence.

use crate::text;
use std::fmt::Write;

/// The drawing's own units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;
/// Longer gaps between points break a line, in milliseconds.
const GAP_MS: u64 = 20_000;

/// One line. `class` gives it its colour.
pub struct Line {
    pub class: &'static str,
    /// Times in milliseconds since 1970, rising, and values from 0 up.
    pub points: Vec<(u64, f64)>,
}

/// Lines over the time from `from_ms` to `to_ms`. `label` is the sentence for readers who do not see; it and what `shown` makes of a
/// value must need no escaping. Empty if there are no points.
pub fn lines(label: &str, lines: &[Line], from_ms: u64, to_ms: u64, shown: impl Fn(f64) -> String) -> String {
    if lines.iter().all(|line| line.points.is_empty()) || to_ms <= from_ms {
        return String::new();
    }
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let top = round_up(values.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let x = |ms: u64| {
        let share = ms.saturating_sub(from_ms) as f64 / (to_ms - from_ms) as f64;
        LEFT + share.min(1.0) * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| HEIGHT - BOTTOM - value.clamp(0.0, top) / top * (HEIGHT - TOP - BOTTOM);
    let mut svg =
        format!(r#"<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{label}</title>"#);
    for part in [0.0, 0.5, 1.0] {
        let (at, value) = (y(top * part), shown(top * part));
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" x2="{:.0}" y1="{at:.1}" y2="{at:.1}"/><text class="axis end" x="{:.0}" y="{:.1}">{value}</text>"#,
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    for part in 0..=4 {
        let ms = from_ms + (to_ms - from_ms) * part / 4;
        let place = if part == 0 {
            "start"
        } else if part == 4 {
            "end"
        } else {
            "middle"
        };
        let _ = write!(
            svg,
            r#"<text class="axis {place}" x="{:.1}" y="{:.0}">{}</text>"#,
            x(ms),
            HEIGHT - 5.0,
            text::clock(ms)
        );
    }
    for line in lines {
        let mut path = String::new();
        let mut before: Option<u64> = None;
        for (ms, value) in line.points.iter().filter(|(ms, value)| *ms >= from_ms && value.is_finite()) {
            let joins = before.is_some_and(|before| ms.saturating_sub(before) <= GAP_MS);
            let (x, y) = (x(*ms), y(*value));
            // A point alone is drawn as a dot, by a line of no length with round ends.
            let _ = match joins {
                true => write!(path, "L{x:.1} {y:.1}"),
                false => write!(path, "M{x:.1} {y:.1}h0"),
            };
            before = Some(*ms);
        }
        let _ = write!(svg, r#"<path class="line {}" d="{path}"/>"#, line.class);
    }
    svg + "</svg>"
}

/// The next of 1, 2, 5, 10, 20 and so on, so that the axis has short numbers.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= value).unwrap_or(10.0);
    step * power
}

/// Columns, one for each label. Labels must need no escaping.
pub fn columns(label: &str, columns: &[(String, u64)]) -> String {
    let top = columns.iter().map(|(_, value)| *value).max().unwrap_or(0);
    if top == 0 {
        return String::new();
    }
    let width = (WIDTH - LEFT - RIGHT) / columns.len() as f64;
    let mut svg =
        format!(r#"<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{label}</title>"#);
    for (at, (name, value)) in columns.iter().enumerate() {
        let height = *value as f64 / top as f64 * (HEIGHT - TOP - BOTTOM - 14.0);
        let (left, upper) = (LEFT + at as f64 * width, HEIGHT - BOTTOM - height);
        let middle = left + width / 2.0;
        let _ = write!(
            svg,
            r#"<rect class="column" x="{:.1}" y="{upper:.1}" width="{:.1}" height="{height:.1}" rx="2"/><text class="axis middle" x="{middle:.1}" y="{:.0}">{name}</text>"#,
            left + 3.0,
            width - 6.0,
            HEIGHT - 5.0
        );
        if *value > 0 {
            let _ = write!(
                svg,
                r#"<text class="axis middle" x="{middle:.1}" y="{:.1}">{value}</text>"#,
                upper - 4.0
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_points_and_breaks_where_nothing_was_measured() {
        let points = vec![(0, 1.0), (5_000, 3.0), (60_000, f64::NAN), (65_000, 2.0)];
        let svg = lines("Calls a second", &[Line { class: "a", points }], 0, 100_000, |value| {
            format!("{value:.0}")
        });
        assert!(svg.contains("<title>Calls a second</title>") && svg.ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("h0").count(), 2, "{svg}");
        assert!(!svg.contains("NaN") && svg.contains(">5<"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(lines("x", &[Line { class: "a", points: vec![] }], 0, 1, |_| String::new()), "");
        assert_eq!(columns("x", &[("0".into(), 0)]), "");
        assert!(columns("x", &[("0".into(), 2), ("10".into(), 0)]).contains(">2</text>"));
    }

    #[test]
    fn axes_end_at_short_numbers() {
        for (value, rounded) in [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (3.0, 5.0), (11.0, 20.0), (99.0, 100.0)]
        {
            assert!((round_up(value) - rounded).abs() < 1e-9, "{value}");
        }
    }
}
