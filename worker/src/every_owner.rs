//! Lists of the threads of all owners: requests them from the owners' directories, a few at a time.

use bobbin::request::directory_call::ROOT;
use bobbin::request::every_owner::{AT_ONCE, EveryOwner};
use bobbin::{Error, Result};
use futures::future::join_all;
use serde_json::Value;

use crate::answer::Response;
use crate::remote::ObjectResponse;
use crate::router::{Incoming, call_directory};

impl Incoming<'_> {
    /// Responds with the list. If one directory refuses, its error is the response.
    pub(crate) async fn of_every_owner(&self, mut list: EveryOwner) -> Result<Response> {
        let owners = call_directory(&self.env, ROOT, &EveryOwner::owners_call()).await?;
        if owners.status != 200 {
            return self.answer(&owners);
        }
        let (calls, left_out) = list.calls(&read(&owners)?);
        for calls in calls.chunks(AT_ONCE) {
            let asked = calls.iter().map(|(name, call)| call_directory(&self.env, name, call));
            for answer in join_all(asked).await {
                let answer = answer?;
                if answer.status != 200 {
                    return self.answer(&answer);
                }
                list.take(read(&answer)?);
            }
        }
        self.value(&list.finish(left_out)?)
    }
}

fn read(answer: &ObjectResponse) -> Result<Value> {
    bobbin::json::from_str(&answer.body.as_string().unwrap_or_default()).map_err(Error::internal)
}
