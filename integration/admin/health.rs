//! Health: computed anew for each request.

use nix::sys::signal::Signal;

use super::http::Admin;
use crate::kit::certificates::Authority;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{Server, on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::{Login, WireClient};

#[test]
fn ready_is_whether_a_client_can_log_in() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let (proxy, admin) =
                Admin::beside(server.addr(), "[limits]\nsessions = 2\n", ROOT_SERVICE);
            admin.wait_for("/ready", 200, "ready\n");
            assert_eq!(admin.get("/live").body, "live\n");
            // All connection permits are taken.
            let mut first = proxy.enter(&Login::default());
            let second = proxy.enter(&Login::default());
            admin.wait_for(
                "/ready",
                503,
                "full: there are 2 sessions already: raise limits.sessions",
            );
            drop(second);
            admin.wait_for("/ready", 200, "ready\n");
            // On drain, a session in a transaction stays, and new connections are refused.
            first.ok("BEGIN");
            proxy.signal(Signal::SIGTERM);
            admin.wait_for("/ready", 503, "draining: ");
            assert_eq!(admin.get("/live").status, 200);
            first.ok("COMMIT");
            assert!(proxy.wait().status.success());

            // The server is unreachable, and no client has connected since.
            let (proxy, admin) = Admin::beside(server.addr(), "", ROOT_SERVICE);
            admin.wait_for("/ready", 200, "ready\n");
            server.stop();
            admin.wait_for("/ready", 503, "server_away: the server at 127.0.0.1:");
            assert_eq!(admin.get("/live").status, 200);
            admin.wait_for("/accelerating", 503, "server: ");
            let metrics = admin.get("/metrics").body;
            assert!(metrics.contains("\nheadwater_upstream_up 0\n"), "{metrics}");
            assert!(
                metrics.contains("\nheadwater_binlog_state{reason=\"server\"} 1\n"),
                "{metrics}"
            );
            assert!(
                metrics.contains("\nheadwater_binlog_state{reason=\"followed\"} 0\n"),
                "{metrics}"
            );
            proxy.terminate();
        },
    );
}

#[test]
fn accelerating_is_whether_memory_answers() {
    on_each_server(|server| {
        let database = Database::classic(server, "adminhealth");
        let name = database.name();
        for (settings, flags, reason) in [
            (
                "",
                &["--relay-only"][..],
                "switched_off: accelerate = false",
            ),
            (
                "",
                &[],
                "no_service_account: nothing is answered from memory: set service.user",
            ),
            (
                "[index]\nmemory_bytes = 0\n",
                ROOT_SERVICE,
                "no_memory: nothing is answered from memory: set index.memory_bytes above 0",
            ),
        ] {
            let (_proxy, admin) = Admin::beside(server.addr(), settings, flags);
            admin.wait_for("/accelerating", 503, reason);
            admin.wait_for("/ready", 200, "ready\n");
        }
        // A right is missing: the text contains the GRANT statement that adds it.
        let account = database.account("SELECT", "");
        let user = account.user.clone();
        let flags = ["--service-user", &user];
        let (_proxy, admin) = Admin::beside(server.addr(), "", &flags);
        admin.wait_for("/accelerating", 503, "right: the service account may not ");
        let mut root = server.connect();
        let_follow(server, &mut root, &user, name);
        admin.wait_for("/accelerating", 200, "accelerating\n");
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Grants an account the rights that memory and comparisons need.
#[track_caller]
pub(super) fn let_follow(server: &Server, root: &mut WireClient, user: &str, name: &str) {
    let (client, slave) = match server.is_mariadb() {
        true => ("BINLOG MONITOR, REPLICATION SLAVE", "PROCESS"),
        false => ("REPLICATION CLIENT, REPLICATION SLAVE", "PROCESS"),
    };
    root.ok(&format!("GRANT {client}, {slave} ON *.* TO {user}@'%'"));
    root.ok(&format!("GRANT EXECUTE, SELECT ON {name}.* TO {user}@'%'"));
    if server.is_mariadb() {
        root.ok(&format!("GRANT SELECT ON mysql.* TO {user}@'%'"));
    } else {
        root.ok(&format!("GRANT SHOW_ROUTINE ON *.* TO {user}@'%'"));
    }
}

/// While a server hangs, freshness cannot be proved.
#[test]
fn a_server_that_hangs_is_noticed_by_a_proof_and_not_by_a_timer() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            crate::kit::database::classic_on(server.addr(), "tl");
            let (proxy, admin) = Admin::beside(server.addr(), "", ROOT_SERVICE);
            admin.wait_for("/accelerating", 200, "accelerating\n");
            let pid = i32::try_from(server.pid().unwrap()).unwrap();
            let pid = nix::unistd::Pid::from_raw(pid);
            nix::sys::signal::kill(pid, Signal::SIGSTOP).unwrap();
            let hung = admin.get("/accelerating");
            let ready = admin.get("/ready");
            nix::sys::signal::kill(pid, Signal::SIGCONT).unwrap();
            assert_eq!(
                (hung.status, ready.status),
                (503, 503),
                "{hung:?} {ready:?}"
            );
            assert!(hung.body.starts_with("not_proved: "), "{hung:?}");
            assert!(ready.body.starts_with("server_away: "), "{ready:?}");
            admin.wait_for("/accelerating", 200, "accelerating\n");
            admin.wait_for("/ready", 200, "ready\n");
            proxy.terminate();
        },
    );
}

