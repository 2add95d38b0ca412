//! Users: adding and deleting them, their passwords and tags.

use std::sync::Arc;

use store::DefinitionChange;

use super::{Admin, AdminError, check_name};
use crate::access::{PasswordHash, User, UserMap};
use crate::definitions;

/// More tags than this, or longer ones, are a mistake.
const MAX_TAGS: usize = 100;

/// What is told about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    /// Login name.
    pub name: Arc<str>,
    /// `administrator`, `monitoring`, …
    pub tags: Vec<String>,
}

impl Admin<'_> {
    /// All users, by name.
    pub fn list_users(&self) -> Vec<UserInfo> {
        let users = self.broker.users.list().into_iter();
        users
            .map(|user| UserInfo {
                name: user.name.clone(),
                tags: user.tags.clone(),
            })
            .collect()
    }

    /// Adds a user without tags and permissions.
    ///
    /// # Errors
    /// There is one of that name, or the name makes no sense.
    pub fn add_user(&self, name: &str, password: &str) -> Result<(), AdminError> {
        check_name("user", name)?;
        let password = hashed(password);
        self.broker.users.change(|users| {
            if users.contains_key(name) {
                return Err(AdminError::UserExists(name.to_owned()));
            }
            let user = User {
                name: name.into(),
                password,
                tags: Vec::new(),
                permissions: Default::default(),
            };
            self.log_and_put(users, user);
            Ok(())
        })?;
        self.broker.events.user_created(self.by, name);
        Ok(())
    }

    /// Adds a user, or changes the password and tags of the one that is there.
    ///
    /// # Errors
    /// The name or the tags make no sense.
    pub fn put_user(
        &self,
        name: &str,
        password: PasswordHash,
        tags: Vec<String>,
    ) -> Result<(), AdminError> {
        check_name("user", name)?;
        check_tags(&tags)?;
        let events = &self.broker.events;
        let (new, other_password, other_tags) = self.broker.users.change(|users| {
            let found = users.get(name);
            let other_password = found.is_none_or(|user| user.password != password);
            let other_tags = found.is_none_or(|user| user.tags != tags);
            let new = found.is_none();
            if !other_password && !other_tags {
                return (new, other_password, other_tags);
            }
            let permissions = found.map(|user| user.permissions.clone());
            let user = User {
                name: name.into(),
                password,
                tags: tags.clone(),
                permissions: permissions.unwrap_or_default(),
            };
            self.log_and_put(users, user);
            (new, other_password, other_tags)
        });
        if new {
            events.user_created(self.by, name);
        } else if other_password {
            events.user_password_changed(self.by, name);
        }
        if other_tags {
            events.user_tags_set(self.by, name, &tags);
        }
        Ok(())
    }

    /// Deletes a user with all its permissions, and closes its connections.
    ///
    /// # Errors
    /// There is no such user.
    pub fn delete_user(&self, name: &str) -> Result<(), AdminError> {
        self.broker.users.change(|users| {
            let user = users.remove(name).ok_or_else(|| no_such(name))?;
            let mut change = DefinitionChange::default();
            change.undefine(&definitions::user_key(name));
            for vhost in user.permissions.keys() {
                change.undefine(&definitions::permission_key(name, vhost));
            }
            self.broker.users.change_topic(|topic| {
                topic.retain(|[user, vhost, exchange], _| {
                    let stays = **user != *name;
                    if !stays {
                        let key = definitions::topic_permission_key(user, vhost, exchange);
                        change.undefine(&key);
                    }
                    stays
                });
            });
            self.broker.define(change);
            Ok(())
        })?;
        self.broker.events.user_deleted(self.by, name);
        self.broker.connections.end_of_user(name);
        Ok(())
    }

    /// Changes a password. Open connections stay.
    ///
    /// # Errors
    /// There is no such user.
    pub fn change_password(&self, name: &str, password: &str) -> Result<(), AdminError> {
        let password = hashed(password);
        self.change_user(name, |user| user.password = password)?;
        self.broker.events.user_password_changed(self.by, name);
        Ok(())
    }

    /// Sets a user's tags, in place of those that it has.
    ///
    /// # Errors
    /// There is no such user, or the tags make no sense.
    pub fn set_user_tags(&self, name: &str, tags: Vec<String>) -> Result<(), AdminError> {
        check_tags(&tags)?;
        self.change_user(name, |user| user.tags.clone_from(&tags))?;
        self.broker.events.user_tags_set(self.by, name, &tags);
        Ok(())
    }

    /// Checks a password.
    ///
    /// # Errors
    /// It is not that user's, or there is no such user.
    pub fn authenticate_user(&self, name: &str, password: &str) -> Result<(), AdminError> {
        let user = self.broker.users.get(name);
        let right = user
            .is_some_and(|user| !password.is_empty() && user.password.verify(password.as_bytes()));
        match right {
            true => Ok(()),
            false => Err(AdminError::BadCredentials(name.to_owned())),
        }
    }

    fn change_user(&self, name: &str, change: impl FnOnce(&mut User)) -> Result<(), AdminError> {
        self.broker.users.change(|users| {
            let found = users.get(name).ok_or_else(|| no_such(name))?;
            let mut user = User::clone(found);
            change(&mut user);
            self.log_and_put(users, user);
            Ok(())
        })
    }

    /// Its permissions are definitions of their own, and do not change.
    fn log_and_put(&self, users: &mut UserMap, user: User) {
        let mut change = DefinitionChange::default();
        let value = definitions::user_value(&user);
        change.define(&definitions::user_key(&user.name), &value);
        self.broker.define(change);
        users.insert(user.name.clone(), Arc::new(user));
    }
}

/// Nobody logs in with an empty password: as in RabbitMQ it stands for none.
fn hashed(password: &str) -> PasswordHash {
    match password {
        "" => PasswordHash::none(),
        _ => PasswordHash::new(password),
    }
}

pub(super) fn check_tags(tags: &[String]) -> Result<(), AdminError> {
    if tags.len() > MAX_TAGS {
        return Err(AdminError::Invalid(format!("more than {MAX_TAGS} tags")));
    }
    tags.iter().try_for_each(|tag| check_name("tag", tag))
}

pub(super) fn no_such(name: &str) -> AdminError {
    AdminError::NoSuchUser(name.to_owned())
}
