// eureka-js-client or one of its forks: drive.js FOLDER PACKAGE [no-instance-id]
// With `no-instance-id` it registers as the client's own guide does, and the host name is the id.
'use strict'

const path = require('path')
const readline = require('readline')

const [folder, packageName, variant] = process.argv.slice(2)
const { Eureka } = require(require.resolve(packageName, { paths: [path.join(__dirname, folder)] }))
const environment = process.env
const server = new URL(environment.EUREKA_URL)
const home = `http://${environment.HOST_NAME}:${environment.INSTANCE_PORT}/`
const renewMilliseconds = environment.RENEW_SECS * 1000

// Standard output belongs to the answers alone: whatever a library prints there goes to the log.
const log = (...words) => console.error(...words)
console.log = console.info = log
// The runner may be gone before the client has left.
process.stdout.on('error', () => {})
const answer = (line) => process.stdout.write(line + '\n')

const client = new Eureka({
  logger: { debug: () => {}, info: log, warn: log, error: log },
  shouldUseDelta: true,
  instance: {
    ...(variant === 'no-instance-id' ? {} : { instanceId: environment.INSTANCE_ID }),
    app: environment.APP,
    hostName: environment.HOST_NAME,
    ipAddr: '127.0.0.1',
    port: { $: Number(environment.INSTANCE_PORT), '@enabled': 'true' },
    vipAddress: environment.APP.toLowerCase(),
    secureVipAddress: environment.APP.toLowerCase(),
    homePageUrl: home,
    statusPageUrl: home + 'info',
    healthCheckUrl: home + 'health',
    dataCenterInfo: { '@class': 'com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo', name: 'MyOwn' },
    leaseInfo: {
      renewalIntervalInSecs: Number(environment.RENEW_SECS),
      durationInSecs: Number(environment.LEASE_SECS)
    },
    metadata: { lang: 'js', retries: 3, canary: true }
  },
  eureka: {
    host: server.hostname,
    port: Number(server.port || 80),
    servicePath: server.pathname + '/apps/',
    heartbeatInterval: renewMilliseconds,
    registryFetchInterval: environment.FETCH_SECS * 1000,
    maxRetries: 1,
    requestRetryDelay: 100
  }
})

const finished = (work) => new Promise((resolve, reject) => {
  work((error) => error ? reject(error) : resolve())
})

// A heartbeat that is under way while the client leaves is answered 404, and the client registers again. So it
// leaves just after a heartbeat, or after three intervals without one.
const heartbeatOver = () => new Promise((resolve) => {
  const timer = setTimeout(resolve, 3 * renewMilliseconds)
  client.once('heartbeat', () => { clearTimeout(timer); resolve() })
})

async function outcome (line) {
  const [command, argument] = line.trim().split(/\s+/)
  if (command === 'find') return `found ${client.getInstancesByAppId(argument).length}`
  if (command === 'status') return 'unsupported the client has no call for it'
  throw new Error(`no command ${command}`)
}

const failure = (error) => {
  log(error)
  return `error ${String(error).replace(/\s+/g, ' ')}`
}

async function main () {
  await finished((callback) => client.start(callback))
  answer('registering ' + JSON.stringify({ id: client.instanceId }))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.trim() === 'leave') break
    answer(await outcome(line).catch(failure))
  }
  await heartbeatOver()
  await finished((callback) => client.stop(callback))
  answer('left')
}

main().then(() => process.exit(0), (error) => {
  answer(failure(error))
  process.exit(1)
})
