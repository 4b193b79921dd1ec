//! The parameters of a request to one of the small pages: what stands behind the question mark.

use crate::refusal::{Refusal, Result};
use axum::http::{StatusCode, Uri};

/// A longer query is refused: no tool has a question of this length for these pages.
const QUERY_BYTES_MAX: usize = 8 << 10;
/// More parameters are refused; no page knows so many.
const COUNT_MAX: usize = 32;

/// The parameters by name, in the order of the request. Of several with one name the first counts, as in Java's servlets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    pairs: Vec<(String, String)>,
}

impl Parameters {
    /// # Errors
    /// 414 for a query of more than [`QUERY_BYTES_MAX`] bytes, 400 for more than [`COUNT_MAX`] parameters, and for parameters that are not UTF-8.
    pub fn of(uri: &Uri) -> Result<Self> {
        let query = uri.query().unwrap_or_default();
        if query.len() > QUERY_BYTES_MAX {
            let message = format!("the query has {} bytes, and may have {QUERY_BYTES_MAX}", query.len());
            return Err(Refusal { status: StatusCode::URI_TOO_LONG, message });
        }
        let mut pairs = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if pairs.len() == COUNT_MAX {
                return Err(Refusal::bad(format!("more than {COUNT_MAX} parameters")));
            }
            // The decoder replaces bytes that are not UTF-8 by this character. No valid name or value contains it.
            if name.contains(char::REPLACEMENT_CHARACTER) || value.contains(char::REPLACEMENT_CHARACTER) {
                return Err(Refusal::bad("the parameters are not UTF-8"));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { pairs })
    }

    /// The value of a parameter that is there. It may be empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The value of a parameter without the blanks around it. `None` if nothing is left.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Parameters> {
        Parameters::of(&format!("/jmx?{query}").parse().unwrap())
    }

    #[test]
    fn the_first_of_several_counts() {
        let asked = of("name=a%20b&name=c&empty=&log=+x+").unwrap();
        assert_eq!(asked.get("name"), Some("a b"));
        assert_eq!((asked.get("empty"), asked.text("empty")), (Some(""), None));
        assert_eq!((asked.text("log"), asked.get("Name")), (Some("x"), None));
    }

    #[test]
    fn odd_and_huge_queries_are_refused() {
        let status = |query: &str| of(query).unwrap_err().status.as_u16();
        assert_eq!(status(&format!("name={}", "x".repeat(QUERY_BYTES_MAX))), 414);
        assert_eq!(status(&"a=1&".repeat(COUNT_MAX + 1)), 400);
        assert_eq!(status("name=%ff%fe"), 400);
        assert_eq!(status("%c3=1"), 400);
        assert!(of("a=%zz&b=%").is_ok(), "a sign that encodes nothing stands for itself");
    }
}
