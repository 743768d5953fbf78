//! The admin page in a real browser.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::http::Admin;
use super::scene::{NAME, Scene, told};
use crate::kit::browser::Browser;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::wire_client::WireClient;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Visible text of an element.
const SHOWN: &str = "var shown = (id) => document.getElementById(id).innerText; ";

fn address(admin: Admin) -> String {
    format!("http://{}/", admin.0)
}

fn shown(browser: &mut Browser, id: &str) -> String {
    browser.text(&format!("document.getElementById('{id}').innerText"))
}

#[test]
fn it_shows_what_the_api_says_to_eyes_and_hands_of_all_kinds() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, &["--shadow", "1"]);
        let admin = scene.admin;
        let mut browser = Browser::open();
        browser.window(1200, 900, false);
        browser.go(&address(admin));
        browser.wait_until("document.body?.dataset.heard !== undefined");
        let lamp = told(admin, "/api/health");
        assert_eq!(
            browser.text("document.getElementById('lamp').dataset.state"),
            "memory"
        );
        assert_eq!(shown(&mut browser, "light"), "Answering from memory");
        assert_eq!(shown(&mut browser, "text"), lamp["text"].as_str().unwrap());
        let whose = format!(
            "{} before {}",
            lamp["version"].as_str().unwrap(),
            server.addr()
        );
        assert!(shown(&mut browser, "whose").starts_with(&whose));
        try_by_keyboard(&mut browser, &scene);

        rates_are_those_of_the_api(&mut browser, admin, &mut scene.client);
        browser.wait_until(&format!(
            "{SHOWN} shown('authors').includes({NAME:?}) && shown('readers').includes({NAME:?})"
        ));

        scene.differ();
        browser.wait_until("document.getElementById('lamp').dataset.state === 'relaying'");
        browser.wait_until(&format!("{SHOWN} shown('difference').includes('20 10')"));
        let lamp = told(admin, "/api/health");
        let text = format!("nothing_served: {}", lamp["text"].as_str().unwrap());
        assert_eq!(shown(&mut browser, "text"), text);
        assert_eq!(shown(&mut browser, "cure"), lamp["cure"].as_str().unwrap());
        let difference = shown(&mut browser, "difference");
        assert!(
            difference.contains(NAME) && difference.contains("CALL `fetch_timeline_ids`(1)"),
            "{difference}"
        );

        // A name is always rendered as text.
        assert_eq!(
            browser.value("document.querySelectorAll('img, main script').length"),
            0
        );
        looks_well_wide_and_narrow_by_day_and_by_night(&mut browser);
        everything_is_reached_by_tab(&mut browser);
        assert_eq!(browser.complaints(), [""; 0]);
        let own = address(admin);
        let others = browser.asked().into_iter();
        let others: Vec<_> = others
            .filter(|it| !it.starts_with(&own) && it != "data:,")
            .collect();
        assert_eq!(others, [""; 0]);

        scene.proxy.signal(Signal::SIGKILL);
        browser.wait_until("document.getElementById('lamp').dataset.state === 'lost'");
        assert!(shown(&mut browser, "lost").starts_with("Last heard of it at "));
        assert_eq!(
            shown(&mut browser, "light"),
            "Headwater does not answer this page"
        );
    });
}

#[test]
fn it_shows_feeds_statements_and_sessions() {
    on_each_quiet_server(|server| {
        let scene = Scene::with_a_feed(server, &[]);
        let mut browser = Browser::open();
        browser.go(&address(scene.admin));
        browser.wait_until("document.getElementById('of-settings') !== null");
        for (table, first) in [
            ("feeds", "name"),
            ("statements", "statement"),
            ("sessions", "account"),
            ("memory", "name"),
            ("settings", "name"),
        ] {
            let said = told(scene.admin, &format!("/api/{table}"));
            let said = said.as_array().unwrap().iter();
            let said: Vec<_> = said
                .map(|row| row[first].as_str().unwrap_or("–").to_owned())
                .collect();
            let column = usize::from(table == "sessions");
            let rows = browser.value(&format!(
                "[...document.querySelectorAll('#of-{table} tbody tr')].map((row) => row.cells[{column}].textContent)"
            ));
            assert_eq!(rows, Value::from(said), "{table}");
        }
        let statements = shown(&mut browser, "of-statements");
        assert!(
            statements.contains("<b>home</b>") && statements.contains("WHERE user_id IN (...)"),
            "{statements}"
        );
        assert_eq!(browser.complaints(), [""; 0]);
    });
}

/// Fills in the form by keyboard alone.
fn try_by_keyboard(browser: &mut Browser, scene: &Scene) {
    let name = browser.value("document.querySelector('[name=definition]').select(); document.querySelector('[name=definition]').name");
    assert_eq!(name, "definition");
    for text in [NAME, scene.database.name(), "1"] {
        browser.write(text);
        browser.press("Tab");
    }
    browser.press("Enter");
    browser.wait_until(&format!(
        "{SHOWN} shown('tried').includes('equal to the server')"
    ));
    let tried = shown(browser, "tried");
    assert!(
        tried.starts_with("CALL `fetch_timeline_ids`(1): equal to the server's"),
        "{tried}"
    );
    assert!(
        tried.contains("memory, ") && tried.contains("procedure, "),
        "{tried}"
    );
    let ids = browser.value("[...document.querySelectorAll('#tried .ids')].map((it) => it.lastChild.previousSibling.textContent)");
    assert_eq!(ids, Value::from(vec!["10", "10"]));
}

