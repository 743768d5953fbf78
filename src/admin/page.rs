//! The page at `/`: one document, which asks `/api` for what it shows. It has nothing of anybody's in it, so it needs no token; what it
//! asks for does.

/// The document, and the header that lets nothing else run in it.
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

/// With a nonce of its own: only what carries it runs. It asks for the token first where there is one. `None`: the system gives no random
/// bytes.
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
