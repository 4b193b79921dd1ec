use super::*;
use std::{collections::BTreeMap, sync::Mutex};

/// Logs by name; those that were not set are at INFO.
#[derive(Default)]
struct Played(Mutex<BTreeMap<String, Level>>);

impl LogLevels for Played {
    fn level(&self, log: &str) -> Level {
        self.0.lock().unwrap().get(log).copied().unwrap_or(Level::Info)
    }

    fn set(&self, log: &str, level: Level) -> std::result::Result<(), String> {
        if log == "full" {
            return Err("too many <logs>".into());
        }
        self.0.lock().unwrap().insert(log.into(), level);
        Ok(())
    }
}

async fn ask(levels: &Arc<Played>, query: &str, headers: &[(&'static str, &'static str)]) -> Result<String> {
    let shared = Shared { levels: levels.clone(), origins: Arc::default() };
    let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let peer = Peer("10.0.0.1:1".parse().unwrap());
    let uri = format!("/logLevel{query}").parse().unwrap();
    let response = show(State(shared), Extension(peer), headers.collect(), uri).await?.into_response();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

/// The text that `hadoop daemonlog` takes out of a page and prints.
fn printed(page: &str) -> Vec<String> {
    let lines = page.lines().filter(|line| line.starts_with(MARK));
    let without_tags = |line: &str| {
        let mut is_tag = false;
        let keep = |letter: &char| {
            let is_text = !is_tag && *letter != '<';
            is_tag = if is_tag { *letter != '>' } else { *letter == '<' };
            is_text
        };
        line.chars().filter(keep).collect::<String>()
    };
    lines.map(without_tags).collect()
}

#[tokio::test]
async fn a_level_is_shown_and_set() {
    let levels = Arc::new(Played::default());
    let page = ask(&levels, "?log=metad::member", &[]).await.unwrap();
    let expected = ["Submitted Class Name: metad::member", "Log Class: tracing", "Effective Level: INFO"];
    assert_eq!(printed(&page), expected);

    let page = ask(&levels, "?log=metad&level=debug", &[]).await.unwrap();
    let expected = [
        "Submitted Class Name: metad",
        "Log Class: tracing",
        "Submitted Level: debug",
        "Setting Level to debug ...",
        "Effective Level: DEBUG",
    ];
    assert_eq!(printed(&page), expected);
    assert_eq!(levels.level("metad"), Level::Debug);
    assert_eq!(printed(&ask(&levels, "", &[]).await.unwrap()), [""; 0], "the form alone");
}

#[tokio::test]
async fn levels_are_javas_words() {
    let levels = Arc::new(Played::default());
    for (word, level) in [("ALL", Level::Trace), ("fatal", Level::Error), ("Off", Level::Off)] {
        ask(&levels, &format!("?log=a&level={word}"), &[]).await.unwrap();
        assert_eq!(levels.level("a"), level);
    }
    let page = ask(&levels, "?log=a&level=%3Cscript%3E", &[]).await.unwrap();
    assert!(page.contains("Bad Level : <b>&lt;script&gt;</b>") && !page.contains("<script>"), "{page}");
    let page = ask(&levels, "?log=full&level=info", &[]).await.unwrap();
    assert!(page.contains("Not set: too many &lt;logs&gt;"), "{page}");
}

#[tokio::test]
async fn a_page_of_another_origin_sets_nothing() {
    let levels = Arc::new(Played::default());
    let host = ("host", "meta-1:9870");
    for foreign in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        let refusal = ask(&levels, "?log=metad&level=TRACE", &[host, foreign]).await.unwrap_err();
        assert_eq!(refusal.status, StatusCode::FORBIDDEN);
        ask(&levels, "?log=metad", &[host, foreign]).await.unwrap();
    }
    assert_eq!(levels.level("metad"), Level::Info);
    ask(&levels, "?log=metad&level=TRACE", &[host, ("origin", "http://meta-1:9870")]).await.unwrap();
    assert_eq!(levels.level("metad"), Level::Trace);
}

#[tokio::test]
async fn a_name_that_means_more_to_a_filter_is_refused() {
    let levels = Arc::new(Played::default());
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    for name in ["a=trace", "a,b", "%3Cb%3E", "[x]", "%ff", "%C3%A4", &*long] {
        let refusal = ask(&levels, &format!("?log={name}&level=info"), &[]).await.unwrap_err();
        assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{name}");
    }
    assert!(levels.0.lock().unwrap().is_empty());
}
