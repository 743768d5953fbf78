//! State transfers on a machine with MariaDB's server package, which has its own scripts for them.

use std::os::unix::fs::symlink;

use headwater_lab::private_server::galera_folder;

use crate::kit::cluster::{Cluster, Form, turn};
use crate::kit::machine::{Machine, said, write_program};

const TRANSFER: &str = "clusters::machine::a_node_takes_the_state_of_another";

#[test]
fn a_node_takes_the_state_of_another() {
    let _turn = turn();
    let Some(cluster) = Cluster::pair(Form::Galera) else {
        return;
    };
    cluster.connect(0).ok("CREATE DATABASE taken");
    cluster.wait(1, "the other's database", || {
        !cluster
            .connect(1)
            .rows("SHOW DATABASES LIKE 'taken'")
            .is_empty()
    });
}

#[test]
fn it_does_so_where_the_machine_has_programs_options_and_services_of_others() {
    if Cluster::has_no_galera() {
        return;
    }
    let _turn = turn();
    let scripts = ["wsrep_sst_rsync", "wsrep_sst_common", "my_print_defaults"];
    let told = Machine::of_others(&scripts).tells(TRANSFER);
    assert!(told.status.success(), "{}", said(&told));
}

#[test]
fn a_transfer_that_fails_is_told_in_the_scripts_own_words() {
    if Cluster::has_no_galera() {
        return;
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("usr/bin");
    std::fs::create_dir_all(&scripts).unwrap();
    symlink(
        galera_folder().join("usr/lib"),
        folder.path().join("usr/lib"),
    )
    .unwrap();
    write_program(&scripts.join("wsrep_sst_rsync"), "no transfer today");
    let machine = Machine::of_others(&[]).with("HEADWATER_GALERA_PREFIX", folder.path());
    let told = machine.tells(TRANSFER);
    let said = said(&told);
    assert!(!told.status.success(), "{said}");
    assert!(said.contains("no transfer today"), "{said}");
}
