//! The parameters of a request: what stands behind the question mark.

use crate::{
    error::{Refusal, Result},
    path,
};
use std::{fmt::Display, str::FromStr};

/// More parameters are refused. No operation has so many; extended attributes are named one by one.
const COUNT_MAX: usize = 256;
/// Hadoop's largest permission.
const MODE_MAX: u16 = 0o1777;

/// The parameters by name, in the order of the request. Names are told apart without regard to case, as in Hadoop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    pairs: Vec<(String, String)>,
}

/// Refuses a parameter's value with Hadoop's text. As in Hadoop, an `IllegalArgumentException` is told whose text names the exception that
/// the value caused.
pub fn invalid(name: &str, why: impl Display) -> Refusal {
    Refusal::illegal(format!(
        "Invalid value for webhdfs parameter \"{name}\": {}: {why}",
        proto::exception::JAVA_ILLEGAL_ARGUMENT
    ))
}

impl Parameters {
    /// The parameters of a URI's query, in their order.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) if there are more than [`COUNT_MAX`], or if they are not UTF-8.
    pub fn parse(query: &str) -> Result<Self> {
        let mut pairs = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if pairs.len() == COUNT_MAX {
                return Err(Refusal::illegal(format!("more than {COUNT_MAX} parameters")));
            }
            // The decoder replaces bytes that are not UTF-8 by this character. No valid name or value contains it.
            if name.contains(char::REPLACEMENT_CHARACTER) || value.contains(char::REPLACEMENT_CHARACTER) {
                return Err(Refusal::illegal("the parameters are not UTF-8"));
            }
            pairs.push((name.to_ascii_lowercase(), value.into_owned()));
        }
        Ok(Self { pairs })
    }

    /// The value of a parameter that is there and not empty.
    pub fn get<'a>(&'a self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let named = move |pair: &&(String, String)| pair.0 == name && !pair.1.is_empty();
        self.pairs.iter().filter(named).map(|(_, value)| &**value)
    }

    /// Whether a parameter is there, though it may be empty.
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    /// Sets a parameter, as the first of all but `op` and the users: Hadoop's own test of redirects looks behind it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        let (mut first, rest): (Vec<_>, Vec<_>) =
            self.pairs.drain(..).partition(|(known, _)| ["op", "user.name", "doas"].contains(&&**known));
        first.push((name.to_owned(), value.to_owned()));
        first.extend(rest);
        self.pairs = first;
    }

    /// Adds what a parameter that is not there means.
    pub fn set_default(&mut self, name: &str, value: &str) {
        if !self.has(name) {
            self.pairs.push((name.to_owned(), value.to_owned()));
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.pairs.retain(|(known, _)| known != name);
    }

    /// As they stand in a URI.
    pub fn encode(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.pairs).finish()
    }

    /// The value of a parameter without which the operation makes no sense.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) if it is absent or empty.
    pub fn required(&self, operation: &str, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| {
            Refusal::illegal(format!("Required param {name} for op: {operation} is null or empty"))
        })
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Yes or no.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) for any other word.
    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(invalid(name, format!("Failed to parse \"{text}\" to Boolean."))),
        }
    }

    /// A whole number of at least `least`. `null` is none, as in Hadoop.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) if it is no number, or a smaller one.
    pub fn number<N: FromStr + PartialOrd + Display>(&self, name: &str, least: N) -> Result<Option<N>> {
        let Some(text) = self.get(name).filter(|text| *text != "null") else { return Ok(None) };
        let Ok(number) = text.parse::<N>() else {
            return Err(invalid(name, format!("Failed to parse \"{text}\" as a whole number in range.")));
        };
        match number < least {
            false => Ok(Some(number)),
            true => Err(invalid(name, format!("Invalid parameter range: {name} = {number} < {least}"))),
        }
    }

    /// An octal mode.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) if it is no octal number, or greater than `1777`.
    pub fn mode(&self, name: &str) -> Result<Option<u16>> {
        let Some(text) = self.get(name).filter(|text| *text != "null") else { return Ok(None) };
        let is_octal = text.bytes().all(|digit| digit.is_ascii_digit());
        match u16::from_str_radix(text, 8) {
            Ok(mode @ ..=MODE_MAX) if is_octal => Ok(Some(mode)),
            Ok(mode) if is_octal => {
                Err(invalid(name, format!("Invalid parameter range: {name} = {mode:o} > {MODE_MAX:o}")))
            }
            _ => Err(invalid(name, format!("Failed to parse \"{text}\" as a radix-8 short integer."))),
        }
    }

    /// An absolute path.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) if it is absent, not absolute, or a path that Hadoop's servers refuse.
    pub fn path(&self, operation: &str, name: &str) -> Result<String> {
        let text = self.required(operation, name)?;
        match text.starts_with('/') {
            true => path::check(text),
            false => Err(invalid(
                name,
                format!("Invalid parameter value: {name} = \"{text}\" is not an absolute path."),
            )),
        }
    }

    /// The members of a set of names that are parted by commas; each must be one of `known`.
    ///
    /// # Errors
    /// An `IllegalArgumentException` (400) for a name that is not known.
    pub fn set_of<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<Vec<T>> {
        let words =
            self.get(name).unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
        words
            .map(|word| {
                let found = known.iter().find(|(it, _)| it.eq_ignore_ascii_case(word));
                found
                    .map(|(_, value)| *value)
                    .ok_or_else(|| invalid(name, format!("No enum constant {word}")))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Parameters {
        Parameters::parse(query).unwrap()
    }

    #[test]
    fn names_are_told_apart_without_case_and_empty_values_are_none() {
        let parameters = parse("OP=open&User.Name=ann&offset=&x=a+b%2Bc&x=d");
        assert_eq!(parameters.get("op"), Some("open"));
        assert_eq!(parameters.get("user.name"), Some("ann"));
        assert_eq!(parameters.get("offset"), None);
        assert_eq!(parameters.all("x").collect::<Vec<_>>(), ["a b+c", "d"]);
        assert_eq!(parse(&parameters.encode()), parameters);
        assert!(parameters.has("offset") && !parameters.has("length"));
        let mut parameters = parse("x=1&op=OPEN&a=2");
        parameters.set("a", "3");
        parameters.set_default("x", "2");
        parameters.set_default("y", "4");
        assert_eq!(parameters.encode(), "op=OPEN&a=3&x=1&y=4");
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let parameters = parse("n=-1&big=99999999999999999999&f=maybe&m=2000&o=8&p=a/b&e=CREATE,NONSENSE");
        let said = |refused: Result<String>| refused.unwrap_err().message;
        assert!(said(parameters.number("n", 0_i64).map(|_| String::new())).contains("n = -1 < 0"));
        assert!(said(parameters.number("big", 0_i64).map(|_| String::new())).contains("\"big\""));
        assert!(said(parameters.flag("f").map(|_| String::new())).contains("\"maybe\""));
        assert!(said(parameters.mode("m").map(|_| String::new())).contains("m = 2000 > 1777"));
        assert!(said(parameters.mode("o").map(|_| String::new())).contains("\"o\""));
        assert!(said(parameters.path("RENAME", "p")).contains("not an absolute path"));
        assert!(said(parameters.path("RENAME", "q")).contains("Required param q for op: RENAME"));
        assert!(said(parameters.set_of("e", &[("create", ())]).map(|_| String::new())).contains("NONSENSE"));
    }

    #[test]
    fn foreign_bytes_and_floods_are_refused() {
        assert!(Parameters::parse("a=%ff").is_err());
        assert!(Parameters::parse(&"a=b&".repeat(COUNT_MAX + 1)).is_err());
    }
}