/// The tables show the last sample's numbers, formatted as the page formats them.
fn rates_are_those_of_the_api(browser: &mut Browser, admin: Admin, client: &mut WireClient) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        // Every sample contains calls.
        for _ in 0..50 {
            client.ok("CALL fetch_timeline_ids(1)");
        }
        let mut history = told(admin, "/api/history");
        let last = history["samples"].as_array_mut().unwrap().pop();
        let of_page = browser.value(
            "Object.fromEntries([...document.querySelectorAll('#calls tbody tr, #statements tbody tr')].map((row) => [row.cells[0].innerText.trim() + (row.closest('#calls') ? '' : '*'), \
             [...row.cells].slice(1).map((cell) => cell.innerText)]))",
        );
        let Some(last) = last else {
            assert!(Instant::now() < deadline, "no sample");
            std::thread::sleep(Duration::from_millis(200));
            continue;
        };
        let mut of_api = serde_json::Map::new();
        for (group, mark) in [("calls", ""), ("statements", "*")] {
            for (name, rate) in last[group].as_object().unwrap() {
                let numbers = [rate, &last["p50_ms"][name], &last["p99_ms"][name]];
                let written = numbers.map(|it| browser.text(&format!("number({it})")));
                of_api.insert(format!("{name}{mark}"), written.to_vec().into());
            }
        }
        let called = last["calls"]["memory"].as_f64().unwrap() > 1.0;
        if of_page == Value::Object(of_api.clone()) && called {
            return;
        }
        assert!(Instant::now() < deadline, "{of_page}\n{of_api:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn looks_well_wide_and_narrow_by_day_and_by_night(browser: &mut Browser) {
    let mut papers = Vec::new();
    for dark in [false, true] {
        for width in [360, 1200] {
            browser.window(width, 800, dark);
            let narrow = browser.value(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
            );
            assert_eq!(narrow, true, "{width}: it has to be scrolled sideways");
        }
        // Text contrasts with its background, by WCAG's measure for text.
        let worst = browser.value(
            "(() => { \
               const light = (color) => { const [r, g, b] = color.match(/[\\d.]+/g).map((it) => { it /= 255; return it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
               const behind = (it) => { for (; it; it = it.parentElement) { const color = getComputedStyle(it).backgroundColor; if (color !== 'rgba(0, 0, 0, 0)') return color; } return 'rgb(255,255,255)'; }; \
               const of = (it) => { const [one, other] = [light(getComputedStyle(it).color), light(behind(it))].sort((a, b) => b - a); return (one + 0.05) / (other + 0.05); }; \
               return Math.min(...[...document.querySelectorAll('h1, h2, p, td, th, dt, dd, label, input, button, pre, strong')].filter((it) => it.checkVisibility()).map(of)); })()",
        );
        assert!(worst.as_f64().unwrap() >= 4.5, "dark {dark}: {worst}");
        papers.push(browser.text("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(papers[0], papers[1]);
}

fn everything_is_reached_by_tab(browser: &mut Browser) {
    let all = "[...document.querySelectorAll('input, button, [tabindex]')].filter((it) => it.checkVisibility())";
    browser.value("document.activeElement.blur()");
    let count = browser.value(&format!("{all}.length")).as_u64().unwrap();
    browser.value("window.reached = new Set(); window.blind = 0");
    for _ in 0..count + 2 {
        browser.press("Tab");
        browser.value(
            "{ const it = document.activeElement; reached.add(it); if (it !== document.body && getComputedStyle(it).outlineStyle === 'none') blind += 1; }",
        );
    }
    let missed = browser.text(&format!(
        "{all}.filter((it) => !reached.has(it)).map((it) => it.outerHTML).join()"
    ));
    assert_eq!(missed, "");
    // Elements that take the focus show it.
    assert_eq!(browser.value("blind"), 0);
}

#[test]
fn it_asks_for_the_token_and_forgets_it_with_the_tab() {
    on_each_server(|server| {
        let settings = format!("[admin]\ntoken = \"{TOKEN}\"\n");
        let (_proxy, admin) = Admin::beside(server.addr(), &settings, &[]);
        let mut browser = Browser::open();
        browser.go(&address(admin));
        browser.wait_until("document.activeElement?.id === 'token'");
        // The page makes no request that would be refused.
        assert_eq!(browser.complaints(), [""; 0]);
        assert_eq!(
            browser.value("document.getElementById('all').checkVisibility()"),
            false
        );
        browser.write("fedcba9876543210");
        browser.press("Enter");
        browser.wait_until(&format!(
            "{SHOWN} shown('refused') === 'That is not the token.'"
        ));
        browser.write(TOKEN);
        browser.press("Enter");
        browser.wait_until("document.getElementById('lamp').dataset.state === 'relaying'");
        assert!(shown(&mut browser, "text").starts_with("no_service_account: "));
        assert!(shown(&mut browser, "cure").starts_with("headwater check "));
        // The credential is stored in the tab only.
        browser.go(&address(admin));
        browser.wait_until("document.body?.dataset.heard !== undefined");
        assert_eq!(
            browser.value("localStorage.length + document.cookie.length"),
            0
        );
        assert!(browser.asked().iter().all(|it| !it.contains(TOKEN)));
        let mut other = Browser::open();
        other.go(&address(admin));
        other.wait_until("document.activeElement?.id === 'token'");
    });
}
