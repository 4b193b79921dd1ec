//! A page of a server's over HTTP, with the clock that its answer tells.

use jiff::{Timestamp, fmt::rfc2822};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use verdict::Clock;

const PATIENCE: Duration = Duration::from_secs(5);
/// A larger page is cut off here.
const BYTES_MAX: u64 = 64 << 20;

pub struct Page {
    pub body: String,
    /// The header `Date` has whole seconds.
    pub clock: Option<Clock>,
}

/// Asks for a page at `host:port`.
///
/// # Errors
/// A sentence: the server was not reached, or did not answer in time, or not with HTTP.
pub async fn ask(address: &str, path: &str) -> Result<Page, String> {
    let begun = Instant::now();
    let asked = async {
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        connection.take(BYTES_MAX).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let now_ms = Timestamp::now().as_millisecond();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    let date = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| value.trim())
    });
    let clock = date.and_then(|date| clock(date, now_ms, begun.elapsed()));
    Ok(Page { body: body.to_owned(), clock })
}

/// `date` was true at some time of a call that ended at `now_ms`, or up to a second later.
fn clock(date: &str, now_ms: i64, call: Duration) -> Option<Clock> {
    let theirs_ms = rfc2822::parse(date).ok()?.timestamp().as_millisecond();
    let half_ms = i64::try_from(call.as_millis() / 2).unwrap_or(i64::MAX);
    let uncertain_ms = half_ms.saturating_add(500).unsigned_abs();
    Some(Clock { ahead_ms: (theirs_ms + 500).saturating_sub(now_ms.saturating_sub(half_ms)), uncertain_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_clock_with_an_error_of_half_a_second() {
        let now_ms = "2026-11-28T18:00:05Z".parse::<Timestamp>().unwrap().as_millisecond();
        let read = clock("Sat, 28 Nov 2026 18:00:04 GMT", now_ms, Duration::from_millis(200)).unwrap();
        assert_eq!(read, Clock { ahead_ms: -400, uncertain_ms: 600 });
        assert_eq!(clock("yesterday", now_ms, Duration::ZERO), None);
    }
}
