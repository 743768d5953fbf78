//! The measuring client's login.

use super::flags::BenchFlags;
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
    /// The account that the flags name.
    #[must_use]
    pub fn of(flags: &BenchFlags) -> BenchAccount {
        BenchAccount {
            user: flags.user().to_owned(),
            password: flags.password.clone(),
            database: flags.database.clone(),
        }
    }

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
