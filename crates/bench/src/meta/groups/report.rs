//! The figures of all shapes beside each other.

use super::{
    measure::{Figures, OneHome},
    stage::{Decider, Kind},
};
use crate::{meta::Op, rounds, rounds::median};
use serde_json::{Value, json};

/// The measurements of an operation on one shape.
pub struct Cell {
    pub kind: Kind,
    pub op: Op,
    pub saturated: Vec<Figures>,
    /// Operations a second that were offered to each server that decides them.
    pub offered: f64,
    pub paced: Vec<Figures>,
    /// Medians of a client that is alone, in microseconds.
    pub alone_us: Vec<f64>,
    pub doors: Vec<Doors>,
}

/// Calls for one home: sent to its own active, and to the active of another group.
#[derive(Clone, Copy, Debug)]
pub struct Doors {
    pub own: OneHome,
    pub other: OneHome,
    pub other_saturated: OneHome,
}

fn of(samples: &[Figures], figure: fn(&Figures) -> f64) -> f64 {
    median(samples.iter().map(figure))
}

fn range(samples: &[Figures], figure: fn(&Figures) -> f64) -> [Value; 2] {
    rounds::range(samples.iter().map(figure)).map(finite)
}

impl Cell {
    pub fn new(kind: Kind, op: Op) -> Self {
        Self {
            kind,
            op,
            saturated: Vec::new(),
            offered: f64::NAN,
            paced: Vec::new(),
            alone_us: Vec::new(),
            doors: Vec::new(),
        }
    }

    pub fn errors(&self) -> f64 {
        let doors = self.doors.iter().flat_map(|doors| [doors.own, doors.other, doors.other_saturated]);
        self.saturated.iter().chain(&self.paced).map(|figures| figures.errors).sum::<f64>()
            + doors.map(|one| one.errors).sum::<f64>()
    }

    pub fn rate(&self) -> f64 {
        of(&self.saturated, |figures| figures.rate)
    }

    /// The rate at which the busiest server would use one core, if each server had one of its own.
    fn calculated(&self) -> f64 {
        1e6 / of(&self.saturated, |figures| figures.busiest_us)
    }

    fn paced(&self, figure: fn(&Figures) -> f64) -> f64 {
        of(&self.paced, figure)
    }

