//! A member of a group (MySQL Group Replication).

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::attack::attack;
use super::scene::{CALL, Scene, message, page, post, until};
use crate::kit::cluster::{Cluster, Form, MEMBERS, Shared, turn};
use crate::kit::wire_client::WireClient;
use crate::memory::linear::numbers;
use crate::memory::warm;

/// The seconds that a member may be silent before the others expel it: on a busy machine members are silent at times. A test that needs an
/// expulsion uses [`AT_ONCE`].
pub(super) const PATIENT: u32 = 120;
pub(super) const AT_ONCE: u32 = 0;

/// Starts a group of this form with the long timeout.
#[track_caller]
fn start(form: Form) -> Option<Cluster> {
    let patient = format!("--group-replication-member-expel-timeout={PATIENT}");
    Cluster::start(form, &[&patient])
}

/// One single-primary group for all tests, which run one after the other: each leaves all three members online, and member 0 the primary.
pub(super) fn group() -> Option<Shared> {
    static GROUP: OnceLock<Option<Mutex<Cluster>>> = OnceLock::new();
    let turn = turn();
    let group = GROUP.get_or_init(|| start(Form::SinglePrimary).map(Mutex::new));
    let group = group.as_ref()?;
    let mut cluster = group.lock().unwrap_or_else(PoisonError::into_inner);
    let is_whole = |index| cluster.serves(index) && cluster.members_seen_by(index) == MEMBERS;
    // An earlier test failed and did not restore the group, or a busy machine has caused an expulsion.
    if group.is_poisoned() || !(0..MEMBERS).all(is_whole) {
        group.clear_poison();
        restore(&mut cluster);
    }
    Some(Shared::new(cluster, turn))
}

/// Brings lost members back, and makes member 0 the primary.
#[track_caller]
fn restore(cluster: &mut Cluster) {
    for index in 0..MEMBERS {
        cluster.go_on(index);
        if cluster.server(index).pid().is_none() {
            cluster.restart(index);
        }
    }
    // A resumed member may not know yet that it was expelled.
    let mut turn = 0;
    until("the whole group", || {
        turn += 1;
        let mut all = true;
        for index in 0..MEMBERS {
            let state = cluster.state(index);
            if matches!(state.as_deref(), Some("ERROR" | "OFFLINE")) {
                let alone = !(0..MEMBERS).any(|other| cluster.serves(other));
                match alone && turn > 50 {
                    true => cluster.begin_again(index),
                    false => cluster.rejoin(index),
                }
            }
            all = all && cluster.serves(index) && cluster.members_seen_by(index) == MEMBERS;
        }
        all
    });
    cluster.set_as_primary(0);
    cluster.wait_for_silent(PATIENT);
}

/// Headwater before the primary, which has only its own commits; and before a secondary, which applies them.
#[test]
fn no_answer_of_a_group_with_one_primary_is_stale_or_ahead() {
    let Some(cluster) = group() else { return };
    attack(&cluster, 1, &[0]);
    // This comes last: nothing stops these writers from running far ahead of the other members' appliers.
    attack(&cluster, 0, &[0]);
}

/// Headwater before a member that commits its own transactions, and applies those of the others between them.
#[test]
fn nor_is_one_where_all_are_primaries() {
    let _turn = turn();
    let Some(cluster) = start(Form::MultiPrimary) else {
        return;
    };
    attack(&cluster, 0, &[0, 1, 2]);
}

/// A session's own server answers it where its reads wait for the group; memory answers other sessions.
#[test]
fn reads_that_wait_for_the_group_are_relayed() {
    let Some(cluster) = group() else { return };
    let scene = Scene::new(&cluster, 1, 0);
    let mut primary = scene.direct(&cluster, 0);
    let mut id = 0;
    for level in ["BEFORE", "BEFORE_AND_AFTER"] {
        let mut client = scene.session(&format!(
            "SET SESSION group_replication_consistency = '{level}'"
        ));
        let before = scene.relayed_for("waits_for_cluster");
        for _ in 0..50 {
            id += 1;
            post(&mut primary, id);
            // The primary has acknowledged the commit, though this is another member.
            assert!(page(&mut client).contains(&id), "{level}: no {id}");
        }
        assert_eq!(scene.relayed_for("waits_for_cluster"), before + 50);
    }
    for level in ["EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "AFTER"] {
        let mut client = scene.session(&format!(
            "SET SESSION group_replication_consistency = '{level}'"
        ));
        warm(&scene.proxy, &mut client, CALL);
    }
}

