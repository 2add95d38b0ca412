import assert from 'node:assert/strict';
import { behaviour, Inbox, readyCount, texts } from './support.js';

behaviour('an exchange bound to an exchange passes messages on until unbound', async (session) => {
  const channel = await session.channel();
  const source = await session.exchange(channel, 'topic');
  const destination = await session.exchange(channel, 'fanout');
  const queue = await session.queue(channel);
  await channel.bindExchange(destination, source, 'news.#');
  await channel.bindQueue(queue, destination, '');
  const inbox = await Inbox.consume(channel, queue, { noAck: true });

  channel.publish(source, 'sport.today', Buffer.from('unmatched'));
  channel.publish(source, 'news.today', Buffer.from('matched'));
  const message = await inbox.next();
  assert.equal(message.content.toString(), 'matched');
  assert.equal(message.fields.exchange, source);
  assert.equal(message.fields.routingKey, 'news.today');

  await channel.unbindExchange(destination, source, 'news.#');
  channel.publish(source, 'news.today', Buffer.from('unbound'));
  await inbox.staysEmpty();
});

behaviour('a queue declared without a name gets one from the server', async (session) => {
  const channel = await session.channel();
  const declared = await Promise.all([1, 2].map(() => channel.assertQueue('', { exclusive: true })));
  const names = declared.map((ok) => ok.queue);
  for (const name of names) assert.match(name, /^amq\.gen-/);
  assert.notEqual(names[0], names[1]);

  channel.sendToQueue(names[0], Buffer.from('to the generated name'));
  assert.equal((await channel.get(names[0], { noAck: true })).content.toString(), 'to the generated name');
});

behaviour('topic bindings select by word', async (session) => {
  const channel = await session.channel();
  const exchange = await session.exchange(channel, 'topic');
  const queue = await session.queue(channel);
  await channel.bindQueue(queue, exchange, '*.orange.#');
  const inbox = await Inbox.consume(channel, queue, { noAck: true });
  const matched = ['quick.orange', 'quick.orange.male.rabbit', 'lazy.orange.elephant'];
  for (const key of ['orange', 'a.b.orange', ...matched]) {
    channel.publish(exchange, key, Buffer.from(key));
  }
  assert.deepEqual(texts(await inbox.take(3)), matched);
  await inbox.staysEmpty();
});

behaviour('purge and delete report how many messages went', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  for (let i = 0; i < 5; i += 1) channel.sendToQueue(queue, Buffer.from('x'));
  assert.equal((await channel.purgeQueue(queue)).messageCount, 5);
  assert.equal(await readyCount(channel, queue), 0);
  channel.sendToQueue(queue, Buffer.from('x'));
  assert.equal((await channel.deleteQueue(queue)).messageCount, 1);
});
