//! The metrics that a Hadoop 3.5.0 has shown at `/prom`, for the tests of both servers.

use std::collections::BTreeMap;

/// The type of each metric and its labels, by its name.
pub type Metrics = BTreeMap<String, (String, String)>;

/// The recorded metrics of a service, `NameNode` or `DataNode`.
pub fn hadoops(service: &str) -> Metrics {
    let lines = include_str!("prom-3.5.0.tsv").lines().filter(|line| !line.starts_with('#'));
    let metrics = lines.filter_map(|line| {
        let [of, name, kind, labels] = line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
        (of == service).then(|| (name.to_owned(), (kind.to_owned(), labels.to_owned())))
    });
    metrics.collect()
}

/// The metrics of a page, with the names of their labels sorted, as the record has them.
pub fn shown(page: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let twice = metrics.insert(name.to_owned(), (kind.to_owned(), String::new()));
            assert!(twice.is_none(), "{name} has two types");
        } else if let Some((name, rest)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let (labels, value) = rest.rsplit_once("} ").expect("a sample has a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let mut names: Vec<_> = labels.split("\",").filter_map(|label| label.split_once("=\"")).collect();
            names.sort_unstable();
            let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
            metrics.get_mut(name).expect("a sample follows its type").1 = names.join(",");
        }
    }
    metrics
}

/// Checks that every metric of a page is one of Hadoop's, with its type and labels. The answer has Hadoop's metrics that the page lacks.
pub fn lacking(page: &str, service: &str) -> Vec<String> {
    let (expected, seen) = (hadoops(service), shown(page));
    for (name, (kind, labels)) in &seen {
        // A metric of the calls of one method is recorded for the methods of that release.
        let known = expected.get(name).unwrap_or_else(|| panic!("Hadoop has no metric {name}"));
        assert_eq!((kind, labels), (&known.0, &known.1), "{name}");
    }
    expected.into_keys().filter(|name| !seen.contains_key(name)).collect()
}
