//! Questions and orders of operators.

use super::{Cluster, PATIENCE, calls::be_patient};
use base::GroupId;
use env::Env;
use group::Order;
use prost::{Message, Name};
use proto::{clover::admin as a, protocol};
use rpc::{CallError, Client, ClientOptions};
use std::time::{Duration, Instant};

impl Cluster {
    /// Gives a member an order as `clover admin group` does, with what its directory says is the secret.
    pub async fn order<Q, A>(&self, member: u32, order: &str, request: &Q) -> Result<A, CallError>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        self.order_at(self.address(member).to_string(), member, order, request).await
    }

    /// Gives an order to a member that is found at this address: perhaps its server is not up yet.
    pub async fn order_at<Q, A>(
        &self,
        address: String,
        member: u32,
        order: &str,
        request: &Q,
    ) -> Result<A, CallError>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let known = metad::read_cluster(&Env::production(), &self.name_directory(member)).unwrap();
        // By somebody whose name means nothing.
        let client = Client::connect(address, protocol::ADMIN, "bob", ClientOptions::default());
        let challenge: a::ChallengeResponseProto =
            client.call("challenge", &a::ChallengeRequestProto {}).await?;
        let request = request.encode_to_vec().into();
        let order = metad::prove_order(&known.secret.unwrap(), &challenge, order, request);
        client.call("order", &order).await
    }

    /// Has the group of this active give half of its slots to another group. Returns the number of slots given.
    pub async fn give_slots(&self, active: u32, to: GroupId) -> u32 {
        let request = a::GiveSlotsRequestProto { group: to.0 };
        let began = Instant::now();
        loop {
            match self.order::<_, a::GiveSlotsResponseProto>(active, "giveSlots", &request).await {
                Ok(given) => return given.slots,
                Err(error) => be_patient(error, began).await,
            }
        }
    }

    /// A member's account of its group.
    pub async fn group(&self, member: u32) -> a::GetGroupResponseProto {
        let client = self.client_as(member, protocol::ADMIN, "anybody");
        client.call("getGroup", &a::GetGroupRequestProto::default()).await.unwrap()
    }

    /// Gives an order to a member itself, past its ports, and hears what became of it.
    pub async fn say(&self, member: u32, order: Order) -> Result<String, String> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        self.replica(member).order(order, Box::new(move |answer| drop(sender.send(answer))));
        answer.await.expect("every order is answered")
    }

    /// Has a member lead though others may hold more. It must have listened for a while before it believes that nobody leads.
    pub async fn elect(&self, member: u32) {
        let began = Instant::now();
        while let Err(reason) = self.say(member, Order::UncleanElect).await {
            assert!(began.elapsed() < PATIENCE, "{reason}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Has a member lead, as an operator who knows that these are off for ever. It may have to read the view first.
    pub async fn elect_without(&self, member: u32, off: &[u32]) {
        let request = a::UncleanElectRequestProto { i_accept_loss: Some(true), off: off.to_vec() };
        let began = Instant::now();
        while let Err(error) =
            self.order::<_, a::UncleanElectResponseProto>(member, "uncleanElect", &request).await
        {
            assert!(began.elapsed() < PATIENCE, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
