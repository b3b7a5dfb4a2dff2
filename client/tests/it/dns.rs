//! A server of DNS that says what a test wants.

use std::net::SocketAddr;
use std::sync::Arc;

use eureka_client::Resolver;
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, TXT};
use hickory_resolver::proto::rr::{RData, Record};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// What it knows: lines of `name type data`, or `name SERVFAIL`. A name that is not there does not exist.
pub(crate) struct Names {
    address: SocketAddr,
    zone: Arc<Mutex<String>>,
    task: JoinHandle<()>,
}

impl Names {
    pub(crate) async fn start(zone: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(zone.to_owned()));
        let known = Arc::clone(&zone);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, sender)) = socket.recv_from(&mut buffer).await {
                let Ok(question) = Message::from_vec(&buffer[..length]) else {
                    continue;
                };
                let answer = reply(&question, &known.lock());
                socket.send_to(&answer.to_vec().unwrap(), sender).await.unwrap();
            }
        });
        Self { address, zone, task }
    }

    pub(crate) fn set(&self, zone: &str) {
        *self.zone.lock() = zone.to_owned();
    }

    pub(crate) fn resolver(&self) -> Resolver {
        Resolver::at(self.address)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn reply(question: &Message, zone: &str) -> Message {
    let query = question.queries.first().unwrap().clone();
    let mut answer = Message::response(question.id, question.op_code);
    answer.metadata.response_code = ResponseCode::NXDomain;
    answer.metadata.recursion_available = true;
    let asked = query.name().to_string().to_ascii_lowercase();
    for line in zone.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if words.first().map(|name| format!("{name}.")) != Some(asked.clone()) {
            continue;
        }
        answer.metadata.response_code = ResponseCode::NoError;
        let data = match words[1] {
            "A" => RData::A(A(words[2].parse().unwrap())),
            "AAAA" => RData::AAAA(AAAA(words[2].parse().unwrap())),
            "TXT" => RData::TXT(TXT::new(
                words[2..].iter().map(|part| part.replace('+', " ")).collect(),
            )),
            _ => {
                answer.metadata.response_code = ResponseCode::ServFail;
                break;
            }
        };
        if data.record_type() == query.query_type() {
            answer.add_answer(Record::from_rdata(query.name().clone(), 1, data));
        }
    }
    answer.add_query(query);
    answer
}
