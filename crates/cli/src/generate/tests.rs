use super::*;
use std::collections::BTreeSet;

#[test]
fn rules_of_several_groups_look_at_each_of_them() {
    assert!(alerts::text(1).contains("expr: (sum(clover_active) or vector(0)) < 1\n"));
    let several = alerts::text(2);
    assert!(several.contains("expr: (sum by (metadata_group) (clover_active)) < 1\n"), "{several}");
    assert!(several.contains("max by (metadata_group, code) (clover_condition{"), "{several}");
    for aggregate in ["max(", "min(", "sum(", "vector("] {
        assert!(!several.contains(aggregate), "{aggregate}");
    }
    for group in ["1", "2"] {
        assert!(several.contains(&format!("absent(clover_active{{metadata_group=\"{group}\"}})")));
    }
    assert_eq!(several.matches("CloverGroupSilent").count(), 2);
}

#[test]
fn every_rule_has_a_severity_and_the_next_command() {
    let rules: Vec<&str> = alerts::RULES.split("- alert: ").skip(1).collect();
    assert!(rules.len() > 20);
    for rule in rules {
        for part in ["expr: ", "labels: {severity: ", "summary: ", "next: \"clover "] {
            assert!(rule.contains(part), "{part}: {rule}");
        }
    }
}

#[test]
fn rules_name_conditions_that_exist() {
    let known: BTreeSet<&str> = verdict::Code::ALL.iter().map(|code| code.as_str()).collect();
    let lists = alerts::RULES.split("code!~\"").skip(1).chain(alerts::RULES.split("code=~\"").skip(1));
    for list in lists {
        for code in list.split('"').next().unwrap().split('|') {
            assert!(known.contains(code), "{code} is no condition");
        }
    }
}

#[test]
fn a_configuration_has_a_label_where_there_are_several_groups() {
    let one =
        prometheus::Targets { meta: [(1, vec!["m1:9870".into()])].into(), data: vec!["d1:9864".into()] };
    let text = prometheus::text(&one, "rules.yml");
    assert!(
        text.contains("rule_files: [\"rules.yml\"]\n") && text.contains("- targets: [\"d1:9864\"]\n"),
        "{text}"
    );
    assert!(!text.contains("metadata_group"));
    let two = prometheus::Targets {
        meta: [(1, vec!["m1:9870".into()]), (2, vec!["m2:9870".into()])].into(),
        data: Vec::new(),
    };
    let text = prometheus::text(&two, "rules.yml");
    assert!(text.contains("- targets: [\"m2:9870\"]\n        labels: {metadata_group: \"2\"}\n"), "{text}");
    assert!(!text.contains("clover-data"), "{text}");
}

#[test]
fn panels_have_numbers_and_places_of_their_own() {
    let dashboard = dashboard::json();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    let places: BTreeSet<String> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
    assert_eq!((ids.len(), places.len()), (panels.len(), panels.len()));
}
