//! Connections other than by TCP port: Unix sockets, and the PROXY protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use crate::kit::database::classic_on;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// What the product's own client prints for these statements.
#[track_caller]
fn printed(mut client: Command, statements: &str) -> String {
    let output = client.args(["-e", statements]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn local(server: &PrivateServer, path: &str) -> Command {
    let mut client = server.client();
    client.args(["--user=root", "--protocol=socket"]);
    client.arg(format!("--socket={path}"));
    client
}

fn prepare(server: &PrivateServer) {
    let mut root = WireClient::login(server.addr(), &classic_on(server.addr(), "tl"));
    root.ok("INSERT INTO follower (user_id, follower_id) VALUES (1, 2)");
    root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten')");
}

#[test]
fn sockets_of_the_machine_lead_in_and_out() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            prepare(server);
            let mut root = WireClient::connect(server.addr());
            root.ok("CREATE USER local@localhost IDENTIFIED BY 'geheim'");
            root.ok("GRANT ALL ON *.* TO local@localhost");
            root.ok("CREATE USER guest@localhost");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("headwater.sock");
            let (path, upstream) = (path.to_str().unwrap(), server.socket());
            let flags = ["--socket", path, "--upstream", upstream.to_str().unwrap()];
            let proxy = Proxy::start_with(&[&flags, ROOT_SERVICE].concat(), &[]);
            proxy.wait_for_log("in database tl: accelerated");
            assert!(proxy.log().contains(path), "{}", proxy.log());
            let script = "USE tl; CALL fetch_timeline_ids(1); SELECT * FROM fetch_timeline_tt; SELECT USER()";
            let directly = printed(local(server, upstream.to_str().unwrap()), script);
            assert_eq!(printed(local(server, path), script), directly);
            assert!(directly.contains("10"), "{directly}");
            // Each leg is secure, so the password may be sent, whatever the plugin.
            let mut client = local(server, path);
            client.args(["--user=local", "--password=geheim"]);
            assert!(printed(client, "SELECT CURRENT_USER()").contains("local@localhost"));
            assert!(proxy.counts().of("calls_owned") > 0, "{}", proxy.log());
            proxy.login(&Login::default().user("guest")).ok("DO 1");
            proxy.terminate();
            assert!(!std::path::Path::new(path).exists());
        },
    );
}

/// The server asks the operating system for the peer at its socket: that is Headwater, whoever its client is.
#[test]
fn who_comes_by_network_is_not_taken_for_the_user_that_headwater_runs_as() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let user = Command::new("id").arg("-un").output().unwrap().stdout;
            let user = String::from_utf8(user).unwrap().trim().to_owned();
            let mut root = WireClient::connect(server.addr());
            root.ok("CREATE USER guest@localhost");
            let plugin = if root.greeting.is_mariadb() {
                "VIA unix_socket"
            } else {
                root.ok("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'");
                "WITH auth_socket"
            };
            root.ok(&format!("DROP USER IF EXISTS '{user}'@localhost"));
            root.ok(&format!(
                "CREATE USER '{user}'@localhost IDENTIFIED {plugin}"
            ));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("headwater.sock");
            let (path, upstream) = (path.to_str().unwrap(), server.socket());
            let upstream = upstream.to_str().unwrap();
            let own = |path: &str| {
                let mut client = local(server, path);
                client.arg(format!("--user={user}"));
                printed(client, "SELECT CURRENT_USER()")
            };
            let directly = own(upstream);
            assert!(directly.contains(&format!("{user}@localhost")));

            let proxy = Proxy::start_with(&["--socket", path, "--upstream", upstream], &[]);
            proxy.wait_for_log(&format!("takes all clients for the user {user}"));
            assert_eq!(own(path), directly);

            // Servers omit the quotes around a name.
            for name in [user.clone(), format!("'{user}'")] {
                let login = Login::default().user(&name);
                let refused = WireClient::try_login(proxy.addr(), &login).unwrap();
                let refused = refused.unwrap_err();
                assert_eq!(refused.code, 1698, "{refused:?}");
                assert!(refused.message.contains("upstream"), "{refused:?}");
            }

            let change = |plugin: &str| {
                let change = [&[0x11], user.as_bytes(), b"\0\0\0\x2d\0", plugin.as_bytes()];
                [&change.concat()[..], b"\0"].concat()
            };
            let mut guest = proxy.login(&Login::default().user("guest"));
            guest.ok("DO 1");
            guest.send(&change(&guest.greeting.plugin.clone())).unwrap();
            let told = guest.read_packet().unwrap();
            assert_eq!(
                told.payload.get(..3),
                Some(&b"\xff\xa2\x06"[..]),
                "{told:?}"
            );

            // Another account's login, and the change of user after it in the same write.
            let plugin = guest.greeting.plugin.clone();
            let login = [
                &0x0008_8201_u32.to_le_bytes()[..],
                &[0, 0, 0, 1, 45],
                &[0; 23],
                b"guest\0\0",
                plugin.as_bytes(),
                b"\0",
            ];
            let framed = |seq: u8, payload: &[u8]| {
                let length = u8::try_from(payload.len()).unwrap();
                [&[length, 0, 0, seq], payload].concat()
            };
            let both = [framed(1, &login.concat()), framed(0, &change(&plugin))];
            let mut stream = TcpStream::connect(proxy.addr()).unwrap();
            stream.write_all(&both.concat()).unwrap();
            let mut told = Vec::new();
            stream.read_to_end(&mut told).unwrap();
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(told.contains("upstream is a socket"), "{told}");
        },
    );
}

