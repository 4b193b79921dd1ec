//! The users of requests.

use crate::{
    error::{Refusal, Result},
    parameters::{Parameters, invalid},
};

/// The user of a request that names none, as in Hadoop.
pub const DEFAULT_USER: &str = "dr.who";
/// Bytes of a user's name.
const NAME_BYTES_MAX: usize = 256;

/// The user who sends a request, and the user for whom it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user who asks.
    pub user: String,
    /// The user for whom the request is carried out: its rights count.
    pub effective: String,
}

impl Identity {
    /// # Errors
    /// A name is none of Hadoop's users.
    pub fn of(parameters: &Parameters) -> Result<Self> {
        let named = |name| match parameters.get(name) {
            Some(text) => check(name, text).map(Some),
            None => Ok(None),
        };
        let user = named("user.name")?.unwrap_or_else(|| DEFAULT_USER.to_owned());
        let effective = named("doas")?.unwrap_or_else(|| user.clone());
        Ok(Self { user, effective })
    }

    /// The users of a request of `hdfs fsck`, which names its user in `ugi`, before a comma and the user's groups. `user.name` counts more.
    ///
    /// # Errors
    /// A name is none of Hadoop's users.
    pub fn of_tool(parameters: &Parameters) -> Result<Self> {
        let mut parameters = parameters.clone();
        let ugi = parameters.get("ugi").and_then(|ugi| ugi.split(',').next()).map(str::to_owned);
        if let Some(user) = ugi.filter(|_| parameters.get("user.name").is_none()) {
            parameters.set("user.name", &user);
        }
        Self::of(&parameters)
    }

    /// The users as Hadoop writes them in its log.
    pub fn in_hadoops_words(&self) -> String {
        match self.is_proxy() {
            true => format!("{} (auth:PROXY) via {} (auth:SIMPLE)", self.effective, self.user),
            false => format!("{} (auth:SIMPLE)", self.user),
        }
    }

    /// Whether a user acts in the place of another one.
    pub fn is_proxy(&self) -> bool {
        self.user != self.effective
    }

    /// Hadoop's refusal of a user who may not act for another.
    pub fn refuse(&self) -> Refusal {
        Refusal::unauthorized(base::Proxies::refusal(&self.user, &self.effective))
    }
}

/// A letter or underscore, then also digits, dots and dashes; a dollar sign may end it.
fn check(parameter: &str, name: &str) -> Result<String> {
    let body = name.strip_suffix('$').unwrap_or(name);
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_valid = name.len() <= NAME_BYTES_MAX
        && body.starts_with(is_letter)
        && body.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '.' || c == '-');
    match is_valid {
        true => Ok(name.to_owned()),
        false => {
            let shown: String = name.chars().take(40).collect();
            Err(invalid(
                parameter,
                format!(
                    "Invalid value: \"{shown}\" does not belong to the domain ^[A-Za-z_][A-Za-z0-9._-]*[$]?$"
                ),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Identity> {
        Identity::of(&Parameters::parse(query).unwrap())
    }

    #[test]
    fn the_tool_s_own_name_for_a_user_counts_where_there_is_no_other() {
        let of = |query: &str| Identity::of_tool(&Parameters::parse(query).unwrap());
        assert_eq!(of("ugi=ann,staff&path=/").unwrap().effective, "ann");
        assert_eq!(of("ugi=ann&user.name=bob").unwrap().effective, "bob");
        assert_eq!(of("path=/").unwrap().in_hadoops_words(), "dr.who (auth:SIMPLE)");
        let proxy = of("ugi=knox&doas=ann").unwrap();
        assert_eq!(proxy.in_hadoops_words(), "ann (auth:PROXY) via knox (auth:SIMPLE)");
        assert_eq!(of("ugi=a/b").unwrap_err().status.as_u16(), 400);
    }

    #[test]
    fn names_are_hadoops() {
        assert_eq!(of("").unwrap().effective, DEFAULT_USER);
        let proxy = of("user.name=knox&doas=ann").unwrap();
        assert!(proxy.is_proxy() && proxy.effective == "ann");
        assert!(!of("user.name=ann&doas=ann").unwrap().is_proxy());
        for name in ["a", "_x-1.b", "host$"] {
            assert!(of(&format!("user.name={name}")).is_ok(), "{name}");
        }
        for name in ["a b", "1a", "$", "a/b", "a%00", "ä", &"a".repeat(300)] {
            assert_eq!(of(&format!("user.name={name}")).unwrap_err().status.as_u16(), 400, "{name}");
        }
    }
}
