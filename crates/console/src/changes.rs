//! Changes of files, in the name of a user who has signed in.

use crate::{asked::Asked, page, paths, refusal::Refusal};
use axum::{body::Body, http::StatusCode, response::Response};
use client::{FileStatus, FileSystem, NotTrashed};
use gateway::{
    operation::{Create, Transfer},
    path, transfer,
};
use std::time::Duration;
use web::Connection;

/// A form has a path or two, each of up to 32 KiB, whose bytes take three letters.
pub const FORM_BYTES_MAX: usize = 256 << 10;

/// The fields of a form.
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// # Errors
    /// It is longer than `bytes_max`, breaks off, or has not come within `patience`.
    pub async fn read(body: Body, bytes_max: usize, patience: Duration) -> Result<Self, Refusal> {
        let refuse = |status, reason: &str| Refusal::new(status, "The request makes no sense", reason);
        let read = tokio::time::timeout(patience, axum::body::to_bytes(body, bytes_max)).await;
        let bytes = read
            .map_err(|_| refuse(StatusCode::REQUEST_TIMEOUT, "The form has not come in time."))?
            .map_err(|_| refuse(StatusCode::PAYLOAD_TOO_LARGE, "The form is too long, or broke off."))?;
        Ok(Self { fields: form_urlencoded::parse(&bytes).into_owned().collect() })
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A path of the file system.
    ///
    /// # Errors
    /// The field is missing, or no path.
    pub fn path(&self, name: &str) -> Result<String, Refusal> {
        Ok(path::check(self.get(name).unwrap_or_default())?)
    }

    /// The text of a field; `None` where it is left empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// A path, or a name in the directory `beside`.
    fn place(&self, name: &str, beside: &str) -> Result<String, Refusal> {
        let text = self.get(name).unwrap_or_default().trim();
        match text.starts_with('/') {
            true => Ok(path::check(text)?),
            false => Ok(path::check(&paths::join(beside, text))?),
        }
    }
}

/// Sends the browser to a directory, with a line that says what was done.
fn done(directory: &str, query: &[(&str, &str)]) -> Response {
    let mut told = form_urlencoded::Serializer::new(String::new());
    told.extend_pairs(query);
    page::elsewhere(&format!("{}?{}", paths::page(directory), told.finish()))
}

/// Sends the browser to the facts about a path.
pub fn details(path: &str) -> Response {
    page::elsewhere(&format!("{}?details", paths::page(path)))
}

fn above(path: &str) -> String {
    paths::parent(path).unwrap_or("/").to_owned()
}

pub async fn make_directory(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    let made = form.place("name", &directory)?;
    let fs = asked.files().await?;
    if fs.exists(&made).await? {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            "The name is taken",
            format!("{made} is there already."),
        ));
    }
    fs.make_directory(&made, false, 0o777).await?;
    Ok(done(&directory, &[("made", &made)]))
}

pub async fn rename(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let from = form.path("path")?;
    let to = form.place("to", &above(&from))?;
    asked.files().await?.rename(&from, &to, false).await?;
    Ok(done(&above(&to), &[("renamed", &from), ("to", &to)]))
}

/// Moves a path into the trash of the user, from where it can be taken back.
pub async fn delete(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let path = form.path("path")?;
    let fs = asked.files().await?;
    let place = into_trash(&fs, &path).await?;
    Ok(done(&above(&path), &[("deleted", &path), ("trash", &place)]))
}

async fn into_trash(fs: &FileSystem, path: &str) -> Result<String, Refusal> {
    let refuse = |reason: String| Refusal::new(StatusCode::CONFLICT, "It stays where it is", reason);
    // Nothing is made in the trash for a path that is not there.
    let _: FileStatus = fs.status(path).await?;
    client::move_to_trash(fs, path).await.map_err(|error| match error {
        NotTrashed::IsThere => {
            refuse(format!("{path} is in the trash already. `clover fs -rm -skipTrash` deletes it for good."))
        }
        NotTrashed::HoldsTrash => refuse(format!("{path} holds the trash, and cannot be moved there.")),
        NotTrashed::Failed(error) => error.into(),
    })
}