/// A write that waits for all members (AFTER) is in each answer of each member after its acknowledgement.
#[test]
fn what_all_members_have_promised_is_in_every_answer() {
    let Some(mut cluster) = group() else { return };
    let mut scene = Scene::new(&cluster, 1, 0);
    let mut primary = scene.direct(&cluster, 0);
    primary.ok("SET SESSION group_replication_consistency = 'AFTER'");
    let before = scene.remembered();
    for id in 1..=300 {
        post(&mut primary, id);
        let ids = page(&mut scene.client);
        assert!(ids.contains(&id), "no {id}: {}", scene.proxy.log());
    }
    let remembered = scene.remembered() - before;
    eprintln!("AFTER: {remembered} of 300 from memory");
    assert!(remembered >= 100, "{remembered} of 300 from memory");
    // On a busy machine the write may come too late, or the silent member resume too soon, to hold a direct read.
    let mut ids = 1_000..1_004;
    let was_held = ids.any(|id| is_held(&mut cluster, &mut scene, &mut primary, id));
    assert!(was_held, "no direct read was held");
}

/// The third member is silent: the second one has a prepared write, and holds reads until its outcome is known. True where it held a direct
/// read.
fn is_held(cluster: &mut Cluster, scene: &mut Scene, primary: &mut WireClient, id: u64) -> bool {
    cluster.wait_for_silent(AT_ONCE);
    cluster.hold(2);
    let was_held = thread::scope(|scope| {
        let writer = scope.spawn(|| post(primary, id));
        thread::sleep(Duration::from_secs(2));
        let begun = Instant::now();
        let mut direct = scene.direct(cluster, 1);
        let direct = scope.spawn(move || (page(&mut direct), begun.elapsed()));
        let own = page(&mut scene.client);
        let waited = begun.elapsed();
        let (theirs, theirs_waited) = direct.join().unwrap();
        eprintln!("held: {waited:?} through Headwater, {theirs_waited:?} directly");
        writer.join().unwrap();
        let held = Duration::from_millis(500);
        let was_held = theirs_waited > held;
        if was_held {
            assert_eq!(own, theirs);
            assert!(
                waited > held,
                "answered after {waited:?}: {}",
                scene.proxy.log()
            );
        }
        was_held
    });
    assert!(page(&mut scene.client).contains(&id));
    restore(cluster);
    was_held
}

/// A new primary with a backlog of the old one's commits holds reads of sessions that require it (the default).
#[test]
fn a_new_primary_does_not_answer_from_before_its_backlog() {
    let Some(mut cluster) = group() else { return };
    let mut root = cluster.connect(1);
    root.ok("SET GLOBAL group_replication_member_weight = 90");
    let mut scene = Scene::new(&cluster, 1, 0);
    let mut primary = scene.direct(&cluster, 0);
    post(&mut primary, 1);
    until("the message", || page(&mut scene.client).contains(&1));
    let mut eventual = scene.session("SET SESSION group_replication_consistency = 'EVENTUAL'");
    warm(&scene.proxy, &mut eventual, CALL);
    // This lock blocks only the applier.
    let mut holder = scene.direct(&cluster, 1);
    holder.ok("SET SESSION group_replication_consistency = 'EVENTUAL'");
    holder.ok("LOCK TABLES message READ");
    for id in 2..=5 {
        post(&mut primary, id);
    }
    thread::sleep(Duration::from_millis(500));
    assert_eq!(page(&mut scene.client).len(), 1, "they are not applied yet");
    let mut client = scene.proxy.login(&scene.login);
    assert_eq!(page(&mut client).len(), 1);
    let mut direct = scene.direct(&cluster, 1);
    cluster.wait_for_silent(AT_ONCE);
    cluster.kill(0);
    assert_eq!(cluster.wait_for_another_primary(0), 1);
    let before = scene.remembered();
    // The session's level does not wait, so the answer equals a direct one.
    assert_eq!(page(&mut eventual).len(), 1);
    thread::scope(|scope| {
        let begun = Instant::now();
        let direct = scope.spawn(move || (page(&mut direct), begun.elapsed()));
        let own = scope.spawn(move || (page(&mut client), begun.elapsed()));
        thread::sleep(Duration::from_secs(2));
        holder.ok("UNLOCK TABLES");
        for (ids, waited) in [own.join().unwrap(), direct.join().unwrap()] {
            eprintln!("held by a new primary: {waited:?}");
            assert_eq!(ids.len(), 5, "{}", scene.proxy.log());
            assert!(waited > Duration::from_millis(1_500), "{waited:?}");
        }
    });
    assert_eq!(scene.remembered(), before, "answered while reads were held");
    warm(&scene.proxy, &mut scene.client, CALL);
    root.ok("SET GLOBAL group_replication_member_weight = 50");
    restore(&mut cluster);
}

