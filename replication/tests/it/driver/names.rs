//! A DNS server that says what a test wants.

use std::net::SocketAddr;
use std::sync::Arc;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, SRV, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// What it knows: lines of `name type data`, or `name code` for a refusal. A name that is not there does not exist.
pub(crate) struct Names {
    pub(crate) address: SocketAddr,
    zone: Arc<Mutex<String>>,
    task: JoinHandle<()>,
}

impl Names {
    pub(crate) async fn start(zone: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let address = socket.local_addr().expect("it is bound");
        let zone = Arc::new(Mutex::new(zone.to_owned()));
        let known = Arc::clone(&zone);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, sender)) = socket.recv_from(&mut buffer).await {
                let Ok(question) = Message::from_vec(&buffer[..length]) else {
                    continue;
                };
                let answer = answer(&question, &known.lock());
                let bytes = answer.to_vec().expect("it can be encoded");
                socket.send_to(&bytes, sender).await.expect("it is there");
            }
        });
        Self { address, zone, task }
    }

    pub(crate) fn set(&self, zone: &str) {
        *self.zone.lock() = zone.to_owned();
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(question: &Message, zone: &str) -> Message {
    let query = question.queries.first().expect("a question").clone();
    let mut answer = Message::response(question.id, question.op_code);
    answer.metadata.response_code = ResponseCode::NXDomain;
    answer.metadata.recursion_available = true;
    let asked = query.name().to_string().to_ascii_lowercase();
    for line in zone.lines() {
        let mut words = line.split_whitespace();
        if words.next().map(|name| format!("{name}.")) != Some(asked.clone()) {
            continue;
        }
        let kind = words.next().expect("a type");
        let rest: Vec<_> = words.collect();
        if kind == "SERVFAIL" {
            answer.metadata.response_code = ResponseCode::ServFail;
            break;
        }
        answer.metadata.response_code = ResponseCode::NoError;
        let data = data(kind, &rest);
        if data.record_type() == query.query_type() || data.record_type() == RecordType::CNAME {
            answer.add_answer(Record::from_rdata(query.name().clone(), 1, data));
        }
    }
    answer.add_query(query);
    answer
}

fn data(kind: &str, rest: &[&str]) -> RData {
    let name = |text: &str| Name::from_ascii(text).expect("a name");
    match kind {
        "A" => RData::A(A(rest[0].parse().expect("an address"))),
        "AAAA" => RData::AAAA(AAAA(rest[0].parse().expect("an address"))),
        "SRV" => RData::SRV(SRV::new(0, 0, rest[0].parse().expect("a port"), name(rest[1]))),
        // Each word a part of one text.
        "TXT" => RData::TXT(TXT::new(rest.iter().map(|part| part.replace('_', " ")).collect())),
        kind => panic!("{kind} is not known here"),
    }
}
