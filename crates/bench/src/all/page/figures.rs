//! Figures of a part's lines, and how a page writes them.

use serde_json::Value;

/// A number at a place like `/saturated/p50_us`.
pub fn number(line: &Value, place: &str) -> Option<f64> {
    line.pointer(place)?.as_f64()
}

pub fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// With commas between thousands; empty if there is none.
pub fn whole(number: Option<f64>) -> String {
    let Some(number) = number else { return String::new() };
    let digits = format!("{:.0}", number.abs());
    let mut written = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// With so many digits behind the point; empty if there is none.
pub fn exact(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(String::new, |number| format!("{number:.digits$}"))
}

/// A median, and the least and the greatest where rounds differ.
pub fn with_range(line: &Value, place: &str, write: impl Fn(Option<f64>) -> String) -> String {
    let median = write(number(line, place));
    let [least, greatest] = [0, 1].map(|end| write(number(line, &format!("{place}_range/{end}"))));
    if least == greatest { median } else { format!("{median} ({least} to {greatest})") }
}

/// How many times as much.
pub fn times(figure: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(figure? / other?).filter(|times| times.is_finite())
}

/// A part of something: `1/4.0`.
pub fn part(part: Option<f64>) -> String {
    part.filter(|part| *part > 0.0).map_or_else(String::new, |part| format!("1/{:.1}", 1.0 / part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!([whole(Some(1_234_567.8)), whole(Some(999.0)), whole(None)], ["1,234,568", "999", ""]);
        assert_eq!([part(Some(0.25)), part(times(Some(1.0), Some(0.0)))], ["1/4.0", ""]);
        let line = json!({ "rate": 5.0, "rate_range": [4.0, 7.0], "one": 3.0, "one_range": [3.0, 3.0] });
        assert_eq!(with_range(&line, "/rate", whole), "5 (4 to 7)");
        assert_eq!(with_range(&line, "/one", whole), "3");
    }
}
