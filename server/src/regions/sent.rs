//! Requests under way. Each of them comes to an end that the agent hears of, or it would wait for ever.

use std::collections::HashMap;

use eureka_client::call::{Answer, RequestId};
use tokio::task::{Id, JoinSet};

/// Tasks that are taken back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Sent {
    tasks: JoinSet<Answer>,
    ids: HashMap<Id, RequestId>,
}

impl Sent {
    pub(super) fn begin(&mut self, id: RequestId, request: impl Future<Output = Answer> + Send + 'static) {
        let task = self.tasks.spawn(request);
        self.ids.insert(task.id(), id);
    }

    /// The next one that is answered; `None` if there is none.
    pub(super) async fn next(&mut self) -> Option<(RequestId, Answer)> {
        let (task, answer) = match self.tasks.join_next_with_id().await? {
            Ok(answered) => answered,
            // A panic, which was logged.
            Err(error) => {
                let why = "the request went wrong here: a bug of this server";
                (error.id(), Answer::Unreachable(why.to_owned()))
            }
        };
        Some((self.ids.remove(&task)?, answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_panics_is_answered() {
        let mut sent = Sent::default();
        sent.begin(RequestId(1), async { panic!("as a bug would") });
        let answered = sent.next().await;
        assert!(
            matches!(answered, Some((RequestId(1), Answer::Unreachable(_)))),
            "{answered:?}"
        );
        sent.begin(RequestId(2), async { Answer::Done });
        assert_eq!(sent.next().await, Some((RequestId(2), Answer::Done)));
        assert_eq!(sent.next().await, None);
        assert!(sent.ids.is_empty());
    }
}
