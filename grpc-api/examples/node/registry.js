// What the programs beside this one share: the connection to the servers, and what an error says.
'use strict';

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const protobuf = require('protobufjs');

const { eureka } = grpc.loadPackageDefinition(
  loader.loadSync('eureka/v1/registry.proto', {
    includeDirs: [path.join(__dirname, '../../proto')],
    keepCase: true,
    // Milliseconds since 1970 and numbers of instances are safe as JavaScript's numbers.
    longs: Number,
    enums: String,
    defaults: true,
    // The field `event` then names which of the events a message of Watch is.
    oneofs: true,
  }),
);

// Every call of the registry may be tried again, so a unary one that meets a server that is stopping, or too busy, is.
const RETRIES = {
  methodConfig: [
    {
      name: [{ service: 'eureka.v1.Registry' }],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: '0.2s',
        maxBackoff: '2s',
        backoffMultiplier: 2,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
};

const OPTIONS = {
  // A connection that died without a word is found out after 20 + 5 seconds, well within a lease.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // gRPC's own default is two minutes: longer than a lease.
  'grpc.max_reconnect_backoff_ms': 5_000,
  'grpc.service_config': JSON.stringify(RETRIES),
};

// A client of the first of `HOST:PORT` or `IP:PORT,IP:PORT,...` that answers; when it fails, of the next one.
function connect(servers) {
  const address = servers.includes(',') ? `ipv4:${servers}` : servers;
  return new eureka.v1.Registry(address, grpc.credentials.createInsecure(), OPTIONS);
}

// The client's unary methods as functions that return promises; a call without a deadline would wait for ever.
function calls(client, seconds = 10) {
  const call = (method) => (request) =>
    new Promise((resolve, reject) => {
      const deadline = Date.now() + seconds * 1000;
      client[method](request, { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
    });
  const unary = Object.entries(eureka.v1.Registry.service).filter(
    ([, method]) => !method.requestStream && !method.responseStream,
  );
  return Object.fromEntries(unary.map(([name]) => [name, call(name)]));
}

// What servers add to a code, as google/rpc/status.proto and error_details.proto have it; grpc-js leaves it encoded.
const google = protobuf.parse(`
  syntax = "proto3";
  package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
  message FieldViolation { string field = 1; string description = 2; }
  message BadRequest { repeated FieldViolation field_violations = 1; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
`, { keepCase: true }).root;

// The detail of one kind, such as `ErrorInfo`, that an error carries; an empty object if there is none.
function detail(error, kind) {
  const [encoded] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!encoded) return {};
  const { details } = google.lookupType('google.rpc.Status').decode(encoded);
  const found = details.find(({ type_url }) => type_url.endsWith(`/google.rpc.${kind}`));
  return found ? google.lookupType(`google.rpc.${kind}`).decode(found.value) : {};
}

// The reason, such as `NOT_REGISTERED`; empty if the error gives none.
function reason(error) {
  return detail(error, 'ErrorInfo').reason ?? '';
}

// How many milliseconds the server asks to wait; 1,000 if it does not.
function pause(error) {
  const { seconds = 0, nanos = 0 } = detail(error, 'RetryInfo').retry_delay ?? {};
  return Number(seconds) * 1000 + nanos / 1e6 || 1000;
}

// An error in one line: `NOT_FOUND NOT_REGISTERED: what the server said`.
function explain(error) {
  if (!(error.code in grpc.status)) return String(error);
  const fields = (detail(error, 'BadRequest').field_violations ?? []).map((v) => `${v.field}: ${v.description}`);
  const words = [grpc.status[error.code], reason(error)].filter(Boolean);
  return `${words.join(' ')}: ${fields.join('; ') || error.details}`;
}

module.exports = { connect, calls, explain, reason, pause, status: grpc.status };
