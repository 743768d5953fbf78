//! Every malformed packet is refused where it can be, and never followed into nonsense.

use super::{WireScenario, replies};
use crate::capability::Capabilities;
use crate::command::query_text_range;
use crate::handshake::{ChangeUserRequest, LoginRequest, ServerGreeting, greeting_with_flags};

#[test]
fn malformed_replies_are_not_followed() {
    let stories: Vec<_> = replies::replies("malformed").collect();
    assert!(stories.len() > 5);
    stories.iter().for_each(replies::check);
}

#[test]
fn malformed_payloads_are_refused() {
    let stories: Vec<_> = WireScenario::load_all("malformed")
        .into_iter()
        .filter(|story| story.get("reads").is_some())
        .collect();
    assert!(stories.len() > 5);
    for story in stories {
        let payload = story.bytes("payload");
        let capabilities = story.capabilities();
        let refused = match story.get("reads") {
            Some("greeting") => {
                let none = Capabilities::NONE;
                ServerGreeting::parse(&payload).is_err()
                    && greeting_with_flags(&payload, none, none).is_err()
            }
            Some("login") => LoginRequest::parse(&payload).is_err(),
            Some("change-user") => ChangeUserRequest::parse(&payload, capabilities).is_err(),
            Some("query") => query_text_range(&payload, capabilities).is_none(),
            other => unreachable!("{other:?}"),
        };
        assert!(refused, "{}", story.location);
    }
}
