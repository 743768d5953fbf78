//! Settings: each mistake gives one line and an exit status, before a port opens.

use std::net::TcpStream;

use crate::kit::proxy::{Proxy, free_addr, headwater, settings_file};
use crate::kit::servers::mariadb;
use crate::kit::wire_client::Login;

/// Runs `serve` with a mistake in its settings; returns what it wrote to its standard error.
#[track_caller]
fn refused(flags: &[&str], environment: &[(&str, &str)]) -> String {
    let addr = free_addr();
    let output = headwater(environment)
        .args(["serve", "--listen", &addr.to_string()])
        .args(flags)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"");
    assert!(TcpStream::connect(addr).is_err(), "a port is open");
    String::from_utf8(output.stderr).unwrap()
}

/// Same as [`refused`], with one line that names the setting.
#[track_caller]
fn refused_by_name(flags: &[&str], environment: &[(&str, &str)], name: &str) {
    let said = refused(flags, environment);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("headwater: ") && said.contains(name),
        "{said}"
    );
}

/// A secret may be in its own file, and appears in no message.
#[test]
fn secrets_may_stand_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (missing, lines) = (
        file("x", "")[..].replace("/x", "/missing"),
        file("lines", "a\nb\n"),
    );
    for (flag, variable) in [
        ("--service-password-file", "HEADWATER_SERVICE_PASSWORD_FILE"),
        ("--admin-token-file", "HEADWATER_ADMIN_TOKEN_FILE"),
    ] {
        for path in [&missing, &lines] {
            refused_by_name(&["--service-user", "u", flag, path], &[], flag);
            refused_by_name(&["--service-user", "u"], &[(variable, path)], flag);
        }
    }
    let short = file("short", "s3cr3t\n");
    let said = refused(&["--admin-token-file", &short], &[]);
    assert!(
        said.contains("admin.token has to be 16") && !said.contains("s3cr3t"),
        "{said}"
    );
    // An empty file means no password, and needs no account: the package's unit names such a file before there is an account.
    let empty = file("empty", "\n");
    let variable = ("HEADWATER_SERVICE_PASSWORD_FILE", empty.as_str());
    Proxy::start_with(&["--upstream", &mariadb().addr().to_string()], &[variable]);
    // The server requires the password that the file contains.
    let server = mariadb();
    let mut root = server.connect();
    root.ok("DROP USER IF EXISTS hw_secret@'%'");
    root.ok("CREATE USER hw_secret@'%' IDENTIFIED BY 'in a file'");
    let upstream = server.addr().to_string();
    for (text, refused) in [
        ("in a file\n", false),
        ("in a file\r\n", false),
        ("in a  file", true),
    ] {
        let path = file("password", text);
        let flags = ["--upstream", &upstream, "--service-user", "hw_secret"];
        let proxy = Proxy::start_with(&flags, &[("HEADWATER_SERVICE_PASSWORD_FILE", &path)]);
        // The accepted account lacks a right.
        proxy.wait_for_log(if refused {
            "service.user"
        } else {
            "the service account may not"
        });
    }
    root.ok("DROP USER hw_secret@'%'");
}

#[test]
fn mistakes_in_the_file_are_named() {
    for (text, name) in [
        ("upstreem = \"127.0.0.1:3306\"", "upstreem"),
        ("[limits]\nsesions = 10", "limits.sesions"),
        ("[limits]\nsessions = \"ten\"", "limits.sessions"),
        ("[limits]\nsessions = 0", "limits.sessions"),
        ("accelerate = 1", "accelerate"),
        ("[log]\nformat = \"xml\"", "log.format"),
        ("[service]\npassword = \"x\"", "service"),
        ("upstream = \"nowhere\"", "upstream"),
        ("[[definition]]\nn = 5000", "n = 5000"),
        (
            "[[definition]]\nname = \"x\"\n[definition.message]\ntable = \"\"",
            "message.table",
        ),
        ("[[definition]]\nid_type = \"float\"", "definition.id_type"),
    ] {
        let (_folder, path) = settings_file(text);
        refused_by_name(&["--config", &path], &[], name);
        refused_by_name(&[], &[("HEADWATER_CONFIG", &path)], name);
    }
    refused_by_name(&["--config", "no/such/file.toml"], &[], "no/such/file.toml");
}

#[test]
fn mistakes_in_flags_and_environment_are_named() {
    refused_by_name(&["--upstream", "127.0.0.1"], &[], "upstream");
    refused_by_name(&["--upstream", "127.0.0.1:99999"], &[], "upstream");
    refused_by_name(&[], &[("HEADWATER_UPSTREAM", "nonsense")], "upstream");
    refused_by_name(&["--service-password", "x"], &[], "--service-user");
    refused_by_name(
        &[],
        &[("HEADWATER_SERVICE_PASSWORD", "")],
        "HEADWATER_SERVICE_USER",
    );
    // The argument parser reports, in its own form, what is not a value at all.
    for (flags, environment, name) in [
        (&["--log-level", "loud"][..], &[][..], "--log-level"),
        (&[], &[("HEADWATER_LOG_FORMAT", "xml")][..], "--log-format"),
        (&[], &[("HEADWATER_RELAY_ONLY", "perhaps")], "--relay-only"),
        (&["--lisen", "x"], &[], "--lisen"),
    ] {
        let said = refused(flags, environment);
        assert!(said.lines().next().unwrap().contains(name), "{said}");
    }
}

#[test]
fn a_variable_that_is_no_setting_is_named_with_the_nearest_that_is() {
    refused_by_name(
        &[],
        &[("HEADWATER_UPSTREEM", "127.0.0.1:1")],
        "HEADWATER_UPSTREEM",
    );
    refused_by_name(
        &[],
        &[("HEADWATER_UPSTREEM", "127.0.0.1:1")],
        "called HEADWATER_UPSTREAM;",
    );
    let here = mariadb().addr().to_string();
    let others = [
        ("HEADWATER_UPSTREAM", here.as_str()),
        ("HEADWATER_FEED_TRANSACTION_ROWS", "7"),
        // Kubernetes sets this variable for a service named headwater.
        ("HEADWATER_SERVICE_PORT", "3307"),
    ];
    let proxy = Proxy::start_with(&[], &others);
    proxy.wait_for_log("HEADWATER_FEED_TRANSACTION_ROWS is no setting");
    assert!(
        !proxy.log().contains("HEADWATER_SERVICE_PORT"),
        "{}",
        proxy.log()
    );
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let server = mariadb();
    let here = server.addr().to_string();
    let nowhere = "upstream = \"127.0.0.1:1\"";
    let (_folder, path) = settings_file(nowhere);
    let reaches = |flags: &[&str], environment: &[(&str, &str)]| {
        let proxy = Proxy::start_with(flags, environment);
        let login = crate::kit::wire_client::WireClient::try_login(proxy.addr(), &Login::default());
        login.unwrap().is_ok()
    };
    assert!(!reaches(&["--config", &path], &[]));
    assert!(reaches(
        &["--config", &path],
        &[("HEADWATER_UPSTREAM", &here)]
    ));
    assert!(reaches(
        &["--upstream", &here],
        &[("HEADWATER_UPSTREAM", "127.0.0.1:1")]
    ));
    assert!(!reaches(
        &["--upstream", "127.0.0.1:1"],
        &[("HEADWATER_UPSTREAM", &here)]
    ));
    assert!(reaches(
        &["--upstream", &here],
        &[("HEADWATER_RELAY_ONLY", "1")]
    ));
}
