import assert from 'node:assert/strict';
import { behaviour, uniqueName } from './support.js';

behaviour('a passive declare of a missing queue closes the channel with 404', async (session) => {
  const bystander = await session.channel();
  const missing = uniqueName('missing');
  await closesChannel(session, 404, /NOT_FOUND - no queue '.*' in vhost '\/'/, (channel) =>
    channel.checkQueue(missing),
  );
  await usable(session, bystander);
});

behaviour('redeclaring a queue with other arguments closes the channel with 406', async (session) => {
  const owner = await session.channel();
  const queue = await session.queue(owner);
  await closesChannel(session, 406, /PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'/, (channel) =>
    channel.assertQueue(queue, { exclusive: true, messageTtl: 60_000 }),
  );
  await usable(session, owner);
});

behaviour('publishing to a missing exchange closes the channel with 404', async (session) => {
  await closesChannel(session, 404, /NOT_FOUND - no exchange '.*' in vhost '\/'/, async (channel) => {
    channel.publish(uniqueName('missing'), 'key', Buffer.from('body'));
    // The error has no request to answer: it meets whichever comes next.
    await channel.checkExchange('amq.direct');
  });
});

behaviour('acknowledging an unknown delivery tag closes the channel with 406', async (session) => {
  await closesChannel(session, 406, /PRECONDITION_FAILED - unknown delivery tag 77/, async (channel) => {
    channel.ack({ fields: { deliveryTag: 77 } });
    await channel.checkExchange('amq.direct');
  });
});

/** Checks the error that `action` meets, then that the connection still gives a working channel. */
async function closesChannel(session, code, text, action) {
  const channel = await session.channel();
  const closed = new Promise((resolve) => channel.on('close', resolve));
  const errors = [];
  channel.on('error', (error) => errors.push(error));

  await assert.rejects(action(channel), (error) => error.code === code && text.test(error.message));
  await closed;
  assert.deepEqual(errors.map((error) => error.code), [code]);

  await usable(session, await session.channel());
}

async function usable(session, channel) {
  const queue = await session.queue(channel);
  channel.sendToQueue(queue, Buffer.from('still here'));
  const message = await channel.get(queue, { noAck: true });
  assert.equal(message.content.toString(), 'still here');
}
