//! Log events that are far longer than any part of them that Headwater needs.

use std::thread;
use std::time::{Duration, Instant};

use super::stage::{CALL, Stage};
use super::warm;
use crate::kit::servers::on_servers_of_its_own;

/// The length in bytes of a long statement and of a long row; both servers are configured to accept it.
const LONG: usize = 40 << 20;
/// The limit on the process's growth meanwhile.
const ROOM_KIB: u64 = 24 * 1024;

/// Runs statements with long events directly on the server while a client calls. Returns the growth of the process.
fn meanwhile(stage: &mut Stage, what: &str, statements: Vec<String>) -> u64 {
    let before = stage.proxy.peak_kib();
    let (client, root) = (&mut stage.client, &mut stage.root);
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for statement in statements {
                root.ok(&statement);
            }
            // Headwater has read the log by then.
            thread::sleep(Duration::from_secs(2));
        });
        let mut longest = Duration::ZERO;
        while !writer.is_finished() {
            let begun = Instant::now();
            client.ok(CALL);
            longest = longest.max(begun.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
        writer.join().unwrap();
        // No assertion: the server and the writer compete for the processor.
        eprintln!("{what}: the longest call took {longest:?}");
    });
    // The kernel counts in coarse steps: it may even report a slightly lower peak later.
    let grown = stage.proxy.peak_kib().saturating_sub(before);
    eprintln!("{what}: {before} KiB and {grown} more");
    grown
}

fn tell(options: &'static [&'static [&'static str]; 2]) {
    on_servers_of_its_own(
        move |is_mariadb| options[usize::from(!is_mariadb)],
        |server| {
            // Longer than any useful event may be.
            let settings = "[binlog]\nevent_bytes = 4194304\n";
            let elsewhere = [
                "CREATE DATABASE elsewhere",
                "CREATE TABLE elsewhere.t (a longtext)",
            ];
            let mut stage = Stage::new(server.addr(), &elsewhere, settings);
            stage.post(1);
            let log = "nothing is answered from memory";
            let rows = format!(
                "INSERT INTO elsewhere.t VALUES ('{}')",
                "word ".repeat(LONG / 5)
            );
            let grown = meanwhile(&mut stage, "a row of another table", vec![rows]);
            assert!(grown < ROOM_KIB, "{grown} KiB");
            // Headwater does not need to read this event's content.
            assert!(!stage.proxy.log().contains(log), "{}", stage.proxy.log());
            let comment = "word ".repeat(LONG / 5);
            let create = format!("CREATE TABLE elsewhere.u (a int /* {comment} */)");
            let grown = meanwhile(&mut stage, "a statement", vec![create]);
            assert!(grown < ROOM_KIB, "{grown} KiB");
            warm(&stage.proxy, &mut stage.client, CALL);
            stage.post(2);
            assert!(stage.page().contains(&2));
            // A row that is too long to be useful is also too long when unpacked.
            let alter = "ALTER TABLE message MODIFY body longtext NOT NULL".to_owned();
            meanwhile(&mut stage, "longer texts", vec![alter]);
            warm(&stage.proxy, &mut stage.client, CALL);
            let row = format!(
                "INSERT INTO message VALUES (3, 2, '{}')",
                "word ".repeat(LONG / 5)
            );
            let grown = meanwhile(&mut stage, "a row of the table", vec![row]);
            assert!(grown < ROOM_KIB, "{grown} KiB");
            stage.proxy.wait_for_log("(binlog.event_bytes)");
            warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&3));
        },
    );
}

#[test]
fn a_long_event_is_read_in_constant_memory() {
    tell(&[&["--max-allowed-packet=64M"], &["--max-allowed-packet=64M"]]);
}

#[test]
fn a_long_event_that_is_compressed_is_read_in_constant_memory() {
    tell(&[
        &[
            "--max-allowed-packet=64M",
            "--log-bin-compress=ON",
            "--log-bin-compress-min-len=10",
        ],
        &[
            "--max-allowed-packet=64M",
            "--binlog-transaction-compression=ON",
        ],
    ]);
}
