//! The rows of `clover bench disks`, for people and as JSON.

use serde_json::json;

/// One way to share a disk, with one number of streams.
pub struct Row {
    pub lane: String,
    pub streams: u32,
    /// Bytes per second.
    pub write: f64,
    pub read: Option<f64>,
    /// Of a block of 128 MiB.
    pub extents: Option<f64>,
    /// The longest of a packet and of a reader, where the time is the model's.
    pub waits_ms: Option<[f64; 2]>,
    pub seeks: Option<[u64; 2]>,
}

/// The part of a lane's rate that is lost against its own first row, which has the fewest streams.
fn loss(rows: &[Row], row: &Row, rate: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let first = rows.iter().find(|first| first.lane == row.lane)?;
    Some(1.0 - rate(row)? / rate(first)?)
}

pub fn print(title: &str, rows: &[Row], is_json: bool) {
    if !is_json {
        println!("{title}\n");
        println!(
            "{:<32} {:>7} {:>10} {:>6} {:>10} {:>6} {:>8} {:>12} {:>12}",
            "", "streams", "write MB/s", "loss", "read MB/s", "loss", "extents", "wait ms", "seeks"
        );
    }
    for row in rows {
        let write_loss = loss(rows, row, |row| Some(row.write));
        let read_loss = loss(rows, row, |row| row.read);
        if is_json {
            println!(
                "{}",
                json!({
                    "what": title,
                    "lane": row.lane,
                    "streams": row.streams,
                    "write_bytes_per_second": row.write.round(),
                    "write_loss": write_loss,
                    "read_bytes_per_second": row.read.map(f64::round),
                    "read_loss": read_loss,
                    "extents_per_block": row.extents,
                    "longest_wait_ms": row.waits_ms,
                    "seeks": row.seeks,
                })
            );
            continue;
        }
        let percent = |loss: Option<f64>| loss.map_or("-".into(), |loss| format!("{:.1}%", loss * 100.0));
        let pair = |pair: Option<String>| pair.unwrap_or_else(|| "-".into());
        println!(
            "{:<32} {:>7} {:>10.1} {:>6} {:>10} {:>6} {:>8} {:>12} {:>12}",
            row.lane,
            row.streams,
            row.write / 1e6,
            percent(write_loss),
            row.read.map_or("-".into(), |read| format!("{:.1}", read / 1e6)),
            percent(read_loss),
            row.extents.map_or("-".into(), |extents| format!("{extents:.1}")),
            pair(row.waits_ms.map(|[write, read]| format!("{write:.0}/{read:.0}"))),
            pair(row.seeks.map(|[write, read]| format!("{write}/{read}"))),
        );
    }
    if !is_json {
        println!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lane: &str, streams: u32, write: f64) -> Row {
        Row { lane: lane.into(), streams, write, read: None, extents: None, waits_ms: None, seeks: None }
    }

    #[test]
    fn a_loss_is_against_the_same_lane() {
        let rows = [row("a", 1, 100.0), row("a", 8, 80.0), row("b", 1, 50.0), row("b", 8, 50.0)];
        let losses: Vec<f64> =
            rows.iter().map(|one| loss(&rows, one, |row| Some(row.write)).unwrap()).collect();
        assert_eq!(
            losses.iter().map(|loss| (loss * 100.0).round()).collect::<Vec<_>>(),
            [0.0, 20.0, 0.0, 0.0]
        );
        assert_eq!(loss(&rows, &rows[1], |row| row.read), None);
    }
}
