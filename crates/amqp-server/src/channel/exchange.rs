//! Methods of class exchange.

use amqp::Version;
use amqp::method::exchange;
use broker::{Error, ExchangeKind, ExchangeOptions};

use super::{Channel, declared_name, name};
use crate::connection::Core;
use crate::exception::Exception;

impl Channel {
    pub(super) fn exchange_declare(
        &mut self,
        core: &mut Core,
        declare: exchange::Declare<'_>,
    ) -> Result<(), Exception> {
        let exchange = declared_name("exchange", declare.exchange)?;
        if declare.passive {
            core.session.check_exchange(&exchange)?;
        } else {
            let kind_name = name("type", declare.kind)?;
            let kind = ExchangeKind::from_name(kind_name).ok_or_else(|| unknown_kind(kind_name))?;
            let options = ExchangeOptions {
                kind,
                durable: declare.durable,
                auto_delete: declare.auto_delete,
                internal: declare.internal,
                arguments: declare.arguments.to_owned()?,
            };
            let only_type = core.version == Version::V0_8;
            core.session
                .declare_exchange(&exchange, options, only_type)?;
        }
        core.reply_defined(self.number, declare.no_wait, exchange::DeclareOk {});
        Ok(())
    }

    pub(super) fn exchange_delete(
        &mut self,
        core: &mut Core,
        delete: exchange::Delete<'_>,
    ) -> Result<(), Exception> {
        let exchange = declared_name("exchange", delete.exchange)?;
        core.session.delete_exchange(&exchange, delete.if_unused)?;
        core.reply_defined(self.number, delete.no_wait, exchange::DeleteOk {});
        Ok(())
    }

    pub(super) fn exchange_bind(
        &mut self,
        core: &mut Core,
        bind: exchange::Bind<'_>,
    ) -> Result<(), Exception> {
        let destination = declared_name("destination", bind.destination)?;
        let source = declared_name("source", bind.source)?;
        let arguments = bind.arguments.to_owned()?;
        let key = bind.routing_key.as_bytes();
        core.session
            .bind_exchange(&destination, &source, key, arguments)?;
        core.reply_defined(self.number, bind.no_wait, exchange::BindOk {});
        Ok(())
    }

    pub(super) fn exchange_unbind(
        &mut self,
        core: &mut Core,
        unbind: exchange::Unbind<'_>,
    ) -> Result<(), Exception> {
        let destination = declared_name("destination", unbind.destination)?;
        let source = declared_name("source", unbind.source)?;
        let arguments = unbind.arguments.to_owned()?;
        let key = unbind.routing_key.as_bytes();
        core.session
            .unbind_exchange(&destination, &source, key, arguments)?;
        core.reply_defined(self.number, unbind.no_wait, exchange::UnbindOk {});
        Ok(())
    }
}

fn unknown_kind(kind: &str) -> Error {
    match kind {
        "" => Error::precondition("invalid exchange type ''"),
        _ => Error::precondition(format!("unknown exchange type '{kind}'")),
    }
}
