//! Tx: transactions on a channel (0-9-1 section 1.9).

class! {
    'a 90;

    /// `tx.select`
    Select = 10 "tx.select" {
    }
    /// `tx.select-ok`
    SelectOk = 11 "tx.select-ok" {
    }
    /// `tx.commit`
    Commit = 20 "tx.commit" {
    }
    /// `tx.commit-ok`
    CommitOk = 21 "tx.commit-ok" {
    }
    /// `tx.rollback`
    Rollback = 30 "tx.rollback" {
    }
    /// `tx.rollback-ok`
    RollbackOk = 31 "tx.rollback-ok" {
    }
}
