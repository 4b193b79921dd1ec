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
