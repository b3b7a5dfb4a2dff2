//! What is no rate: the size of a compressed list, and whether a registration that lands while a list is built is missed.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::contenders::Contender;
use super::figures::{Figures, Measure};
use super::{GZIP_LIST, GZIP_ONE_SHOT, MISSED};
use crate::bench::load;
use crate::bench::workload::{Fleet, Operation, registration};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

/// The server's default.
const GZIP_LEVEL: u32 = 5;
pub(super) const TRIES: u32 = 20;
/// Instances of the race, beside those of the fleet.
const RACERS: usize = 1_000_000;
const BUFFER: usize = 256 * 1024;

/// What an answer in gzip holds.
pub(super) fn decompressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut text)?;
    Ok(text)
}

/// How large the full list is in gzip, and how large if it were compressed in one go at the same level.
pub(super) fn gzip_size(contender: &Contender<'_>, figures: &mut Figures) -> Result<()> {
    let fetch = load::fetch(contender.subject.address, Operation::FullGzip, &contender.fleet);
    let body = load::runtime()?.block_on(fetch)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(&decompressed(&body)?)?;
    let one_shot = encoder.finish()?.len();
    let kind = contender.kind;
    figures.add(GZIP_LIST, kind, &[(Measure::Bytes, body.len() as f64)]);
    figures.add(GZIP_ONE_SHOT, kind, &[(Measure::Bytes, one_shot as f64)]);
    Ok(())
}

/// In each try something changes, a list is asked for, and while it is built another instance registers: is that one in
/// the list that is asked for next?
pub(super) fn race(contender: &Contender<'_>, figures: &mut Figures) -> Result<()> {
    let missed = load::runtime()?.block_on(missed(contender.subject.address, &contender.fleet))?;
    let missing = [(Measure::Missing, f64::from(missed))];
    figures.add(MISSED, contender.kind, &missing);
    Ok(())
}

async fn missed(address: SocketAddr, fleet: &Fleet) -> Result<u32> {
    let mut writer = Connection::open(address, BUFFER).await?;
    let mut reader = Connection::open(address, BUFFER).await?;
    let list = Operation::FullIdentity.requests(fleet, 0).pop().context("one")?;
    let mut longest = Duration::ZERO;
    for number in 0..5 {
        register(&mut writer, RACERS + number).await?;
        let stopwatch = Stopwatch::start();
        reader.ask(&list).await.map(drop)?;
        // Until its head comes the list is being built; what follows is sending.
        longest = stopwatch.elapsed();
        reader = Connection::open(address, BUFFER).await?;
    }
    let mut missed = 0;
    for number in 0..TRIES {
        let instance = RACERS + 100 + 2 * number as usize;
        register(&mut writer, instance).await?;
        let building = tokio::spawn({
            let list = list.clone();
            async move { anyhow::Ok((reader.exchange(&list, None).await?, reader)) }
        });
        // Somewhere within the time that building took before.
        let (moment, stopwatch) = (
            longest.mul_f64(f64::from(number) / f64::from(TRIES)),
            Stopwatch::start(),
        );
        while stopwatch.elapsed() < moment {
            // Timers of the runtime are coarser than building takes.
            tokio::task::yield_now().await;
        }
        register(&mut writer, instance + 1).await?;
        reader = building.await??.1;
        let mut next = Vec::new();
        reader.exchange(&list, Some(&mut next)).await?;
        let id = format!("\"host-{}:app-0:8080\"", instance + 1);
        missed += u32::from(memchr::memmem::find(&next, id.as_bytes()).is_none());
    }
    Ok(missed)
}

async fn register(connection: &mut Connection, instance: usize) -> Result<()> {
    let body = registration(0, instance, 1, "");
    let request = format!(
        "POST /eureka/apps/APP-0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.exchange(request.as_bytes(), None).await?;
    Ok(())
}
