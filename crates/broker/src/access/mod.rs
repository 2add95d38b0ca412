//! Who may do what: users, their passwords, their permissions in each vhost.

mod password;
mod permissions;
mod users;

pub use password::PasswordHash;
pub use permissions::{Operation, Permissions};
pub use users::{Login, User, Users};
pub(crate) use users::{TopicPermissions, UserMap};
