//! The setting `[admin]`.

use std::net::IpAddr;

use serde::Deserialize;

use headwater_proxy::account::host;

/// Address and token of the admin port.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminSection {
    /// HOST:PORT; empty: no admin port. `None`: [`DEFAULT_ADMIN_ADDRESS`], if it is free.
    pub listen: Option<String>,
    /// The token that requests have to show; empty: none.
    pub token: String,
    /// Accounts that hold PROCESS may run `SHOW HEADWATER ...`.
    pub show: bool,
}

impl Default for AdminSection {
    fn default() -> AdminSection {
        AdminSection {
            listen: None,
            token: String::new(),
            show: true,
        }
    }
}

/// The admin port's address unless a setting names one.
pub const DEFAULT_ADMIN_ADDRESS: &str = "127.0.0.1:9307";
/// A shorter token could be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

impl AdminSection {
    /// The address; `None`: no admin port.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        let address = self.listen.as_deref().unwrap_or(DEFAULT_ADMIN_ADDRESS);
        Some(address).filter(|address| !address.is_empty())
    }

    /// What is wrong with the section, with the remedy.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let visible = self.token.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.token.is_empty() && (self.token.len() < MIN_TOKEN_LENGTH || !visible) {
            return Some(
                "admin.token has to be 16 letters, digits or signs at least, without spaces: make one with `openssl rand -hex 32`",
            );
        }
        let open = self.address().is_some_and(|address| !is_loopback(address));
        (open && self.token.is_empty()).then_some(
            "admin.listen is open to other machines, so askers have to show a token: set admin.token (HEADWATER_ADMIN_TOKEN), made with \
             `openssl rand -hex 32`, or listen on 127.0.0.1",
        )
    }
}

impl std::fmt::Debug for AdminSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdminSection({:?})", self.address())
    }
}

/// True for a loopback address.
#[must_use]
pub(super) fn is_loopback(address: &str) -> bool {
    let host = host(address);
    let number = host.parse::<IpAddr>().map(|it| it.to_canonical());
    host == "localhost" || number.is_ok_and(|number| number.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(listen: &str, token: &str) -> Option<&'static str> {
        let section = AdminSection {
            listen: Some(listen.into()),
            token: token.into(),
            ..AdminSection::default()
        };
        section
            .problem()
            .and_then(|it| it.split_whitespace().next())
    }

    #[test]
    fn who_can_be_reached_by_others_has_to_have_a_token() {
        for listen in ["", "127.0.0.1:1", "[::1]:1", "localhost:1", "127.9.9.9:1"] {
            assert_eq!(problem(listen, ""), None, "{listen}");
        }
        for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "db.example.org:1"] {
            assert_eq!(problem(listen, ""), Some("admin.listen"), "{listen}");
            assert_eq!(problem(listen, "0123456789abcdef"), None, "{listen}");
        }
        for token in ["short", "0123456789 abcdef", "0123456789abcdé"] {
            assert_eq!(
                problem("127.0.0.1:1", token),
                Some("admin.token"),
                "{token}"
            );
        }
    }
}
