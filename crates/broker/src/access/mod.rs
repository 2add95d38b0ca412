//! Who may do what: users, their passwords, their permissions in each vhost.

mod password;
mod permissions;
mod rule;
mod topic_permissions;
mod users;

pub use password::PasswordHash;
pub use permissions::{Operation, Permissions};
use rule::Rule;
pub(crate) use topic_permissions::{TopicPermission, TopicPermissions, UserTopics};
pub(crate) use users::UserMap;
pub use users::{Login, User, Users};