    /// The shape of one group with as many members.
    fn one_group<'a>(&self, cells: &'a [Cell]) -> Option<&'a Cell> {
        let Kind::Clover { groups: 2.., members } = self.kind else { return None };
        let one = Kind::Clover { groups: 1, members };
        cells.iter().find(|cell| cell.op == self.op && cell.kind == one)
    }

    /// The shape of as many groups, with one standby each.
    fn first_standby<'a>(&self, cells: &'a [Cell]) -> Option<(&'a Cell, u32)> {
        let Kind::Clover { groups, members: members @ 3.. } = self.kind else { return None };
        let pair = Kind::Clover { groups, members: 2 };
        let cell = cells.iter().find(|cell| cell.op == self.op && cell.kind == pair)?;
        Some((cell, members - 2))
    }

    /// The active's processor time where the operations of this kind are served: the worst of the actives.
    fn active(&self) -> f64 {
        match Decider::of(self.op) {
            Decider::Root => self.paced(|figures| figures.root_us),
            Decider::Home => {
                self.paced(|figures| figures.root_us).max(self.paced(|figures| figures.homes_us))
            }
        }
    }

    fn saturated_row(&self) -> Vec<String> {
        let figure = |figure| number(of(&self.saturated, figure), 2);
        vec![
            self.kind.to_string(),
            number(self.rate(), 0),
            number(of(&self.saturated, |figures| figures.p50_us), 0),
            number(of(&self.saturated, |figures| figures.p99_us), 0),
            figure(|figures| figures.root_us),
            figure(|figures| figures.homes_us),
            figure(|figures| figures.standbys_us),
            figure(|figures| figures.journals_us),
            figure(|figures| figures.client_us),
            number(self.calculated(), 0),
            number(median(self.alone_us.iter().copied()), 0),
            number(self.errors(), 0),
        ]
    }

    fn paced_row(&self, cells: &[Cell]) -> Vec<String> {
        let one = self.one_group(cells);
        let times = |figure: &dyn Fn(&Cell) -> f64| one.map_or(f64::NAN, |one| figure(self) / figure(one));
        let each = self
            .first_standby(cells)
            .map_or(f64::NAN, |(pair, more)| (self.active() / pair.active() - 1.0) * 100.0 / f64::from(more));
        vec![
            self.kind.to_string(),
            number(self.offered, 0),
            number(self.paced(|figures| figures.rate), 0),
            number(self.paced(|figures| figures.root_us), 2),
            number(self.paced(|figures| figures.homes_us), 2),
            number(times(&Cell::active), 2),
            number(each, 1),
            number(self.paced(|figures| figures.standbys_us), 2),
            number(self.paced(|figures| figures.p50_us), 0),
            number(times(&|cell| cell.paced(|figures| figures.p50_us)), 2),
            number(self.paced(|figures| figures.p99_us), 0),
            number(times(&|cell| median(cell.alone_us.iter().copied())), 2),
        ]
    }

    fn doors_row(&self) -> Vec<String> {
        let of = |figure: fn(&Doors) -> f64| median(self.doors.iter().map(figure));
        vec![
            self.kind.to_string(),
            number(of(|doors| doors.own.rate), 0),
            number(of(|doors| doors.own.home_us), 2),
            number(of(|doors| doors.own.p50_us), 0),
            number(of(|doors| doors.other.rate), 0),
            number(of(|doors| doors.other.home_us), 2),
            number(of(|doors| doors.other.door_us), 2),
            number(of(|doors| doors.other.p50_us), 0),
            number(of(|doors| doors.other_saturated.rate), 0),
            number(of(|doors| doors.other_saturated.home_us), 2),
            number(of(|doors| doors.other_saturated.door_us), 2),
        ]
    }

    pub fn json(&self) -> Value {
        let figures = |samples: &[Figures]| {
            let of = |figure| finite(of(samples, figure));
            json!({
                "samples": samples.len(),
                "ops_per_second": of(|figures| figures.rate),
                "ops_per_second_range": range(samples, |figures| figures.rate),
                "p50_us": of(|figures| figures.p50_us),
                "p99_us": of(|figures| figures.p99_us),
                "root_active_cpu_us_per_op": of(|figures| figures.root_us),
                "home_active_cpu_us_per_op": of(|figures| figures.homes_us),
                "standbys_cpu_us_per_op": of(|figures| figures.standbys_us),
                "journals_cpu_us_per_op": of(|figures| figures.journals_us),
                "client_cpu_us_per_op": of(|figures| figures.client_us),
                "busiest_cpu_us_per_op": of(|figures| figures.busiest_us),
                "servers_cpu_us_per_op": of(Figures::servers_us),
                "servers_cpu_us_per_op_range": range(samples, Figures::servers_us),
            })
        };
        let one_home = |one: fn(&Doors) -> OneHome| {
            let of = |figure: fn(&OneHome) -> f64| {
                finite(median(self.doors.iter().map(|doors| figure(&one(doors)))))
            };
            json!({
                "ops_per_second": of(|one| one.rate),
                "p50_us": of(|one| one.p50_us),
                "home_active_cpu_us_per_op": of(|one| one.home_us),
                "door_cpu_us_per_op": of(|one| one.door_us),
            })
        };
        let mut line = json!({
            "op": self.op.name(),
            "shape": self.kind.to_string(),
            "saturated": figures(&self.saturated),
            "calculated_ops_per_second_with_a_core_for_each_server": finite(self.calculated()),
            "alone_p50_us": finite(median(self.alone_us.iter().copied())),
            "errors": self.errors(),
        });
        if let Kind::Clover { groups, members } = self.kind {
            line["groups"] = groups.into();
            line["members"] = members.into();
        }
        if !self.paced.is_empty() {
            line["offered_ops_per_second"] = finite(self.offered);
            line["paced"] = figures(&self.paced);
        }
        if !self.doors.is_empty() {
            line["one_home"] = json!({
                "own_door": one_home(|doors| doors.own),
                "other_door": one_home(|doors| doors.other),
                "other_door_saturated": one_home(|doors| doors.other_saturated),
            });
        }
        line
    }
}

fn finite(number: f64) -> Value {
    if number.is_finite() { number.into() } else { Value::Null }
}

fn number(number: f64, digits: usize) -> String {
    if number.is_finite() { format!("{number:.digits$}") } else { "-".to_owned() }
}

