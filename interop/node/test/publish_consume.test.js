import assert from 'node:assert/strict';
import { behaviour, Inbox, numbered, publishAll, readyCount, texts } from './support.js';

behaviour('messages are delivered in order and acknowledged ones are gone', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  publishAll(channel, queue, numbered(200));

  const messages = await (await Inbox.consume(channel, queue)).take(200);
  assert.deepEqual(texts(messages), numbered(200));
  assert.deepEqual(
    messages.map((message) => message.fields.deliveryTag),
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
  assert.ok(messages.every((message) => !message.fields.redelivered));

  // 0..9 one by one, the rest but the last in one stroke: closing gives the last one back.
  for (const message of messages.slice(0, 10)) channel.ack(message);
  channel.ack(messages[198], true);
  await channel.close();

  const after = await session.channel();
  assert.equal(await readyCount(after, queue), 1);
  const left = await after.get(queue, { noAck: true });
  assert.equal(left.content.toString(), 'm199');
  assert.equal(left.fields.redelivered, true);
});

behaviour('a consumer without acknowledgements leaves nothing behind', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  const inbox = await Inbox.consume(channel, queue, { noAck: true });
  publishAll(channel, queue, numbered(50));
  assert.deepEqual(texts(await inbox.take(50)), numbered(50));
  await channel.close();
  assert.equal(await readyCount(await session.channel(), queue), 0);
});

behaviour('basic.get takes one message, counts the rest, and says when empty', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  publishAll(channel, queue, numbered(3));

  const first = await channel.get(queue);
  assert.equal(first.content.toString(), 'm0');
  assert.equal(first.fields.messageCount, 2);
  assert.equal(first.fields.exchange, '');
  assert.equal(first.fields.routingKey, queue);
  channel.ack(first);

  assert.equal((await channel.get(queue, { noAck: true })).content.toString(), 'm1');
  assert.equal((await channel.get(queue, { noAck: true })).fields.messageCount, 0);
  assert.equal(await channel.get(queue), false);
});

behaviour('a cancelled consumer gets no more messages', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  const inbox = await Inbox.consume(channel, queue, { consumerTag: 'the-consumer' });
  assert.equal(inbox.consumerTag, 'the-consumer');
  assert.equal((await channel.cancel('the-consumer')).consumerTag, 'the-consumer');

  channel.sendToQueue(queue, Buffer.from('unclaimed'));
  await inbox.staysEmpty();
  assert.equal(await readyCount(channel, queue), 1);
});

behaviour('deleting a queue cancels its consumers', async (session) => {
  const [consuming, deleting] = [await session.channel(), await session.channel()];
  const queue = await session.queue(consuming);
  const inbox = await Inbox.consume(consuming, queue);
  publishAll(deleting, queue, numbered(2));
  assert.deepEqual(texts(await inbox.take(2)), numbered(2));

  await deleting.deleteQueue(queue);
  assert.equal(await inbox.next(), null);
});
