//! How a connection opens: the server's greeting, the client's login, and COM_CHANGE_USER, which logs in anew.
pub mod change_user;
pub mod greeting;
pub mod login;

pub use change_user::ChangeUser;
pub use greeting::{Greeting, greeting_with};
pub use login::{Login, LoginResponse, login_with, ssl_request};
