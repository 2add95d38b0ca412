// What every test here shares: the broker's address, a session that cleans up after itself, and an
// inbox that turns consumer callbacks into values to await.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import amqp from 'amqplib';

export const TEST_TIMEOUT_MS = 15_000;
const WAIT_MS = 5_000;

export const BROKER = {
  protocol: 'amqp',
  hostname: process.env.AMQP_HOST ?? '127.0.0.1',
  port: Number(process.env.AMQP_PORT ?? 5672),
  username: 'guest',
  password: 'guest',
  vhost: '/',
};

export function connect(overrides = {}) {
  return amqp.connect({ ...BROKER, ...overrides }, { timeout: WAIT_MS });
}

export function uniqueName(purpose) {
  return `interop.node.${purpose}.${randomUUID()}`;
}

/** A test that is handed an open Session, closed for it afterwards. */
export function behaviour(name, body) {
  test(name, { timeout: TEST_TIMEOUT_MS + 1_000 }, async (t) => {
    const session = await Session.open();
    t.after(() => session.close());
    await body(session);
  });
}

/**
 * One connection and what was declared through it. Queues are exclusive, so they go with the
 * connection; exchanges are deleted by close().
 */
export class Session {
  #exchanges = [];
  #watchdog;

  constructor(connection) {
    this.connection = connection;
    // Whatever waits on the connection meets the error too, and so does close().
    connection.on('error', () => {});
    // A socket left open would keep Node from exiting; cutting it also fails what waits on it.
    this.#watchdog = setTimeout(() => {
      connection.connection.stream.destroy(new Error('the test took too long'));
    }, TEST_TIMEOUT_MS);
  }

  static async open() {
    return new Session(await connect());
  }

  channel() {
    return this.connection.createChannel();
  }

  confirmChannel() {
    return this.connection.createConfirmChannel();
  }

  /** Declares an exclusive queue under a fresh name, and returns the name. */
  async queue(channel) {
    const { queue } = await channel.assertQueue(uniqueName('queue'), { exclusive: true });
    return queue;
  }

  /** Declares an exchange under a fresh name, and returns the name. */
  async exchange(channel, type) {
    const name = uniqueName(type);
    await channel.assertExchange(name, type, { durable: false });
    this.#exchanges.push(name);
    return name;
  }

  async close() {
    try {
      await this.#deleteExchanges();
      await this.connection.close();
    } finally {
      clearTimeout(this.#watchdog);
    }
  }

  async #deleteExchanges() {
    if (this.#exchanges.length === 0) return;
    const channel = await this.channel();
    for (const name of this.#exchanges) await channel.deleteExchange(name);
  }
}

/** Deliveries in order of arrival; null stands for the broker cancelling the consumer. */
export class Inbox {
  #arrived = [];
  #wake = null;

  static async consume(channel, queue, options = {}) {
    const inbox = new Inbox();
    const { consumerTag } = await channel.consume(queue, (message) => inbox.#push(message), options);
    inbox.consumerTag = consumerTag;
    return inbox;
  }

  async next() {
    if (this.#arrived.length === 0) await this.#arrival();
    return this.#arrived.shift();
  }

  async take(count) {
    const messages = [];
    while (messages.length < count) messages.push(await this.next());
    return messages;
  }

  /** Fails if a delivery comes while the broker has time to send one. */
  async staysEmpty() {
    await delay(200);
    assert.deepEqual(texts(this.#arrived), [], 'deliveries that should not have come');
  }

  #push(message) {
    this.#arrived.push(message);
    this.#wake?.();
  }

  #arrival() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no delivery within ${WAIT_MS} ms`)), WAIT_MS);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
    });
  }
}

export function delay(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function texts(messages) {
  return messages.map((message) => message && message.content.toString());
}

/** 'm0', 'm1', …: bodies whose order can be checked. */
export function numbered(count) {
  return Array.from({ length: count }, (_, i) => `m${i}`);
}

/** The messages ready for delivery; those delivered and not yet acknowledged do not count. */
export async function readyCount(channel, queue) {
  return (await channel.checkQueue(queue)).messageCount;
}

export function publishAll(channel, queue, bodies) {
  for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body));
}
