//! The metadata servers of a file system, one by one: an operator wants to know what each of them says.

use super::secret::{self, Source};
use crate::target::Target;
use anyhow::{Context, bail};
use client::{Location, Settings};
use metad::peers::Secret;
use prost::{Message, Name};
use proto::{
    clover::admin::{
        ChallengeRequestProto, ChallengeResponseProto, GetGroupRequestProto, GetGroupResponseProto,
        GetGroupsRequestProto, GetGroupsResponseProto, RoleProto,
    },
    exception::{NO_SUCH_PROTOCOL, without_stack_trace},
    protocol,
};
use rpc::{CallError, Client, ClientOptions};
use std::{path::PathBuf, time::Duration};

/// A server on a machine that is off says nothing at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Questions are answered from memory; a server asks its active before that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Orders take as long as a change of the view takes, or as a group needs to settle.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an order may wait before the person who gave it is told.
const WORD_PERIOD: Duration = Duration::from_secs(5);

/// The option of a command that is about one group.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct OfGroup {
    /// The group that is meant, where several hold one namespace together; otherwise the group of the servers that are asked, and the root
    /// group if they are of several.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    group: Option<u32>,
}

pub struct Servers {
    uri: String,
    user: String,
    /// `host:port`.
    addresses: Vec<String>,
    /// The place of the secret that proves orders.
    secret: Source,
}

impl Servers {
    /// Finds the servers as the shell does: by `--fs`, the configuration files, or on this machine.
    ///
    /// # Errors
    /// The configuration cannot be read, or names no file system or none that this client reaches.
    pub fn find(target: &Target) -> anyhow::Result<Self> {
        let config = target.configuration()?;
        let location = Location::resolve(&target.uri(&config), &config)?;
        let user = Settings::new(&config)?.user;
        let property = config.get(secret::PROPERTY).filter(|file| !file.is_empty()).map(PathBuf::from);
        let secret = Source { property, ..Source::default() };
        Ok(Self { uri: location.uri(), user, addresses: location.servers, secret })
    }

    /// The servers of a group whose addresses are known.
    pub fn of(user: String, addresses: Vec<String>) -> Self {
        Self { uri: "the group".to_owned(), user, addresses, secret: Source::default() }
    }

    /// The servers of the group that is meant.
    ///
    /// # Errors
    /// No server answers, or the namespace has no such group; the text says which groups it has.
    pub async fn of_group(self, wanted: OfGroup) -> anyhow::Result<Self> {
        let Some(number) = wanted.group else { return Ok(self) };
        let known = self.groups().await?;
        let Some(group) = known.groups.iter().find(|group| group.group == number) else {
            let numbers: Vec<_> = known.groups.iter().map(|group| group.group.to_string()).collect();
            bail!("there is no group {number}: the namespace is held by group {}", numbers.join(", "));
        };
        let addresses: Vec<String> =
            group.members.iter().filter_map(|member| member.rpc_address.clone()).collect();
        if addresses.is_empty() {
            let why = group.trouble.clone().unwrap_or_else(|| "no member of it has run".to_owned());
            bail!("nobody of group {number} is known: {why}. `clover admin groups` shows all groups");
        }
        Ok(Self { uri: format!("group {number}"), addresses, ..self })
    }

    /// The groups that hold the namespace, as the first server that answers knows them.
    ///
    /// # Errors
    /// No server has answered. The text says for each why.
    pub async fn groups(&self) -> anyhow::Result<GetGroupsResponseProto> {
        let mut refusals = Vec::new();
        for address in &self.addresses {
            match self.ask(address, "getGroups", &GetGroupsRequestProto {}, ANSWER_TIMEOUT).await {
                Ok(known) => return Ok(known),
                Err(error) => refusals.push(format!("{address}: {}", reason(&error))),
            }
        }
        bail!("no metadata server of {} tells the groups ({})", self.uri, refusals.join("; "))
    }

    /// Orders are proved with this secret.
    pub fn prove_with(&mut self, secret: Secret) {
        self.secret.known = Some(secret);
    }

