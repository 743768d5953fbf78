//! Linearizability on one member: writers write to members, readers call through a Headwater before one of them, and each answer must
//! contain everything that is readable on that member.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::kit::cluster::Cluster;
use crate::kit::database::fill;
use crate::kit::how_many;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::linear::{SHADOW, WRITERS, check_beside};
use crate::memory::world::World;

/// The time that a member may need to apply what earlier attacks have written.
const BACKLOG: Duration = Duration::from_secs(300);

/// How many answers are checked: `HEADWATER_CHECKS`, or enough for a test.
pub(super) fn checks() -> u64 {
    // There are ten such attacks: in `make soak` each checks a tenth of the requested answers.
    how_many("HEADWATER_CHECKS", 5_000) / 10
}

/// Makes a database for the test with the classic tables on one member, and waits until the other has it. Returns its login.
#[track_caller]
pub(super) fn classic(cluster: &Cluster, made_on: usize, there_on: usize) -> Login {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("tl{}", NEXT.fetch_add(1, Ordering::Relaxed));
    cluster
        .connect(made_on)
        .ok(&format!("CREATE DATABASE {name}"));
    let login = Login::default().database(&name);
    fill(&mut WireClient::login(cluster.addr(made_on), &login));
    let mut root = cluster.connect(there_on);
    let made = format!(
        "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{name}' \
         AND ROUTINE_NAME IN ('fetch_timeline_ids', 'fetch_timeline_ids2', 'build_max_ids_of_followers')"
    );
    cluster.wait_within(BACKLOG, there_on, "what was made elsewhere", || {
        // A busy machine paused the member for so long that the others expelled it.
        if matches!(
            cluster.state(there_on).as_deref(),
            Some("ERROR" | "OFFLINE")
        ) {
            eprintln!(
                "member {there_on} was lost, and joins again:\n{}",
                cluster.log(there_on)
            );
            cluster.rejoin(there_on);
        }
        root.column(&made) == ["3"]
    });
    login
}

/// Checks answers of a Headwater before one member, while threads write to all `writers` in turn, until memory gave most of the required
/// answers.
#[track_caller]
pub(super) fn attack(cluster: &Cluster, member: usize, writers: &[usize]) {
    let login = classic(cluster, writers[0], member);
    let database = login.database.clone().unwrap();
    let flags = [ROOT_SERVICE, SHADOW].concat();
    let write = |world: &World, number: u64| {
        let writer = writers[number as usize % writers.len()];
        world.write_among(number, cluster.addr(writer), cluster.addr(member), &login);
    };
    // A member that applies the commits of others must not lag by minutes.
    let world = match writers.contains(&member) {
        true => World::new(WRITERS),
        false => World::new(WRITERS).resting(Duration::from_millis(4)),
    };
    let addr = cluster.addr(member);
    let counts = check_beside(&world, addr, &login, &database, checks(), &flags, write);
    eprintln!(
        "{:?}: member {member}, writers on {writers:?}: {counts:?} owned and from memory",
        cluster.form()
    );
}
