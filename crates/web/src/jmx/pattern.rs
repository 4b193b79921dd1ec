//! The names of beans, and patterns of them.

/// Longer questions are no questions: the time to match two texts grows with both lengths.
pub const BYTES_MAX: usize = 1_024;

/// A name with wildcards: a domain and properties, `Hadoop:service=NameNode,name=*`. A property `*` alone allows further ones.
pub struct Pattern<'a> {
    domain: &'a str,
    properties: Vec<(&'a str, &'a str)>,
    allows_more: bool,
}

impl<'a> Pattern<'a> {
    /// `None` if the text is no name of a bean.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (domain, rest) = text.split_once(':').filter(|_| text.len() <= BYTES_MAX)?;
        let mut pattern = Self { domain, properties: Vec::new(), allows_more: false };
        for property in rest.split(',') {
            match property.split_once('=') {
                Some((key, value)) => pattern.properties.push((key, value)),
                None if property == "*" => pattern.allows_more = true,
                None => return None,
            }
        }
        Some(pattern)
    }

    /// The order of properties means nothing.
    pub fn matches(&self, name: &str) -> bool {
        let Some((domain, rest)) = name.split_once(':') else { return false };
        let properties: Vec<_> = rest.split(',').filter_map(|property| property.split_once('=')).collect();
        let has = |(key, wanted): &(&str, &str)| {
            properties.iter().any(|(its, value)| its == key && is_like(wanted, value))
        };
        is_like(self.domain, domain)
            && (self.allows_more || properties.len() == self.properties.len())
            && self.properties.iter().all(has)
    }
}

/// Whether `text` is what `pattern` says, where `*` stands for any letters and `?` for one.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut in_text) = (0, 0);
    // The last star, and the letters that it stands for at the moment.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    (at, in_text) = (place + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_java_has_it() {
        const NAME: &str = "Hadoop:service=NameNode,name=NameNodeInfo";
        let matching = [
            "*:*",
            "Hadoop:*",
            NAME,
            "Hadoop:name=NameNodeInfo,service=NameNode",
            "Hadoop:service=NameNode,name=*",
            "Had??p:service=Name*,name=*Info",
            "Hadoop:service=NameNode,*",
        ];
        for pattern in matching {
            assert!(Pattern::parse(pattern).unwrap().matches(NAME), "{pattern}");
        }
        for pattern in
            ["Hadoop:service=NameNode", "java.lang:*", "Hadoop:name=*Inf", "Hadoop:service=DataNode,*"]
        {
            assert!(!Pattern::parse(pattern).unwrap().matches(NAME), "{pattern}");
        }
        for nonsense in ["", "nonsense", "Hadoop:", "Hadoop:service"] {
            assert!(Pattern::parse(nonsense).is_none(), "{nonsense}");
        }
        assert!(Pattern::parse(&format!("Hadoop:name={}", "*a".repeat(2_000))).is_none());
    }
}
