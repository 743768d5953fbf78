//! The login phase: greeting, login and the exchange of the authentication plugins.

use std::io;
use std::sync::Arc;

use mysql_common::{crypto, scramble};
use rustls::ClientConfig;

use super::answer::ServerError;
use super::capability;
use super::packet::{Packet, Values, put_bytes};
use super::{COM_CHANGE_USER, WireClient};

/// The length of the login's start that requests TLS.
const SSL_REQUEST_BYTES: usize = 32;

/// A login's account and requested options.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: Option<String>,
    /// Requested; those that the greeting does not offer are dropped.
    pub(crate) capabilities: u64,
    pub(crate) collation: u8,
    /// Connection attributes, sent with `CONNECT_ATTRS`.
    pub(crate) attributes: Vec<(String, String)>,
    /// Bytes sent before everything else.
    pub(crate) header: Vec<u8>,
    /// Requests TLS with this configuration.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl Default for Login {
    /// `root` without a password or a database.
    fn default() -> Login {
        Login {
            user: "root".to_owned(),
            password: String::new(),
            database: None,
            capabilities: capability::USUAL,
            // utf8mb4_general_ci: both products have it.
            collation: 45,
            attributes: Vec::new(),
            header: Vec::new(),
            tls: None,
        }
    }
}

impl Login {
    pub(crate) fn user(mut self, user: &str) -> Login {
        user.clone_into(&mut self.user);
        self
    }

    pub(crate) fn password(mut self, password: &str) -> Login {
        password.clone_into(&mut self.password);
        self
    }

    pub(crate) fn database(mut self, database: &str) -> Login {
        self.database = Some(database.to_owned());
        self
    }

    pub(crate) fn tls(mut self, trust: &Arc<ClientConfig>) -> Login {
        self.tls = Some(Arc::clone(trust));
        self
    }

    /// Starts the connection with a header of the PROXY protocol.
    pub(crate) fn speaking_for(mut self, header: &[u8]) -> Login {
        header.clone_into(&mut self.header);
        self
    }

    /// Requests `capabilities` as well.
    pub(crate) fn with(mut self, capabilities: u64) -> Login {
        self.capabilities |= capabilities;
        self
    }

    pub(crate) fn without(mut self, capabilities: u64) -> Login {
        self.capabilities &= !capabilities;
        self
    }
}

/// The server's first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// The packet with its header.
    pub(crate) raw: Vec<u8>,
    pub(crate) version: String,
    pub(crate) thread_id: u32,
    pub(crate) scramble: Vec<u8>,
    pub(crate) capabilities: u64,
    pub(crate) status: u16,
    pub(crate) plugin: String,
}

impl Greeting {
    pub(crate) fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }

    pub(crate) fn parse(raw: Vec<u8>) -> Result<Greeting, ServerError> {
        let mut values = Values(&raw[4..]);
        if values.0.first() == Some(&0xff) {
            return Err(ServerError::parse(values.0));
        }
        assert_eq!(values.int(1), 10, "protocol version");
        let version = text(values.until_nul());
        let thread_id = values.int(4) as u32;
        let mut scramble = values.take(8).to_vec();
        values.take(1);
        let low = values.int(2);
        values.take(1);
        let status = values.int(2) as u16;
        let high = values.int(2);
        let scramble_len = values.int(1) as usize;
        values.take(6);
        let extended = values.int(4);
        let mut capabilities = low | high << 16;
        // MariaDB clears the bit that all others set to announce its extended bits.
        if capabilities & capability::LONG_PASSWORD == 0 {
            capabilities |= extended << 32;
        }
        let second = values.take(scramble_len.saturating_sub(8).max(13));
        scramble.extend(&second[..12]);
        let plugin = text(values.until_nul());
        Ok(Greeting {
            version,
            thread_id,
            scramble,
            capabilities,
            status,
            plugin,
            raw,
        })
    }
}

impl WireClient {
    /// Answers the greeting and completes the exchange. `self.login_raw` gets every byte that the server sent.
    pub(super) fn authenticate(&mut self, login: &Login) -> io::Result<Result<(), ServerError>> {
        let (plugin, scramble) = (&self.greeting.plugin, &self.greeting.scramble);
        let response = self.login_packet(login, &first_answer(plugin, scramble, login));
        if let Some(trust) = &login.tls {
            if self.greeting.capabilities & capability::SSL == 0 {
                return Err(io::Error::other("the server offers no TLS"));
            }
            self.send_packet(1, &response[..SSL_REQUEST_BYTES])?;
            self.stream.encipher(trust)?;
        }
        self.send_packet(1 + u8::from(login.tls.is_some()), &response)?;
        self.dialogue(login)
    }

