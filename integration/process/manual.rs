//! What is generated from the code: manual pages, completions, and the book's page of settings.

use std::path::Path;
use std::process::Command;

use crate::kit::proxy::headwater;

/// Generates the files; returns their folder.
fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ran = headwater(&[]).arg("manual").arg(folder.path()).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    folder
}

#[test]
fn the_page_of_settings_is_what_the_code_says() {
    let folder = written();
    let told = std::fs::read_to_string(folder.path().join("settings.md")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    let differs = told
        .lines()
        .zip(page.lines())
        .find(|(told, page)| told != page);
    assert!(
        told == page,
        "docs/settings.md differs from headwater.example.toml and the flags: `make settings` renews it. First: {differs:#?}"
    );
}

#[test]
fn there_is_a_manual_page_for_each_subcommand_and_none_for_the_laboratory() {
    let folder = written();
    let pages = std::fs::read_dir(folder.path().join("man")).unwrap();
    let mut pages: Vec<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let names = [
        "-check.8",
        "-discover.8",
        "-reload.8",
        "-serve.8",
        "-verify.8",
        ".8",
    ];
    assert_eq!(pages, names.map(|name| format!("headwater{name}")));
    let serve = folder.path().join("man/headwater-serve.8");
    let serve = std::fs::read_to_string(serve).unwrap();
    for part in [
        ".TH headwater-serve 8",
        "\\-\\-upstream",
        "HEADWATER_UPSTREAM",
    ] {
        assert!(serve.contains(part), "no {part} in {serve}");
    }
}

#[test]
fn the_shell_completes_subcommands_and_flags() {
    let folder = written();
    let completed = |words: &str| {
        let script = format!(
            ". completions/headwater.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _headwater headwater \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let ran = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(completed("headwater di"), "discover");
    assert_eq!(
        completed("headwater serve --ups"),
        "--upstream --upstream-tls --upstream-tls-ca"
    );
    assert_eq!(completed("headwater ben"), "");
    for file in ["_headwater", "headwater.fish"] {
        let text = std::fs::read_to_string(folder.path().join("completions").join(file)).unwrap();
        assert!(
            text.contains("upstream-tls-ca") && !text.contains("bench"),
            "{file}"
        );
    }
}
