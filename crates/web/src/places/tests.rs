use super::*;

/// A connection that reads a file has more time than one that asks for nothing, and it may become the other while others wait.
#[tokio::test]
async fn a_connection_that_comes_to_rest_while_others_wait_gives_its_place_up_as_soon_as_any() {
    let mut places = Places::new(1);
    places.patience = Patience::new(Duration::from_millis(40), Duration::from_millis(10));
    let place = places.take().await;
    let connection = &place.connection;
    connection.hold();
    assert!(connection.begin());
    connection.rest();
    let waits = tokio::spawn(async move { places.take().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(connection.begin());
    connection.release();
    connection.rest();
    let told = timeout(Duration::from_secs(3), connection.until_told()).await;
    assert!(told.is_ok(), "it has kept its place for as long as one that reads a file");
    drop(place);
    waits.await.unwrap();
}

/// A client has the time that bytes need for the last ones of its answer, and then no more than any that asks for nothing.
#[tokio::test]
async fn the_time_for_the_end_of_an_answer_is_over_when_it_has_gone() {
    let mut places = Places::new(2);
    let place = places.take().await;
    let connection = &place.connection;
    // There is no answer yet.
    connection.sent();
    assert!(connection.begin());
    let before = Instant::now();
    connection.rest_after_answer();
    assert!(places.oldest().unwrap() >= before + Duration::from_secs(1));
    connection.sent();
    assert!(places.oldest().unwrap() <= Instant::now());
    // It was told to end: it does not come back.
    assert!(connection.begin());
    connection.rest_after_answer();
    assert!(connection.cut(Duration::ZERO));
    connection.sent();
    assert!(places.oldest().is_none() && !connection.begin());
}
