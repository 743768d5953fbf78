//! How fast calls are answered from memory on a member of a group, beside a single server: for people, not for `make test`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater::lab::private_server::{Kind, PrivateServer};

use super::scene::CALL;
use crate::kit::cluster::{Cluster, Form};
use crate::kit::database::classic_on;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::warm;

const CONNECTIONS: usize = 8;

/// Calls a second through a Headwater, from memory.
fn rate(proxy: &Proxy, login: &Login, span: Duration) -> f64 {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let before = proxy.counts();
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = proxy.login(login);
                while !stop.load(Ordering::Relaxed) {
                    client.ok(CALL);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
    let after = proxy.counts();
    let [owned, remembered] =
        ["calls_owned", "calls_from_memory"].map(|name| after.of(name) - before.of(name));
    assert!(remembered * 100 >= owned * 95, "{remembered} of {owned}");
    done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

fn prepare(server: std::net::SocketAddr) -> (Proxy, Login) {
    let login = classic_on(server, "measured");
    let mut root = WireClient::login(server, &login);
    for author in 2..=40 {
        root.ok(&format!("INSERT INTO follower VALUES (1, {author})"));
        root.ok(&format!(
            "INSERT INTO message (user_id, body) VALUES ({author}, 'text'), ({author}, 'text')"
        ));
    }
    let proxy = Proxy::start(server, ROOT_SERVICE);
    proxy.wait_for_log("in database measured: accelerated");
    warm(&proxy, &mut proxy.login(&login), CALL);
    (proxy, login)
}

/// `cargo test --test integration -- --ignored --nocapture clusters::measure`, with HEADWATER_ROUNDS.
#[test]
#[ignore = "a measurement"]
fn calls_on_a_primary_are_as_fast_as_on_a_single_server() {
    let Some(group) = Cluster::start(Form::SinglePrimary, &[]) else {
        return;
    };
    let single = PrivateServer::start(Kind::Mysql, &[]).unwrap();
    let sides = [single.addr(), group.addr(0)].map(prepare);
    let mut ratios = Vec::new();
    for round in 0..how_many("HEADWATER_ROUNDS", 7) {
        let mut rates = [0.0; 2];
        // Whoever is first changes.
        for side in [round as usize % 2, (round as usize + 1) % 2] {
            let (proxy, login) = &sides[side];
            rates[side] = rate(proxy, login, Duration::from_secs(3));
        }
        ratios.push(rates[1] / rates[0]);
        eprintln!(
            "single {:.0}, primary {:.0}: {:.3}",
            rates[0],
            rates[1],
            rates[1] / rates[0]
        );
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    eprintln!("median {median:.3}");
    assert!(median >= 0.9, "{ratios:?}");
}