    /// Orders are proved with the secret that is there, if one is named.
    pub fn prove_by(&mut self, file: Option<PathBuf>, config: Option<PathBuf>) {
        (self.secret.file, self.secret.config) = (file, config);
    }

    /// The addresses at which servers are asked.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The user name with which calls are made.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The secret with which orders are proved.
    ///
    /// # Errors
    /// Those of [`Source::read`].
    pub fn secret(&self) -> anyhow::Result<Secret> {
        self.secret.read()
    }

    /// Calls one server.
    ///
    /// # Errors
    /// [`CallError::Remote`] if the server refused; the others if it could not be asked, or not within `patience`.
    pub async fn ask<Q, A>(
        &self,
        address: &str,
        method: &str,
        request: &Q,
        patience: Duration,
    ) -> Result<A, CallError>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        self.client(address, patience).call(method, request).await
    }

    /// Gives one server an order, with the proof that it wants.
    ///
    /// # Errors
    /// There is no secret to prove it with, the server could not be asked, or it refused.
    pub async fn give<Q, A>(
        &self,
        secret: &Secret,
        address: &str,
        order: &str,
        request: &Q,
    ) -> Result<A, CallError>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let client = self.client(address, ORDER_TIMEOUT);
        let challenge: ChallengeResponseProto = client.call("challenge", &ChallengeRequestProto {}).await?;
        prove_and_call(&client, secret, &challenge, order, request).await
    }

    /// Gives one server an order, if it is a member of this group: an order to another group would be carried out there.
    async fn give_within<Q, A>(
        &self,
        group: &GetGroupResponseProto,
        secret: &Secret,
        address: &str,
        order: &str,
        request: &Q,
    ) -> Result<A, CallError>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let client = self.client(address, ORDER_TIMEOUT);
        let challenge: ChallengeResponseProto = client.call("challenge", &ChallengeRequestProto {}).await?;
        let is_known = group.members.iter().any(|one| one.member == challenge.member)
            || group.view.as_ref().is_some_and(|view| view.members.contains(&challenge.member));
        if !is_known {
            let why = format!("its server is member {}, of another group", challenge.member);
            return Err(CallError::Connect(std::io::Error::other(why)));
        }
        prove_and_call(&client, secret, &challenge, order, request).await
    }

    fn client(&self, address: &str, patience: Duration) -> Client {
        let options = ClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: patience,
            ..ClientOptions::default()
        };
        Client::connect(address, protocol::ADMIN, &self.user, options)
    }

    /// The state of the group: the active's answer if there is one, else the newest of the others. If the servers are of several groups, it is
    /// the first group of which one answers.
    ///
    /// # Errors
    /// No server has answered. The text says for each why.
    pub async fn group(&self) -> anyhow::Result<GetGroupResponseProto> {
        let answers = self.everybody(&self.addresses, false).await;
        let mut refusals = Vec::new();
        let mut best: Option<GetGroupResponseProto> = None;
        for (address, answer) in answers {
            match answer {
                Ok(answer) if best.as_ref().is_none_or(|best| worth(&answer) > worth(best)) => {
                    best = Some(answer)
                }
                Ok(_) => {}
                Err(error) => refusals.push(format!("{address}: {}", reason(&error))),
            }
        }
        best.with_context(|| {
            format!(
                "no metadata server of {} answers ({}); `--fs` names another one",
                self.uri,
                refusals.join("; ")
            )
        })
    }

    /// The answer of each server in `addresses`, in their order.
    pub async fn everybody(
        &self,
        addresses: &[String],
        is_local: bool,
    ) -> Vec<(String, Result<GetGroupResponseProto, CallError>)> {
        let request = GetGroupRequestProto { is_local: Some(is_local) };
        let asked = addresses.iter().map(|address| {
            let (address, request, user) = (address.clone(), request, self.user.clone());
            tokio::spawn(async move {
                let one = Self::of(user, Vec::new());
                let answer = one.ask(&address, "getGroup", &request, ANSWER_TIMEOUT).await;
                (address, answer)
            })
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = Vec::new();
        for one in asked {
            answers.push(one.await.expect("a question does not panic"));
        }
        answers
    }

    /// Gives an order to the active, or to any server that passes it on.
    ///
    /// # Errors
    /// No server has taken the order, or the one that took it refused or did not answer. The text says which.
    pub async fn order<Q, A>(
        &self,
        group: &GetGroupResponseProto,
        method: &str,
        request: &Q,
    ) -> anyhow::Result<A>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let secret = self.secret()?;
        let mut addresses: Vec<String> = active_address(group).into_iter().collect();
        addresses.extend(
            self.addresses.iter().filter(|address| !addresses.contains(address)).cloned().collect::<Vec<_>>(),
        );
        let mut refusals = Vec::new();
        for address in addresses {
            let asked = self.give_within(group, &secret, &address, method, request);
            let answer = telling(asked, WORD_PERIOD, || {
                eprintln!(
                    "still waiting for {address}; `clover admin group` shows whether the coordinator is away"
                );
            });
            match answer.await {
                Ok(answer) => return Ok(answer),
                Err(error @ CallError::Timeout { .. }) => {
                    bail!(
                        "{address}: {}; the order may still be carried out: `clover admin group` shows whether it was",
                        reason(&error)
                    )
                }
                // A server that was not reached has done nothing; another may pass the order on.
                Err(error @ CallError::Connect(_)) => refusals.push(format!("{address}: {}", reason(&error))),
                Err(error) => bail!("{address}: {}", reason(&error)),
            }
        }
        bail!("no metadata server of {} takes the order ({})", self.uri, refusals.join("; "))
    }
}

