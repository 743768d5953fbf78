//! The measuring client's login.

use headwater_proxy::account::login::LoginCredentials;

/// An account, and its database.
#[derive(Clone)]
pub struct BenchAccount {
    /// User name.
    pub user: String,
    /// Password; may be empty.
    pub password: String,
    /// Initial database.
    pub database: String,
}

impl BenchAccount {
    pub(super) fn login(&self) -> LoginCredentials<'_> {
        LoginCredentials {
            user: &self.user,
            password: &self.password,
            database: Some(&self.database),
        }
    }
}

impl std::fmt::Debug for BenchAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({:?} in {:?})", self.user, self.database)
    }
}
