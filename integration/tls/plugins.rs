//! Authentication plugins behave on equal legs as they do directly; where the legs differ, the error names what cannot work.

use super::{Stage, on_each_stage};
use crate::kit::certificates::trust_anyone;
use crate::kit::wire_client::{Login, WireClient};

/// The server's plugins in this test, each with a password.
fn plugins(stage: &Stage<'_>) -> &'static [&'static str] {
    if stage.mariadb {
        &["mysql_native_password"]
    } else {
        &["caching_sha2_password", "sha256_password"]
    }
}

/// Empties the server's password cache.
fn forget(stage: &Stage<'_>) {
    stage.root().ok("FLUSH PRIVILEGES");
}

#[test]
fn on_equal_legs_every_plugin_logs_in_as_it_does_directly() {
    on_each_stage(|stage| {
        let proxy = stage.proxy("", &[]);
        for plugin in plugins(stage) {
            let account = stage.account(&format!("u_{plugin}"), plugin);
            for login in [account.clone(), account.clone().tls(&trust_anyone())] {
                // First without the password in the server's cache, then with it.
                for _ in 0..2 {
                    forget(stage);
                    for _ in 0..2 {
                        let mut client = proxy.login(&login);
                        let user = client.column("SELECT CURRENT_USER()");
                        assert_eq!(user, [format!("{}@%", login.user)]);
                    }
                }
                let wrong = login.clone().password("falsch");
                let error = WireClient::try_login(proxy.addr(), &wrong).unwrap();
                assert_eq!(error.map(|_| ()).unwrap_err().code, 1045, "{plugin}");
            }
        }
    });
}

#[test]
fn on_unequal_legs_a_login_that_cannot_work_names_the_setting() {
    on_each_stage(|stage| {
        for (mode, tls) in [("disabled", true), ("required", false)] {
            let settings = format!("[upstream_tls]\nmode = '{mode}'\nmirror = false\n");
            let proxy = stage.proxy(&settings, &[]);
            for plugin in plugins(stage) {
                let account = stage.account(&format!("{mode}_{plugin}"), plugin);
                let login = match tls {
                    true => account.clone().tls(&trust_anyone()),
                    false => account.clone(),
                };
                if stage.mariadb {
                    proxy.login(&login).ok("DO 1");
                    continue;
                }
                forget(stage);
                let refused = WireClient::try_login(proxy.addr(), &login).unwrap();
                let error = refused.map(|_| ()).unwrap_err();
                assert_eq!(error.code, 3159, "{error:?}");
                assert!(error.message.contains("upstream_tls.mirror"), "{error:?}");
                assert!(error.message.contains(plugin), "{error:?}");

                // The same holds for a change of user in a session.
                let anyone = match tls {
                    true => Login::default().tls(&trust_anyone()),
                    false => Login::default(),
                };
                let mut client = proxy.login(&anyone);
                let error = client.change_user(&login).unwrap().unwrap_err();
                assert!(error.message.contains("upstream_tls.mirror"), "{error:?}");
                assert!(client.query_reply("DO 1").is_err());

                if *plugin == "caching_sha2_password" {
                    // The server has the password cached: no secret is sent.
                    WireClient::login(stage.addr(), &account).ok("DO 1");
                    proxy.login(&login).ok("DO 1");
                    let mut client = proxy.login(&anyone);
                    client.change_user(&login).unwrap().unwrap();
                    client.ok("DO 1");
                }
            }
        }
    });
}
