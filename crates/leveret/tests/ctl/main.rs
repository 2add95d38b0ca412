//! `leveret ctl` as people and their scripts run it, against a real server. What it prints, and its
//! exit statuses, are what `rabbitmqctl` 3.10.8 printed for the same commands, unless a test says
//! why not.

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod formats;
mod load_definitions;
mod node;
mod parameters;
mod permissions;
mod policies;
mod queues;
mod running;
mod socket;
mod topic_permissions;
mod usage;
mod users;
mod vhosts;