/// Takes a path out of the trash, to where it was.
pub async fn undo(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let (place, path) = (form.path("trash")?, form.path("path")?);
    // The address of the page that offers this may have been written by anybody: it moves nothing to where it has not been.
    if !is_trash_of(&asked.visitor.user, &place, &path) {
        let reason = format!("{place} is not where your trash has {path}.");
        return Err(Refusal::nonsense(reason));
    }
    asked.files().await?.rename(&place, &path, false).await?;
    Ok(done(&above(&path), &[("restored", &path)]))
}

/// Whether a place is where the trash of a user has what was at `path`: a number may follow where several things had one path.
fn is_trash_of(user: &str, place: &str, path: &str) -> bool {
    let rest =
        place.strip_prefix(&format!("/user/{user}/.Trash/Current")).and_then(|rest| rest.strip_prefix(path));
    rest.is_some_and(|rest| rest.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Changes the mode, the owner and the group, as far as the form names them.
pub async fn rights(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let path = form.path("path")?;
    let mode = match form.filled("mode") {
        None => None,
        Some(text) => match u16::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o1777 => Some(mode),
            _ => return Err(Refusal::nonsense("The rights are no octal number up to 1777.")),
        },
    };
    let (owner, group) = (form.filled("owner"), form.filled("group"));
    if [owner, group].into_iter().flatten().any(|name| !crate::login::is_user(name)) {
        return Err(Refusal::nonsense("The owner or the group is no name."));
    }
    let fs = asked.files().await?;
    if let Some(mode) = mode {
        fs.set_permission(&path, mode).await?;
    }
    if owner.is_some() || group.is_some() {
        fs.set_owner(&path, owner, group).await?;
    }
    Ok(details(&path))
}

/// Writes the body of a request to a file, at the speed of the slower side.
pub async fn upload(asked: Asked, body: Body, connection: &Connection) -> Result<Response, Refusal> {
    let path = paths::decode("/upload", asked.parts.uri.path())?;
    let overwrite = asked.parameter("overwrite").as_deref() == Some("true");
    let place = asked.place(&asked.shared.uploads, connection).await?;
    // A lease of its own: no other request of the user renews it.
    let fs = asked.files().await?.as_another_client();
    // The library makes missing directories otherwise, and a mistake in a name would stay.
    let create = Create { overwrite, parent_must_exist: true, mode: Some(0o644), ..Create::default() };
    Ok(transfer::carry_out(fs, path, Transfer::Create(Box::new(create)), body, place).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: Body) -> Result<Form, Refusal> {
        Form::read(body, FORM_BYTES_MAX, Duration::from_secs(60)).await
    }

    #[tokio::test]
    async fn a_form_that_does_not_come_is_not_waited_for() {
        let (_sender, body) = web::body::pieces(None);
        let read = Form::read(body, FORM_BYTES_MAX, Duration::from_millis(10)).await;
        assert_eq!(read.err().unwrap().status, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn forms_are_bounded_and_their_paths_checked() {
        let form = read(Body::from("path=%2Fa&to=b&name=%2Fx%2F..%2Fy&n=")).await.unwrap();
        assert_eq!(form.path("path").unwrap(), "/a");
        assert_eq!(form.place("to", "/d").unwrap(), "/d/b");
        assert!(form.place("name", "/d").is_err() && form.path("none").is_err());
        assert!(form.place("n", "/d").is_ok_and(|place| place == "/d"));
        assert_eq!(
            read(Body::from("x".repeat(FORM_BYTES_MAX + 1))).await.err().unwrap().status.as_u16(),
            413
        );
    }

    #[test]
    fn only_what_was_deleted_comes_back_from_the_trash() {
        for (place, path, is) in [
            ("/user/ann/.Trash/Current/a/b", "/a/b", true),
            ("/user/ann/.Trash/Current/a/b1700000000000", "/a/b", true),
            ("/user/ann/.Trash/Current/a/bc", "/a/b", false),
            ("/user/ann/.Trash/Current/a/b", "/elsewhere", false),
            ("/user/bob/.Trash/Current/a/b", "/a/b", false),
            ("/secret", "/a/b", false),
        ] {
            assert_eq!(is_trash_of("ann", place, path), is, "{place}");
        }
    }
}