async fn prove_and_call<Q, A>(
    client: &Client,
    secret: &Secret,
    challenge: &ChallengeResponseProto,
    order: &str,
    request: &Q,
) -> Result<A, CallError>
where
    Q: Message,
    A: Message + Default + Name,
{
    let order = metad::prove_order(secret, challenge, order, request.encode_to_vec().into());
    client.call("order", &order).await
}

/// Waits, and says so from time to time.
async fn telling<T>(what: impl Future<Output = T>, period: Duration, mut say: impl FnMut()) -> T {
    let mut what = std::pin::pin!(what);
    loop {
        match tokio::time::timeout(period, &mut what).await {
            Ok(done) => return done,
            Err(_) => say(),
        }
    }
}

/// The client port of the active.
pub fn active_address(group: &GetGroupResponseProto) -> Option<String> {
    let active = group.view.as_ref()?.active?;
    address_of(group, active)
}

/// The client port of a member.
pub fn address_of(group: &GetGroupResponseProto, member: u32) -> Option<String> {
    group
        .members
        .iter()
        .find(|one| one.member == member)?
        .rpc_address
        .clone()
        .filter(|address| !address.is_empty())
}

/// Orders answers by their worth: an answer about the first group is worth most, then the active's, then the answer of the member that has seen most.
fn worth(answer: &GetGroupResponseProto) -> (std::cmp::Reverse<u32>, bool, u64, u64) {
    let by_active = answer
        .members
        .iter()
        .any(|member| member.member == answer.answered_by && member.role == RoleProto::Active as i32);
    let view = answer.view.as_ref();
    (
        std::cmp::Reverse(answer.group),
        by_active,
        view.map_or(0, |view| view.version),
        answer.committed.unwrap_or(0),
    )
}

/// Why a call brought no answer, in a line.
pub fn reason(error: &CallError) -> String {
    match error {
        CallError::Remote { class, .. } if class == NO_SUCH_PROTOCOL => {
            "is no metadata server of Clover: it does not know the operators' protocol".to_owned()
        }
        CallError::Remote { message, .. } => {
            without_stack_trace(message).lines().next().unwrap_or_default().to_owned()
        }
        CallError::Connect(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_told_from_time_to_time_and_gets_the_answer() {
        let mut words = 0;
        let period = Duration::from_millis(20);
        let slow = async {
            tokio::time::sleep(period * 4).await;
            7
        };
        assert_eq!(telling(slow, period, || words += 1).await, 7);
        assert!((1..=4).contains(&words), "{words}");
        assert_eq!(telling(async { 8 }, period, || unreachable!("nobody waits")).await, 8);
    }
}
