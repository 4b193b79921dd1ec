//! Changes of a path's replication, quotas and access control list.

use crate::{
    asked::Asked,
    changes::{Form, details},
    refusal::Refusal,
};
use axum::response::Response;
use client::{Limit, acl::AclEntry};

/// Sets how many replicas the blocks of a file are to have.
pub async fn replication(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let path = form.path("path")?;
    let wanted = form.filled("replication").and_then(|text| text.parse::<u16>().ok());
    let wanted = wanted
        .filter(|count| *count > 0)
        .ok_or_else(|| Refusal::nonsense("The number of replicas is no whole number from 1 on."))?;
    asked.files().await?.set_replication(&path, wanted).await?;
    Ok(details(&path))
}

/// Sets or lifts the limits of a directory, as far as the form names them. For superusers, as the file system says.
pub async fn quota(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let path = form.path("path")?;
    let (names, space) = (limit(&form, "names")?, limit(&form, "space")?);
    if names == Limit::Keep && space == Limit::Keep {
        return Err(Refusal::nonsense("The form names no quota."));
    }
    asked.files().await?.set_quota(&path, names, space).await?;
    Ok(details(&path))
}

fn limit(form: &Form, field: &str) -> Result<Limit, Refusal> {
    match form.filled(field) {
        None => Ok(Limit::Keep),
        Some("none") => Ok(Limit::Clear),
        // A number below 0 has another meaning on the wire.
        Some(text) => match client::amount(text).filter(|number| *number >= 0) {
            Some(number) => Ok(Limit::Set(number)),
            None => Err(Refusal::nonsense(format!("{text} is no quota: write 500, 10g or none."))),
        },
    }
}

/// Adds entries to the access control list of a path or changes them, removes entries, or removes all of them.
pub async fn acl(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let path = form.path("path")?;
    let text = form.filled("entries").unwrap_or_default();
    let fs = asked.files().await?;
    match form.get("do") {
        Some("clear") => fs.remove_acl(&path).await?,
        Some(what @ ("modify" | "remove")) => {
            let entries = AclEntry::parse_list(text, what == "modify")?;
            if entries.is_empty() {
                return Err(Refusal::nonsense("The form names no entry: write user:ann:r-x, for example."));
            }
            match what {
                "modify" => fs.modify_acl(&path, &entries).await?,
                _ => fs.remove_acl_entries(&path, &entries).await?,
            }
        }
        _ => return Err(Refusal::nonsense("The form does not say what to do with the entries.")),
    }
    Ok(details(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use std::time::Duration;

    #[tokio::test]
    async fn quotas_are_numbers_with_a_letter_or_none() {
        let form = Form::read(Body::from("a=&b=none&c=10g&d=-1&e=ten"), 1_000, Duration::from_secs(9)).await;
        let form = form.unwrap();
        let limits = ["a", "b", "c", "nowhere"].map(|field| limit(&form, field).ok());
        let expected = [Limit::Keep, Limit::Clear, Limit::Set(10 << 30), Limit::Keep];
        assert_eq!(limits, expected.map(Some));
        assert!(limit(&form, "d").is_err() && limit(&form, "e").is_err());
    }
}
