#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use headwater_proxy::feeds::FeedDiscoveryMode;
use headwater_session::compression_frames::{ClientCompression, ServerCompression};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../headwater.example.toml");

fn load(text: &str) -> Result<ServeSettings, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headwater.toml");
    std::fs::write(&path, text).unwrap();
    ServeSettings::load(&ServeFlags {
        config: Some(path),
        ..ServeFlags::default()
    })
}

fn example() -> String {
    std::fs::read_to_string(EXAMPLE).unwrap()
}

#[test]
fn the_example_says_what_the_defaults_are() {
    let example = load(&example()).unwrap();
    let defaults = ServeSettings::load(&ServeFlags::default()).unwrap();
    // The example names the classic timeline, which is the default.
    assert!(!example.classic_by_default && defaults.classic_by_default);
    let settings = ServeSettings {
        classic_by_default: true,
        ..example
    };
    assert_eq!(format!("{settings:?}"), format!("{defaults:?}"));
}

#[test]
fn a_timeline_longer_than_what_may_be_held_is_refused_by_name() {
    let text = "[limits]\npending_ids = 399\n";
    let error = load(text).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("limits.pending_ids = 399"), "{error}");
    load("[limits]\npending_ids = 400\n").unwrap();
}

#[test]
fn rows_are_kept_of_tables_of_feeds_in_memory_that_is_of_use() {
    let feed = "[service]\nuser = \"headwater\"\n[[feed]]\nname = \"home\"\n[feed.message]\ntable = \"statuses\"\nid = \"id\"\nauthor = \"profile_id\"\n";
    for (rows, mistake) in [
        ("memory_bytes = 256", Some("rows.memory_bytes = 256")),
        ("memory_bytes = 0", None),
        ("tables = [\"statuses\", \"app.statuses\"]", None),
        ("tables = [\"app.status\"]", Some("\"app.status\"")),
    ] {
        let error = load(&format!("{feed}[rows]\n{rows}\n"));
        let error = error.map(|_| ()).map_err(|error| error.to_string());
        match mistake {
            None => error.unwrap(),
            Some(mistake) => assert!(error.unwrap_err().contains(mistake), "{rows}"),
        }
    }
    let rows = RowsSection {
        tables: vec!["statuses".into(), "app.posts".into()],
        ..RowsSection::default()
    };
    assert!(rows.caches("any", "statuses") && rows.caches("app", "posts"));
    assert!(!rows.caches("other", "posts") && !rows.caches("app", "notes"));
    assert!(RowsSection::default().caches("any", "notes"));
}

#[test]
fn a_few_calls_are_compared_where_that_can_be_and_nothing_else_is_said() {
    let service = "[service]\nuser = \"headwater\"\n";
    for (text, rate, unasked) in [
        (service.to_owned(), 0.0001, true),
        (String::new(), 0.0, true),
        (format!("{service}[index]\nmemory_bytes = 0\n"), 0.0, true),
        (format!("accelerate = false\n{service}"), 0.0, true),
        (format!("{service}[shadow]\nrate = 0\n"), 0.0, false),
        (format!("{service}[shadow]\nrate = 0.5\n"), 0.5, false),
    ] {
        let settings = load(&text).unwrap();
        assert_eq!(
            settings.shadow,
            ShadowSampling {
                rate,
                by_default: unasked
            },
            "{text}"
        );
    }
    // Settings that cannot be satisfied are errors.
    let error = load("[shadow]\nrate = 0.0001\n").map(|_| ());
    assert!(error.unwrap_err().to_string().contains("service account"));
}

#[test]
fn legs_that_differ_are_set_by_name_and_not_for_logins_that_are_not_read() {
    let settings =
        load("[compression]\nclients = \"offer\"\nserver = \"where-offered\"\n").unwrap();
    assert_eq!(settings.compression.clients, ClientCompression::Offer);
    assert_eq!(settings.compression.server, ServerCompression::WhereOffered);
    let passing = "[tls]\npassthrough = true\n[compression]\n";
    load(&format!("{passing}clients = \"mirror\"\n")).unwrap();
    for setting in ["clients = \"never\"", "server = \"where-offered\""] {
        let error = load(&format!("{passing}{setting}\n"));
        let error = error.map(|_| ()).unwrap_err().to_string();
        let named = setting.split(' ').next().unwrap();
        let named = format!("compression.{named} ");
        assert!(
            error.contains(&named) && error.contains("tls.passthrough"),
            "{error}"
        );
    }
}

