//! Servers with case-insensitive database and table names (`lower_case_table_names = 1`), for clients that write them in capital letters.

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::app::{FEED, SMALL};
use super::narrowed::{narrowed, until_risen};
use super::served::PATIENT;
use crate::check::check;
use crate::kit::database::fill;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::if_here;
use crate::kit::wire_client::{COM_INIT_DB, Login, WireClient};

const PAGES: [&str; 4] = [
    "SELECT id, caption FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5",
    "SELECT S.id, S.caption FROM Statuses S WHERE S.profile_id IN (1, 2, 3) ORDER BY S.id DESC LIMIT 5",
    "SELECT Statuses.id, P.name FROM SoCial.Statuses JOIN PROFILES AS P ON P.id = Statuses.profile_id \
     WHERE Statuses.profile_id IN (SELECT following_id FROM Followers WHERE profile_id = 7) ORDER BY Statuses.id DESC LIMIT 5",
    "SELECT STATUSES.ID, Statuses.Caption FROM STATUSES WHERE statuses.Profile_ID IN (4, 5) ORDER BY STATUSES.id DESC LIMIT 3",
];

const TAIL: &str = "SELECT Message.id, user_id, body FROM Message INNER JOIN Fetch_Timeline_TT USING(id) ORDER BY Message.id DESC LIMIT 20";

#[test]
fn names_have_no_case_where_the_server_gives_them_none() {
    for kind in [ServerKind::Mariadb, ServerKind::Mysql] {
        let Some(server) = if_here(PrivateServer::start(kind, &["--lower-case-table-names=1"]))
        else {
            return;
        };
        let mut root = WireClient::connect(server.addr());
        root.ok("CREATE DATABASE Social");
        root.ok("USE Social");
        SMALL.make(&mut root, &mut Random(5));
        fill(&mut root);
        root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
        root.ok("INSERT INTO message VALUES (5, 2, ''), (7, 3, ''), (9, 2, '')");
        let feed = FEED
            .replace("\"statuses\"", "\"Statuses\"")
            .replace("\"followers\"", "\"Followers\"")
            .replace("name = \"home\"", "name = \"home\"\ndatabase = \"SoCIAL\"");
        let classic = "[[definition]]\nname = \"classic\"\ndatabase = \"SOCIAL\"\n[definition.message]\ntable = \"Message\"\n";
        let settings = [PATIENT, &feed, classic].concat();
        let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log("feed home in database social: served");
        let mut client = proxy.login(&Login::default().database("SOCIAL"));
        let mut direct = WireClient::login(server.addr(), &Login::default().database("social"));
        let mut id = 1_000_000;
        for page in PAGES {
            // The page comes from cached rows in the end, and stays fresh.
            until_risen(
                &proxy,
                "kept",
                |counts| counts.of("feeds_kept"),
                || {
                    id += 1;
                    root.ok(&format!(
                    "INSERT INTO STATUSES (id, profile_id, kind, visibility, likes, created_at) \
                     VALUES ({id}, 2, 'text', 'public', 1, NOW())"
                ));
                    for _ in 0..3 {
                        assert_eq!(client.rows(page), direct.rows(page));
                    }
                },
            );
        }
        // COM_INIT_DB chooses the database too, in either spelling.
        for name in ["social", "Social"] {
            client
                .command(&[&[COM_INIT_DB], name.as_bytes()].concat())
                .unwrap();
            narrowed(&proxy, &mut client, PAGES[1]);
        }
        client.ok("USE sOCIAL");
        narrowed(&proxy, &mut client, PAGES[0]);
        for call in [
            "CALL fetch_timeline_ids(1)",
            "CALL Social.fetch_timeline_ids(1)",
            "CALL SOCIAL.FETCH_TIMELINE_IDS2(1, 8)",
        ] {
            until_risen(
                &proxy,
                "from memory",
                |counts| counts.of("calls_from_memory"),
                || {
                    client.ok(call);
                    direct.ok(call);
                    assert_eq!(client.rows(TAIL), direct.rows(TAIL));
                },
            );
        }
        let counts = proxy.counts();
        let tails = counts.of("tails_virtual") + counts.of("tails_kept");
        // MySQL describes the join differently for so few messages.
        assert_eq!(tails > 0, kind == ServerKind::Mariadb, "{counts:?}");
        let checked = check(server.addr(), &settings, ROOT_SERVICE);
        checked.says("feed home, database social: its SELECTs are narrowed");
    }
}
