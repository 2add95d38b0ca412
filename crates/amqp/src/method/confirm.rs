//! Confirm: publisher confirms (RabbitMQ extension).

class! {
    'a 85;

    /// `confirm.select`
    Select = 10 since V0_9 "confirm.select" {
        /// Argument `no-wait`.
        no_wait: bool;
    }
    /// `confirm.select-ok`
    SelectOk = 11 since V0_9 "confirm.select-ok" {
    }
}