#[test]
fn where_nobody_asked_for_a_port_one_that_is_taken_is_no_matter() {
    on_each_server(|server| {
        let taken = std::net::TcpListener::bind(headwater_server::config::DEFAULT_ADMIN_ADDRESS);
        let proxy = Proxy::with_default_admin(&["--upstream", &server.addr().to_string()]);
        if taken.is_ok() {
            proxy.wait_for_log("no admin port: 127.0.0.1:9307 cannot be opened");
        }
        proxy.login(&Login::default());
        drop(taken);
    });
}

/// TLS settings would refuse every client: the report says so and invents no other cause.
#[test]
fn nobody_is_ready_for_clients_who_all_fail_by_tls() {
    let (authority, others) = (Authority::new(), Authority::new());
    let theirs = authority.sign("server");
    let with = authority.server_options(&theirs);
    let with: Vec<&str> = with.iter().map(String::as_str).collect();
    on_servers_of_its_own(
        |_| &with,
        |server| {
            let verifies = |ca: &Authority| {
                let ca = ca.path();
                format!(
                    "[upstream_tls]\nmode = 'verify-ca'\nca = '{}'\n",
                    ca.display()
                )
            };
            let (proxy, admin) = Admin::beside(server.addr(), &verifies(&others), ROOT_SERVICE);
            admin.wait_for("/ready", 503, "no_tls: TLS with the server at ");
            let up = "\nheadwater_upstream_up 1\n";
            assert!(admin.get("/metrics").body.contains(up));
            // The service account cannot proceed either, and its other connections wait for no lock.
            admin.wait_for("/accelerating", 503, "server: ");
            for _ in 0..200 {
                let said = admin.get("/accelerating").body;
                assert!(said.contains("upstream_tls.ca"), "{said}");
                assert!(!said.contains("lock"), "{said}");
            }
            let log = proxy.log();
            assert!(log.contains("upstream_tls.ca"), "{log}");
            assert!(!log.contains("lock"), "{log}");
            let (_proxy, admin) = Admin::beside(server.addr(), &verifies(&authority), ROOT_SERVICE);
            admin.wait_for("/ready", 200, "ready\n");
        },
    );
    let without = |mariadb| match mariadb {
        true => &["--skip-ssl"],
        false => &["--tls-version="],
    };
    on_servers_of_its_own(
        |mariadb| without(mariadb),
        |server| {
            for settings in [
                "[upstream_tls]\nmode = 'required'\n",
                "[tls]\nrequired = true\n",
            ] {
                let (_proxy, admin) = Admin::beside(server.addr(), settings, &[]);
                admin.wait_for("/ready", 503, "no_tls: the server has no TLS");
            }
        },
    );
}