    /// Sends COM_CHANGE_USER, and completes the exchange after it.
    pub(crate) fn change_user(&mut self, login: &Login) -> io::Result<Result<(), ServerError>> {
        let (plugin, scramble) = (&self.greeting.plugin, &self.greeting.scramble);
        let answer = first_answer(plugin, scramble, login);
        let mut payload = vec![COM_CHANGE_USER];
        payload.extend([login.user.as_bytes(), b"\0"].concat());
        payload.push(u8::try_from(answer.len()).unwrap());
        payload.extend(answer);
        payload.extend([0, login.collation, 0]);
        payload.extend([plugin.as_bytes(), b"\0"].concat());
        self.send(&payload)?;
        self.dialogue(login)
    }

    /// Answers the requests of the authentication plugins.
    fn dialogue(&mut self, login: &Login) -> io::Result<Result<(), ServerError>> {
        let mut plugin;
        let mut scramble = self.greeting.scramble.clone();
        loop {
            let packet = Packet::read(&mut self.stream, &mut self.login_raw)?;
            let mut values = Values(&packet.payload);
            let answer = match values.int(1) {
                0x00 => return Ok(Ok(())),
                0xff => return Ok(Err(ServerError::parse(&packet.payload))),
                0xfe => {
                    plugin = text(values.until_nul());
                    scramble = values.0.iter().copied().take(20).collect();
                    first_answer(&plugin, &scramble, login)
                }
                // caching_sha2_password: the password is cached, the OK follows.
                0x01 if values.0 == [3] => continue,
                // ... the server requests the password itself: in clear over TLS, or encrypted with its public key.
                0x01 if values.0 == [4] => match &login.tls {
                    Some(_) => in_clear(login),
                    None => vec![2],
                },
                0x01 => {
                    let mut password = in_clear(login);
                    for (byte, mask) in password.iter_mut().zip(scramble.iter().cycle()) {
                        *byte ^= mask;
                    }
                    crypto::encrypt(&password, values.0)
                }
                other => panic!("packet {other:#x} during login"),
            };
            self.send_packet(packet.seq.wrapping_add(1), &answer)?;
        }
    }

    /// The HandshakeResponse41; sets `self.capabilities`.
    fn login_packet(&mut self, login: &Login, answer: &[u8]) -> Vec<u8> {
        let mut wanted = login.capabilities;
        if login.tls.is_some() {
            wanted |= capability::SSL;
        }
        if login.database.is_some() {
            wanted |= capability::CONNECT_WITH_DB;
        }
        let extended = (wanted & self.greeting.capabilities) >> 32;
        let offered = self.greeting.capabilities | capability::LONG_PASSWORD;
        let mut agreed = wanted & offered;
        if extended != 0 {
            agreed &= !capability::LONG_PASSWORD;
        }
        self.capabilities = agreed;

        let mut packet = Vec::new();
        packet.extend((agreed as u32).to_le_bytes());
        packet.extend(u32::MAX.to_le_bytes());
        packet.push(login.collation);
        packet.extend([0; 19]);
        packet.extend((extended as u32).to_le_bytes());
        packet.extend(login.user.as_bytes());
        packet.push(0);
        put_bytes(&mut packet, answer);
        if let Some(database) = &login.database {
            packet.extend(database.as_bytes());
            packet.push(0);
        }
        packet.extend(self.greeting.plugin.as_bytes());
        packet.push(0);
        if agreed & capability::CONNECT_ATTRS != 0 {
            let mut attributes = Vec::new();
            for (name, value) in &login.attributes {
                put_bytes(&mut attributes, name.as_bytes());
                put_bytes(&mut attributes, value.as_bytes());
            }
            put_bytes(&mut packet, &attributes);
        }
        if agreed & capability::ZSTD_COMPRESSION != 0 {
            packet.push(3);
        }
        packet
    }
}

/// The first answer of a plugin. Empty for an empty password with any plugin.
pub(super) fn first_answer(plugin: &str, nonce: &[u8], login: &Login) -> Vec<u8> {
    let password = login.password.as_bytes();
    match plugin {
        "mysql_native_password" => scramble::scramble_native(nonce, password).map(|x| x.to_vec()),
        "caching_sha2_password" => scramble::scramble_sha256(nonce, password).map(|x| x.to_vec()),
        "sha256_password" if login.password.is_empty() => None,
        "sha256_password" => Some(match &login.tls {
            Some(_) => in_clear(login),
            None => vec![1],
        }),
        _ => None,
    }
    .unwrap_or_default()
}

fn in_clear(login: &Login) -> Vec<u8> {
    [login.password.as_bytes(), b"\0"].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
