// Follows what is registered.
//
//   node watch.js --servers 127.0.0.1:9761 --filter 'app == ORDERS'
//
// Keeps a copy of the instances that the filter selects, and prints every change of it. When the connection breaks it goes
// on where it was, at this server or another one.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { connect, explain, pause, status } = require('./registry');

// The instances that a filter selects, by application and id, as of `cursor`.
class Copy {
  constructor(filter, cursor) {
    this.filter = filter;
    this.cursor = cursor;
    this.instances = new Map();
    this.incoming = new Map();
  }

  // Takes over what one stream tells, until it ends.
  async follow(client) {
    for await (const answer of client.Watch({ cursor: this.cursor, filter: this.filter })) this.take(answer);
  }

  take(answer) {
    switch (answer.event) {
      case 'snapshot_begin':
        this.incoming = new Map();
        console.log('snapshot', answer.snapshot_begin.reason);
        break;
      case 'snapshot_page':
        for (const instance of answer.snapshot_page.instances) this.incoming.set(key(instance), instance);
        break;
      case 'snapshot_end':
        // Only a whole snapshot replaces what was known: a stream may break in the middle of one.
        this.instances = this.incoming;
        for (const instance of this.instances.values()) console.log('there', describe(instance));
        console.log('synced', answer.snapshot_end.instances, answer.cursor);
        break;
      case 'change':
        this.change(answer.change);
        break;
    }
    // Within a snapshot there is none: the old one stays valid until the new one is complete.
    if (answer.cursor) this.cursor = answer.cursor;
  }

  change({ action, instance, cause, author }) {
    if (action === 'ACTION_DELETED') this.instances.delete(key(instance));
    else this.instances.set(key(instance), instance);
    const [what, why, who] = [action.slice('ACTION_'.length), cause.slice('CAUSE_'.length), author.slice('AUTHOR_'.length)];
    console.log(what, describe(instance), why, 'by', who);
  }
}

function key({ app, instance_id }) {
  return `${app}/${instance_id}`;
}

function describe(instance) {
  return `${key(instance)} ${instance.status.slice('STATUS_'.length)}`;
}

async function main() {
  const { values } = parseArgs({
    options: {
      servers: { type: 'string', default: '127.0.0.1:9761' },
      filter: { type: 'string', default: '' },
      // Begin after this one, without a snapshot if the server can.
      cursor: { type: 'string', default: '' },
    },
  });
  const client = connect(values.servers);
  const copy = new Copy(values.filter, values.cursor);
  for (;;) {
    try {
      await copy.follow(client);
    } catch (error) {
      // A filter or cursor that is none, or a server that has no such call, will not get better.
      if (error.code === status.INVALID_ARGUMENT || error.code === status.UNIMPLEMENTED) {
        console.error('error:', explain(error));
        process.exit(1);
      }
      console.log('lost', explain(error));
      await sleep(pause(error));
    }
  }
}

main();
