//! What the log streams of several Headwaters cost the server: bytes and processor time, idle and during writes.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use crate::kit::fake_replica::dump_threads;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};
use crate::kit::{how_many, patience};
use crate::memory::stage::CALL;
use crate::memory::{CLASSIC, prepare, warm};

/// The number of writes in the second half of the test.
const WRITES: u64 = 2_000;

/// The processor time and sent bytes of the server so far.
#[derive(Clone, Copy)]
struct Used {
    at: Instant,
    ticks: u64,
    sent: u64,
}

fn used(server: &PrivateServer, root: &mut WireClient) -> Used {
    let sent = root.rows("SHOW GLOBAL STATUS LIKE 'Bytes_sent'");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid().unwrap())).unwrap();
    // The fields after the name, which may contain anything: utime and stime are the 12th and the 13th.
    let (_, behind) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = behind.split(' ').collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Used {
        at: Instant::now(),
        ticks,
        sent: sent[0][1].as_deref().unwrap().parse().unwrap(),
    }
}

impl Used {
    /// The milliseconds of processor time and the bytes per second since `then`.
    fn since(self, then: Used) -> [f64; 2] {
        let seconds = (self.at - then.at).as_secs_f64();
        // Every Linux counts a hundred ticks a second.
        let processor = (self.ticks - then.ticks) as f64 * 10.0 / seconds;
        [processor, (self.sent - then.sent) as f64 / seconds]
    }
}

/// The idle cost. It repeats the measurement until the Headwaters have read the existing log. After that there are only heartbeats twice a
/// second, and a query of the settings each second.
fn idle(
    server: &PrivateServer,
    root: &mut WireClient,
    seconds: Duration,
    headwaters: usize,
) -> [f64; 2] {
    let deadline = patience();
    loop {
        let before = used(server, root);
        thread::sleep(seconds);
        let idle = used(server, root).since(before);
        if idle[1] < 20_000.0 * (headwaters as f64 + 1.0) {
            return idle;
        }
        assert!(Instant::now() < deadline, "{idle:?}");
    }
}

fn start(server: &PrivateServer, login: &Login) -> Proxy {
    let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
    proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
    warm(&proxy, &mut proxy.login(login), CALL);
    proxy
}

/// `HEADWATER_SECONDS` makes the measurement longer, `HEADWATER_MANY` sets the number of Headwaters.
#[test]
fn each_headwater_is_sent_the_log_once_and_little_else() {
    let seconds = Duration::from_secs(how_many("HEADWATER_SECONDS", 3));
    let most = how_many("HEADWATER_MANY", 3) as usize;
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            root.ok("INSERT INTO follower VALUES (1, 2)");
            let body = "x".repeat(200);
            let mut id = 0;
            let mut proxies: Vec<Proxy> = Vec::new();
            let mut alone = None;
            for count in [0, 1, 3, 8] {
                if count > most {
                    break;
                }
                while proxies.len() < count {
                    proxies.push(start(server, &login));
                }
                assert_eq!(dump_threads(&mut root), count);
                let idle = idle(server, &mut root, seconds, count);
                let before = used(server, &mut root);
                let pause = seconds.mul_f64(1.0 / WRITES as f64);
                let begun = Instant::now();
                for turn in 1..=WRITES {
                    id += 1;
                    root.ok(&format!("INSERT INTO message VALUES ({id}, 2, '{body}')"));
                    thread::sleep((pause * turn as u32).saturating_sub(begun.elapsed()));
                }
                thread::sleep(Duration::from_millis(100));
                let busy = used(server, &mut root);
                let rate = WRITES as f64 / (busy.at - before.at).as_secs_f64();
                let busy = busy.since(before);
                eprintln!(
                    "{count} headwaters: idle {:.1} ms/s of a processor, {:.0} bytes/s; with {rate:.0} writes/s {:.1} ms/s, {:.0} bytes/s",
                    idle[0], idle[1], busy[0], busy[1]
                );
                // Bytes per write, which does not depend on how fast a busy machine writes.
                let written = (busy[1] - idle[1]) / rate;
                match alone {
                    None if count == 1 => alone = Some(written),
                    Some(alone) => assert!(written < 1.5 * alone * count as f64, "{busy:?}"),
                    None => {}
                }
            }
            for proxy in &proxies {
                assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
            }
        },
    );
}
