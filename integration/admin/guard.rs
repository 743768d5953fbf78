//! Access control of the admin port.

use super::http::Admin;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_server;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn without_a_token_nobody_gets_in_by_another_name() {
    on_each_server(|server| {
        let (_proxy, admin) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        for path in ["/", "/live", "/ready", "/accelerating", "/metrics"] {
            let evil = admin.get_with(path, "Host: rebound.example:9307\r\n");
            assert_eq!(evil.status, 421, "{path}: {evil:?}");
            assert!(!evil.body.contains("headwater_"), "{evil:?}");
            let two = admin.get_with(path, "Host: localhost\r\nHost: rebound.example\r\n");
            assert!(matches!(two.status, 400 | 421), "{path}: {two:?}");
        }
        assert_eq!(
            admin
                .get_with("/metrics", "Host: 127.0.0.1:9307\r\n")
                .status,
            200
        );
        assert_eq!(
            admin.send(b"GET /live HTTP/1.0\r\n\r\n").unwrap().status,
            200
        );
        let missing = admin.get("/metric");
        assert_eq!(missing.status, 404);
        assert!(missing.body.contains("/metrics"), "{missing:?}");
        let posted = admin
            .send(b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        assert_eq!(posted.status, 405);
        assert!(posted.head.contains("allow: GET, HEAD"), "{posted:?}");
        let head = admin
            .send(b"HEAD /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        assert_eq!((head.status, &*head.body), (200, ""));
        assert!(
            head.head.contains("x-content-type-options: nosniff"),
            "{head:?}"
        );
    });
}

#[test]
fn with_a_token_others_learn_no_more_than_whether_it_is_well() {
    on_each_server(|server| {
        let settings = format!("[admin]\ntoken = \"{TOKEN}\"\n");
        let (proxy, admin) = Admin::beside(server.addr(), &settings, &[]);
        let shown = format!("Authorization: Bearer {TOKEN}\r\n");
        for path in [
            "/metrics",
            "/nowhere",
            "/api",
            "/api/health",
            "/api/try?reader=1",
        ] {
            let other = admin.get(path);
            assert_eq!(other.status, 401, "{path}: {other:?}");
            assert!(other.head.contains("www-authenticate: Bearer"), "{other:?}");
            let almost = admin.get_with(path, &shown.replace("ef\r", "eg\r"));
            assert_eq!(almost.status, 401, "{path}: {almost:?}");
        }
        // The page contains no private data.
        let page = admin.get("/");
        assert_eq!(page.status, 200);
        assert!(
            page.head
                .contains("content-security-policy: default-src 'none'"),
            "{page:?}"
        );
        assert_eq!(admin.get("/live").status, 200);
        assert_eq!(admin.get("/ready").body, "ready\n");
        // Only the reason's name: its detail would name tables and accounts.
        assert_eq!(admin.get("/accelerating").body, "no_service_account\n");
        let own = admin.get_with("/accelerating", &shown);
        assert!(
            own.body.starts_with("no_service_account: nothing is "),
            "{own:?}"
        );
        assert_eq!(admin.get_with("/metrics", &shown).status, 200);
        assert!(!proxy.log().contains(TOKEN));
        assert!(!format!("{:?}", own).contains(TOKEN));
    });
}