#[test]
fn who_logs_in_is_not_hidden_in_front_of_a_socket() {
    let passing = "[tls]\npassthrough = true\n";
    load(&format!("upstream = \"127.0.0.1:3306\"\n{passing}")).unwrap();
    let error = load(&format!("upstream = \"/run/mysqld.sock\"\n{passing}"));
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("tls.passthrough") && error.contains("upstream = HOST:PORT"),
        "{error}"
    );
}

#[test]
fn a_setting_that_has_become_a_constant_is_named_with_its_value() {
    for (text, line, named) in [
        (
            "[limits]\nsessions = 3\nin_flight = 7\n",
            3,
            "limits.in_flight: it is 64, and no setting any more: remove the line",
        ),
        (
            "listen_backlog = 7\n",
            1,
            "listen_backlog: it is as long as the system allows",
        ),
    ] {
        let error = load(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        assert!(
            error.contains(&format!(":{line}")) || error.contains(&format!("line {line}")),
            "{error}"
        );
    }
}

#[test]
fn the_example_has_every_key() {
    let table: toml::Table = example().parse().unwrap();
    let limits = table.get("limits").and_then(toml::Value::as_table).unwrap();
    let fields = format!("{:?}", ProcessLimits::default())
        .matches(": ")
        .count();
    assert_eq!(limits.len(), fields);
    let classic = toml::Table::try_from(TimelineDefinition::classic()).unwrap();
    let definition = table
        .get("definition")
        .and_then(|list| list.get(0))
        .unwrap();
    for (key, value) in &classic {
        assert_eq!(definition.get(key), Some(value), "{key}");
    }
}

#[test]
fn the_keys_that_the_example_leaves_out_exist() {
    let text: String = example()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') && !key.is_empty() => format!("{key}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    // A CA is of use where the server is verified.
    let text = text.replace("mode = \"preferred\"", "mode = \"verify-ca\"");
    // Further ports are those of several servers.
    let text = text.replace(
        "upstream = \"127.0.0.1:3306\"",
        "upstream = [\"a:1\", \"b:2\"]",
    );
    let settings = load(&text).unwrap();
    assert_eq!(settings.service.unwrap().user, "headwater");
    let database = settings.definitions.first().unwrap().database.clone();
    assert_eq!(database.as_deref(), Some("social"));
}

#[test]
fn a_mistake_in_the_file_is_one_line_with_the_setting_and_without_its_value() {
    for (text, line, setting) in [
        ("lisen = \"x\"", 1, "lisen"),
        ("\n[limits]\nsession = 3", 3, "limits.session"),
        ("[limits]\nsessions = \"many\"", 2, "limits.sessions"),
        ("[log]\nlevel = \"loud\"", 2, "log.level"),
        ("[compression]\nserver = \"offer\"", 2, "compression.server"),
        ("[compression]\nclient = \"never\"", 2, "compression.client"),
        ("[service]\npassword = \"s3cret\"", 1, "service"),
        (
            "[service]\nuser = \"a\"\npassword = 12345",
            3,
            "service.password",
        ),
        (
            "[[definition]]\n[definition.message]\nids = \"id\"",
            3,
            "definition.message.ids",
        ),
        ("listen = ", 1, "listen"),
    ] {
        let error = load(text).unwrap_err().to_string();
        let place = format!(", line {line}, {setting}: ");
        assert!(error.contains(&place), "{error} lacks {place}");
        assert!(!error.contains('\n'), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_told_what_it_should_be_in_plain_words() {
    for (text, plain) in [
        (
            "[limits]\nsessions = \"ten\"",
            "expected a whole number from 0",
        ),
        ("[limits]\nsessions = -1", "expected a whole number from 0"),
        (
            "[privileges]\nttl_s = 0.5",
            "expected a whole number from 0",
        ),
        (
            "[[definition]]\nn = \"x\"",
            "expected a whole number from 0",
        ),
        ("[shadow]\nrate = \"all\"", "expected a number"),
        ("accelerate = 1", "expected true or false"),
        ("socket = 1", "expected a path in quotes"),
        ("listen = 3307", "expected text in quotes"),
        (
            "[log]\nlevel = true",
            "expected one of its words, in quotes (headwater.example.toml lists them)",
        ),
        (
            "[feeds]\nauto = 1",
            "expected \"suggest\", \"on\" (or true) or \"off\" (or false)",
        ),
        (
            "[feeds]\nauto = \"always\"",
            "expected \"suggest\", \"on\" (or true) or \"off\" (or false)",
        ),
        (
            "proxy_protocol = { trusted = 1 }",
            "expected a list in brackets",
        ),
        ("limits = 1", "expected a section"),
    ] {
        let error = load(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with(plain), "{error} lacks {plain}");
    }
}

#[test]
fn the_section_that_was_called_feed_is_told_its_name() {
    let settings = load("[binlog]\nevent_bytes = 1048576\n").unwrap();
    assert_eq!(settings.binlog.event_bytes, 1_048_576);
    for (text, line) in [
        ("[feed]\nevent_bytes = 1048576\n", 1),
        ("[limits]\nsessions = 3\n\n[feed]\n", 4),
        ("listen = \"127.0.0.1:1\"\nfeed.transaction_rows = 3\n", 2),
    ] {
        let error = load(text).map(|_| ()).unwrap_err().to_string();
        let place = format!(", line {line}, feed");
        for part in [place.as_str(), "write [binlog] in place of [feed]"] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    }
}

#[test]
fn a_value_that_cannot_work_is_named() {
    for (text, named) in [
        ("listen = \"here\"", "listen"),
        ("upstream = \"127.0.0.1\"", "upstream"),
        ("upstream = \":3306\"", "upstream"),
        ("upstream = []", "upstream"),
        ("upstream = [\"a:1\", \"b\"]", "upstream"),
        ("upstream = [\"a:1\", \"A:1\"]", "twice"),
        (
            "upstream = [\"a:1\", \"/run/mysqld.sock\"]",
            "a socket goes alone",
        ),
        ("upstream = [\"a:1\", \"b:2\"]", "service.user"),
        ("upstream = 3306", "upstream"),
        ("[failover]\ncheck_ms = 0", "failover.check_ms"),
        ("[failover]\npatience_ms = 100000", "failover.patience_ms"),
        (
            "[[listener]]\nlisten = \"127.0.0.1:3307\"",
            "listener.listen",
        ),
        (
            "[[listener]]\nlisten = \"a:9\"\nrole = \"replica\"",
            "upstream",
        ),
        (
            "[[listener]]\nlisten = \"a:9\"\nrole = \"second\"",
            "listener.role",
        ),
        ("[[listener]]\nrole = \"any\"", "listen"),
        (
            "[proxy_protocol]\ntrusted = ['10.0.0.0/33']",
            "proxy_protocol.trusted",
        ),
        ("[proxy_protocol]\nsend = 'v3'", "proxy_protocol.send"),
        ("listen = \"/run/x\"", "listen"),
        ("[limits]\nsessions = 0", "limits.sessions"),
        ("[limits]\nconnect_ms = 0", "limits.connect_ms"),
        ("[[definition]]\nn = 0", "n = 0"),
    ] {
        let error = load(text).unwrap_err().to_string();
        assert!(error.contains(named), "{error} lacks {named}");
    }
}

#[test]
fn tls_that_contradicts_itself_is_named() {
    let certificate = "cert = 'c'\nkey = 'k'\n";
    for (text, named) in [
        ("[tls]\ncert = 'c'", "tls.cert and tls.key"),
        (
            "[tls]\nself_signed = true\ncert = 'c'\nkey = 'k'",
            "tls.self_signed",
        ),
        (
            "[tls]\nself_signed = true\npassthrough = true",
            "tls.passthrough",
        ),
        ("[tls]\nown = false\nrequired = true", "tls.required"),
        ("[tls]\nown = false\nclient_ca = 'a'", "tls.client_ca"),
        (
            "[tls]\nrequired = true\n[upstream_tls]\nmirror = false",
            "tls.required",
        ),
        (
            "[tls]\nself_signed = true\n[upstream_tls]\nmode = 'disabled'",
            "upstream_tls.mirror",
        ),
        (
            "[tls]\nown = false\n[upstream_tls]\nmode = 'required'",
            "upstream_tls.mirror",
        ),
        (
            "[upstream_tls]\nmode = 'verify-ca'\nmirror = false",
            "upstream_tls.ca",
        ),
        ("[upstream_tls]\nca = 'a'", "upstream_tls.ca"),
        ("[upstream_tls]\ncert = 'a'", "upstream_tls.key"),
        ("[upstream_tls]\nmode = 'verify'", "upstream_tls.mode"),
        ("redirect_url = 'follow'", "redirect_url"),
    ] {
        let error = load(text).unwrap_err().to_string();
        assert!(error.contains(named), "{error} lacks {named}");
    }
    for text in [
        format!("[tls]\n{certificate}required = true\nclient_ca = 'a'"),
        format!("[tls]\n{certificate}[upstream_tls]\nmode = 'verify-ca'\nca = 'a'"),
        "[upstream_tls]\nmode = 'required'\nmirror = false".to_owned(),
        "[tls]\nrequired = true\nclient_ca = 'a'\n[upstream_tls]\nmode = 'required'".to_owned(),
        "[tls]\npassthrough = true\n[upstream_tls]\nmode = 'required'".to_owned(),
    ] {
        load(&text).unwrap();
    }
}

#[test]
fn flags_go_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headwater.toml");
    let text = "upstream = \"a:1\"\nlisten = \"b:2\"\n[service]\nuser = \"u\"\npassword = \"p\"";
    std::fs::write(&path, text).unwrap();
    let settings = ServeSettings::load(&ServeFlags {
        config: Some(path),
        upstream: vec!["c:3".into()],
        service: ServiceFlags {
            service_user: Some("v".into()),
            service_password: None,
            ..ServiceFlags::default()
        },
        ..ServeFlags::default()
    })
    .unwrap();
    assert_eq!(
        (settings.upstream.first(), settings.listen.as_str()),
        ("c:3", "b:2")
    );
    let service = settings.service.unwrap();
    assert_eq!(
        (service.user.as_str(), service.password.as_str()),
        ("v", "p")
    );
}

#[test]
fn a_password_alone_is_a_mistake() {
    let error = ServeSettings::load(&ServeFlags {
        service: ServiceFlags {
            service_user: None,
            service_password: Some(String::new()),
            ..ServiceFlags::default()
        },
        ..ServeFlags::default()
    });
    assert!(matches!(error, Err(ConfigError::PasswordWithoutUser)));
}

#[test]
fn one_server_or_several_are_named_in_each_way() {
    let account = "[service]\nuser = \"u\"\n";
    let one = load("upstream = \"a:1\"").unwrap();
    assert_eq!(load("upstream = [\"a:1\"]").unwrap().upstream, one.upstream);
    let several = load(&format!("upstream = [\"a:1\", \"b:2\"]\n{account}")).unwrap();
    assert_eq!(several.upstream.all(), ["a:1", "b:2"]);
    let told = several.setting_values();
    let told = told.iter().find(|(name, _)| name == "upstream").unwrap();
    assert_eq!(told.1, "[\"a:1\",\"b:2\"]");
    let port = "[[listener]]\nlisten = \"c:3\"\nrole = \"any\"\n";
    let settings = load(&format!("upstream = [\"a:1\", \"b:2\"]\n{port}{account}")).unwrap();
    let told = settings.setting_values();
    assert!(told.contains(&("listener.c:3.role".to_owned(), "any".to_owned())));
    let many: Vec<String> = (0..17).map(|at| format!("\"a:{at}\"")).collect();
    let error = load(&format!("upstream = [{}]\n{account}", many.join(",")));
    assert!(error.unwrap_err().to_string().contains("17 servers"));
}

#[test]
fn sizes_have_units_wherever_bytes_are_set() {
    let text = "[memory]\nlimit = \"1GiB\"\n[index]\nmemory_bytes = \"64 MiB\"\n[rows]\nmemory_bytes = \"32M\"\n\
                [binlog]\nevent_bytes = \"2MiB\"\n[limits]\nstatement_bytes = \"8k\"\ntail_bytes = 4096";
    let settings = load(text).unwrap();
    assert_eq!(settings.memory.limit, 1 << 30);
    assert_eq!(settings.requested_limits.memory_bytes, 64 << 20);
    assert_eq!(settings.requested_limits.rows_bytes, 32 << 20);
    assert_eq!(settings.requested_limits.event_bytes, 2 << 20);
    assert_eq!(settings.limits.statement_bytes, 8 << 10);
    assert_eq!(settings.limits.tail_bytes, 4096);
    for wrong in ["\"1.5GiB\"", "-1", "true", "1.5"] {
        let error = load(&format!("[memory]\nlimit = {wrong}"));
        let error = error.map(|_| ()).unwrap_err().to_string();
        for part in ["memory.limit", "\"1GiB\""] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    }
}

#[test]
fn whether_feeds_are_served_unasked_may_be_answered_by_yes_and_no() {
    let account = "[service]\nuser = \"u\"\n";
    for (written, auto) in [
        ("true", FeedDiscoveryMode::On),
        ("\"on\"", FeedDiscoveryMode::On),
        ("false", FeedDiscoveryMode::Off),
        ("\"off\"", FeedDiscoveryMode::Off),
        ("\"suggest\"", FeedDiscoveryMode::Suggest),
    ] {
        let settings = load(&format!("{account}[feeds]\nauto = {written}"));
        assert_eq!(settings.unwrap().narrow.auto, auto, "{written}");
    }
}

#[test]
fn a_feed_has_a_name() {
    for name in ["", "  ", "a\\nb"] {
        let text = format!(
            "[service]\nuser = \"u\"\n[[feed]]\nname = \"{name}\"\n[feed.message]\ntable = \"m\"\nauthor = \"a\"\norder = [\"id\"]"
        );
        let error = load(&text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("give it a printable one"), "{error}");
    }
}
