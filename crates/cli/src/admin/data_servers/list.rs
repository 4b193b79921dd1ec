//! `clover admin orders`: the data servers that are ordered out of service, by whom, and how far they are.

use super::{
    groups::{Groups, Unanswered},
    source, time,
};
use crate::table;
use anyhow::bail;
use proto::clover::admin::{
    DataServerWishProto as Wish, GetDataServerOrdersRequestProto, GetDataServerOrdersResponseProto as Told,
    OrderedServerProto,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, process::ExitCode};

/// Show the data servers that are ordered out of service: by which order, by whom, until when, and whether they may be switched off.
#[derive(Debug, clap::Args)]
pub struct Orders {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub async fn list(groups: &Groups, args: Orders) -> anyhow::Result<ExitCode> {
    let (mut told, mut missing) = (Vec::new(), Vec::new());
    for group in &groups.0 {
        match group.ask("getDataServerOrders", &GetDataServerOrdersRequestProto {}).await {
            Ok(orders) => told.push(orders),
            Err(Unanswered::Refused(why) | Unanswered::Silent(why)) => {
                missing.push(format!("group {} does not tell its orders: {why}", group.number));
            }
        }
    }
    if told.is_empty() {
        bail!("{}", missing.join("; "));
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&as_json(&told))?),
        false => print!("{}", as_text(&told)),
    }
    if !missing.is_empty() {
        bail!("{}", missing.join("; "));
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(told: &[Told]) -> Value {
    let orders = told.iter().flat_map(|told| told.servers.iter().map(move |server| one_json(told, server)));
    json!({"orders": orders.collect::<Vec<_>>()})
}

fn one_json(told: &Told, server: &OrderedServerProto) -> Value {
    let wish = |known: bool, wish: Wish| known.then(|| source::word(wish));
    json!({
        "group": told.group,
        "address": server.address,
        "host": server.host_name,
        "uuid": server.uuid,
        "alive": server.is_alive(),
        "journal": wish(server.journal.is_some(), server.journal()),
        "files": wish(server.files.is_some(), server.files()),
        "files_of_member": server.files.is_some().then_some(told.member),
        "over": server.is_over(),
        "until": server.until_ms,
        "named": server.named,
        "by": server.by,
        "at": server.at_ms,
        "service": source::state(server),
        "blocks": server.blocks,
        "blocks_in_need": server.blocks_in_need,
        "may_be_off": may_be_off(server),
    })
}

/// The stronger of the two orders.
fn ordered(server: &OrderedServerProto) -> Wish {
    let holds = |wish| {
        (server.journal.is_some() && !server.is_over() && server.journal() == wish)
            || (server.files.is_some() && server.files() == wish)
    };
    match () {
        () if holds(Wish::Decommission) => Wish::Decommission,
        () if holds(Wish::Maintenance) => Wish::Maintenance,
        () => Wish::InService,
    }
}

fn may_be_off(server: &OrderedServerProto) -> bool {
    let wish = ordered(server);
    wish != Wish::InService && source::may_be_off(server, wish)
}

fn as_text(told: &[Told]) -> String {
    let has_groups = told.len() > 1;
    if told.iter().all(|told| told.servers.is_empty()) {
        return "No data server is ordered out of service.\n".into();
    }
    let mut head =
        vec!["SERVER", "HOST", "ORDER", "SOURCE", "UNTIL", "BY", "SINCE", "STATE", "BLOCKS", "NEEDED"];
    if has_groups {
        head.insert(0, "GROUP");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for told in told {
        for server in &told.servers {
            let mut row = row(told, server);
            if has_groups {
                row.insert(0, told.group.to_string());
            }
            rows.push(row);
        }
    }
    let mut text = table::lines(&rows).join("\n") + "\n";
    let is_gone =
        |server: &OrderedServerProto| ordered(server) == Wish::Decommission && source::is_dead(server);
    let mut gone: BTreeMap<&str, bool> = BTreeMap::new();
    let mut off: BTreeMap<&str, bool> = BTreeMap::new();
    for server in told.iter().flat_map(|told| &told.servers) {
        *off.entry(&server.address).or_insert(true) &= may_be_off(server);
        *gone.entry(&server.address).or_insert(true) &= is_gone(server) || may_be_off(server);
    }
    for (address, may_be_off) in off {
        let lacking = told.iter().filter(|told| !told.servers.iter().any(|server| server.address == address));
        let lacking: Vec<String> = lacking.map(|told| told.group.to_string()).collect();
        if !lacking.is_empty() {
            text += &format!(
                "{address} has no order in group {}: the command that ordered it completes that.\n",
                lacking.join(", ")
            );
        } else if may_be_off {
            text += &format!("{address} may be switched off: no block needs it.\n");
        } else if gone[address] {
            text += &format!("{}\n", source::dead_text(address));
        }
    }
    text
}

fn row(told: &Told, server: &OrderedServerProto) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let sources: Vec<String> = source::words(server)
        .into_iter()
        .map(
            |word| if word == "files" { format!("files of member {}", told.member) } else { word.to_owned() },
        )
        .collect();
    let (order, sources) = match sources.is_empty() {
        true => (format!("{}, over", source::word(server.journal())), "journal".to_owned()),
        false => (source::word(ordered(server)).to_owned(), sources.join(", ")),
    };
    vec![
        server.address.clone(),
        or_none(server.host_name.clone()),
        order,
        sources,
        or_none(server.until_ms.map(time::shown)),
        or_none(server.by.clone()),
        or_none(server.at_ms.map(time::shown)),
        source::state(server).to_owned(),
        or_none(server.blocks.map(|count| count.to_string())),
        or_none(server.blocks_in_need.map(|count| count.to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u8, journal: Option<Wish>, files: Option<Wish>, state: &str) -> OrderedServerProto {
        OrderedServerProto {
            address: format!("10.0.0.{number}:9866"),
            journal: journal.map(Into::into),
            by: journal.map(|_| "admin".into()),
            files: files.map(Into::into),
            uuid: Some("u".into()),
            is_alive: Some(true),
            host_name: Some(format!("worker{number}")),
            admin_state: Some(state.into()),
            blocks: Some(9),
            blocks_in_need: Some(4),
            ..OrderedServerProto::default()
        }
    }

    fn told(group: u32, servers: Vec<OrderedServerProto>) -> Told {
        Told { group, member: 10 * group, servers, now_ms: Some(1) }
    }

    #[test]
    fn each_order_is_shown_with_its_source() {
        let mut over = server(3, Some(Wish::Maintenance), None, "NORMAL");
        over.is_over = Some(true);
        let text = as_text(&[told(
            1,
            vec![
                server(1, Some(Wish::Decommission), None, "DECOMMISSIONED"),
                server(2, Some(Wish::Maintenance), Some(Wish::Decommission), "DECOMMISSION_INPROGRESS"),
                over,
            ],
        )]);
        let lines: Vec<&str> = text.lines().collect();
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words[2..4], ["decommission", "journal"], "{text}");
        assert!(lines[1].contains("admin"), "{text}");
        let both = "journal, files of member 10";
        assert!(lines[2].contains(both) && lines[2].contains("being decommissioned"), "{text}");
        assert!(lines[3].contains("maintenance, over"), "{text}");
        assert_eq!(lines[4..], ["10.0.0.1:9866 may be switched off: no block needs it."], "{text}");
        assert_eq!(as_text(&[told(1, Vec::new())]), "No data server is ordered out of service.\n");
    }

    #[test]
    fn a_dead_server_may_have_what_no_other_has() {
        let mut dead = server(1, Some(Wish::Decommission), None, "DECOMMISSIONED");
        dead.is_alive = Some(false);
        let text = as_text(&[told(1, vec![dead.clone()])]);
        assert!(text.contains("10.0.0.1:9866 is dead.") && !text.contains("no block needs it"), "{text}");
        // In maintenance servers are off: that is what the order is for.
        (dead.journal, dead.admin_state) = (Some(Wish::Maintenance.into()), Some("IN_MAINTENANCE".into()));
        let text = as_text(&[told(1, vec![dead])]);
        assert!(!text.contains("is dead") && !text.contains("no block needs it"), "{text}");
    }

    #[test]
    fn a_group_that_lacks_an_order_is_told() {
        let ordered = || server(1, Some(Wish::Decommission), None, "DECOMMISSIONED");
        let text = as_text(&[told(1, vec![ordered()]), told(2, Vec::new())]);
        assert!(
            text.contains("10.0.0.1:9866 has no order in group 2") && !text.contains("may be switched off"),
            "{text}"
        );
        let both = as_text(&[told(1, vec![ordered()]), told(2, vec![ordered()])]);
        assert!(both.contains("may be switched off"), "{both}");
        let json = as_json(&[told(1, vec![ordered()])]);
        assert_eq!(
            (&json["orders"][0]["journal"], &json["orders"][0]["may_be_off"]),
            (&json!("decommission"), &json!(true))
        );
    }
}