#[test]
fn a_socket_that_nobody_listens_on_is_taken_and_another_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let path = path.to_str().unwrap();
    let flags = ["--socket", path, "--upstream", "127.0.0.1:1"];
    let proxy = Proxy::start_with(&flags, &[]);
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    for taken in [path, file.to_str().unwrap(), "/nowhere/at/all.sock"] {
        let output = headwater(&[])
            .args(["serve", "--listen", "127.0.0.1:0", "--socket", taken])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(said.contains(taken) && said.contains("--socket"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    drop(proxy);
}

/// A binary header for a client at 192.0.2.7.
fn binary() -> Vec<u8> {
    let addresses = [192, 0, 2, 7, 127, 0, 0, 1, 0x0f, 0xa0, 0x0c, 0xeb];
    [V2, b"\x21\x11\0\x0c", &addresses].concat()
}

#[test]
fn who_is_trusted_says_whom_it_speaks_for_and_the_server_is_told() {
    on_servers_of_its_own(
        |mariadb| {
            if mariadb {
                &["--proxy-protocol-networks=*"]
            } else {
                &[]
            }
        },
        |server| {
            let mariadb = server.kind() == headwater_lab::private_server::ServerKind::Mariadb;
            WireClient::connect(server.addr()).ok("CREATE USER far@'%'");
            let text = b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 3307\r\n".to_vec();
            for send in ["none", "v1", "v2"] {
                if send != "none" && !mariadb {
                    // MySQL does not support the header.
                    continue;
                }
                let settings =
                    format!("[proxy_protocol]\ntrusted = ['127.0.0.0/8']\nsend = '{send}'\n");
                let proxy = Proxy::configured(server.addr(), &settings, &[]);
                let unknown = b"PROXY UNKNOWN\r\n".to_vec();
                let local = [V2, b"\x20\0\0\0"].concat();
                for (header, told) in [
                    (text.clone(), "192.0.2.7"),
                    (binary(), "192.0.2.7"),
                    (unknown, "127.0.0.1"),
                    (local, "127.0.0.1"),
                ] {
                    let login = Login::default().user("far").speaking_for(&header);
                    let mut client = proxy.login(&login);
                    let told = if send == "none" { "127.0.0.1" } else { told };
                    let user = client.column("SELECT USER()");
                    let host = user[0].rsplit_once('@').unwrap().1;
                    assert!(
                        host == told || told == "127.0.0.1" && host == "localhost",
                        "{user:?}"
                    );
                }
            }
        },
    );
}

#[test]
fn who_is_trusted_and_says_nothing_of_the_kind_is_let_go_and_nobody_else_is_asked() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let settings =
                "[proxy_protocol]\ntrusted = ['127.0.0.1']\n[limits]\nconnect_ms = 700\n";
            let proxy = Proxy::configured(server.addr(), settings, &[]);
            let long = [&b"PROXY "[..], &[b'1'; 9_000]].concat();
            let endless = [V2, b"\x21\x11\xff\xff"].concat();
            for wrong in [
                &b""[..],
                b"GET / HTTP/1.1\r\n\r\n",
                b"\x21\0\0\x01",
                &long,
                &endless,
            ] {
                let begun = Instant::now();
                let mut socket = TcpStream::connect(proxy.addr()).unwrap();
                std::io::Write::write_all(&mut socket, wrong).unwrap();
                let mut heard = Vec::new();
                let _ = socket.read_to_end(&mut heard);
                assert_eq!(heard, b"");
                assert!(begun.elapsed() < Duration::from_secs(5));
            }
            assert!(
                proxy.log().contains("proxy_protocol.trusted"),
                "{}",
                proxy.log()
            );
            let login = Login::default().speaking_for(&binary());
            proxy.login(&login).ok("DO 1");

            // Headwater does not read the header of an untrusted peer: the server judges those bytes.
            let others = "[proxy_protocol]\ntrusted = ['192.0.2.0/24', '2001:db8::/32']\n";
            let proxy = Proxy::configured(server.addr(), others, &[]);
            proxy.login(&Login::default()).ok("DO 1");
            assert!(
                WireClient::try_login(proxy.addr(), &login).map_or(true, |login| login.is_err())
            );
        },
    );
}