/// The tables of one operation.
pub fn tables(op: Op, cells: &[Cell]) -> String {
    let is_shown = |cell: &&Cell| cell.op == op && !cell.saturated.is_empty();
    let shown = || cells.iter().filter(is_shown);
    let name = op.name();
    let mut lines =
        vec![format!("{name}, as many as the servers take (CPU in us an operation, of each role)")];
    lines.extend(table(&SATURATED, shown().map(Cell::saturated_row)));
    if shown().any(|cell| !cell.paced.is_empty()) {
        lines.push(format!("{name}, at a rate"));
        let paced = shown().filter(|cell| !cell.paced.is_empty());
        lines.extend(table(&PACED, paced.map(|cell| cell.paced_row(cells))));
    }
    if shown().any(|cell| !cell.doors.is_empty()) {
        lines.push(format!("{name} in one home, by its own active and by another group's"));
        let doors = shown().filter(|cell| !cell.doors.is_empty());
        lines.extend(table(&DOORS, doors.map(Cell::doors_row)));
    }
    lines.push(String::new());
    lines.join("\n")
}

const SATURATED: [&str; 12] = [
    "shape",
    "op/s",
    "p50 us",
    "p99 us",
    "root",
    "homes",
    "standbys",
    "journals",
    "client",
    "calculated",
    "lone p50",
    "errors",
];
const PACED: [&str; 12] = [
    "shape", "offered", "op/s", "root", "homes", "x 1 grp", "% a stby", "standbys", "p50 us", "x 1 grp",
    "p99 us", "lone x 1",
];
const DOORS: [&str; 11] = [
    "shape",
    "own op/s",
    "home",
    "p50 us",
    "other op/s",
    "home",
    "door",
    "p50 us",
    "most op/s",
    "home",
    "door",
];

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let head = head.iter().map(|&heading| heading.to_owned()).collect();
    cli::table::lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// Explains the columns of the tables.
pub const LEGEND: &str = "\
shape       1A is one active, 3A6S three groups with two standbys each
root        CPU of the root group's active for each operation that it serves
homes       CPU of another group's active for each operation that it serves. Of mkdir and rename-across, which the root group
            orders: CPU of all other groups' actives together, for each operation
calculated  no measurement: the rate at which the busiest server would use one core up, if each had a core of its own
lone p50    of a client that makes one call after the other, and nobody else does
offered     to each home; of mkdir and rename-across, to the root group
x 1 grp     compared with one group of as many members; % a stby: with each standby after the first, the active's CPU grows by that
own, other  the server that is called: the active of the home, or another group's active, which passes the call on (door)
";

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rate: f64, root_us: f64, homes_us: f64) -> Figures {
        Figures {
            rate,
            root_us,
            homes_us,
            p50_us: 100.0,
            p99_us: 200.0,
            standbys_us: f64::NAN,
            journals_us: f64::NAN,
            client_us: 1.0,
            busiest_us: 4.0,
            errors: 0.0,
        }
    }

    fn cell(groups: u32, members: u32, paced: Figures) -> Cell {
        let mut cell = Cell::new(Kind::Clover { groups, members }, Op::Create);
        (cell.saturated, cell.paced) = (vec![figures(9.0, 5.0, 6.0)], vec![paced]);
        cell
    }

    #[test]
    fn shapes_are_compared_with_one_group_and_with_one_standby() {
        let cells = [
            cell(1, 2, figures(1.0, 10.0, f64::NAN)),
            cell(3, 2, figures(1.0, 10.5, 11.0)),
            cell(3, 4, figures(1.0, 11.0, 11.44)),
        ];
        let text = tables(Op::Create, &cells);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("1A1S ") && lines[2].contains(" 250000 "), "{text}");
        assert!(lines[8].starts_with("3A3S ") && lines[8].contains(" 1.10 "), "{text}");
        assert!(lines[9].starts_with("3A9S ") && lines[9].contains(" 2.0 "), "{text}");
        assert!(!lines[7].contains("1.00"), "{text}");
    }

    #[test]
    fn a_figure_that_is_missing_is_no_number() {
        let json = cell(1, 1, figures(1.0, 10.0, f64::NAN)).json();
        assert_eq!(json["paced"]["home_active_cpu_us_per_op"], Value::Null);
        assert_eq!(json["paced"]["root_active_cpu_us_per_op"], 10.0);
        assert_eq!(json["paced"]["servers_cpu_us_per_op"], 10.0);
        assert_eq!(json["saturated"]["ops_per_second_range"], json!([9.0, 9.0]));
    }
}
