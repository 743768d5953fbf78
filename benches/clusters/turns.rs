//! Two sides that take turns on one machine: how often a second clients get an answer on each. What else the machine does comes and goes within
//! seconds, so turns are short, two that follow each other are compared, and the median of many such pairs is told.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{COM_QUERY, Login, WireClient};

const CONNECTIONS: usize = 8;
const TURN: Duration = Duration::from_millis(200);
/// Pairs of turns in a round.
const PAIRS: usize = 12;

/// Clients that stay connected, and what each of them asks for again and again.
pub(crate) struct ClientSide {
    clients: Vec<WireClient>,
    statements: usize,
    bytes: Vec<u8>,
}

impl ClientSide {
    /// Logs in. Several statements are sent in one write.
    pub(crate) fn new(server: SocketAddr, login: &Login, statements: &[&str]) -> ClientSide {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| WireClient::login(server, login))
            .collect();
        let payload = |text: &&str| clients[0].query_payload(text.as_bytes(), &[]);
        let packet = |text| encode(0, &payload(text));
        let bytes = statements.iter().flat_map(packet).collect();
        ClientSide {
            bytes,
            statements: statements.len(),
            clients,
        }
    }

    /// Has each client run a statement first.
    pub(crate) fn after_statement(mut self, statement: &str) -> ClientSide {
        for client in &mut self.clients {
            client.ok(statement);
        }
        self
    }

    /// Answers a second.
    fn rate(&mut self) -> f64 {
        let (stop, bytes, statements) = (AtomicBool::new(false), &self.bytes, self.statements);
        let begun = Instant::now();
        let done: u64 = thread::scope(|scope| {
            let clients = self.clients.iter_mut().map(|client| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        client.stream.write_all(bytes).unwrap();
                        for _ in 0..statements {
                            let reply = client.reply(COM_QUERY).unwrap();
                            assert_ne!(reply.raw[4], 0xff, "{reply:?}");
                        }
                        done += 1;
                    }
                    done
                })
            });
            let clients: Vec<_> = clients.collect();
            thread::sleep(TURN);
            stop.store(true, Ordering::Relaxed);
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        });
        done as f64 / begun.elapsed().as_secs_f64()
    }
}

/// The second side's rate by the first one's, of each round; whoever is first in a pair changes.
pub(crate) fn ratios(rounds: u64, sides: &mut [ClientSide; 2]) -> Vec<f64> {
    for side in &mut *sides {
        side.rate();
    }
    let round = |_| {
        let [mut first, mut second, mut ratios] = [const { Vec::new() }; 3];
        for pair in 0..PAIRS {
            let mut rates = [0.0; 2];
            for side in [pair % 2, (pair + 1) % 2] {
                rates[side] = sides[side].rate();
            }
            first.push(rates[0]);
            second.push(rates[1]);
            ratios.push(rates[1] / rates[0]);
        }
        let [first, second, ratio] = [first, second, ratios].map(median);
        eprintln!("{first:.0} and {second:.0} a second: {ratio:.3}");
        ratio
    };
    (0..rounds).map(round).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}
