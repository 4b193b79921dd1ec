use super::*;
use crate::page::tests::{HOSTILE, frame, text};

fn line(number: u64, level: Level, log: &str, text: &str) -> Arc<LogLine> {
    Arc::new(LogLine { time_ms: number * 1_000, level, log: log.to_owned(), text: text.to_owned() })
}

fn lines() -> Vec<Arc<LogLine>> {
    vec![
        line(1, Level::Info, "metad::start", "the first"),
        line(2, Level::Debug, "rpc", "a detail"),
        line(3, Level::Warn, "metad::member", HOSTILE),
        line(4, Level::Error, "journal", "The disk failed path=\"/data 1\""),
    ]
}

fn page(filter: &str, level: &str) -> Page {
    Page::new(frame(), Some(lines()), filter.to_owned(), level.to_owned())
}

fn logs(page: &Page) -> Vec<&str> {
    page.lines.as_ref().unwrap().rows.iter().map(|row| &*row.log).collect()
}

#[test]
fn the_newest_line_comes_first_and_all_are_escaped() {
    let page = page("", "");
    assert_eq!(logs(&page), ["journal", "metad::member", "rpc", "metad::start"]);
    let shown = text(&page);
    assert!(shown.contains("4 of 4 lines") && shown.contains("1970-01-01 00:00:04"), "{shown}");
}

#[test]
fn lines_are_found_by_level_and_text() {
    assert_eq!(logs(&page("", "warn")), ["journal", "metad::member"]);
    assert_eq!(logs(&page("THE DISK", "")), ["journal"]);
    assert_eq!(logs(&page("metad", "info")), ["metad::member", "metad::start"]);
    assert_eq!(logs(&page("", "no level")).len(), 4);
    assert!(text(&page("nothing of the kind", "")).contains("No line matches."));
}

#[test]
fn a_page_has_so_many_lines_at_most() {
    let many = (0..LINES_MAX as u64 + 7).map(|number| line(number, Level::Info, "x", "y")).collect();
    let page = Page::new(frame(), Some(many), String::new(), String::new());
    let lines = page.lines.as_ref().unwrap();
    assert_eq!((lines.rows.len(), lines.matching), (LINES_MAX, LINES_MAX + 7));
    assert!(text(&page).contains("The newest 500 of them are shown."));
}

#[test]
fn others_see_a_sentence_and_no_line() {
    let shown = text(&Page::new(frame(), None, String::new(), String::new()));
    assert!(shown.contains("for superusers") && !shown.contains("<ol"), "{shown}");
}
