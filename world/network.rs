//! The network between two ends: bytes are delayed, split or lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater_proxy::link::memory::MemoryStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::sleep;

use crate::random::Random;

/// The time after which the system gives up a silent connection.
const GIVEN_UP: Duration = Duration::from_secs(900);

/// The faults of a world's connections, until it is calm.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkWeather {
    /// Maximum delay of bytes, in microseconds.
    pub(crate) late: u64,
    /// Splits what is sent at once; the first piece has up to so many bytes.
    pub(crate) pieces: Option<u64>,
    /// One of so many pieces breaks its connection.
    pub(crate) breaks: Option<u64>,
    /// One of so many pieces is preceded by a second of silence.
    pub(crate) silences: Option<u64>,
    /// Before one of so many pieces a direction falls silent, until the system gives the connection up a quarter of an hour later.
    pub(crate) deaf: Option<u64>,
    calm: Arc<AtomicBool>,
}

impl NetworkWeather {
    /// Each kind of trouble is present or not; most worlds lack those that make Headwater suspend its memory.
    pub(crate) fn drawn(random: &mut Random) -> NetworkWeather {
        let some = |random: &mut Random, one_in: u64, of: &[u64]| {
            let index = random.below(of.len() as u64 * one_in) as usize;
            of.get(index).copied()
        };
        NetworkWeather {
            late: some(random, 2, &[100, 2_000, 20_000]).unwrap_or(0),
            pieces: some(random, 2, &[1, 7, 60]),
            breaks: some(random, 4, &[500, 5_000]),
            silences: some(random, 4, &[100, 1_000]),
            deaf: some(random, 4, &[2_000, 10_000]),
            calm: Arc::default(),
        }
    }

    /// From now on nothing is delayed or lost.
    pub(crate) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }
}

/// The near end of a connection to this far end.
pub(crate) fn between(
    far: MemoryStream,
    weather: &NetworkWeather,
    random: &mut Random,
) -> MemoryStream {
    let (near, inner) = MemoryStream::pair();
    let (reads, writes) = split(inner);
    let (far_reads, far_writes) = split(far);
    let broken = Arc::new(tokio::sync::Notify::new());
    for (from, to) in [(reads, far_writes), (far_reads, writes)] {
        let (broken, weather, random) = (Arc::clone(&broken), weather.clone(), random.fork());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = broken.notified() => {}
                breaks = forward(from, to, weather, random) => if breaks {
                    broken.notify_one();
                }
            }
        });
    }
    near
}

/// Ends with its direction. True if the connection breaks: bytes in flight in both directions are lost.
async fn forward(
    mut from: ReadHalf<MemoryStream>,
    mut to: WriteHalf<MemoryStream>,
    weather: NetworkWeather,
    mut random: Random,
) -> bool {
    let mut bytes = [0; 4096];
    let happens = |random: &mut Random, of: Option<u64>| of.is_some_and(|of| random.one_in(of));
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else {
            let _ = to.shutdown().await;
            return false;
        };
        if weather.is_calm() {
            if to.write_all(&bytes[..read]).await.is_err() {
                return true;
            }
            continue;
        }
        for piece in pieces(&bytes[..read], &weather, &mut random) {
            if weather.late > 0 {
                sleep(Duration::from_micros(random.below(weather.late))).await;
            }
            if happens(&mut random, weather.silences) {
                sleep(Duration::from_secs(1)).await;
            }
            if happens(&mut random, weather.deaf) {
                sleep(GIVEN_UP).await;
                return true;
            }
            if happens(&mut random, weather.breaks) || to.write_all(piece).await.is_err() {
                return true;
            }
        }
    }
}

/// Splits what was sent at once at a few points, near its beginning or anywhere.
fn pieces<'a>(bytes: &'a [u8], weather: &NetworkWeather, random: &mut Random) -> Vec<&'a [u8]> {
    let Some(most) = weather.pieces else {
        return vec![bytes];
    };
    let mut cuts = vec![1 + random.below(most) as usize];
    for _ in 0..random.below(3) {
        cuts.push(1 + random.below(bytes.len() as u64) as usize);
    }
    cuts.retain(|cut| *cut < bytes.len());
    cuts.sort_unstable();
    cuts.dedup();
    cuts.push(bytes.len());
    let begins = std::iter::once(0).chain(cuts.clone());
    begins
        .zip(cuts.iter())
        .map(|(from, to)| &bytes[from..*to])
        .collect()
}
