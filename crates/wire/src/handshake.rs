//! How a connection opens: the server's greeting, the client's login, and COM_CHANGE_USER, which logs in again.
pub mod change_user;
pub mod greeting;
pub mod login;

pub use change_user::ChangeUserRequest;
pub use greeting::{ServerGreeting, greeting_with_flags};
pub use login::{LoginRequest, LoginResponse, login_with_flags, ssl_request};
