//! The page `/fsck`: who may have a check, and how many at once.

use super::{CHECKS_MAX, Check, Request};
use crate::{
    error::{Refusal, Result},
    identity::Identity,
    parameters::Parameters,
    shared::Shared,
};
use axum::{
    Extension,
    body::Body,
    extract::{Request as HttpRequest, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use std::{net::SocketAddr, sync::Arc};
use web::{Connection, Peer};

/// Where the stock tool asks.
pub const PATH: &str = "/fsck";

/// Answers with the words of a check while it goes on.
pub async fn handle(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(client)): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    request: HttpRequest,
) -> Response {
    let origin = shared.config.origins.judge(request.headers());
    let may_change = shared.config.origins.check_change_by_get(request.headers());
    let query = request.uri().query().unwrap_or_default();
    let answer = async {
        let parameters = Parameters::parse(query)?;
        let identity = Identity::of_tool(&parameters)?;
        let request = Request::of(&parameters);
        if request.changes() {
            may_change?;
        }
        begin(&shared, &parameters, request, identity, (client, connection)).await
    };
    let mut response = answer.await.unwrap_or_else(IntoResponse::into_response);
    origin.tell(response.headers_mut());
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

async fn begin(
    shared: &Shared,
    parameters: &Parameters,
    request: Request,
    identity: Identity,
    (client, connection): (SocketAddr, Connection),
) -> Result<Response> {
    let location = shared.servers.location(None).await?;
    if identity.is_proxy() {
        shared.check_proxy(&identity, client, &location).await?;
    }
    tracing::debug!(user = identity.effective, query = parameters.encode(), "a check of the file system");
    let place = shared.checks.take(&connection).await.ok_or_else(|| {
        Refusal::busy(format!(
            "{CHECKS_MAX} checks of the file system are under way here, which are as many as there may be; try again"
        ))
    })?;
    let check = Check {
        request,
        fs: shared.servers.shared(&location, &identity.effective),
        operator: shared.servers.shared(&location, &shared.config.operator),
        user: identity.in_hadoops_words(),
        client: client.ip(),
    };
    let (sender, body) = web::body::pieces(None);
    drop(tokio::spawn(async move {
        let _place = place;
        check.run(sender).await;
    }));
    Ok(plain(body))
}

fn plain(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // Names of files must not become a page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
