import assert from 'node:assert/strict';
import { behaviour, numbered, readyCount, uniqueName } from './support.js';

behaviour('a single publish is confirmed', async (session) => {
  const channel = await session.confirmChannel();
  const queue = await session.queue(channel);
  await confirmed(channel, '', queue, 'only');
  assert.equal(await readyCount(channel, queue), 1);
});

behaviour('a thousand outstanding publishes are each confirmed once', async (session) => {
  const channel = await session.confirmChannel();
  const queue = await session.queue(channel);
  const confirmations = new Array(1000).fill(0);
  numbered(1000).forEach((body, i) => {
    channel.sendToQueue(queue, Buffer.from(body), { persistent: true }, () => {
      confirmations[i] += 1;
    });
  });
  // Rejects if any was nacked.
  await channel.waitForConfirms();
  assert.deepEqual(confirmations, new Array(1000).fill(1));
  assert.equal(await readyCount(channel, queue), 1000);
});

behaviour('an unroutable mandatory message is returned before its confirm', async (session) => {
  const channel = await session.confirmChannel();
  const nowhere = uniqueName('missing');
  const events = [];
  channel.on('return', (message) => events.push(message));
  channel.on('ack', () => events.push('confirmed'));
  await confirmed(channel, '', nowhere, 'lost', { mandatory: true, messageId: 'id-1' });

  assert.equal(events.length, 2);
  const [returned, last] = events;
  assert.equal(last, 'confirmed');
  assert.equal(returned.fields.replyCode, 312);
  assert.equal(returned.fields.replyText, 'NO_ROUTE');
  assert.equal(returned.fields.exchange, '');
  assert.equal(returned.fields.routingKey, nowhere);
  assert.equal(returned.properties.messageId, 'id-1');
  assert.equal(returned.content.toString(), 'lost');
});

behaviour('a routed mandatory message and an unroutable optional one are not returned', async (session) => {
  const channel = await session.confirmChannel();
  const queue = await session.queue(channel);
  const returned = [];
  channel.on('return', (message) => returned.push(message));
  await confirmed(channel, '', queue, 'kept', { mandatory: true });
  await confirmed(channel, '', uniqueName('missing'), 'dropped');
  assert.deepEqual(returned, []);
  assert.equal(await readyCount(channel, queue), 1);
});

function confirmed(channel, exchange, routingKey, body, options) {
  return new Promise((resolve, reject) => {
    channel.publish(exchange, routingKey, Buffer.from(body), options, (nacked) =>
      nacked ? reject(nacked) : resolve(),
    );
  });
}
