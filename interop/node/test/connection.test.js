import assert from 'node:assert/strict';
import { test } from 'node:test';
import { behaviour, connect, TEST_TIMEOUT_MS } from './support.js';

behaviour('the server advertises the extensions clients switch on', async ({ connection }) => {
  const { capabilities } = connection.connection.serverProperties;
  for (const name of [
    'publisher_confirms',
    'exchange_exchange_bindings',
    'basic.nack',
    'consumer_cancel_notify',
    'connection.blocked',
    'authentication_failure_close',
  ]) {
    assert.equal(capabilities[name], true, name);
  }
});

test('a wrong password is refused with 403', { timeout: TEST_TIMEOUT_MS }, async () => {
  await assert.rejects(connect({ password: 'wrong' }), /403 \(ACCESS-REFUSED\)/);
});

test('a missing virtual host is refused', { timeout: TEST_TIMEOUT_MS }, async () => {
  // amqplib does not say which error: only that connection.close came in place of connection.open-ok.
  await assert.rejects(connect({ vhost: 'interop-no-such-vhost' }), /got <ConnectionClose channel:0>/);
});

behaviour('channels of one connection do not share delivery tags', async (session) => {
  const [one, two] = [await session.channel(), await session.channel()];
  for (const channel of [one, two]) {
    const queue = await session.queue(channel);
    channel.sendToQueue(queue, Buffer.from('first'));
    const message = await channel.get(queue);
    assert.equal(message.fields.deliveryTag, 1);
    channel.ack(message);
  }
});
