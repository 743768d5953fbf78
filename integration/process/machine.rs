//! A machine with other users: servers, clients and Headwater run only as the tests start them.

use crate::kit::machine::{Machine, said};
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::WireClient;

/// The next test runs this one again on such a machine.
#[test]
fn servers_and_their_clients_obey_nobody_elses_options() {
    on_each_server(|server| {
        let mut client = server.stock_client(server.addr());
        let output = client
            .args(["--execute", "SELECT @@port"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(told.contains(&server.addr().port().to_string()), "{told}");
        let mut root = WireClient::connect(server.addr());
        assert_eq!(root.column("SELECT @@system_time_zone"), ["UTC"]);
    });
}

#[test]
fn neither_do_they_on_a_machine_of_others() {
    let machine = Machine::of_others(&["mysqld_safe", "redis-server", "haproxy"]);
    for story in [
        "process::machine::servers_and_their_clients_obey_nobody_elses_options",
        "data::the_demo_shows_a_timeline_stays_until_interrupted_and_leaves_nothing",
    ] {
        let told = machine.tells(story);
        assert!(told.status.success(), "{story}: {}", said(&told));
    }
}
