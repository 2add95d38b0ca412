//! exchange.declare and exchange.delete.

use super::{Session, refuse_default_exchange, refuse_reserved_name};
use crate::access::Operation;
use crate::error::Error;
use crate::exchange::ExchangeOptions;

impl Session {
    /// exchange.declare with `passive`.
    pub fn check_exchange(&self, name: &str) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        match self.vhost.read().exchanges.contains_key(name) {
            true => Ok(()),
            false => Err(Error::not_found(self.exchange_resource(name))),
        }
    }

    /// exchange.declare. `only_type`: redeclaring compares the type alone (AMQP 0-8).
    pub fn declare_exchange(
        &self,
        name: &str,
        options: ExchangeOptions,
        only_type: bool,
    ) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        let resource = self.exchange_resource(name);
        self.permit(Operation::Configure, resource)?;
        let vhost = &self.vhost.name;
        if let Some(exchange) = self.vhost.read().exchanges.get(name) {
            return exchange.assert_equivalent(&options, only_type, vhost);
        }
        refuse_reserved_name("exchange", name)?;
        options.validate(resource)?;
        self.permit_forwarding(resource, &options.arguments, "alternate-exchange")?;
        self.change(|topology| match topology.exchanges.get(name) {
            Some(exchange) => exchange.assert_equivalent(&options, only_type, vhost),
            None => {
                let exchange = self.vhost.make_exchange(name.into(), options);
                topology.insert_exchange(exchange);
                Ok(())
            }
        })
    }

    /// exchange.delete; deleting what is not there is fine.
    pub fn delete_exchange(&self, name: &str, if_unused: bool) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        let resource = self.exchange_resource(name);
        if name.starts_with("amq.") {
            return Err(Error::refused(format!(
                "deletion of system {resource} not allowed"
            )));
        }
        self.permit(Operation::Configure, resource)?;
        self.change(|topology| {
            let Some(exchange) = topology.exchanges.get(name) else {
                return Ok(());
            };
            if if_unused && exchange.has_bindings() {
                return Err(Error::precondition(format!("{resource} in use")));
            }
            let name = exchange.name.clone();
            topology.remove_exchange(&name);
            Ok(())
        })
    }
}
