//! `GET /api/v1/changes` as `text/event-stream`.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;

use super::{Changed, Ending, Key, Seen, Told};
use crate::connection::Connection;

/// An event of one change is about 1 KiB.
const CAPACITY: usize = 16 * 1024;

/// One stream on a connection of its own.
pub(crate) struct Stream {
    connection: Connection,
    chunk: Vec<u8>,
    /// Bytes of events that are not complete or not asked for.
    rest: BytesMut,
}

impl Stream {
    pub(super) async fn open(address: SocketAddr, cursor: Option<&str>) -> Result<Self, Ending> {
        let opened = Self::ask(address, cursor).await;
        opened.unwrap_or_else(|error| Err(Ending::broken(&error)))
    }

    async fn ask(address: SocketAddr, cursor: Option<&str>) -> Result<Result<Self, Ending>> {
        let mut connection = Connection::open(address, CAPACITY).await?;
        let cursor = cursor.map_or_else(String::new, |cursor| format!("Last-Event-ID: {cursor}\r\n"));
        let request = format!(
            "GET /api/v1/changes HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{cursor}\r\n"
        );
        let head = connection.ask(request.as_bytes()).await?;
        if head.status == 200 {
            return Ok(Ok(Self {
                connection,
                chunk: Vec::new(),
                rest: BytesMut::new(),
            }));
        }
        let mut body = Vec::new();
        connection.body(&head, Some(&mut body)).await?;
        Ok(Err(Ending {
            status: head.status,
            reason: String::from_utf8_lossy(&body).trim().to_owned(),
            retries: head.retry_after.is_some(),
        }))
    }

    /// The next event, without the empty line behind it.
    pub(super) async fn next(&mut self) -> Result<Bytes, Ending> {
        loop {
            if let Some(end) = memmem::find(&self.rest, b"\n\n") {
                return Ok(self.rest.split_to(end + 2).freeze());
            }
            self.chunk.clear();
            match self.connection.chunk(Some(&mut self.chunk)).await {
                Ok(Some(_)) => self.rest.extend_from_slice(&self.chunk),
                Ok(None) => {
                    let end = "the stream ended";
                    return Err(Ending::broken(&end));
                }
                Err(error) => return Err(Ending::broken(&error)),
            }
        }
    }
}

pub(super) fn read(event: &[u8]) -> Result<Told> {
    let text = std::str::from_utf8(event)?;
    let (mut name, mut id, mut data) = ("message", None, "");
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value,
            "id" => id = Some(value.to_owned()),
            "data" => data = value,
            _ => {}
        }
    }
    Ok(match name {
        "reset" => Told::Reset(data.to_owned()),
        "instance" => {
            let instance: Instance = serde_json::from_str(data).with_context(|| text.to_owned())?;
            Told::Instances(vec![instance.seen()])
        }
        "synced" => {
            let synced: Synced = serde_json::from_str(data).with_context(|| text.to_owned())?;
            Told::Synced {
                cursor: id.context("no cursor")?,
                instances: synced.instances,
            }
        }
        "change" => {
            let change: Change = serde_json::from_str(data).with_context(|| text.to_owned())?;
            let (key, seen) = change.instance.seen();
            Told::Changed(Changed {
                cursor: id.context("no cursor")?,
                key,
                after: (change.action != "DELETED").then_some(seen),
                by_peer: change.by == "peer",
            })
        }
        "message" if data.is_empty() => Told::Alive { cursor: id },
        other => bail!("an event that is not documented: {other}"),
    })
}

#[derive(Deserialize)]
struct Synced {
    instances: u64,
}

#[derive(Deserialize)]
struct Change {
    action: String,
    by: String,
    #[serde(flatten)]
    instance: Instance,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    app: String,
    id: String,
    status: String,
    overridden_status: String,
    last_dirty: Option<i64>,
    #[serde(default)]
    metadata: std::collections::BTreeMap<String, String>,
}

impl Instance {
    fn seen(self) -> (Key, Seen) {
        let seen = Seen {
            status: self.status,
            overridden: self.overridden_status,
            dirty: self.last_dirty.unwrap_or(0),
            metadata: self.metadata,
        };
        ((self.app, self.id), seen)
    }
}
