// amqplib has no public transaction calls, but its codec knows the methods and any channel can send
// them with rpc(), so the broker's side can be tested all the same.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { behaviour, Inbox, numbered, publishAll, readyCount } from './support.js';

const require = createRequire(import.meta.url);
const defs = require(path.join(path.dirname(require.resolve('amqplib')), 'lib', 'defs.js'));

const select = (channel) => channel.rpc(defs.TxSelect, {}, defs.TxSelectOk);
const commit = (channel) => channel.rpc(defs.TxCommit, {}, defs.TxCommitOk);
const rollback = (channel) => channel.rpc(defs.TxRollback, {}, defs.TxRollbackOk);

behaviour('published messages appear at commit and not before', async (session) => {
  const [channel, observer] = [await session.channel(), await session.channel()];
  const queue = await session.queue(channel);
  await select(channel);
  publishAll(channel, queue, numbered(3));
  assert.equal(await readyCount(channel, queue), 0);
  await commit(channel);
  assert.equal(await readyCount(observer, queue), 3);
});

behaviour('a rollback discards published messages', async (session) => {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  await select(channel);
  publishAll(channel, queue, ['discarded', 'discarded']);
  await rollback(channel);
  channel.sendToQueue(queue, Buffer.from('kept'));
  await commit(channel);
  assert.equal(await readyCount(channel, queue), 1);
  assert.equal((await channel.get(queue)).content.toString(), 'kept');
});

behaviour('acknowledgements count only once committed', async (session) => {
  const setUp = await session.channel();
  const queue = await session.queue(setUp);
  publishAll(setUp, queue, numbered(2));

  // Closing a channel gives back what its consumer holds unacknowledged, before close-ok.
  for (const [end, left] of [[rollback, 2], [commit, 1]]) {
    const channel = await session.channel();
    await select(channel);
    const [first] = await (await Inbox.consume(channel, queue)).take(2);
    channel.ack(first);
    await end(channel);
    await channel.close();
    assert.equal(await readyCount(setUp, queue), left);
  }
});
