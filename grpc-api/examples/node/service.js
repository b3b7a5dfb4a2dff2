// A service that is registered as long as it runs.
//
//   node service.js --servers 127.0.0.1:9761 --app ORDERS --id orders-1 --port 8080
//
// It registers, renews its lease on one stream, registers again when the server asks for it, and cancels when it is told to
// stop (SIGTERM or Ctrl-C).
'use strict';

const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { connect, calls, explain, pause, status } = require('./registry');

// The server is not there, stops, or is too busy: what was asked is still right. Anything else is a mistake of ours.
const TEMPORARY = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED];

// Keeps one instance registered.
class Lease {
  constructor(client, instance) {
    this.client = client;
    this.registry = calls(client);
    this.instance = instance;
    this.registered = false;
    this.stopping = new AbortController();
  }

  // Resolves when `stopping` is aborted and the instance is cancelled.
  async hold() {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        if (!this.registered) await this.register();
        await this.keepAlive();
      } catch (error) {
        if (signal.aborted) break;
        if (!TEMPORARY.includes(error.code)) throw error;
        console.log('trying again:', explain(error));
        await sleep(pause(error), null, { signal }).catch(() => {});
      }
    }
    await this.cancel();
  }

  async register() {
    await this.registry.Register({ instance: this.instance });
    this.registered = true;
    console.log(`registered ${this.instance.app}/${this.instance.instance_id}`);
  }

  // Renews until the stream ends. On a new stream, perhaps to another server, the first renewal goes out at once.
  async keepAlive() {
    const { app, instance_id, last_dirty_unix_ms, lease_terms } = this.instance;
    const stream = this.client.KeepAlive();
    const renew = () => stream.write({ renewals: [{ app, instance_id, last_dirty_unix_ms }] });
    const timer = setInterval(renew, lease_terms.renewal_interval_secs * 1000);
    const stop = () => stream.end();
    this.stopping.signal.addEventListener('abort', stop);
    renew();
    try {
      for await (const answer of stream) {
        for (const { outcome } of answer.results) {
          if (outcome !== 'RENEWAL_OUTCOME_RENEWED') {
            console.log('registering again:', outcome);
            await this.register();
          }
        }
      }
    } finally {
      clearInterval(timer);
      this.stopping.signal.removeEventListener('abort', stop);
    }
  }

  // The end of the stream is no cancel: without this the instance stays until its lease runs out.
  async cancel() {
    const { app, instance_id } = this.instance;
    try {
      await this.registry.Cancel({ app, instance_id });
    } catch (error) {
      if (error.code !== status.NOT_FOUND) throw error;
    }
    console.log(`cancelled ${app}/${instance_id}`);
  }
}

async function main() {
  const text = (value) => ({ type: 'string', default: value });
  const { values } = parseArgs({
    options: {
      servers: text('127.0.0.1:9761'),
      app: text('ORDERS'),
      id: text('orders-1'),
      host: text('localhost'),
      ip: text('127.0.0.1'),
      port: text('8080'),
      renew: text('30'),
      lease: text('90'),
    },
  });
  const instance = {
    app: values.app,
    instance_id: values.id,
    host_name: values.host,
    ip_address: values.ip,
    status: 'STATUS_UP',
    port: { number: Number(values.port), enabled: true },
    vip_address: values.app.toLowerCase(),
    metadata: { language: 'node' },
    lease_terms: { renewal_interval_secs: Number(values.renew), duration_secs: Number(values.lease) },
    // The version of all this. It stays the same as long as the content does, also when it is registered again.
    last_dirty_unix_ms: Date.now(),
  };
  const client = connect(values.servers);
  const lease = new Lease(client, instance);
  for (const signal of ['SIGTERM', 'SIGINT']) once(process, signal).then(() => lease.stopping.abort());
  try {
    await lease.hold();
  } catch (error) {
    console.error('error:', explain(error));
    process.exitCode = 1;
  }
  client.close();
}

main();
