//! Plays conversations: twice directly to the server, once through Headwater.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::side::Side;
use super::tape::Tape;
use crate::kit::proxy::Proxy;
use crate::kit::servers::Server;
use crate::kit::wire_client::{Login, WireClient};

/// After this many attempts, a server whose two replies to one conversation always differ fails the test.
const PLAYS: usize = 3;

/// A server, a path to it that must be transparent, and counts of what has been compared.
#[derive(Debug)]
pub(super) struct Player {
    direct: SocketAddr,
    through: SocketAddr,
    /// Headwater, if the path leads through it; it stops with the player.
    proxy: Option<Proxy>,
    /// Before each login, the server's password cache is flushed.
    forgets: bool,
    conversations: AtomicUsize,
    packets: AtomicUsize,
}

impl Player {
    /// The path leads through Headwater, which offers TLS as the server does.
    #[track_caller]
    pub(super) fn new(server: &Server) -> Player {
        Player::with(
            server.addr(),
            Proxy::start(server.addr(), &["--tls-self-signed"]),
        )
    }

    pub(super) fn with(direct: SocketAddr, proxy: Proxy) -> Player {
        let mut player = Player::between(direct, proxy.addr());
        player.proxy = Some(proxy);
        player
    }

    /// Any address as the path.
    pub(super) fn between(direct: SocketAddr, through: SocketAddr) -> Player {
        Player {
            direct,
            through,
            proxy: None,
            forgets: false,
            conversations: AtomicUsize::new(0),
            packets: AtomicUsize::new(0),
        }
    }

    /// Whether the server's password cache is flushed before each login.
    pub(super) fn forgets(&mut self, forgets: bool) {
        self.forgets = forgets;
    }

    /// Plays a conversation after a login that must succeed.
    #[track_caller]
    pub(super) fn play(&self, what: &str, login: &Login, conversation: impl Fn(&mut Side)) {
        let held = self.try_play(what, login, conversation);
        assert!(held, "{what}: the server refused the login");
    }

    /// Plays the conversation unless the login is refused; then only the login is compared. Returns whether it was played.
    #[track_caller]
    pub(super) fn try_play(
        &self,
        what: &str,
        login: &Login,
        conversation: impl Fn(&mut Side),
    ) -> bool {
        let (play, held) = self.compare(login, conversation);
        if let Err(difference) = play {
            panic!("{what}: {difference}");
        }
        held
    }

    /// The difference, if any, and whether the login succeeded.
    pub(super) fn compare(
        &self,
        login: &Login,
        conversation: impl Fn(&mut Side),
    ) -> (Result<(), String>, bool) {
        let mut outcome = Err(String::new());
        let mut held = false;
        for _ in 0..PLAYS {
            let (first, let_in) = self.hold(self.direct, login, &conversation);
            let (again, _) = self.hold(self.direct, login, &conversation);
            held = let_in;
            if let Some(difference) = first.differs_from(&again) {
                outcome = Err(format!("the server does not repeat itself in {difference}"));
                continue;
            }
            drop(again);
            let (through, _) = self.hold(self.through, login, &conversation);
            self.conversations.fetch_add(1, Ordering::Relaxed);
            self.packets.fetch_add(first.packets(), Ordering::Relaxed);
            outcome = match first.differs_from(&through) {
                None => Ok(()),
                Some(difference) => Err(format!("what came through differs in {difference}")),
            };
            break;
        }
        (outcome, held)
    }

    fn hold(
        &self,
        addr: SocketAddr,
        login: &Login,
        conversation: impl Fn(&mut Side),
    ) -> (Tape, bool) {
        if self.forgets {
            WireClient::connect(self.direct).ok("FLUSH PRIVILEGES");
        }
        match Side::login(addr, login) {
            Ok(mut side) => {
                conversation(&mut side);
                (side.into_tape(), true)
            }
            Err(tape) => (tape, false),
        }
    }

    /// Numbers of conversations and packets compared.
    pub(super) fn compared(&self) -> (usize, usize) {
        (
            self.conversations.load(Ordering::Relaxed),
            self.packets.load(Ordering::Relaxed),
        )
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // Visible if the test fails, and with `--nocapture`.
        let (conversations, packets) = self.compared();
        eprintln!("compared {conversations} conversations, {packets} packets");
    }
}
