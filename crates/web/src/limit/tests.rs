use super::*;
use tokio::task::JoinHandle;

/// Connections beside each other.
#[derive(Default)]
struct Connections {
    common: Arc<crate::connection::Common>,
    next: u64,
}

impl Connections {
    fn open(&mut self) -> Connection {
        self.next += 1;
        Connection::new(self.next, self.common.clone())
    }
}

/// A limit whose patience is at an end soon.
fn limit(count_max: usize, wait: Duration) -> Limit {
    let limit = Limit::new(count_max, wait);
    limit.holders.lock().patience = Patience::new(Duration::from_millis(40), Duration::from_millis(10));
    limit
}

/// What a connection does with its place: it keeps it until it is told to end.
fn until_told(connection: &Connection, permit: Permit) -> JoinHandle<()> {
    let connection = connection.clone();
    tokio::spawn(async move {
        connection.until_told().await;
        connection.end();
        drop(permit);
    })
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(400);

#[tokio::test]
async fn the_client_that_was_waited_for_the_longest_loses_its_place_to_one_that_waits() {
    let mut connections = Connections::default();
    let limit = limit(2, LONG);
    let (slow, slower, third) = (connections.open(), connections.open(), connections.open());
    let first = until_told(&slow, limit.take(&slow).await.unwrap());
    let second = until_told(&slower, limit.take(&slower).await.unwrap());
    slower.rest_within_body(Duration::from_secs(2));
    slow.rest_within_body(Duration::from_secs(1));

    let _third = limit.take(&third).await.expect("a place became free");
    second.await.unwrap();
    assert!(!first.is_finished() && slow.begin(), "one place was needed, and two were taken away");
    assert!(!slower.begin(), "what it asks for from now on is not carried out");
}

#[tokio::test]
async fn a_client_that_the_server_does_not_wait_for_keeps_its_place_however_many_wait() {
    let mut connections = Connections::default();
    let limit = limit(1, SHORT);
    let (at_work, other) = (connections.open(), connections.open());
    let permit = limit.take(&at_work).await.unwrap();
    assert!(limit.take(&other).await.is_none());
    // It was waited for, and has moved.
    at_work.rest_within_body(Duration::from_secs(9));
    assert!(at_work.begin());
    assert!(limit.take(&other).await.is_none());
    drop(permit);
    assert!(limit.take(&other).await.is_some());
}

#[tokio::test]
async fn without_others_that_wait_a_slow_client_keeps_its_place() {
    let mut connections = Connections::default();
    let limit = limit(2, LONG);
    let (slow, other) = (connections.open(), connections.open());
    let _permit = limit.take(&slow).await.unwrap();
    slow.rest_within_body(Duration::from_secs(3_600));
    drop(limit.take(&other).await.unwrap());
    tokio::time::sleep(SHORT).await;
    assert!(slow.begin());
}

#[tokio::test]
async fn a_flood_of_slow_clients_passes_and_nobody_waits_for_long() {
    let mut connections = Connections::default();
    let limit = Arc::new(limit(4, LONG));
    let mut flood = Vec::new();
    for _ in 0..60 {
        let (slow, limit) = (connections.open(), limit.clone());
        flood.push(tokio::spawn(async move {
            let permit = limit.take(&slow).await.unwrap();
            slow.rest();
            until_told(&slow, permit).await.unwrap();
        }));
    }
    tokio::task::yield_now().await;
    let honest = connections.open();
    assert!(limit.take(&honest).await.is_some(), "a place became free in time");
    flood.iter().for_each(JoinHandle::abort);
}

/// A connection that was told to end may take its time, and another client may wait for another place.
#[tokio::test]
async fn a_client_that_was_told_to_end_does_not_hide_the_next_slow_one() {
    let mut connections = Connections::default();
    let limit = limit(2, LONG);
    let (told, slow, third) = (connections.open(), connections.open(), connections.open());
    let _kept = limit.take(&told).await.unwrap();
    let second = until_told(&slow, limit.take(&slow).await.unwrap());
    told.rest_within_body(Duration::from_secs(2));
    slow.rest_within_body(Duration::from_secs(1));
    assert!(told.cut(Duration::ZERO));
    let third = tokio::time::timeout(Duration::from_secs(10), limit.take(&third)).await;
    assert!(third.is_ok_and(|place| place.is_some()), "no place became free");
    second.await.unwrap();
}

/// The request may have ended its connection long before its place: what it was told then must not reach another one.
#[tokio::test]
async fn a_connection_that_has_ended_rests_no_more() {
    let mut connections = Connections::default();
    let gone = connections.open();
    gone.rest();
    gone.end();
    gone.rest();
    assert!(!gone.begin() && gone.waited().is_none() && connections.common.resting.lock().is_empty());
}
