//! `verify` stops under server load and on a signal, with the report so far and its own exit status.

use std::io::{BufRead as _, BufReader};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{READERS, Scene, Verified};
use crate::kit::servers::on_each_quiet_server;

#[test]
fn a_server_that_becomes_slower_is_left_alone() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, "verify_slow");
        scene.root.ok("DROP PROCEDURE fetch_timeline_ids");
        // So much that no busy machine makes the first answers a third as slow.
        scene
            .root
            .ok("CREATE TABLE pause (seconds DOUBLE NOT NULL)");
        scene.root.ok("INSERT INTO pause VALUES (0.5)");
        scene.root.ok(
            "CREATE PROCEDURE fetch_timeline_ids(IN p_reader int unsigned) BEGIN \
             CREATE TEMPORARY TABLE IF NOT EXISTS fetch_timeline_tt (id int unsigned NOT NULL PRIMARY KEY) ENGINE=MEMORY; \
             DELETE FROM fetch_timeline_tt; IF p_reader > 18 THEN DO SLEEP((SELECT seconds FROM pause)); END IF; END",
        );
        let slow = ["--stop-when-slower", "3", "--only", "classic"];
        let verified = scene.verify(&slow);
        assert_eq!(verified.status, 3);
        verified.says("Stopped early: the server has become slower (definition classic");
        verified.says("All equal. ");
        verified.says("--stop-when-slower");
        let whole = format!(": {READERS} of {READERS} readers");
        assert!(!verified.report.contains(&whole));
        // With this limit off, it runs to its end.
        scene.root.ok("UPDATE pause SET seconds = 0.1");
        scene.verify(&["--only", "classic"]).is_equal();
    });
}

#[test]
fn ctrl_c_ends_it_with_the_report_so_far() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_signal");
        let begun = Instant::now();
        let (_folder, mut child) = scene.start(&["--rate", "5"]);
        // It reports its progress every few seconds.
        let mut far = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut far).unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let verified = Verified::of(child.wait_with_output().unwrap());
        let seconds = begun.elapsed().as_secs();
        assert_eq!(verified.status, 3);
        verified.says("Stopped early: by a signal");
        verified.says("All equal. ");
        let all = format!(" of {} readers, differences: 0, ", 2 * READERS);
        assert!(far.contains(&all) && far.ends_with(" left\n"), "{far}");
        // At most 5 a second.
        let compared: u64 = verified
            .report
            .lines()
            .filter_map(|line| line.strip_prefix("All equal. ")?.split(' ').next())
            .map(|count| count.parse::<u64>().unwrap())
            .sum();
        assert!(
            compared > 0 && compared <= 5 * (seconds + 1),
            "{compared} in {seconds} s"
        );
    });
}
