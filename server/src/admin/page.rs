//! The page at `/`: one document, which requests `/api` for its data. It contains no data itself and needs no token; `/api` does.

/// The document, and the Content-Security-Policy that blocks all other scripts.
pub(super) struct AdminPage {
    pub(super) document: String,
    pub(super) content_security_policy: String,
}

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 3] = [
    include_str!("page/draw.js"),
    include_str!("page/parts.js"),
    include_str!("page/page.js"),
];

/// Builds the page with a fresh nonce; only elements that carry it run. `token`: the page requests the token first. `None`: the system has
/// no random bytes.
pub(super) fn page(token: bool) -> Option<AdminPage> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    let nonce: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let document = DOCUMENT
        .replace("{nonce}", &nonce)
        .replace("{token}", if token { "wanted" } else { "none" })
        .replace("{style}", STYLE)
        .replace("{script}", &SCRIPTS.concat());
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    Some(AdminPage {
        document,
        content_security_policy: policy,
    })
}
