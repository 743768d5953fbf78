//! LOCAL INFILE, where the client sends packets in the middle of a reply.

use super::player::Player;
use super::side::Side;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::capability;

const LOAD: &str = "LOAD DATA LOCAL INFILE 'any' INTO TABLE t";

#[test]
fn files_of_every_kind() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_infile");
        let player = Player::new(server);
        for login in super::commands::logins(&database.login()) {
            player.play("files", &login, files);
        }
        let refused = database.login().without(capability::LOCAL_FILES);
        player.play("no files", &refused, |side| {
            side.query("CREATE TEMPORARY TABLE t (id int)");
            side.query(LOAD);
            side.query("SELECT 'after it'");
        });
    });
}

fn files(side: &mut Side) {
    side.query("CREATE TEMPORARY TABLE t (id int PRIMARY KEY, word varchar(3))");
    let long: Vec<u8> = (100..30_000_u32)
        .flat_map(|id| format!("{id}\tw\n").into_bytes())
        .collect();
    for (data, sql) in [
        (&b"1\ta\n2\tb\n"[..], LOAD),
        (b"", LOAD),
        (b"no line's end", LOAD),
        (b"x\ty\n", LOAD),
        (b"5\ttoo long\n", LOAD),
        (b"1\tduplicate\n6\tnew\n", LOAD),
        (b"7\n", "LOAD DATA LOCAL INFILE 'any' REPLACE INTO TABLE t"),
        (b"8\ta\n", "LOAD DATA LOCAL INFILE 'any' INTO TABLE nowhere"),
        (
            b"8\ta\n",
            "LOAD DATA LOCAL INFILE 'any' INTO TABLE t (nothing)",
        ),
        (
            b"9;a|",
            "LOAD DATA LOCAL INFILE 'any' INTO TABLE t FIELDS TERMINATED BY ';' LINES TERMINATED BY '|'",
        ),
        (
            b"10\ta\n",
            "SELECT 1; LOAD DATA LOCAL INFILE 'any' INTO TABLE t; SELECT COUNT(*) FROM t",
        ),
        (&long, LOAD),
    ] {
        side.client.infile = data.to_vec();
        side.query(sql);
        side.query("SHOW WARNINGS");
        side.query("SELECT COUNT(*), SUM(id), MAX(word) FROM t");
    }
    side.query("DROP TEMPORARY TABLE t");
}

/// The client has nothing to send, and ends the file in another number of packets than one.
#[test]
fn a_file_that_never_comes() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_no_infile");
        let player = Player::new(server);
        player.play("half a file", &database.login(), |side| {
            side.query("CREATE TEMPORARY TABLE t (id int)");
            let payload = side.client.query_payload(LOAD.as_bytes(), &[]);
            side.last_words(&payload);
        });
    });
}
