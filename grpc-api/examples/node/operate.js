// Single calls to the registry.
//
//   node operate.js get ORDERS orders-1
//   node operate.js list 'app == ORDERS && status == UP'
//   node operate.js status ORDERS orders-1 OUT_OF_SERVICE
//   node operate.js clear ORDERS orders-1
//   node operate.js metadata ORDERS orders-1 version=2
'use strict';

const { parseArgs } = require('node:util');
const { connect, calls, explain } = require('./registry');

const OPERATIONS = {
  async get(registry, app, instance_id) {
    const { instance } = await registry.GetInstance({ app, instance_id });
    show(instance);
  },

  async list(registry, filter = '') {
    let page_token = '';
    do {
      const page = await registry.ListApplications({ filter, page_token });
      page.applications.flatMap(({ instances }) => instances).forEach(show);
      page_token = page.next_page_token;
    } while (page_token);
  },

  async status(registry, app, instance_id, status) {
    await registry.SetStatus({ app, instance_id, status: `STATUS_${status}` });
  },

  async clear(registry, app, instance_id) {
    // UP until the instance reports something else. Without a status it would be UNKNOWN and have to register again.
    await registry.ClearStatus({ app, instance_id, status: 'STATUS_UP' });
  },

  async metadata(registry, app, instance_id, ...pairs) {
    const metadata = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s, 2)));
    await registry.UpdateMetadata({ app, instance_id, metadata });
  },
};

function show({ app, instance_id, status, ip_address, port, metadata }) {
  const pairs = Object.entries(metadata).sort().map((pair) => pair.join('='));
  const address = `${ip_address}:${port?.number ?? 0}`;
  console.log(`${app}/${instance_id}`, status.slice('STATUS_'.length), address, pairs.join(' '));
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { servers: { type: 'string', default: '127.0.0.1:9761' } },
    allowPositionals: true,
  });
  const [name, ...words] = positionals;
  if (!(name in OPERATIONS)) {
    console.error(`usage: node operate.js [--servers HOST:PORT,...] ${Object.keys(OPERATIONS).join('|')} ...`);
    process.exit(2);
  }
  const client = connect(values.servers);
  try {
    await OPERATIONS[name](calls(client), ...words);
  } catch (error) {
    console.error('error:', explain(error));
    process.exitCode = 1;
  }
  client.close();
}

main();
