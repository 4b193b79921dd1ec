//! A cluster whose making was interrupted between its two words to the coordinator, or whose answer was lost.

mod cluster;

use cluster::way::{How, Way};
use coord::{Coordinator, wait};
use env::Env;
use metad::{CoordinatorConfig, FormatError, GroupConfig};
use std::{path::Path, sync::Arc};

/// A coordinator at the end of a way on which so many creations of a view fail.
fn coordinator(directory: &Path, how: How, count: u32) -> Arc<dyn Coordinator> {
    let real = coord::Embedded::open(&Env::production(), &directory.join("coordinator")).unwrap();
    let way = Way::default();
    way.fail_creations(count, how);
    way.to(Arc::new(real))
}

fn format(
    directory: &Path,
    name: &str,
    id: Option<&str>,
    coordinator: &Arc<dyn Coordinator>,
) -> Result<String, FormatError> {
    let group =
        GroupConfig { coordinator: CoordinatorConfig::Shared(coordinator.clone()), ..GroupConfig::default() };
    let address = "127.0.0.1".parse().unwrap();
    let id = id.map(str::to_owned);
    metad::format(&Env::production(), &directory.join(name), id, address, &group).map(|made| made.cluster_id)
}

#[test]
fn an_order_that_came_no_further_than_the_names_is_finished_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let coordinator = coordinator(directory.path(), How::Refused, 1);
    let first = format(directory.path(), "name", None, &coordinator);
    assert!(matches!(first, Err(FormatError::Coordinator(_))), "{first:?}");
    assert!(wait(|done| coordinator.read(base::GroupId::ROOT, done)).unwrap().is_none(), "nobody is in it");
    // Under another id it would be another cluster.
    let other = format(directory.path(), "name", Some("CID-other"), &coordinator);
    assert!(matches!(other, Err(FormatError::Coordinator(_))), "{other:?}");

    let id = format(directory.path(), "name", None, &coordinator).unwrap();
    let told = wait(|done| coordinator.read_cluster(done)).unwrap().unwrap();
    assert!(String::from_utf8_lossy(&told).contains(&id), "the names are those of the first order");
    // It is whole now: nobody makes it again.
    let again = format(directory.path(), "another", None, &coordinator);
    assert!(matches!(again, Err(FormatError::Coordinator(_))), "{again:?}");
}

#[test]
fn an_order_whose_answer_was_lost_finds_that_it_was_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let coordinator = coordinator(directory.path(), How::AnswerLost, 2);
    let id = format(directory.path(), "name", None, &coordinator).unwrap();
    assert_eq!(
        metad::read_cluster(&Env::production(), &directory.path().join("name")).unwrap().cluster_id,
        id
    );
}