/// A member that has lost the others still shows its data, and commits nothing.
#[test]
fn a_primary_without_its_group_is_answered_for_as_it_answers() {
    let Some(mut cluster) = group() else { return };
    let mut scene = Scene::new(&cluster, 0, 0);
    let mut primary = scene.direct(&cluster, 0);
    for id in 1..=5 {
        post(&mut primary, id);
    }
    cluster.wait_for_silent(AT_ONCE);
    cluster.hold(1);
    cluster.hold(2);
    let mut hung = scene.direct(&cluster, 0);
    let before = scene.remembered();
    thread::scope(|scope| {
        let writer = scope.spawn(move || hung.query(&message(6)));
        let mut client = scene.proxy.login(&scene.login);
        let begun = Instant::now();
        let mut checks = 0;
        while begun.elapsed() < Duration::from_secs(8) {
            // The procedure itself would wait for the locks of the blocked write.
            let shown = numbers(&primary.column("SELECT id FROM message WHERE user_id = 2"));
            assert_eq!(page(&mut client), shown, "{}", scene.proxy.log());
            assert_eq!(shown.len(), 5);
            checks += 1;
            thread::sleep(Duration::from_millis(5));
        }
        let remembered = scene.remembered() - before;
        eprintln!("{checks} answers of a primary without its group, {remembered} from memory");
        assert!(!writer.is_finished(), "it was committed by a minority");
        for index in [1, 2] {
            cluster.go_on(index);
        }
        eprintln!("the write: {:?}", writer.join().unwrap());
    });
    scene.is_as_directly(&cluster);
    restore(&mut cluster);
    until("both alike", || {
        let mut direct = scene.direct(&cluster, 0);
        page(&mut scene.client) == page(&mut direct)
    });
}

/// An expelled member shows its old data; memory does not answer for it. It returns with the missed transactions.
#[test]
fn a_member_that_was_expelled_is_not_answered_for_from_memory() {
    let Some(mut cluster) = group() else { return };
    let mut scene = Scene::new(&cluster, 0, 0);
    let mut primary = scene.direct(&cluster, 0);
    post(&mut primary, 1);
    cluster.wait_for_silent(AT_ONCE);
    cluster.hold(0);
    let new = cluster.wait_for_another_primary(0);
    let mut other = scene.direct(&cluster, new);
    post(&mut other, 2);
    cluster.go_on(0);
    until("expulsion", || cluster.state(0).as_deref() == Some("ERROR"));
    let before = scene.remembered();
    for _ in 0..50 {
        assert_eq!(scene.is_as_directly(&cluster).len(), 1);
    }
    let mut primary = scene.direct(&cluster, 0);
    let refused = primary.error(&message(3));
    assert_eq!(refused.code, 1290, "{refused:?}");
    assert_eq!(scene.remembered(), before, "{}", scene.proxy.log());
    cluster.rejoin(0);
    cluster.wait_until_it_serves(0);
    until("what it missed", || page(&mut scene.client).len() == 2);
    warm(&scene.proxy, &mut scene.client, CALL);
    restore(&mut cluster);
}
