//! MariaDB's progress reports, which arrive in the middle of a reply and look like errors.

use std::net::SocketAddr;
use std::thread;

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::database::classic_on;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::if_here;
use crate::kit::wire_client::capability::{DEPRECATE_EOF, MARIADB_PROGRESS};
use crate::kit::wire_client::packet::{Packet, Values};
use crate::kit::wire_client::{Answer, Login, WireClient};

const TAIL: &str = "SELECT message.id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";

/// During a copy, the server reports at every ten thousandth row if the last report is a second old.
const ROWS: u32 = 40_000;

const NO_INDEX_USED: u16 = 0x20;

fn is_report(packet: &Packet) -> bool {
    packet.payload.starts_with(&[0xff, 0xff, 0xff])
}

/// What a side received: the first report without its progress figure, the rest of its reply, and the calls after it.
#[derive(Debug, PartialEq)]
struct Told {
    stages: [u8; 3],
    what: Vec<u8>,
    others: Vec<Vec<u8>>,
    calls: Vec<Answer>,
}

/// Each side has a table of its own.
fn told(side: usize, addr: SocketAddr, login: &Login) -> Told {
    let mut client = WireClient::login(addr, login);
    client.ok("SET progress_report_time = 1");
    let table = format!("slow_{side}");
    client.ok(&format!(
        "CREATE OR REPLACE TABLE {table} (id int PRIMARY KEY) AS SELECT seq AS id FROM seq_1_to_{ROWS}"
    ));
    // Each row takes enough work that the copy takes seconds.
    let copied = client.query_reply(&format!(
        "ALTER TABLE {table} ADD COLUMN b int DEFAULT (LENGTH(SHA2(REPEAT('x', 10000 + id % 10), 512))), \
         ALGORITHM=COPY; SELECT 'behind it'"
    ));
    let packets = copied.unwrap().packets;
    // The statement after it is another reply, with consecutive sequence numbers.
    let numbers = packets.iter().map(|packet| usize::from(packet.seq));
    assert!(numbers.eq(1..=packets.len()), "{packets:?}");
    let (reports, others): (Vec<_>, Vec<_>) = packets.into_iter().partition(is_report);
    assert!(!reports.is_empty(), "no report in {others:?}");
    eprintln!("{} reports", reports.len());
    for report in &reports {
        // The number of strings, stage, stages; then thousandths of a per cent, and the stage's name.
        let mut values = Values(&report.payload[6..]);
        assert!(values.int(3) <= 100_000, "{report:?}");
        values.bytes();
        assert!(values.0.is_empty(), "{report:?}");
    }
    let first = &reports[0].payload;
    let mut calls = Vec::new();
    for statement in [
        "CALL fetch_timeline_ids(1)",
        TAIL,
        "CALL fetch_timeline_ids2(1, 10)",
        "SELECT id FROM fetch_timeline_tt",
    ] {
        let mut answers = client.query(statement);
        for answer in &mut answers {
            // The flag for index use depends on the query plan, which differs in and after a served call.
            match answer {
                Answer::Ok(ok) => ok.status &= !NO_INDEX_USED,
                Answer::Rows(rows) => rows.status &= !NO_INDEX_USED,
                Answer::Err(error) => panic!("{error:?} to {statement}"),
            }
        }
        calls.extend(answers);
    }
    Told {
        stages: [first[3], first[4], first[5]],
        what: first[9..].to_vec(),
        others: others.into_iter().map(|packet| packet.payload).collect(),
        calls,
    }
}

#[test]
fn reports_belong_to_their_reply_and_calls_behind_it_are_owned() {
    let options = ["--progress-report-time=1"];
    let older = PrivateServer::start(ServerKind::Mariadb, &options).unwrap();
    let newer = if_here(PrivateServer::start_mariadb11(&options));
    for server in [Some(older), newer].into_iter().flatten() {
        eprintln!("on MariaDB {}", server.version());
        let login = classic_on(server.addr(), "progress");
        let mut root = WireClient::login(server.addr(), &login);
        root.ok("INSERT INTO follower VALUES (1, 2)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (11, 2, 'eleven')");
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        let settings = "[compression]\nserver = 'where-offered'\n";
        let framed = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
        for proxy in [&proxy, &framed] {
            proxy.wait_for_log("in database progress: accelerated");
        }
        let logins = [login.clone(), login.without(DEPRECATE_EOF)];
        for login in logins.map(|login| login.with(MARIADB_PROGRESS)) {
            let addrs = [server.addr(), proxy.addr(), framed.addr()];
            let [direct, relayed, reframed] = thread::scope(|scope| {
                let tell = |side: usize| {
                    let login = &login;
                    scope.spawn(move || told(side, addrs[side], login))
                };
                [0, 1, 2].map(tell).map(|side| side.join().unwrap())
            });
            assert_eq!(relayed, direct);
            assert_eq!(reframed, direct, "in frames towards the server");
        }
        for proxy in [&proxy, &framed] {
            assert_eq!(proxy.counts().of("calls_owned"), 4, "{}", proxy.log());
        }
    }
}
