import assert from 'node:assert/strict';
import { behaviour, Inbox, numbered, publishAll, readyCount, texts } from './support.js';

for (const [method, giveBack] of [
  ['nack', (channel, message, requeue) => channel.nack(message, false, requeue)],
  ['reject', (channel, message, requeue) => channel.reject(message, requeue)],
]) {
  behaviour(`${method} with requeue redelivers, without requeue drops`, async (session) => {
    const channel = await session.channel();
    const queue = await session.queue(channel);
    const inbox = await Inbox.consume(channel, queue);
    channel.sendToQueue(queue, Buffer.from('again'));

    const first = await inbox.next();
    assert.equal(first.fields.redelivered, false);
    giveBack(channel, first, true);

    const second = await inbox.next();
    assert.equal(second.content.toString(), 'again');
    assert.equal(second.fields.redelivered, true);
    assert.equal(second.fields.deliveryTag, 2);
    giveBack(channel, second, false);

    await inbox.staysEmpty();
    assert.equal(await readyCount(channel, queue), 0);
  });
}

behaviour('nack of several puts them back in their places', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  publishAll(channel, queue, numbered(6));
  const taken = [];
  for (let i = 0; i < 4; i += 1) taken.push(await channel.get(queue));
  channel.nack(taken[3], true, true);

  const again = [];
  for (let i = 0; i < 6; i += 1) again.push(await channel.get(queue, { noAck: true }));
  assert.deepEqual(texts(again), numbered(6));
  const redelivered = again.map((message) => message.fields.redelivered);
  assert.deepEqual(redelivered, [true, true, true, true, false, false]);
});

behaviour('prefetch limits what a consumer holds', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  publishAll(channel, queue, numbered(10));
  await channel.prefetch(3);
  const inbox = await Inbox.consume(channel, queue);

  const held = await inbox.take(3);
  assert.equal(await readyCount(channel, queue), 7);
  await inbox.staysEmpty();

  channel.ack(held[0]);
  held.push(await inbox.next());
  await inbox.staysEmpty();

  channel.ack(held[3], true);
  assert.deepEqual(texts([...held, ...(await inbox.take(3))]), numbered(7));
  await inbox.staysEmpty();
  assert.equal(await readyCount(channel, queue), 3);
});

behaviour('a global prefetch is shared by the consumers of the channel', async (session) => {
  const channel = await session.channel();
  const [one, two] = [await session.queue(channel), await session.queue(channel)];
  for (const queue of [one, two]) publishAll(channel, queue, numbered(5));
  await channel.prefetch(4, true);
  const inboxes = [await Inbox.consume(channel, one), await Inbox.consume(channel, two)];

  // The first consumer has filled the limit before the second one exists.
  assert.deepEqual(texts(await inboxes[0].take(4)), numbered(4));
  await inboxes[0].staysEmpty();
  await inboxes[1].staysEmpty();
  assert.equal(await readyCount(channel, two), 5);
});
