import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { behaviour, Inbox } from './support.js';

const FRAME_OVERHEAD = 8; // type, channel, size and end marker

behaviour('a body of 1 MiB spans frames and arrives byte for byte', async (session) => {
  const body = randomBytes(1024 * 1024);
  assert.ok(session.connection.connection.frameMax < body.length, 'the body must not fit a frame');
  const received = await roundTrip(session, body);
  assert.ok(received.content.equals(body));
});

behaviour('bodies at the edge of a frame arrive byte for byte', async (session) => {
  const full = session.connection.connection.frameMax - FRAME_OVERHEAD;
  for (const size of [full - 1, full, full + 1, 2 * full]) {
    const body = randomBytes(size);
    assert.ok((await roundTrip(session, body)).content.equals(body), `${size} bytes`);
  }
});

behaviour('an empty body arrives empty, and the next message is intact', async (session) => {
  assert.equal((await roundTrip(session, Buffer.alloc(0))).content.length, 0);
  assert.equal((await roundTrip(session, Buffer.from('next'))).content.toString(), 'next');
});

behaviour('every header value type survives, nested too', async (session) => {
  const typed = (type, value) => ({ '!': type, value });
  const values = {
    string: 'Grüße 🐇',
    emptyString: '',
    bytes: Buffer.from([0, 1, 254, 255]),
    yes: true,
    no: false,
    nothing: null,
    int8: typed('int8', -128),
    uint8: typed('uint8', 255),
    int16: typed('int16', -32768),
    uint16: typed('uint16', 65535),
    int32: typed('int32', -2147483648),
    uint32: typed('uint32', 4294967295),
    int64: typed('int64', -(2 ** 53)),
    float: typed('float', 1.5),
    double: typed('double', Math.PI),
    timestamp: typed('timestamp', 1_700_000_000),
    decimal: typed('decimal', { places: 2, digits: 12345 }),
  };
  const headers = {
    ...values,
    emptyTable: {},
    emptyArray: [],
    table: { ...values, deeper: { array: [1, [2, { three: 3 }], 'four'] } },
    array: Object.values(values),
  };
  const received = await roundTrip(session, Buffer.from('x'), { headers });
  assert.deepEqual(received.properties.headers, plain(headers));
});

behaviour('every basic property survives', async (session) => {
  const options = {
    contentType: 'text/plain',
    contentEncoding: 'gzip',
    deliveryMode: 2,
    priority: 7,
    correlationId: 'correlation',
    replyTo: 'reply',
    expiration: '60000',
    messageId: 'message',
    timestamp: 1_700_000_000,
    type: 'type',
    userId: 'guest',
    appId: 'application',
  };
  const { properties } = await roundTrip(session, Buffer.from('x'), options);
  for (const [name, value] of Object.entries(options)) assert.equal(properties[name], value, name);
});

async function roundTrip(session, body, options) {
  const channel = await session.channel();
  const queue = await session.queue(channel);
  const inbox = await Inbox.consume(channel, queue, { noAck: true });
  channel.sendToQueue(queue, body, options);
  const message = await inbox.next();
  await channel.close();
  return message;
}

/** What amqplib decodes `value` to: numbers lose the type they were sent with. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value;
  if ('!' in value) return ['timestamp', 'decimal'].includes(value['!']) ? value : value.value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
