//! Wrong flags are distinct from wrong answers: status 2, before any connection.

use crate::kit::proxy::headwater;

#[track_caller]
fn refused(flags: &[&str], named: &str) {
    let output = headwater(&[])
        .arg("verify")
        // No server listens there.
        .args(["--upstream", "127.0.0.1:1", "--service-user", "nobody"])
        .args(flags)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
    assert!(said.contains(named), "{flags:?}: {said}");
    assert_eq!(output.stdout, b"");
}

#[test]
fn a_wrong_flag_ends_with_2_and_is_named() {
    refused(&["--readers", "some"], "a number of readers (1000)");
    refused(&["--readers", "0%"], "--readers");
    refused(&["--rate", "0"], "--rate");
    refused(&["--stop-when-slower", "0.5"], "--stop-when-slower");
    refused(
        &["--only", "nobody"],
        "no [[definition]] and no [[feed]] is called so",
    );
    refused(&["--headwater", "nonsense"], "--headwater");
    refused(&["--password", "secret"], "--user");
    refused(&["--config", "missing.toml"], "missing.toml");
    let file = ["--user", "app", "--password-file", "missing"];
    refused(&file, "--password-file");
}

#[test]
fn who_asks_nobody_is_told_whom_to_name() {
    let output = headwater(&[]).arg("verify").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--service-user"), "{said}");
}
